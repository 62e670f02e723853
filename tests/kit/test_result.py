"""What commands find, in Python: records, rows, columns, pictures, files."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import attnviz
from tests.commands.atlas.atlases import made_scan
from tests.conftest import Run
from tests.reading import rows_in

ROOT = Path(__file__).parents[2]

TEXT = "a fluffy blue creature roamed . the creature was"
LINKS = [{"text": "a fluffy blue creature", "links": [["creature", ["fluffy", "blue"]]]}]
SAME: list[tuple[Callable[[], Any], tuple[str, ...]]] = [
    (
        lambda: attnviz.heads(TEXT, sort="first", top=3),
        ("heads", TEXT, "--sort", "first", "--top", "3"),
    ),
    (
        lambda: attnviz.heads(samples=2, role="induction"),
        ("heads", "--samples", "2", "--role", "induction"),
    ),
    (lambda: attnviz.heads(circuits=True, top=2), ("heads", "--circuits", "--top", "2")),
    (
        lambda: attnviz.heads(TEXT, words=True, drop_key=["a", 2]),
        ("heads", TEXT, "--words", "--drop-key", "a", "--drop-key", "2"),
    ),
    (lambda: attnviz.predict(TEXT, each=True, top=2), ("predict", TEXT, "--each", "--top", "2")),
    (
        lambda: attnviz.predict(TEXT, attribute=True, versus="a", top=4),
        ("predict", TEXT, "--attribute", "--versus", "a", "--top", "4"),
    ),
    (
        lambda: attnviz.ablate(TEXT, answer="blue", replacement="mean", layers="1"),
        ("ablate", TEXT, "--answer", "blue", "--with", "mean", "--layer", "1"),
    ),
    (
        lambda: attnviz.ablate(TEXT, heads="L1H1,L2H2", together=True, top=2),
        ("ablate", TEXT, "--head", "L1H1,L2H2", "--together", "--top", "2"),
    ),
    (
        lambda: attnviz.compare("the cat sat", "a cat ran off", query="cat"),
        ("compare", "the cat sat", "a cat ran off", "--query", "cat"),
    ),
    (
        lambda: attnviz.compare(TEXT, against="builtin", top=3),
        ("compare", TEXT, "--against", "builtin", "--top", "3"),
    ),
    (
        lambda: attnviz.why(TEXT, head="L4H0", query=-1, key="fluffy", top=3),
        ("why", TEXT, "--head", "L4H0", "--query", "-1", "--key", "fluffy", "--top", "3"),
    ),
    (lambda: attnviz.writes(TEXT, head="L2H1"), ("why", TEXT, "--head", "L2H1", "--writes")),
]
"""The same from Python and from the command line."""


@pytest.mark.parametrize(("found", "arguments"), SAME, ids=[" ".join(a) for _, a in SAME])
def test_rows_and_text_are_those_of_the_command(
    run: Run, found: Callable[[], Any], arguments: tuple[str, ...]
) -> None:
    result = found()
    assert result.rows == rows_in(run(*arguments, "-f", "jsonl").out)
    # but for sentences that name an option, which Python spells as an argument
    shown = [line for line in run(*arguments).out.splitlines() if line]
    other = [line for line in shown if line not in str(result).splitlines()]
    assert len(shown) > 3
    assert not other or (len(other) < 3 and re.search(r"--?[a-z]", other[0]))
    assert "\n" not in repr(result)
    assert repr(result).startswith(f"<Result of {arguments[0]}: ")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "jsonl"])
def test_files_are_those_of_the_command(run: Run, suffix: str, tmp_path: Path) -> None:
    attnviz.heads(TEXT, top=4).save(tmp_path / f"a.{suffix}")
    assert (tmp_path / f"a.{suffix}").read_text() == run(
        "heads", TEXT, "--top", "4", "-f", suffix
    ).out


def test_columns_are_what_both_kinds_of_data_frames_take() -> None:
    for result in (
        attnviz.heads(TEXT),
        attnviz.predict(TEXT, lens=True),
        attnviz.ablate(TEXT, heads="L1H1,L2H2", together=True),
        attnviz.show(TEXT, heads="all", top=2),
        attnviz.generate(TEXT, max_new_tokens=2),
    ):
        columns = result.to_columns()
        assert all(isinstance(column, np.ndarray) for column in columns.values())
        for frame in (pandas.DataFrame(columns), polars.DataFrame(columns)):
            assert list(frame.columns) == list(columns)
            assert len(frame) == len(next(iter(columns.values())))
        assert not any(kind == polars.Object for kind in polars.DataFrame(columns).dtypes)


def test_a_missing_number_is_nan_and_whole_numbers_stay_whole() -> None:
    columns = attnviz.predict(TEXT, lens=True, top=1).to_columns()
    assert columns["rank"].dtype == np.int64
    assert columns["layer"][:4].tolist() == [0, 1, 2, 3]
    assert np.isnan(columns["layer"][-1])


def test_links_as_columns_are_the_rows_of_show(run: Run) -> None:
    capture = attnviz.capture(TEXT)
    options: dict[str, Any] = {"heads": "2", "query": ["creature#2", -1], "top": 3, "words": True}
    columns = capture.to_columns(**options)
    out = run(
        *("show", TEXT, "--head", "2", "--query", "creature#2", "--query", "-1"),
        *("--top", "3", "--words", "-f", "csv"),
    ).out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == len(columns["weight"])
    for name, values in columns.items():
        if name == "weight":
            np.testing.assert_allclose(values, [float(row[name]) for row in rows], rtol=1e-6)
        else:
            assert list(map(str, values)) == [row[name] for row in rows]
    every = capture.to_columns()
    assert set(every["layer"]) == set(range(5))
    assert {kind.dtype for name, kind in every.items() if name in ("layer", "head")} == {
        np.dtype(np.int64)
    }


def test_a_capture_draws_what_the_command_draws(run: Run, tmp_path: Path) -> None:
    shown = attnviz.capture(TEXT).show("grid", drop_sink=True, dpi=60)
    shown.save(tmp_path / "python.png")
    run("show", TEXT, "--view", "grid", "--drop-sink", "--dpi", "60", "-o", str(tmp_path / "a.png"))
    assert (tmp_path / "python.png").read_bytes() == (tmp_path / "a.png").read_bytes()
    figure = attnviz.capture(TEXT).figure(heads="L3H2", title="mine")
    assert any(
        "mine" in text.get_text() for text in figure.findobj(lambda x: hasattr(x, "get_text"))
    )


def test_what_is_shown_as_text_is_what_the_command_shows(run: Run) -> None:
    python = str(attnviz.show(TEXT, heads="L3H2", view="heatmap", cmap="magma"))
    assert python.rstrip() == run("show", TEXT, "--head", "L3H2", "--view", "heatmap").out.rstrip()


def test_scores_and_norms_are_recorded_where_they_are_asked_for() -> None:
    scores = attnviz.capture(TEXT, heads="L3H2", scores=True)
    assert list(scores.to_columns())[6] == "score"
    norms = attnviz.capture(TEXT, heads="L3H2", weighted=True)
    np.testing.assert_array_equal(
        norms.to_columns(weighted=True)["weight"],
        attnviz.show(TEXT, heads="L3H2", weighted=True).to_columns()["weight"],
    )


def test_a_page_is_that_of_the_command(run: Run, tmp_path: Path) -> None:
    run("show", TEXT, "-o", str(tmp_path / "a.html"))
    assert attnviz.capture(TEXT).page() == (tmp_path / "a.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: attnviz.heads(labels=[{"text": TEXT}]), "line 1: there are no links"),
        (lambda: attnviz.explain(), "explain takes exactly one thing"),
        (lambda: attnviz.show(TEXT, view="cloud"), "view='cloud' is not known"),
        (lambda: attnviz.show(TEXT, view="table").figure(), "view='table' cannot be a picture"),
        (lambda: attnviz.show(TEXT, query="zzz"), "query='zzz' is not in the text"),
        (lambda: attnviz.ablate(TEXT, heads=2.5), "2.5 names no head"),  # type: ignore[arg-type]
        (lambda: attnviz.load_model(dtype="float8"), "dtype='float8' is not known"),  # type: ignore[arg-type]
        (lambda: attnviz.heads(TEXT).save("a.csv", cmap="Blues"), "cmap is for pictures"),
        (lambda: attnviz.show(attnviz.capture([TEXT] * 2), weighted=True), "weighted"),
        (lambda: attnviz.predict(TEXT).figure(), "draws no picture"),
        (lambda: attnviz.predict(TEXT).save("a.npz"), "writes no npz"),
        (lambda: attnviz.explain(TEXT).save("a.csv"), "explain writes no rows"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence_without_flags(
    wrong: Callable[[], object], said: str
) -> None:
    with pytest.raises(attnviz.AttnvizError) as raised:
        wrong()
    assert said in str(raised.value)
    assert "--" not in str(raised.value)


def test_an_option_that_there_is_not_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="no option 'heds'"):
        attnviz.show(TEXT, heds="L1H1")  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"generate\(\) has no option 'documents'; did you mean docs"
    ):
        attnviz.generate(TEXT, documents={"a": "b"})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"heads\(\) has no option 'qwxyz'$"):
        attnviz.load_model().heads(TEXT, qwxyz=1)


def test_labels_from_a_file_and_from_objects_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, LINKS)))
    from_file = attnviz.heads(labels=tmp_path / "l.jsonl")
    assert from_file.rows == attnviz.heads(labels=LINKS).rows
    assert len(from_file.record.runs) == 1


def test_a_calculation_has_every_array_and_its_steps(run: Run, tmp_path: Path) -> None:
    steps = attnviz.explain(TEXT, head="L3H2", query="creature#1", digits=3)
    told = json.loads(
        run("explain", TEXT, "--head", "L3H2", "--query", "creature#1", "-f", "json").out
    )
    assert list(steps.arrays) == list(told["arrays"])
    shown = run("explain", TEXT, "--head", "L3H2", "--query", "creature#1", "--digits", "3").out
    assert str(steps).splitlines()[4:] == shown.replace("--writes", "writes").splitlines()[4:]
    steps.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["pattern"], steps.arrays["pattern"])
    example = attnviz.explain(example="three-inputs", rounded=True)
    assert str(example) == run("explain", "--example", "three-inputs", "--rounded").out
    assert "embeddings" in repr(attnviz.explain(TEXT, "embeddings"))


def test_the_methods_of_a_model_are_the_functions() -> None:
    model = attnviz.load_model()
    assert model.heads(TEXT).rows == attnviz.heads(TEXT).rows
    assert model.predict(TEXT).rows == attnviz.predict(TEXT).rows
    assert model.ablate(TEXT, heads="L1H1").rows == attnviz.ablate(TEXT, heads="L1H1").rows
    assert model.compare(TEXT, TEXT).rows == attnviz.compare(TEXT, TEXT).rows
    assert repr(model.explain(TEXT)) == repr(attnviz.explain(TEXT))
    assert repr(model.show(TEXT)) == repr(attnviz.show(TEXT))
    assert model.writes(TEXT).rows == attnviz.writes(TEXT).rows


def test_answers_and_scans_draw_their_pictures(tmp_path: Path) -> None:
    answer = attnviz.generate(TEXT, max_new_tokens=2)
    named = [text.get_text() for text in answer.figure("token", title="mine").findobj(_is_text)]
    assert "mine" in named
    scan = attnviz.atlas(made_scan(tmp_path / "scan"))
    assert any("induction" in text.get_text() for text in scan.figure().findobj(_is_text))
    plotted = scan.figure("previous,induction", top=1)
    assert any("previous" in text.get_text() for text in plotted.findobj(_is_text))


def _is_text(artist: object) -> bool:
    return hasattr(artist, "get_text")


def test_the_table_of_options_is_made_of_the_commands() -> None:
    made = subprocess.run(
        [sys.executable, "docs/make_python.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr


def test_parts_of_a_character_are_merged_for_people_and_not_for_programs() -> None:
    capture = attnviz.capture("她喜欢猫", heads="L3H2")
    assert any("1/3" in token for token in capture.to_columns()["query_token"])
    assert "1/3" not in str(capture.show())
    assert "1/3" in str(capture.show(chars=False))
    assert not any("1/3" in text.get_text() for text in capture.figure().findobj(_is_text))


def test_heads_are_named_by_names_numbers_and_pairs() -> None:
    capture = attnviz.capture(TEXT)
    for given in ("L3H2,L1H0", [(3, 2), "1.0"], ["L1H0", (3, 2)]):
        columns = capture.to_columns(heads=given, top=1)
        assert sorted({*zip(columns["layer"], columns["head"], strict=True)}) == [(1, 0), (3, 2)]
    assert set(capture.to_columns(layers=3)["layer"]) == {3}
    assert set(capture.to_columns(heads=2)["head"]) == {2}
    assert repr(attnviz.explain(TEXT, head=(3, 2))) == repr(attnviz.explain(TEXT, head="L3H2"))


def test_columns_have_their_types_whatever_is_missing() -> None:
    alone, each = (attnviz.predict(TEXT, each=each).to_columns() for each in (False, True))
    assert {n: c.dtype for n, c in alone.items()} == {n: c.dtype for n, c in each.items()}
    assert alone["followed"].tolist() == [""] * len(alone["rank"])
    assert polars.concat([polars.DataFrame(alone), polars.DataFrame(each)]).height > len(alone)


def test_results_say_what_there_is_to_say_of_a_text() -> None:
    strange = "Tu n'aurais pas vu mes chaussures, par hasard ?"
    for found in (
        attnviz.show(strange),
        attnviz.heads(strange),
        attnviz.predict(strange),
        attnviz.explain(strange),
    ):
        assert len(found.notes) == 1
        assert "has not seen text like this" in found.notes[0]
    assert attnviz.predict(TEXT).notes == ()


def test_a_model_and_its_results_show_themselves_in_a_line_and_in_a_notebook() -> None:
    assert repr(attnviz.load_model()) == "<Model builtin, 5 layers, 20 heads>"
    found = attnviz.predict("a < b & c")
    assert found._repr_html_().startswith("<pre>")
    assert "<" not in found._repr_html_()[5:-6]


def test_several_texts_have_the_rows_of_lines_and_their_mean(run: Run) -> None:
    texts = [TEXT, "Bark is very cute and he is a"]
    stdin = "\n".join(texts).encode()
    for found, arguments in (
        (attnviz.ablate(texts, layers=2), ("ablate", "--layer", "2")),
        (
            attnviz.ablate(texts, heads="L2H0", together=True, top=2),
            ("ablate", "--head", "L2H0", "--together", "--top", "2"),
        ),
        (attnviz.predict(texts, each=True, top=2), ("predict", "--each", "--top", "2")),
    ):
        lines = rows_in(run(*arguments, "--lines", "-f", "jsonl", stdin=stdin).out)
        assert found.rows == lines
        assert "mean of 2 texts" in str(found)
        assert len(found.to_columns()["line"]) == len(lines)
    own = attnviz.ablate(texts, answer=["blue", "Bark"], layers=2)
    pairs = zip(texts, ("blue", "Bark"), strict=True)
    stdin = "\n".join(json.dumps({"text": t, "answer": a}) for t, a in pairs).encode()
    lines = run("ablate", "--pairs", "-", "--layer", "2", "-f", "jsonl", stdin=stdin).out
    assert own.rows == rows_in(lines)
    with pytest.raises(attnviz.AttnvizError, match="one for each of 2"):
        attnviz.ablate(texts, answer=["blue"])
    with pytest.raises(attnviz.AttnvizError, match="there is no text"):
        attnviz.predict([])
