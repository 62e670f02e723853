"""What a shell offers on Tab, asked for in the way that shells ask."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attnviz.cli import main
from attnviz.errors import ExitStatus
from attnviz.inputs.given import samples
from attnviz.kit.completion import script_for
from attnviz.kit.session import process_session
from attnviz.models.folder.files import CONFIG
from tests.conftest import Run
from tests.programs import needs

TEXTS = [name for name, path in samples().items() if path.suffix != ".png"]


class Shell:
    """A shell in a working folder with models, captures, and a cache of the hub."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self.folder, self._set, self._capsys = folder, monkeypatch.setenv, capsys
        for name in ("own", "other", "hub/models--openai--tiny/snapshots/1"):
            (folder / name).mkdir(parents=True)
        (folder / "own" / CONFIG).write_text("{}")
        for name in (
            "bark.npz",
            "with space.npz",
            "$(touch x).npz",
            "';x;'.npz",
            "book.txt",
            "v.npy",
        ):
            (folder / name).touch()
        monkeypatch.chdir(folder)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "hub"))

    def asks(self, kind: str, **variables: str) -> str:
        for name, value in {"_ATTNVIZ_COMPLETE": f"complete_{kind}", **variables}.items():
            self._set(name, value)
        assert main([], process_session()) is ExitStatus.OK
        said = self._capsys.readouterr()
        assert said.err == ""
        return str(said.out)

    def bash(self, line: str) -> list[str]:
        """The words that bash offers at the end of a line."""
        return self.asks("bash", COMP_WORDS=line, COMP_CWORD=str(line.count(" "))).split()


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


CASES = [
    # the line, what is offered
    ("attnviz sh", "show"),
    ("attnviz show --vie", "--view"),
    ("attnviz show --help-a", "--help-all"),
    ("attnviz show --model tr", "translator"),
    ("attnviz show -m o", "openai/tiny own"),
    ("attnviz show -m ./o", "./own"),
    ("attnviz params d", "distilgpt2"),
    ("attnviz models b", "builtin"),
    ("attnviz compare --against t", "translator"),
    ("attnviz tokens a -f ", "txt json jsonl csv tsv"),
    ("attnviz show a -f n", "npz"),
    ("attnviz compare a b -f n", "npz npy"),
    ("attnviz ablate a --direction sample:", ""),
    ("attnviz explain a -f ", "txt json html npz png svg pdf"),
    ("attnviz config show -f ", "txt json"),
    ("attnviz show --view g", "grid"),
    ("attnviz show --view =", "table heatmap grid text links image"),  # where bash breaks words
    ("attnviz show --view = t", "table text"),
    ("attnviz show --view=t", "--view=table --view=text"),  # where its user has it break none
    ("attnviz show a --model = tr", "translator"),
    ("attnviz show --file = b", ""),
    ("attnviz show --engine n", "native"),
    ("attnviz show --cmap viri", "viridis viridis_r"),
    ("attnviz show -H L5", ""),
    ("attnviz show -H L3", "L3H0 L3H1 L3H2 L3H3"),
    ("attnviz show -m translator -H L1", "L1H0 L1H1 L1H2 L1H3"),
    ("attnviz show -m embeddings -H L", "L0H0"),
    ("attnviz show -m gpt2 -H L11H1", "L11H1 L11H10 L11H11"),
    ("attnviz show -m nowhere -H L", ""),
    ("attnviz show creature --query c", "creature"),
    ("attnviz explain creature --query ", "creature"),
    ("attnviz show creature --key x", ""),
    ("attnviz show - --query c", ""),
    ("attnviz show creature -m nowhere --query c", ""),
    ("attnviz show -H L0H1,L1H", "L0H1,L1H0 L0H1,L1H1 L0H1,L1H2 L0H1,L1H3"),
    ("attnviz explain a --head L4H3", "L4H3"),
    ("attnviz show b", "bark.npz"),
    ("attnviz show w", ""),  # a name that wants quotes is left to the shell
    ("attnviz show ", "bark.npz"),
    ("attnviz show --file b", ""),
    ("attnviz show --file sam", " ".join(f"sample:{name}" for name in TEXTS)),
    ("attnviz show --image sample:", "sample:shapes-1 sample:shapes-2 sample:shapes-3"),
    ("attnviz show --audio sample:", ""),
    ("attnviz predict --pairs sample:co", "sample:colors"),
    ("attnviz predict --pairs sample:my", ""),
    ("attnviz show --file sample : my", "mystery"),  # a colon breaks words, too
    ("attnviz show --file sample :", " ".join(TEXTS)),
    ("attnviz show --file = sample : cr", "creature creatures"),
    ("attnviz show --image=sample:shapes-1", "--image=sample:shapes-1"),
    ("attnviz show -o sample : my", ""),
    ("attnviz scan sample : cr", "creature creatures"),
    ("attnviz train book.txt sample : my", "mystery"),
    ("attnviz config sho", "show"),
    ("attnviz help sco", "score"),
    ("attnviz help he", "heads help head"),
    ("attnviz help --term he", "head"),
]


@pytest.mark.parametrize(("line", "offered"), CASES, ids=[case[0] for case in CASES])
def test_bash_is_offered_what_fits(shell: Shell, line: str, offered: str) -> None:
    assert shell.bash(line) == offered.split()


def test_the_heads_are_those_of_a_configured_model(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = shell.folder / "config.toml"
    monkeypatch.setenv("ATTNVIZ_CONFIG", str(file))
    file.write_text("model = 'translator'")
    assert len(shell.bash("attnviz show -H ")) == 8
    file.write_text("mdl = 'translator'")
    assert len(shell.bash("attnviz show -H ")) == 20  # Tab is no place for an error


def test_zsh_and_fish_are_told_what_a_head_is_known_for(shell: Shell) -> None:
    line = {"_TYPER_COMPLETE_ARGS": "attnviz show -H L3H1"}
    assert (
        '"L3H1":"each token attends to the one before it; nouns attend to their adjectives"'
        in shell.asks("zsh", **line)
    )
    fish = shell.asks("fish", _TYPER_COMPLETE_FISH_ACTION="get-args", **line)
    assert fish.strip().startswith("L3H1\teach token attends to the one before it; nouns")


def test_zsh_and_fish_get_the_whole_word_behind_an_equals_sign(shell: Shell) -> None:
    line = {"_TYPER_COMPLETE_ARGS": "attnviz show --view=ta"}
    assert '"--view=table":"each query' in shell.asks("zsh", **line)
    fish = shell.asks("fish", _TYPER_COMPLETE_FISH_ACTION="get-args", **line)
    assert fish.startswith("--view=table\t")


@pytest.mark.parametrize(
    "spelled", ["--show-completion powershell", "--show-completion=powershell"]
)
def test_the_script_of_the_shell_that_is_named_is_printed(
    capsys: pytest.CaptureFixture[str], spelled: str
) -> None:
    assert main(spelled.format("powershell").split(), process_session()) is ExitStatus.OK
    assert "complete_powershell" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_a_shell_that_is_unknown_or_cannot_be_found_out_is_a_usage_error(
    run: Run, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr("attnviz.kit.completion._get_shell_name", lambda: None)
    for arguments in ([option], [option, "tcl"]):
        ended = run(*arguments)
        assert ended.status is ExitStatus.USAGE
        assert ended.err.count("\n") == 1


def test_completion_is_installed_for_the_shell_that_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("--install-completion", "fish").status is ExitStatus.OK
    (written,) = tmp_path.rglob("attnviz.fish")
    assert "complete_fish" in written.read_text()
    monkeypatch.setenv("HOME", str(written))
    refused = run("--install-completion", "fish")
    assert refused.status is ExitStatus.OUTPUT
    assert "--show-completion fish prints it" in refused.err


ZSH = """
compdef() { :; }; _files() { :; }
_arguments() { print -r -- "$@"; }
fpath=("$1"); autoload -Uz _attnviz
words=(attnviz ex) CURRENT=2; _attnviz
words=(attnviz show --view tab) CURRENT=4; _attnviz_completion
words=(attnviz show --view=tab) CURRENT=3; _attnviz_completion
"""


@needs("zsh")
def test_zsh_is_answered_at_the_first_tab_and_apostrophes_stay(tmp_path: Path) -> None:
    (tmp_path / "_attnviz").write_text(script_for("zsh"))
    program = tmp_path / "attnviz"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m attnviz "$@"\n')
    program.chmod(0o755)
    found = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    asked = ["zsh", "-f", "-c", ZSH, "zsh", str(tmp_path)]
    first, second, third = subprocess.run(
        asked, capture_output=True, text=True, env=found, check=True, timeout=60
    ).stdout.split("*: :")[1:]
    assert '"explain":"Write out one head\'s calculation' in first
    assert '"table":"each query\'s strongest keys"' in second
    assert '"--view=table":"each query' in third
