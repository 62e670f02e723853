"""The command line and Python refuse the same senseless calls, which `senseless.py` lists."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.errors import AttnvizError
from tests.conftest import Run
from tests.senseless import CALLS, WORDS, Call

ROWS = [pytest.param(call, id=call.shell) for call in CALLS]


@pytest.fixture(scope="module")
def model() -> attnviz.Model:
    return attnviz.load_model()


@pytest.fixture(scope="module")
def folder(model: attnviz.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that calls name."""
    folder = tmp_path_factory.mktemp("senseless")
    (folder / "words.txt").write_text("the cat sat on the mat and the cat ran\n")
    np.save(folder / "v.npy", np.ones(128, np.float32))
    label = {"text": WORDS["TEXT"], "links": [["creature", ["fluffy"]]]}
    (folder / "links.jsonl").write_text(json.dumps(label))
    eye = [[1, 0], [0, 1]]
    matrices = {"x": [[1, 2]], "w_query": eye, "w_key": eye, "w_value": eye}
    (folder / "m.json").write_text(json.dumps(matrices))
    attnviz.capture(WORDS["TEXT"], model, heads="L1H2").save(folder / "capture.npz")
    attnviz.scan(folder / "words.txt", output=folder / "scanned", model=model, heads="L1H2,L4H0")
    return folder


@pytest.fixture(autouse=True)
def _in_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    yield
    shutil.rmtree("out", ignore_errors=True)  # an accepted scan


@pytest.mark.parametrize("call", ROWS)
def test_the_command_line_refuses_a_senseless_call_in_a_sentence(run: Run, call: Call) -> None:
    ended = run(*(WORDS.get(word, word) for word in shlex.split(call.shell)))
    assert (ended.status, ended.out) == (call.status, "")
    assert re.fullmatch(r"attnviz: [^\n]{1,400}[.?]\n", ended.err), ended.err
    assert re.search(rf"{call.flag}\b", ended.err), ended.err


@pytest.mark.parametrize("call", ROWS)
def test_python_refuses_a_senseless_call_and_names_the_same_parameter(
    model: attnviz.Model, call: Call
) -> None:
    with pytest.raises(AttnvizError) as refused:
        _called(model, call)
    assert refused.value.status is call.status
    assert re.search(rf"\b{call.names}\b", str(refused.value)), str(refused.value)
    assert "--" not in str(refused.value)


def _called(model: attnviz.Model, call: Call) -> None:
    """The call as Python writes it."""
    name, *words = shlex.split(call.shell)
    positional: list[Any] = [WORDS[word] for word in words if word in WORDS]
    arguments = dict(call.python)
    if "CAPTURE" in words:
        positional = [attnviz.load(WORDS["CAPTURE"])]
    elif call.loads is not None:
        arguments["model"] = attnviz.load_model(**call.loads)
    elif name != "atlas":
        arguments.setdefault("model", model)
    result = getattr(attnviz, name)(*positional, **arguments)
    if call.then is not None:
        method, given = call.then
        act = getattr(result, method)
        act(**given) if isinstance(given, dict) else act(given)
