"""Functions are called by data: they give what the command prints, and read no file unasked."""

import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from math import nan
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from attnviz.cli import COMMANDS
from attnviz.errors import AttnvizError, UsageError
from attnviz.kit.calling import json_of, offered
from attnviz.kit.values import Loaded, loaded
from tests.conftest import Run
from tests.speech.zoo import as_wav, named, syllables

TEXT = "a fluffy blue creature roamed the forest"
BLUE, RED = (f"a {color} creature slept . the creature was" for color in ("blue", "red"))
PICTURE = Path("docs/images/shapes-1.png").resolve()
FUNCTIONS = offered(COMMANDS)
CALLS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("show", {"given": TEXT, "query": ["blue"]}, [TEXT, "--query", "blue"]),
    ("explain", {"text": TEXT, "head": "L3H2"}, [TEXT, "--head", "L3H2"]),
    ("explain", {"example": "three-inputs"}, ["--example", "three-inputs"]),
    ("why", {"text": TEXT, "head": "L3H2"}, [TEXT, "--head", "L3H2"]),
    ("heads", {"text": TEXT, "top": 3}, [TEXT, "--top", "3"]),
    ("predict", {"text": TEXT}, [TEXT]),
    ("generate", {"prompt": TEXT, "max_new_tokens": 3}, [TEXT, "--max-new-tokens", "3"]),
    ("ablate", {"text": TEXT, "heads": ["L4H0", "L3H2"]}, [TEXT, "--head", "L4H0,L3H2"]),
    ("patch", {"text": BLUE, "source": RED, "layers": 4}, [BLUE, "--from", RED, "--layer", "4"]),
    ("circuit", {"text": BLUE, "source": RED, "heads": 0}, [BLUE, "--from", RED, "-H", "0"]),
    ("compare", {"texts": [BLUE, RED], "query": "slept"}, [BLUE, RED, "--query", "slept"]),
    ("compare", {"texts": [RED], "against": "builtin"}, [RED, "--against", "builtin"]),
    ("tokens", {"text": TEXT, "bos": False}, [TEXT, "--no-bos"]),
]  # fmt: skip


def call(
    name: str, arguments: Any, model: str | Path = "builtin", below: Path | None = None
) -> dict[str, Any]:
    models = {"main": loaded(model), "builtin": loaded("builtin")}
    found: dict[str, Any] = json.loads(json_of(FUNCTIONS[name].invoke(arguments, models, below)))
    return found


def refusal(name: str, arguments: Any, *more: Any) -> str:
    with pytest.raises(AttnvizError) as caught:
        call(name, arguments, *more)
    return str(caught.value)


def test_what_runs_a_model_is_offered_and_nothing_that_needs_a_file() -> None:
    expected = "show explain why heads predict generate ablate patch circuit align compare tokens"
    assert list(FUNCTIONS) == expected.split()
    assert all(each.summary.endswith((".", "?")) for each in FUNCTIONS.values())


def test_schemas_are_schemas_and_take_what_is_called() -> None:
    for files in (False, True):
        for each in FUNCTIONS.values():
            Draft202012Validator.check_schema(each.schema(files=files))
        for name, arguments, _ in CALLS:
            Draft202012Validator(FUNCTIONS[name].schema(files=files)).validate(arguments)
    options = FUNCTIONS["generate"].schema(files=False)["properties"]
    assert options["top_p"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
        "default": 1,
        "description": "Sample from the likeliest tokens whose probabilities add up to this.",
    }
    assert "template" not in options
    assert "template" in FUNCTIONS["generate"].schema(files=True)["properties"]


@pytest.mark.parametrize(("name", "arguments", "typed"), CALLS)
def test_a_call_gives_the_json_that_its_command_prints(
    run: Run, name: str, arguments: dict[str, Any], typed: list[str]
) -> None:
    printed = json.loads(run(name, *typed, "-f", "json").out)
    assert {**call(name, arguments), "made": 0} == {**printed, "made": 0}


def test_a_sound_and_an_image_come_as_base64(run: Run, tmp_path: Path) -> None:
    model = named("whisper").make(tmp_path / "whisper")
    sound = as_wav(tmp_path / "a.wav", syllables())
    typed = str(sound), "-m", str(model), "--target", "the cat", "-f", "json"
    content = b64encode(sound.read_bytes()).decode()
    found = call("align", {"audio": content, "target": "the cat"}, model)
    assert found["rows"] == json.loads(run("align", *typed).out)["rows"]

    asked = "what is left of the circle?"
    typed = asked, "--image", str(PICTURE), "-m", "shapes", "-f", "json"
    content = b64encode(PICTURE.read_bytes()).decode()
    for image in (content, [f"data:image/png;base64,{content}"]):
        found = call("predict", {"text": asked, "image": image}, "shapes")
        assert found["rows"] == json.loads(run("predict", *typed).out)["rows"]
    assert "not that of a WAV file" in refusal("show", {"audio": content})
    for wrong in ("AAAA", "", "no base64!"):
        assert "image" in refusal("predict", {"text": asked, "image": wrong}, "shapes")


def test_without_a_folder_no_text_is_looked_for_on_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = {name: loaded(name) for name in ("builtin", "shapes-vit", "shapes")}

    def touched(*_: object) -> bool:
        raise AssertionError

    def told(name: str, arguments: Mapping[str, object], model: str) -> str:
        with pytest.raises(AttnvizError) as caught:
            FUNCTIONS[name].invoke({**arguments, "model": model}, models, None)
        return str(caught.value)

    for place in ("exists", "isfile"):
        monkeypatch.setattr(os.path, place, touched)
    for path in (str(PICTURE), "sample:shapes-1", "../shapes-1.png"):
        assert FUNCTIONS["tokens"].invoke({"text": path}, models, None).record
        assert "no file is read here" in told("show", {"given": path}, "shapes-vit")
        assert "not base64" in told("show", {"given": "a", "image": path}, "shapes")
        chat = [{"role": "user", "content": [{"type": "image", "path": path}]}]
        line = {"text": "a", "links": [["a", ["a"]]], "image": path}
        for name, arguments in (("generate", {"prompt": chat}), ("heads", {"labels": [line]})):
            wrong = told(name, arguments, "shapes")
            assert "no file is read here" in wrong or "is not the path of a file" in wrong
        for name, option in (("heads", "labels"), ("heads", "boxes"), ("explain", "matrices")):
            assert "is a file, and none is read here" in told(name, {option: path}, "builtin")
        assert "is a file, and none is read here" in told(
            "ablate", {"text": "a", "mean_from": path}, "builtin"
        )


def test_with_a_folder_only_files_in_it_are_read(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.png").write_bytes(PICTURE.read_bytes())
    (inside / "link.png").symlink_to(outside / "a.png")
    (inside / "loop.png").symlink_to(inside / "loop.png")
    (inside / "texts").write_text("a cat\na dog\n")
    for path in ("a.png", f"{inside}/a.png", "sample:shapes-1"):
        for arguments in ({"given": path}, {"given": "", "image": path}):
            assert call("show", arguments, "shapes-vit", inside)["patterns"]
    mean = {"text": "a cat", "replacement": "mean", "heads": "L0H0"}
    assert call("ablate", {**mean, "mean_from": "texts"}, "builtin", inside)["rows"]
    wrong = "../out/a.png", f"{outside}/a.png", "link.png", "loop.png", "a\0.png", "/dev/stdin"
    for path in wrong:
        for arguments in ({"image": path}, {"audio": path}, {"given": f"{path}.png"}):
            told = refusal("show", arguments, "shapes-vit", inside)
            assert "not in the folder" in told or "does not exist" in told
        assert "not in the folder" in refusal("show", {"audio": path}, "builtin", inside)
        told = refusal("ablate", {**mean, "mean_from": path}, "builtin", inside)
        assert "not in the folder" in told
        assert call("tokens", {"text": path}, "builtin", inside)["rows"]


def deep(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("name", "arguments", "part"),
    [
        ("predict", ["a"], "are not an object"),
        ("predict", {}, "text is missing; give a string or an array, each a string"),
        ("predict", {"text": 1}, "text is an integer"),
        ("predict", {"text": ["a", 1]}, "text is an array"),
        ("predict", {"text": "a", "tpo": 1}, "predict has no argument 'tpo'; did you mean top?"),
        ("predict", {"text": "a", "top": True}, "top is a boolean; give an integer"),
        ("predict", {"text": "a", "top": 10**400}, "too large"),
        ("predict", {"text": "a", "top": 0}, "top=0 is out of range"),
        ("predict", {"text": "a", "segments": {}}, "segments is an object"),
        ("predict", {"text": "a \ud800"}, "surrogate"),
        ("predict", {"text": "a", "model": "/etc"}, "'/etc' is not a loaded model"),
        ("compare", {"texts": []}, "texts is an array"),
        ("compare", {"texts": ["a"], "against": "gpt2"}, "'gpt2' is not a loaded model"),
        ("generate", {"prompt": "a", "docs": {"a": 1}}, "docs is an object"),
        ("generate", {"prompt": "a", "docs": ["a"]}, "docs is an array"),
        ("generate", {"prompt": [{"role": deep(99)}]}, "nested too deeply"),
        ("generate", {"prompt": "a", "temperature": nan}, "nan is not a number of JSON"),
        ("generate", {"prompt": "a", "by": "x" * 2000}, "is not known; give one of 'sentence'"),
        ("show", {"given": "a", "view": "tabel"}, "did you mean table?"),
        ("show", {"given": "a", "least": 7}, "least=7 is out of range"),
        ("show", {"given": "a", "title": b"a"}, "bytes is not JSON"),
        ("heads", {"labels": [1]}, "labels is an array"),
    ],
)
def test_a_wrong_argument_is_told_in_a_sentence(name: str, arguments: Any, part: str) -> None:
    with pytest.raises(UsageError, match=re.escape(part)):
        FUNCTIONS[name].invoke(arguments, {"main": loaded("builtin")}, None)


def test_null_leaves_an_argument_out_and_the_first_model_is_the_default() -> None:
    models: dict[str, Loaded] = {"first": loaded("translator"), "second": loaded("builtin")}
    for more, name in (({}, "translator"), ({"model": "second"}, "builtin")):
        found = FUNCTIONS["tokens"].invoke({"text": TEXT, "bos": None, **more}, models, None)
        assert found.made["models"][0]["name"] == name


@pytest.mark.parametrize(
    ("name", "first", "text"),
    [
        ("show", "given", "a cat sat"),
        ("generate", "prompt", "a cat sat"),
        ("compare", "texts", ["a cat sat", "a dog sat"]),
    ],
)
def test_text_is_the_first_argument_of_every_function(name: str, first: str, text: object) -> None:
    by_name, as_text = (call(name, {each: text}) for each in (first, "text"))
    assert {**by_name, "made": 0} == {**as_text, "made": 0}
