"""A user's own template writes documents and question in place of the model's."""

import json
from pathlib import Path

import pytest

import attnviz
from attnviz.errors import ExitStatus, InputError
from tests.conftest import Run
from tests.reading import rows_in

DOCS = {"letter": "the count was stabbed by Victor .", "diary": "Anna cleaned the floor ."}
ASKS = "therefore the murderer was"
OWN = "{% for d in documents %}{{ d.title }}: {{ d.text }}\n{% endfor %}so: {{ question }}"


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "own.jinja"
    path.write_text(OWN)
    return path


def test_documents_and_question_keep_their_segments_in_its_words(template: Path) -> None:
    answer = attnviz.generate(ASKS, docs=DOCS, template=template, target=" Victor .")
    prompt = answer._asked.prompt
    lines = [f"{name}: {text}" for name, text in DOCS.items()]
    assert prompt.text == "\n".join([*lines, f"so: {ASKS}"])
    told = {s.name: "".join(prompt.text[a:b] for a, b in s.slices) for s in prompt.segments}
    assert told == {"template": told["template"], **DOCS, "question": ASKS}
    check = answer.check()
    assert check.documents == ("letter", "diary")
    assert answer._asked.tokens[0].id == answer._asked.model.tokenizer.bos_id


def test_lines_go_through_it_too(run: Run, template: Path) -> None:
    documents = [{"id": name, "text": text} for name, text in DOCS.items()]
    line = json.dumps({"id": 7, "question": ASKS, "documents": documents, "target": " Victor ."})
    asked = ("--lines", "--template", str(template), "-f", "jsonl")
    ended = run("generate", "-", *asked, stdin=line.encode())
    assert {row["segment"] for row in rows_in(ended.out)} >= {"letter", "template", "question"}
    assert {row["id"] for row in rows_in(ended.out)} == {7}


@pytest.mark.parametrize(
    "source",
    [
        "{{ system }}\n" + OWN,
        "{% for m in messages if m.role == 'system' %}{{ m.content }}\n{% endfor %}" + OWN,
    ],
)
def test_what_says_how_to_answer_is_its_system(template: Path, source: str) -> None:
    template.write_text(source)
    documents = [{"id": name, "text": text} for name, text in DOCS.items()]
    asked = {"question": ASKS, "system": " Be brief. ", "documents": documents}
    answer = attnviz.generate(asked, template=template, target=" Victor .")
    prompt = answer._asked.prompt
    assert prompt.text.startswith("Be brief.\nletter: ")
    assert prompt.source("system") == "system"
    assert answer.check().documents == ("letter", "diary")
    template.write_text(OWN)
    with pytest.raises(InputError, match="does not write system"):
        attnviz.generate(asked, template=template, target=" Victor .")
    without = attnviz.generate(asked, target=" Victor .")
    assert "not read: “system”" in str(without.notes)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{{ question }}", "does not write letter and diary; write the text of every document"),
        ("{% for d in documents %}{{ d.text }}{% endfor %}", "does not write question"),
        ("{% for", "does not take the question (TemplateSyntaxError"),
        ("{{ raise_exception('no') }}", "refuses the question: no"),
        ("{{ ''.__class__.__mro__ }}{{ question }}", "does not take the question (SecurityError"),
    ],
)
def test_a_template_that_leaves_something_out_or_fails_is_told(
    run: Run, tmp_path: Path, source: str, why: str
) -> None:
    docs = [arg for name in DOCS for arg in ("--doc", str(tmp_path / name))]
    for name, text in DOCS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "own.jinja").write_text(source)
    ended = run("generate", ASKS, *docs, "--template", str(tmp_path / "own.jinja"))
    assert ended.status is ExitStatus.INPUT
    assert why in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("more", [("--raw",), ("--by", "line"), ("--segment", "a=0:3")])
def test_it_stands_alone(run: Run, template: Path, more: tuple[str, ...]) -> None:
    ended = run("generate", ASKS, "--template", str(template), *more)
    assert ended.status is ExitStatus.USAGE
    assert "--template" in ended.err


def test_results_of_another_template_are_answered_anew(
    run: Run, template: Path, tmp_path: Path
) -> None:
    (tmp_path / "lines.jsonl").write_text(json.dumps({"question": ASKS, "target": " Victor"}))
    results = tmp_path / "results.jsonl"
    asked = ("--lines", "--file", str(tmp_path / "lines.jsonl"), "--template", str(template))
    for source in (OWN, OWN, f"now {OWN}"):
        template.write_text(source)
        run("generate", *asked, "--resume", "-o", str(results))
        inputs = {row["input"] for row in rows_in(results.read_text())}
        assert len(inputs) == 1
        if source == OWN:
            first = inputs
    assert inputs != first
