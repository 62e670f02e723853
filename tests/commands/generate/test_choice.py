"""Which heads an answer is shown by, and what is said where none retrieves."""

import io
import json
import os
import shutil
from pathlib import Path
from typing import Any, Never

import pytest

import attnviz
from attnviz.cli import main
from attnviz.commands.heads import retrieval
from attnviz.commands.heads.retrieval import measure_retrieval
from attnviz.console import Environment
from attnviz.errors import ExitStatus
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session
from attnviz.records.heads import every_head
from tests.architectures import gpt2_in_memory
from tests.commands.heads.test_retrieval import planted, saved
from tests.conftest import Run, Terminal, tiny_model
from tests.reading import on_one_line


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def first_row(run: Run, name: str, *more: str) -> tuple[str, str]:
    """The heads that the first row names, and what stands on stderr."""
    ended = run("generate", "abcdab", "-m", name, "--max-new-tokens", "1", "-f", "jsonl", *more)
    return json.loads(ended.out.splitlines()[0])["heads"], on_one_line(ended.err)


def test_the_first_answer_measures_the_heads_and_later_ones_take_the_same(
    run: Run, tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = saved(tmp_path / "model", planted())
    assert first_row(run, name) == ("L1H0", "")
    assert len(list((own_cache / "attnviz").iterdir())) == 1
    monkeypatch.setattr(retrieval, "measure_retrieval", refuse)
    assert first_row(run, name) == ("L1H0", "")
    assert attnviz.generate("abcdab", name, max_new_tokens=1).shares()[0]["heads"] == "L1H0"


def refuse(*_: object) -> Never:
    raise AssertionError("it was measured again")


def test_python_measures_too_and_the_document_that_is_copied_from_has_the_largest_share(
    tmp_path: Path,
) -> None:
    name, docs = saved(tmp_path / "model", planted()), {"one": "cdcdcd", "two": "xabyz", "3": "eff"}

    def shares(heads: str | None) -> dict[str, float]:
        rows = attnviz.generate("a", name, docs=docs, target="by", heads=heads).shares()
        return {row["segment"]: row["share"] for row in rows}

    assert shares(None)["two"] > 0.95
    assert shares("all")["two"] < 0.55


def test_a_table_names_each_measured_head_and_the_title_of_a_picture_the_first_and_last(
    run: Run, tmp_path: Path
) -> None:
    name = saved(tmp_path / "model", tiny_model(n_layer=2, n_head=5, n_embd=20, n_positions=64))
    model = attnviz.load_model(name)._loaded
    heads = every_head(model.identity.heads_per_layer)
    kept = retrieval.Retrieval(
        model.identity, retrieval.Needles(), tuple((head, 0.5) for head in heads)
    )
    retrieval.keep(model, kept)
    asked = ("generate", "abcdab", "-m", name, "--max-new-tokens", "1")
    named = ", ".join(map(str, heads))
    assert f"the mean of the retrieval heads {named}: 6" in on_one_line(run(*asked).out)
    title = "the mean of the retrieval heads L0H0 to L1H4 (10 heads)"
    assert title in on_one_line(run(*asked, "--view", "heatmap").out)


def test_a_terminal_shows_how_far_the_measurement_is_and_quiet_shows_nothing(
    tmp_path: Path,
) -> None:
    name, said = saved(tmp_path / "model", planted()), list[str]()
    for more in (["--head", "all"], ["-q"], []):
        shutil.rmtree(Path(os.environ["XDG_CACHE_HOME"]) / "attnviz", ignore_errors=True)
        out, err = (Terminal(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        session = Session(Environment(out, err, {}, None), Stdin(io.BytesIO(), is_terminal=True))
        main(["generate", "abcdab", "-m", name, "--max-new-tokens", "1", *more], session)
        assert isinstance(err.buffer, io.BytesIO)
        said.append(err.buffer.getvalue().decode())
    assert ["measuring which heads retrieve, 10/10 runs" in each for each in said] == [0, 0, 1]
    assert said[1] == ""


def test_where_nothing_can_be_kept_the_lines_of_one_run_are_measured_once(
    run: Run, tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.write_text("a file")
    measured = list[object]()

    def measure(*arguments: Any) -> retrieval.Retrieval:
        measured.append(arguments)
        return measure_retrieval(*arguments)

    monkeypatch.setattr(retrieval, "measure_retrieval", measure)
    name = saved(tmp_path / "model", planted())
    lines = "abcdab\nbcdebc\n"
    out = run(
        *("generate", "--lines", "-m", name, "--max-new-tokens", "1", "-f", "jsonl"),
        stdin=lines.encode(),
    ).out
    assert {json.loads(line)["heads"] for line in out.splitlines()} == {"L1H0"}
    assert len(measured) == 1


def test_a_context_that_holds_no_haystack_joins_all_heads_and_says_so(
    run: Run, tmp_path: Path, own_cache: Path
) -> None:
    name = saved(tmp_path / "model", tiny_model(n_positions=20))
    heads, said = first_row(run, name)
    assert heads == "all"
    assert "cannot be measured, as the context of 20 tokens" in said
    assert "heads are joined" in said
    assert not own_cache.exists()


def test_a_results_file_that_was_made_with_other_heads_is_refused(
    run: Run, tmp_path: Path, own_cache: Path
) -> None:
    name, out = saved(tmp_path / "model", planted()), tmp_path / "r.jsonl"
    (tmp_path / "q.jsonl").write_text(
        '{"question": "a", "documents": ["cdcd", "xaby"], "target": "by"}\n'
    )
    asked = ("generate", "--file", str(tmp_path / "q.jsonl"), "-m", name, "--resume", "-o")
    run(*asked, str(out))
    before = out.read_bytes()
    (kept,) = (own_cache / "attnviz").iterdir()
    kept.write_text(kept.read_text().replace('"L0H0": 0.0', '"L0H0": 1.0'))
    ended = run(*asked, str(out))
    assert ended.status is ExitStatus.USAGE
    assert "has the heads 'L1H0', but this run 'L0H0,L1H0'" in ended.err
    assert out.read_bytes() == before
    run(*asked, str(tmp_path / "new.jsonl"))
    rows = (tmp_path / "new.jsonl").read_text().splitlines()
    assert {json.loads(row)["heads"] for row in rows} == {"L0H0,L1H0"}


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
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = saved(tmp_path / "model", planted(matching=False))
    heads, said = first_row(run, name)
    assert heads == "all"
    assert "is known to retrieve, so all 2 heads are joined" in said
    monkeypatch.setattr(retrieval, "measure_retrieval", refuse)
    assert first_row(run, name) == (heads, said)


def test_heads_that_are_named_are_named_in_the_rows_and_nothing_is_measured(
    run: Run, tmp_path: Path, own_cache: Path
) -> None:
    name = saved(tmp_path / "model", planted())
    assert first_row(run, name, "--head", "L0H0") == ("L0H0", "")
    heads, said = first_row(run, name, "--head", "all")
    assert (heads, said) == ("L0H0,L1H0", "")
    assert first_row(run, name, "--head", "all", "--rows", "head")[0] == "L0H0"
    assert not own_cache.exists()


def test_a_model_in_memory_is_measured_by_its_fingerprint(own_cache: Path) -> None:
    model = attnviz.load_model(*gpt2_in_memory())
    notes = attnviz.generate("ab", model, max_new_tokens=1).notes
    assert "is known to retrieve" in notes[0]
    (kept,) = (own_cache / "attnviz").iterdir()
    assert model.fingerprint
    assert json.loads(kept.read_text())["model"]["fingerprint"] == model.fingerprint
    named = attnviz.generate("ab", model, max_new_tokens=1, heads="L0H1")
    assert not any("retrieval" in note for note in named.notes)
    assert named.shares()[0]["heads"] == "L0H1"


def test_an_encoder_decoder_has_nothing_to_be_measured(run: Run) -> None:
    said = run("generate", "the cat", "-m", "translator").err
    assert "retrieval" not in said


def test_the_probe_leaves_the_built_in_model_to_its_card(run: Run) -> None:
    assert "note" not in run("generate", "the creature was").err
    assert not os.path.exists(Path(os.environ["XDG_CACHE_HOME"]) / "attnviz")
