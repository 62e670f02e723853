"""Which heads an answer is shown by, and what is said where none is known to retrieve."""

import json
import os
from pathlib import Path

import pytest

import attnviz
from tests.architectures import gpt2_in_memory
from tests.commands.heads.test_retrieval import planted, saved
from tests.conftest import Run
from tests.reading import on_one_line


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def first_row(run: Run, name: str, *more: str) -> tuple[str, str]:
    """The heads that the first row names, and what stands on stderr."""
    ended = run("generate", "abcdab", "-m", name, "--max-new-tokens", "1", "-f", "jsonl", *more)
    return json.loads(ended.out.splitlines()[0])["heads"], on_one_line(ended.err)


def test_no_profile_joins_all_heads_and_prints_the_line_that_measures(
    run: Run, tmp_path: Path, own_cache: Path
) -> None:
    name = saved(tmp_path / "a m", planted())
    heads, said = first_row(run, name)
    assert heads == "all"
    assert "all 2 heads are joined" in said
    assert f"attnviz heads --retrieval -m '{name}'" in said
    assert not own_cache.exists()  # nothing was measured unasked
    run("heads", "--retrieval", "-m", name)
    heads, said = first_row(run, name)
    assert heads == "L1H0"
    assert "retrieval" not in said


def test_heads_that_python_measures_are_those_that_answers_are_then_shown_by(
    run: Run, tmp_path: Path
) -> None:
    name = saved(tmp_path / "model", planted())
    measured = attnviz.heads(model=name, retrieval=True).record.heads
    assert list(map(str, measured)) == ["L1H0"]
    assert first_row(run, name) == ("L1H0", "")
    answer = attnviz.generate("abcdab", name, max_new_tokens=1)
    assert answer.shares()[0]["heads"] == "L1H0"
    assert answer.notes == ()


def test_a_model_that_was_measured_and_has_none_is_not_measured_again(
    run: Run, tmp_path: Path
) -> None:
    name = saved(tmp_path / "model", planted(matching=False))
    run("heads", "--retrieval", "-m", name)
    heads, said = first_row(run, name)
    assert heads == "all"
    assert "was found to retrieve" in said
    assert "heads --retrieval" not in said


def test_heads_that_are_named_are_named_in_the_rows_and_need_no_note(
    run: Run, tmp_path: Path
) -> None:
    name = saved(tmp_path / "model", planted())
    assert first_row(run, name, "--head", "L0H0") == ("L0H0", "")
    heads, said = first_row(run, name, "--head", "all")
    assert (heads, said) == ("L0H0,L1H0", "")
    assert first_row(run, name, "--rows", "head")[0] == "L0H0"


def test_a_model_in_memory_is_told_how_python_measures_it() -> None:
    model = attnviz.load_model(*gpt2_in_memory())
    notes = attnviz.generate("ab", model, max_new_tokens=1).notes
    assert "attnviz.heads(model=…, retrieval=True).record.heads measures them" in notes[0]
    named = attnviz.generate("ab", model, max_new_tokens=1, heads="L0H1")
    assert not any("retrieval" in note for note in named.notes)
    assert named.shares()[0]["heads"] == "L0H1"


def test_an_encoder_decoder_has_nothing_to_be_measured(run: Run) -> None:
    said = run("generate", "the cat", "-m", "translator").err
    assert "retrieval" not in said


def test_the_probe_leaves_the_built_in_model_to_its_card(run: Run) -> None:
    assert "note" not in run("generate", "the creature was").err
    assert not os.path.exists(Path(os.environ["XDG_CACHE_HOME"]) / "attnviz")
