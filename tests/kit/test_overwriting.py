"""No command writes over a file that the same call reads, by whatever name."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import attnviz
from attnviz.cli import COMMANDS, command
from attnviz.errors import ExitStatus
from attnviz.kit import prepare
from tests.conftest import Run
from tests.factories import make_capture

IMAGE = Path(__file__).parents[2] / "docs" / "images" / "shapes-1.png"


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call is refused before it loads a model."""

    def load(*_: Any) -> None:
        raise AssertionError("a model is loaded")

    monkeypatch.setattr(prepare, "load_model", load)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user's files, in which the call is made."""
    (tmp_path / "in.txt").write_text("a fluffy blue creature\n")
    (tmp_path / "hard.txt").hardlink_to(tmp_path / "in.txt")
    (tmp_path / "soft.txt").symlink_to("in.txt")
    (tmp_path / "pairs.jsonl").write_text('{"text": "a b", "answer": "c"}\n')
    for name in ("1.png", "other.png"):
        shutil.copy(IMAGE, tmp_path / name)
    (tmp_path / "sound.json").write_bytes(b"RIFF")
    asked = [{"text": "what", "image": name} for name in ("gone.png", "1.png")]
    (tmp_path / "images.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked))
    part = {"type": "image", "path": "1.png"}
    chat = {"messages": [{"role": "user", "content": [part]}]}
    (tmp_path / "chat.json").write_text(json.dumps(chat, indent=1))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "linked").symlink_to("model")
    (tmp_path / "config.txt").write_text("width = 80\n")
    attnviz.AttentionCapture(make_capture()).save(tmp_path / "capture.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    "line",
    [
        "show --file in.txt -o in.txt",
        "show --file in.txt -o ./hard.txt",
        "show --file in.txt -o soft.txt",
        "show --file hard.txt -o soft.txt",
        "show in.txt -o in.txt",  # a text, and perhaps meant to be the file
        "show capture.npz -o capture.npz",
        "show --lines --file in.txt -o in.txt",
        "show ab --image 1.png -o 1.png",
        "show ab --image other.png --image 1.png -o 1.png",
        "show --lines --file images.jsonl -o 1.png",
        "show --lines --file images.jsonl -o {line}.png",
        "generate ab --doc other.png --doc in.txt -o in.txt",
        "generate --chat chat.json -o 1.png",
        "generate --lines --file images.jsonl --resume -o images.jsonl",
        "predict --pairs pairs.jsonl -o pairs.jsonl",
        "show --audio sound.json -o sound.json",
        "show ab -m model -o model/config.json",
        "show ab -m linked -o model/config.json",
        "params model -o linked/config.json",
        "compare ab ac --against model -o model/config.json",
        "show ab -o config.txt",
    ],
)
def test_a_file_that_is_read_is_not_written(run: Run, here: Path, line: str) -> None:
    before = contents(here)
    ended = run(*line.split(), variables={"ATTNVIZ_CONFIG": str(here / "config.txt")})
    assert ended.status is ExitStatus.USAGE, ended.err
    assert "would overwrite '" in ended.err
    assert ended.err.endswith(", an input of the same call; name another file.\n")
    assert contents(here) == before


@pytest.mark.parametrize("name", [*COMMANDS])
def test_no_option_that_names_a_file_to_read_loses_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    params = command(name).params
    if "output" not in {each.name for each in params} or name in ("scan", "train"):
        return
    options = [
        max(each.opts, key=len)
        for each in params
        if "FILE" in (each.metavar or "") and each.opts[0][:1] == "-" and each.name != "output"
    ]
    for flag in options:
        file = tmp_path / "mine.json"
        file.write_text("[1]")
        words = [] if flag in ("--file", "--pairs", "--chat", "--matrices") else ["words"]
        ended = run(name, *words, flag, "mine.json", "-o", "mine.json")
        assert ended.status is ExitStatus.USAGE, (flag, ended.err)
        assert file.read_text() == "[1]"


@pytest.mark.parametrize("name", ["links.json", "weights.csv"])
def test_what_attnviz_wrote_into_the_models_folder_may_be_written_again(
    run: Run, gpt2_copy: Path, name: str
) -> None:
    for _ in range(2):
        ended = run("params", str(gpt2_copy), "-o", str(gpt2_copy / name))
        assert ended.status is ExitStatus.OK, ended.err


def test_a_title_or_an_answer_may_be_the_name_of_the_output(run: Run, here: Path) -> None:
    ended = run("show", "capture.npz", "--title", "1.png", "-o", "1.png")
    assert ended.status is ExitStatus.OK, ended.err
