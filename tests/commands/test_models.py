"""`attnviz models`: which models there are, and what a card says."""

from pathlib import Path

import pytest

import attnviz
from attnviz.commands.models import _figures
from attnviz.errors import ExitStatus
from attnviz.models.catalog import Source, load
from attnviz.records.heads import Figure
from tests.conftest import Run
from tests.reading import on_one_line, rows_of


def test_the_sizes_of_the_list_are_those_of_the_loaded_model(run: Run) -> None:
    (row,) = (r for r in rows_of(run("models", "-f", "json").out) if r["name"] == "builtin")
    model = attnviz.load_model()
    assert row["parameters"] == model._loaded.identity.parameters
    assert row["context"] == model._loaded.tokenizer.context
    assert row["heads_per_layer"] == model.heads_per_layer[0]


def test_a_folders_facts_are_shown_and_that_it_names_no_head(run: Run, gpt2_folder: Path) -> None:
    shown = run("models", str(gpt2_folder), "--width", "200")
    assert shown.status is ExitStatus.OK
    assert "2 layers × 3 heads" in shown.out
    assert "none of its heads is named" in shown.out


def test_a_model_that_is_only_counted_says_who_counts_it(run: Run) -> None:
    ended = run("models", "gpt3")
    assert ended.status is ExitStatus.MODEL
    assert "attnviz params gpt3 counts its parameters" in ended.err
    assert "gpt2-xl" in ended.err


def test_embeddings_have_a_card_of_their_own(run: Run) -> None:
    (card,) = rows_of(run("models", "embeddings", "-f", "json").out)
    identity = load(Source("embeddings")).identity
    assert (card["layers"], card["heads"]) == (1, 1)
    assert card["parameters"] == identity.parameters
    assert card["figures"] == card["named_heads"] == []
    assert "attention without W_Q, W_K and W_V" in on_one_line(run("models", "embeddings").out)


@pytest.mark.parametrize("name", [[], ["builtin"], ["translator"]])
@pytest.mark.parametrize("width", ["40", "55", "80", "200"])
def test_at_every_width_nothing_is_cut(run: Run, name: list[str], width: str) -> None:
    lines = run("models", *name, "--width", width).out.splitlines()
    assert all(len(line) <= int(width) and line == line.rstrip() for line in lines)
    whole = on_one_line(run("models", *name, "--width", "200").out)
    narrow = set(" ".join(lines).replace(":", " ").split())
    named = {"model", "head", "read-out"}  # the first column, which then stands without its name
    assert {word.rstrip(":") for word in whole.split()} - named <= narrow


def test_a_figure_without_a_bar_has_no_column_for_one() -> None:
    figures = [Figure("language", "held-out loss", 1.0, None, 900)]
    (head, row) = [line.plain for line in _figures(figures, 80)]
    assert head.split()[-2:] == ["value", "cases"]
    assert row.split()[-2:] == ["1.000", "900"]
