"""`attnviz models`: which models there are, and what a card says."""

import csv
import io
import json
from pathlib import Path

import attnviz
from attnviz.errors import ExitStatus
from tests.conftest import Run


def test_the_list_names_the_built_in_model_and_those_of_the_hub(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("models", "-f", "csv").out)))
    sizes = {row["name"]: (int(row["layers"]), int(row["heads"])) for row in rows}
    assert sizes["builtin"] == (4, 16)
    assert sizes["gpt2"] == (12, 144)
    shown = run("models").out
    assert all(name in shown for name in sizes)


def test_the_sizes_of_the_list_are_those_of_the_loaded_model(run: Run) -> None:
    (row,) = (r for r in json.loads(run("models", "-f", "json").out) if r["name"] == "builtin")
    model = attnviz.load_model()
    assert row["parameters"] == model._loaded.identity.parameters
    assert row["context"] == model._loaded.tokenizer.context
    assert row["heads_per_layer"] == model.heads_per_layer[0]


def test_the_card_shows_every_named_head_and_figure(run: Run) -> None:
    (card,) = json.loads(run("models", "builtin", "-f", "json").out)
    shown = " ".join(run("models", "builtin", "--width", "200").out.split())
    assert {head["behaviour"] for head in card["named_heads"]} >= {
        "adjectives",
        "pronouns",
        "mystery",
        "senses",
        "induction",
        "previous token",
    }
    for head in card["named_heads"]:
        assert f"{head['head']} {head['behaviour']} {head['title']}" in shown
    for figure in card["figures"]:
        assert f"{figure['measure']} {figure['value']:.3f}" in shown


def test_a_folders_facts_are_shown_and_that_it_names_no_head(run: Run, gpt2_folder: Path) -> None:
    shown = run("models", str(gpt2_folder), "--width", "200")
    assert shown.status is ExitStatus.OK
    assert "2 layers × 3 heads" in shown.out
    assert "no head of it is named" in shown.out


def test_a_model_that_was_not_fetched_is_described_from_the_table(run: Run) -> None:
    assert "124,439,808 parameters" in " ".join(run("models", "gpt2").out.split())
