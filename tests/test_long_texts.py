"""Long texts are reduced as they come, and what is shown is the same as of whole patterns."""

import re
from pathlib import Path

import numpy as np
import pytest

from attnviz.commands.show.outputs import Needs, Show
from attnviz.commands.show.run import show_text
from attnviz.errors import ExitStatus
from attnviz.kit import prepare as preparing
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.models import engine
from attnviz.models.catalog import Source, load
from attnviz.models.loaded import LoadedModel
from attnviz.records.heads import Head
from tests.builtin import HEADS
from tests.conftest import Run, slow

TEXT = " ".join(
    "the fluffy blue creature roamed the verdant forest and Bark was very cute".split() * 9
)


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that every pattern comes in many blocks."""
    monkeypatch.setattr(engine, "LEAST_ROWS", 7)
    monkeypatch.setattr(engine, "MOST_ROWS", 7)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--head", "all", "--top", "3", "-f", "jsonl"],
        ["--head", "all", "--top", "2", "-f", "csv", "--key", "creature", "--key", "0"],
        ["--head", "L1H0", "--min", "0.2", "-f", "tsv"],
        ["--head", "L0H0,L0H2", "--min", "0.3", "--top", "1", "-f", "jsonl", "--query", "Bark"],
        ["--head", "L0H0,L2H1"],
        ["--head", "L1H1", "--top", "4", "--width", "60"],
        ["--layer", "1", "--query", "forest", "--key", "creature"],
        ["--head", "all", "--view", "grid"],
        ["--head", "L1H0", "--view", "heatmap"],
        ["--head", "L1H0", "--view", "text", "--query", "5"],
        ["--head", "L1H0", "-f", "json"],
        ["--layer", "2", "--reduce", "mean", "--top", "2"],
        ["--layer", "2", "--words", "--top", "2"],
    ],
    ids=" ".join,
)
def test_the_same_is_shown_as_of_whole_patterns(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    whole = run("show", TEXT, *arguments)
    monkeypatch.setattr(preparing, "SMALL", 0)
    reduced = run("show", TEXT, *arguments)
    assert whole.status is reduced.status is ExitStatus.OK
    # sums of the same numbers in another order differ in their last decimals
    assert _rounded(reduced.out) == _rounded(whole.out)
    assert reduced.err == whole.err


def _rounded(text: str) -> str:
    return re.sub(r"\d\.\d{5,}(e-\d+)?", lambda found: f"{float(found[0]):.5f}", text)


@pytest.mark.parametrize("heads", ["all", slow("L1H0"), slow("L2H1,L1H2")])
@pytest.mark.parametrize("orient", ["query-rows", "key-rows"])
def test_pictures_are_the_same(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, heads: str, orient: str
) -> None:
    """Of heads without a sink: its share is said where the whole matrix is at hand."""
    arguments = ["show", TEXT, "--head", heads, "--dpi", "40", "--orient", orient, "-o"]
    assert run(*arguments, str(tmp_path / "whole.png")).status is ExitStatus.OK
    monkeypatch.setattr(preparing, "SMALL", 0)
    assert run(*arguments, str(tmp_path / "reduced.png")).status is ExitStatus.OK
    assert (tmp_path / "whole.png").read_bytes() == (tmp_path / "reduced.png").read_bytes()


@pytest.fixture(scope="module")
def builtin() -> LoadedModel:
    return load(Source("builtin"))


def test_nothing_whole_is_kept_of_what_is_reduced(
    builtin: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "SMALL", 0)
    monkeypatch.setattr(Prepared, "record", lambda *_: pytest.fail("whole patterns were kept"))
    everything = HeadOptions(everything=True)
    for needs in (Needs(links=3), Needs(cells=lambda *_: 16)):
        exhibit = show_text(builtin, TEXT, TextOptions(), Show(everything, needs=needs))
        assert len(exhibit.maps) == len(HEADS)


def test_without_a_card_the_head_is_picked_by_its_score_in_a_run_of_its_own(
    run: Run, monkeypatch: pytest.MonkeyPatch, gpt2_folder: Path
) -> None:
    arguments = ["show", "--model", str(gpt2_folder), "abcdefgh ijklmno pqrstuv"]
    whole = run(*arguments)
    monkeypatch.setattr(preparing, "SMALL", 0)
    assert run(*arguments).out == whole.out
    assert "(chosen for its effect on the next token" in " ".join(whole.out.split())


def test_only_the_rows_asked_for_are_computed(builtin: LoadedModel) -> None:
    prepared = prepare(builtin, TEXT, TextOptions())
    seen: list[np.ndarray] = []
    prepared.run([Head(1, 2)], lambda block: seen.append(block.queries), (3, 70, 71))
    assert np.concatenate(seen).tolist() == [3, 70, 71]
