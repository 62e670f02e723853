"""The recipes of the documents run as they stand: the night in CI, jq, and the container's file."""

import json
import os
import re
import subprocess
import sys
import tomllib
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import needs
from tests.reading import rows_in

DOCS = Path(__file__).parents[1] / "docs"
ASKS = {"user_input": "therefore the murderer was"}
DOCUMENTS = ["the count was stabbed by Victor with a knife .", "Anna painted the door ."]


def blocks(name: str, language: str) -> list[str]:
    text = (DOCS / name).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def shell(step: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """A step as GitHub Actions runs it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    asked = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step]
    env = {**os.environ, "PATH": path}
    return subprocess.run(asked, cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    """A folder with the answers of a night: one is right, one is contradicted."""
    samples = [
        {**ASKS, "reference": target, "retrieved_contexts": DOCUMENTS, "target": f" {target} ."}
        for target in ("Victor", "Peter")
    ]
    (tmp_path / "ragas.jsonl").write_text("".join(json.dumps(each) + "\n" for each in samples))
    asked = "attnviz generate --lines --file ragas.jsonl --check -o results.jsonl --resume -q"
    assert shell(asked, tmp_path).returncode == 0
    return tmp_path


def test_the_workflow_fails_a_night_whose_answers_documents_contradict(answered: Path) -> None:
    (workflow,) = (yaml.safe_load(each) for each in blocks("report.md", "yaml"))
    steps = [each.get("run", "") for each in workflow["jobs"]["report"]["steps"]]
    generate, report, keep = steps[-4:-1]
    right = (answered / "ragas.jsonl").read_text().splitlines()[0]
    for lines, status in ((right, 0), ((answered / "ragas.jsonl").read_text(), 6)):
        (answered / "questions.jsonl").write_text(lines)
        (answered / "results.jsonl").unlink()
        assert shell(generate.replace("./my-model", "builtin"), answered).returncode == 0
        ended = shell(report, answered)
        assert ended.returncode == status, ended.stderr
        assert (answered / "report.html").exists()
        if not status:
            assert shell(f"{keep}; cp last.jsonl results.jsonl", answered).returncode == 0
    assert "1 statement contradicted by documents" in ended.stderr


@needs("jq")
def test_jq_makes_records_of_ragas_and_results_of_promptfoo(answered: Path) -> None:
    ragas, promptfoo = blocks("report.md", "sh")[-2:]
    samples = rows_in(shell(ragas, answered).stdout)
    assert [each["reference"] for each in samples] == ["Victor", "Peter"]
    for each in samples:
        assert each["retrieved_contexts"] == DOCUMENTS
        assert each["response"] == f"{each['reference']} ."
        assert set(each["attnviz"]) == {"groundedness", "contradicted", "unsupported", "unused"}
    peter, victor = sorted(rows_in(shell(promptfoo, answered).stdout), key=itemgetter("pass"))
    assert (peter["line"], peter["pass"], victor["line"], victor["pass"]) == (2, False, 1, True)
    assert peter["reason"].startswith("1 contradicted")
    assert 0.5 < victor["score"] <= 1


def test_the_container_is_made_of_this_version_in_fifteen_lines() -> None:
    lines = (DOCS / "example" / "Dockerfile").read_text().splitlines()
    project: dict[str, Any] = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    package, told = project["project"], dict(each.split(" ", 1) for each in lines if each)
    assert len(lines) <= 15
    wheel = f"attnviz-{package['version']}-py3-none-any.whl"
    assert f"ARG WHEEL={wheel}" in lines
    assert all(wheel in (DOCS / name).read_text() for name in ("docker.md", "report.md"))
    assert json.loads(told["ENTRYPOINT"])[0] in package["scripts"]
    minor = told["FROM"].split(":")[1].removesuffix("-slim")
    assert package["requires-python"] == f">={minor}"
