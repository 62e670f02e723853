"""`--check`: evidence that is given twice, groundedness, random subsets and curves."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.commands.generate.checked import _on_question, about_check, draw_curves
from attnviz.draw.picture.paint import PictureOptions
from attnviz.errors import ExitStatus, InputError, UsageError
from attnviz.models.loaded import LoadedModel
from attnviz.models.scratch.native import save_checkpoint
from attnviz.records.capture import FloatArray
from attnviz.records.grounding import Check, Deletion, Grounds, SmallestSet
from tests.conftest import Run, bytes_tokenizer, tiny_model
from tests.reading import on_one_line, rows_in

ASKS = "the murderer was"
TOLD, ELSE = "Tom was stabbed by Leo .", "Anna cleaned the floor ."
TWICE = {"letter": TOLD, "diary": ELSE, "report": TOLD, "note": "Clara painted the door ."}


@functools.cache
def builtin() -> LoadedModel:
    return attnviz.load_model("builtin")._loaded


def ids_of(text: str, *, bos: bool = False) -> list[int]:
    return [t.id for t in builtin().tokenizer.encode(text, bos=bos, special=False)]


def log_probability(docs: Mapping[str, str], answer: str) -> float:
    """Of an answer after these documents and the question: a run of its own, by hand."""
    model = builtin()
    prompt = "\n\n".join([*docs.values(), ASKS])
    return float(model.log_probabilities([ids_of(prompt, bos=True)], ids_of(answer)).sum())


def test_evidence_given_twice_is_found_by_joint_deletion_alone() -> None:
    check = attnviz.generate(ASKS, docs=TWICE, target=" Leo").check()
    assert max(abs(effect.change) for effect in check.effects) < 0.1
    assert check.grounds is not None
    assert check.grounds.change < -5
    assert check.smallest is not None
    assert check.smallest.segments == ("letter", "report")
    assert check.smallest.change < -5
    assert check.documents == tuple(TWICE)


def test_groundedness_is_the_formula_on_runs_by_hand() -> None:
    docs, answer = {"diary": ELSE, "letter": TOLD}, " Leo"
    check = attnviz.generate(ASKS, docs=docs, target=answer).check()
    assert check.grounds is not None
    model = builtin()
    whole = log_probability(docs, answer)
    # the blank lines between documents stay, as no document holds them
    text = f"{ELSE}\n\n{TOLD}\n\n{ASKS}"
    tokens = model.tokenizer.encode(text, bos=True, special=False)
    asks = text.index(ASKS)
    left = [t.id for t in tokens if t.special or not t.text.strip() or t.end > asks]
    without = float(model.log_probabilities([left], ids_of(answer)).sum())
    (said,) = check.statements
    assert check.log_probability == pytest.approx(whole, abs=1e-4)
    assert check.grounds.change == pytest.approx(without - whole, abs=1e-4)
    assert said.groundedness.share == pytest.approx((whole - without) / -without, abs=1e-4)
    assert said.groundedness.supported is True
    lost = f"{without - whole:+.2f} without all 2 documents"
    assert str(check) == f"<Check by delete: {whole:.2f} nats, {lost}, 1 of 1 statements supported>"


def test_a_statement_that_no_document_tells_is_not_supported(run: Run, tmp_path: Path) -> None:
    target = " Leo . a blue cat sat ."
    check = attnviz.generate(ASKS, docs={"letter": TOLD, "diary": ELSE}, target=target).check()
    assert [each.verdict for each in check.statements] == ["supported", "not supported"]
    (tmp_path / "letter").write_text(TOLD)
    asked = ("generate", ASKS, "--doc", str(tmp_path / "letter"), "--target", target, "--check")
    out = on_one_line(run(*asked).out)
    assert "not supported: the documents give no more of it than unrelated text" in out
    rows = rows_in(run(*asked, "-f", "jsonl").out)
    assert {row["row"]: row["verdict"] for row in rows} == {1: "supported", 2: "not supported"}
    for row in rows:
        assert 0 <= float(str(row["groundedness"])) <= 1


def test_rows_name_the_documents_that_are_needed(run: Run, tmp_path: Path) -> None:
    docs = list[str]()
    for name, text in TWICE.items():
        (tmp_path / name).write_text(text)
        docs += ["--doc", str(tmp_path / name)]
    asked = ("generate", ASKS, *docs, "--target", " Leo")
    rows = rows_in(run(*asked, "--check", "-f", "jsonl").out)
    needed = {row["segment"]: row["needed"] for row in rows}
    assert needed == {
        "sink": None, "letter": True, "diary": False, "report": True, "note": False,
        "question": None, "other": None, "answer": None,
    }  # fmt: skip
    rows = rows_in(run(*asked, "--check-method", "subsets", "-f", "jsonl").out)
    weights = {row["segment"]: row["weight"] for row in rows}
    assert min(weights["letter"], weights["report"]) > max(weights["diary"], weights["note"])
    assert weights["question"] is None
    assert "change" not in rows[0]
    points = rows_in(run(*asked, "--check-method", "curve", "-f", "jsonl").out)
    assert {row["curve"] for row in points} == {"deletion", "insertion"}
    assert next(row["log_probability"] for row in points if row["tokens"] == 0) == pytest.approx(
        log_probability(TWICE, " Leo"), abs=1e-4
    )


@pytest.mark.parametrize("columns", [40, 60, 120])
@pytest.mark.parametrize("method", ["delete", "subsets", "curve"])
def test_tables_of_every_method_fit(run: Run, method: str, columns: int) -> None:
    asked = ("generate", f"{TOLD} {ELSE} {ASKS}", "--check-method", method)
    ended = run(*asked, "--width", str(columns))
    assert ended.status is ExitStatus.OK, ended.err
    assert all(len(line) <= columns for line in ended.out.splitlines())
    for word in {"delete": "both segments", "subsets": "weight", "curve": "random orders"}[
        method
    ].split():
        assert word in ended.out
    assert "groundedness" in ended.out


def test_a_picture_of_curves_has_their_points_and_the_range_of_random_orders(
    run: Run, tmp_path: Path
) -> None:
    asked = ("generate", f"{TOLD} {ELSE} {ASKS}", "--check-method", "curve", "-o")
    assert run(*asked, str(tmp_path / "a.png"), "--title", "mine").status is ExitStatus.OK
    err = run(*asked, str(tmp_path / "b.png"), "--rows", "token").err
    assert "--rows does nothing for a picture of curves" in err
    answer = attnviz.generate(f"{TOLD} {ELSE} {ASKS}")
    check = answer.check("curve")
    answer.save(tmp_path / "c.png", title="mine")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "c.png").read_bytes()
    drawn = draw_curves(check, "", PictureOptions()).figure
    for axes, curve in zip(drawn.axes, check.curves, strict=False):
        (line,), (band,) = axes.lines, axes.collections
        assert line.get_xydata().T.tolist() == [[*curve.tokens], [*curve.values]]
        assert {curve.low[3], curve.high[3]} <= {*band.get_paths()[0].vertices[:, 1]}


def test_curves_are_those_of_runs_by_hand() -> None:
    answer = attnviz.generate(ASKS, docs={"letter": TOLD, "diary": ELSE}, target=" Leo")
    deletion, insertion = answer.check("curve").curves
    model, capture = builtin(), answer.capture.record
    tokens = [t for t in capture.key_tokens if t.start < len(capture.text) - len(" Leo")]
    (a, b), (c, d) = ((0, len(TOLD)), (len(TOLD) + 2, len(TOLD) + 2 + len(ELSE)))
    shares = {row["segment"]: row["share"] for row in answer.shares()}
    assert shares["letter"] > shares["diary"]  # type: ignore[operator]
    ranked = [
        t.index for s, e in ((a, b), (c, d)) for t in tokens if s <= t.start < e and not t.special
    ]
    n = deletion.tokens[-1]
    assert n == len(ranked)
    for k, value, inserted in zip(deletion.tokens, deletion.values, insertion.values, strict=True):
        for gone, told in ((ranked[:k], value), (ranked[k:], inserted)):
            left = [t.id for t in tokens if t.index not in gone]
            by_hand = float(model.log_probabilities([left], ids_of(" Leo")).sum())
            assert told == pytest.approx(by_hand, abs=1e-4)


def test_a_check_is_the_same_twice_and_runs_no_prompt_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = attnviz.generate(ASKS, docs=TWICE, target=" Leo")
    engine, asked = type(answer._asked.model), list[tuple[int, ...]]()
    run = engine.choices

    def counted(model: Any, prompts: Sequence[Sequence[int]], *more: Any) -> FloatArray:
        asked.extend(map(tuple, prompts))
        return run(model, prompts, *more)

    monkeypatch.setattr(engine, "choices", counted)
    for method in ("delete", "subsets", "curve"):
        asked.clear()
        one = answer.check(method)
        assert len(asked) == len(set(asked)) == one.runs
        one, other = answer.check(method), answer.check(method)
        assert one.method == method
        assert (one.runs, one.statements, one.subsets) == (
            other.runs,
            other.statements,
            other.subsets,
        )
        assert one.grounds is not None
        assert other.grounds is not None
        np.testing.assert_array_equal(one.grounds.unrelated, other.grounds.unrelated)
        assert one.grounds.unrelated.shape == (19, 1)
    assert one.effects == ()


TEMPLATE = """{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}
{% endfor %}<|assistant|>
"""
SAID = [
    {"role": "system", "content": "Be brief. Be kind."},
    {"role": "user", "content": "Leo did it. Tom slept."},
    {"role": "assistant", "content": "I see."},
    {"role": "user", "content": "Anna left. Who did it?"},
]


@pytest.mark.parametrize(
    ("options", "documents"),
    [
        ({}, ("user 1", "assistant")),
        ({"by": "sentence"}, ("user 1.1", "user 1.2", "assistant", "user 2.1")),
        ({"segments": ["x=/Anna left\\./"]}, ("user 1", "assistant", "x")),
    ],
)
def test_instructions_and_what_asks_are_no_documents(
    tmp_path: Path, options: dict[str, object], documents: tuple[str, ...]
) -> None:
    save_checkpoint(tmp_path, tiny_model(n_positions=509), bytes_tokenizer())
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    answer = attnviz.generate(SAID, str(tmp_path), target="Leo", **options)  # type: ignore[arg-type]
    check = answer.check()
    assert check.documents == documents
    assert len(check.effects) > len(documents)  # each of the others is deleted by itself


def test_without_documents_there_are_single_deletions_alone(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, tiny_model(n_positions=509), bytes_tokenizer())
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    answer = attnviz.generate(SAID[-1:], str(tmp_path), target="Leo")
    check = answer.check()
    assert (check.documents, check.grounds, check.statements) == ((), None, ())
    assert [effect.segment for effect in check.effects] == ["user"]
    with pytest.raises(InputError, match="deletes documents, but there are none"):
        answer.check("subsets")
    with pytest.raises(InputError, match="compares orders of documents, but there are none"):
        answer.check("curve")
    one = attnviz.generate(f"{TOLD} {ASKS}", target=" Leo")
    with pytest.raises(InputError, match="compares orders of documents, but there is one"):
        one.check("curve")
    with pytest.raises(UsageError):
        answer.check("all")  # type: ignore[arg-type]


def test_the_translators_source_is_its_document(run: Run) -> None:
    asked = ("generate", "-m", "translator", "a blue cat", "--check")
    ended = run(*asked, "-f", "jsonl")
    assert ended.status is ExitStatus.OK, ended.err
    row = rows_in(ended.out)[0]
    assert float(str(row["groundedness"])) > 0.5
    assert (row["unrelated"], row["verdict"]) == (None, "untested")
    assert "untested" in run(*asked).out


def test_each_line_is_checked_with_its_own_documents(run: Run) -> None:
    entries = [
        {"id": n, "question": ASKS, "documents": [{"id": "a", "text": text}], "target": " Leo"}
        for n, text in (("told", TOLD), ("not told", ELSE))
    ]
    stdin = "\n".join(json.dumps(each) for each in entries).encode()
    ended = run("generate", "-", "--lines", "--check", "-f", "jsonl", stdin=stdin)
    assert ended.status is ExitStatus.OK, ended.err
    told = {row["id"]: row["verdict"] for row in rows_in(ended.out)}
    assert told == {"told": "supported", "not told": "not supported"}


def test_a_method_is_refused_where_nothing_is_checked(run: Run, tmp_path: Path) -> None:
    for name, method in (("answer.npz", "curve"), ("answer.png", "subsets")):
        ended = run(
            "generate", f"{TOLD} {ASKS}", "--check-method", method, "-o", str(tmp_path / name)
        )
        assert ended.status is ExitStatus.USAGE
        assert "--check-method" in ended.err
        assert ended.err.count("\n") == 1


def test_lines_of_a_table_have_one_header_with_and_without_documents(run: Run) -> None:
    prompts = [{"question": ASKS, "documents": [{"id": "a", "text": TOLD}]}, {"question": ASKS}]
    stdin = "\n".join(json.dumps({**each, "target": " Leo"}) for each in prompts).encode()
    ended = run("generate", "-", "--lines", "--check", "-f", "csv", stdin=stdin)
    assert "line 2: --check deletes segments before the last one" in ended.err
    header, *rows = ended.out.splitlines()
    assert header.endswith(
        ",needed,use,change_of_all,groundedness,unrelated,verdict,given,instead,says,rests"
    )
    assert {row.count(",") for row in rows} == {header.count(",")}


def test_the_members_of_a_large_set_are_counted() -> None:
    names = tuple("abcdefghij")
    told = Check(
        "delete", -1.0, documents=names, grounds=Grounds(*np.zeros((2, 1)), np.zeros((0, 1)))
    )

    def said(*some: str) -> str:
        return about_check(replace(told, smallest=SmallestSet(some, -2.0)))

    assert "lost without a (" in said("a")
    assert "lost without a, b and c (" in said("a", "b", "c")
    assert "lost without a, b, c, d, e and 3 others (" in said(*names[:8])
    assert "lost only without all 10 documents (" in said(*names)
    # others may speak against the answer, so that without them all less is lost
    assert "lost without a (-2.00, and without all 10 documents +0.00 nats)" in said("a")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (-5.09, "without it -5.09 nats, no more than unrelated text changes"),
        (-5.2, "without it -5.20 nats"),
        (5.2, "without it +5.20 nats, which makes the answer likelier"),
    ],
)
def test_a_question_is_needed_beyond_what_unrelated_text_changes(change: float, told: str) -> None:
    deleted = Deletion("question", 0.0, (change,))
    assert _on_question(deleted, 5.11) == f"asks for the answer: {told}"
