"""Defaults of the user's own: from their file, for the calls that they mean something to."""

import json
import os
from pathlib import Path

import pytest

from attnviz.errors import ExitStatus
from attnviz.kit.session import LARGEST, config_path
from tests.conftest import Result, Run
from tests.reading import on_one_line


class Home:
    """A home folder, and the command line in it."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.file = folder / "attnviz" / "config.toml"
        self.variables = {"XDG_CONFIG_HOME": str(folder)}
        self._run = run

    def set(self, text: str) -> None:
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(text)

    def run(self, *arguments: str, **variables: str) -> Result:
        return self._run(*arguments, variables={**self.variables, **variables})


@pytest.fixture
def home(tmp_path: Path, run: Run) -> Home:
    return Home(tmp_path, run)


def test_the_file_is_looked_for_in_the_users_folder_and_never_in_the_working_one(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home.set("[tokens]\nformat = 'json'\n")
    assert home.run("tokens", "a").out.startswith("{")
    (tmp_path / "here" / "attnviz").mkdir(parents=True)
    home.file.rename(tmp_path / "here" / "attnviz" / "config.toml")
    monkeypatch.chdir(tmp_path / "here")
    for relative in ("", ".", "here"):
        assert not home.run("tokens", "a", XDG_CONFIG_HOME=relative).out.startswith("[")


@pytest.mark.parametrize(
    ("variables", "path"),
    [
        ({"HOME": "/home/me"}, "/home/me/.config/attnviz/config.toml"),
        ({"HOME": "/home/me", "XDG_CONFIG_HOME": "/cfg"}, "/cfg/attnviz/config.toml"),
        ({"HOME": "/home/me", "XDG_CONFIG_HOME": "cfg"}, "/home/me/.config/attnviz/config.toml"),
        ({"HOME": "/home/me", "ATTNVIZ_CONFIG": "/a.toml"}, "/a.toml"),
        ({"HOME": "/home/me", "ATTNVIZ_CONFIG": ""}, None),
        ({"HOME": "/home/me", "ATTNVIZ_CONFIG": os.devnull}, None),
        ({"HOME": "."}, None),
        ({}, None),
    ],
)
def test_where_the_file_is(variables: dict[str, str], path: str | None) -> None:
    found = config_path(variables)
    assert (found and str(found)) == path


def test_what_is_typed_comes_before_the_table_of_a_command_and_that_before_the_top(
    home: Home,
) -> None:
    """The top sets it for every command that has the option."""
    home.set("min = 0.5\nmodel = 'translator'\n[show]\nmin = 0.25\n")
    defaults = json.loads(home.run("config", "-f", "json").out)["defaults"]
    assert (defaults["show"]["min"], defaults["show"]["model"]) == (0.25, "translator")
    assert defaults["tokens"]["model"] == "translator"
    shown = json.loads(home.run("show", "a red fox", "-m", "builtin", "-f", "json").out)
    assert shown["model"]["name"] == "builtin"
    assert json.loads(home.run("show", "a red fox", "-f", "json").out)["model"]["name"] == (
        "translator"
    )


def test_the_variable_of_the_model_comes_before_the_file(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.set("model = 'translator'")
    monkeypatch.setenv("ATTNVIZ_MODEL", "builtin")
    assert "model builtin" in home.run("tokens", "a").out


def test_a_script_can_do_without_the_file(home: Home) -> None:
    home.set("format = 'json'")
    for off in ("", os.devnull):
        assert not home.run("tokens", "a", ATTNVIZ_CONFIG=off).out.startswith("[")


IDLE = [
    # what is configured, and a call that it means nothing to
    ("dpi = 300\ncmap = 'magma'", ["show", "a b"]),
    ("dpi = 300", ["heads", "-f", "jsonl"]),
    ("color-scale = 'log'\ntitle = 'x'\norient = 'key-rows'", ["show", "a b", "-f", "csv"]),
    ("view = 'grid'", ["show", "a b", "-f", "json"]),
    ("view = 'text'", ["show", "a b", "-o", "PICTURE"]),
    ("view = 'grid'", ["show", "a b", "--scores", "--head", "L1H1", "-f", "csv"]),
    ("view = 'table'", ["show", "a b", "--scores"]),
    ("top = 3\nmin = 0.2\ndrop-sink = true", ["show", "a b", "-f", "npz"]),
    ("format = 'json'", ["show", "a b", "-o", "PICTURE"]),
    ("format = 'npz'", ["tokens", "a b"]),
    ("over = 'heads'", ["show", "a b"]),
    ("words = true", ["show", "a b", "--chars"]),
    ("head = 'L1H1'", ["show", "a b", "--rollout"]),
    ("engine = 'native'", ["show", "CAPTURE"]),
    ("drop-sink = true\ntruncate = 'left'", ["heads"]),
]


@pytest.mark.parametrize(("text", "arguments"), IDLE, ids=[case[0] for case in IDLE])
def test_a_default_that_means_nothing_to_a_call_is_as_if_it_were_not_set(
    home: Home, tmp_path: Path, text: str, arguments: list[str]
) -> None:
    picture, capture = tmp_path / "x.png", tmp_path / "c.npz"
    if "CAPTURE" in arguments:
        assert home.run("show", "a b", "-o", str(capture)).status == ExitStatus.OK
    given = [{"PICTURE": str(picture), "CAPTURE": str(capture)}.get(a, a) for a in arguments]
    without = home.run(*given)
    drawn = picture.read_bytes() if picture.exists() else b""
    home.set(text)
    ended = home.run(*given)
    assert ended.err == without.err
    assert ended.status == ExitStatus.OK
    assert ended.raw == without.raw or arguments[-1] in ("npz", "PICTURE")
    assert not drawn or picture.read_bytes() == drawn


def test_only_the_default_that_means_nothing_is_left_out(home: Home) -> None:
    home.set("dpi = 300\nview = 'grid'\n")
    grid = home.run("show", "a b", "--view", "grid", ATTNVIZ_CONFIG="").out
    assert home.run("show", "a b").out == grid


def test_what_is_typed_is_refused_where_it_means_nothing(home: Home) -> None:
    home.set("view = 'grid'")
    ended = home.run("show", "a b", "--dpi", "300")
    assert (ended.status, ended.out) == (ExitStatus.USAGE, "")
    assert "--dpi does nothing" in ended.err


WRONG = [
    # the file, a part of the sentence
    ("= 3", "is not TOML: "),
    ("a = [" * 5000, "is not TOML: "),
    ("tpo = 3", "'tpo' is not an option that commands share; did you mean top"),
    ("similarity = 'general'", "set the option of one command in its table"),
    ("[shwo]\ntop = 3", "'shwo' is not a command; did you mean show"),
    ("[show]\ntpo = 3", "'tpo' in [show] is not an option of attnviz show; did you mean top"),
    ("[show]\nsimilarity = 'general'", "attnviz show --help-all lists its options"),
    ("output = 'x.png'", "'output' cannot have a default"),
    ("[show]\nfile = 'x.txt'", "'file' cannot have a default"),
    ("quiet = 'no'", "'quiet' cannot be 'no'; write true or false"),
    ("top = true", "'top' cannot be True"),
    ("top = [1]", "'top' cannot be [1]"),
    ("top = 2020-01-01", "'top' cannot be 2020-01-01"),
    ("min = nan", "'min' cannot be nan"),
    ("drop-key = [['a']]", "'drop-key' cannot be ['a']"),
    ("top = 0", "--top 0 is out of range; give 1 or more. (--top is set in "),
    ("device = 'tpu'", "(--device is set in "),
    ("view = 'pie'", "(--view is set in "),
    ("width = 3", "--width 3 is too narrow; give 40 or more. (--width is set in "),
    ("max-memory = 'lots'", "(--max-memory is set in "),
    ("format = 'yaml'", "(-f is set in "),
]


@pytest.mark.parametrize(("text", "says"), WRONG, ids=[case[0][:30] for case in WRONG])
def test_a_wrong_file_is_one_sentence_that_names_the_file_and_the_key(
    home: Home, text: str, says: str
) -> None:
    home.set(text)
    ended = home.run("show", "a b")
    assert (ended.status, ended.out) == (ExitStatus.USAGE, "")
    assert says in ended.err
    assert "config.toml" in ended.err
    assert ended.err.startswith("attnviz: ")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    "text", ["top = 0", "top = 'ten'", "view = 'pie'", "[heads]\ntop = 0", "[heads]\nx = 1"]
)
def test_config_checks_what_the_file_sets_for_every_command(home: Home, text: str) -> None:
    home.set(text)
    for arguments in (["config"], ["config", "show"]):
        ended = home.run(*arguments)
        assert (ended.status, ended.out) == (ExitStatus.USAGE, "")
        assert "config.toml" in ended.err


def test_help_stands_beside_a_wrong_file(home: Home) -> None:
    home.set("[show]\ntpo = 3")
    assert "Usage: attnviz show" in home.run("show", "--help").out
    assert "Usage: attnviz show" in home.run("show", "--help-all").out
    assert "Commands" in home.run("--help").out


def test_a_file_that_is_none_or_too_large_or_not_there_is_refused(home: Home) -> None:
    home.file.mkdir(parents=True)
    assert "is not a file" in home.run("tokens", "a").err
    home.file.rmdir()
    os.mkfifo(home.file)
    assert "is not a file" in home.run("tokens", "a").err
    home.file.unlink()
    home.set("#" * (LARGEST + 1))
    assert "has more than 64 KB" in home.run("tokens", "a").err
    home.file.write_bytes(b"title = '\xff'")
    assert "is not TOML" in home.run("tokens", "a").err
    assert "does not exist" in home.run("tokens", "a", ATTNVIZ_CONFIG="/nowhere.toml").err
    home.file.write_bytes(b"\xef\xbb\xbfquiet = true")
    assert home.run("tokens", "a").status is ExitStatus.OK
    assert "not a full path" in home.run("tokens", "a", ATTNVIZ_CONFIG="here.toml").err


def test_config_names_the_file_also_where_it_is_not_there(home: Home) -> None:
    assert f"{home.file} (not there)" in home.run("config").out.replace("\n", "")


def test_help_names_a_default_that_is_configured(home: Home) -> None:
    home.set("cmap = 'magma'")
    help = on_one_line(home.run("show", "--help-all").out)
    assert "[default: magma, configured]" in help
    assert "[default: viridis]" not in help


def test_a_configured_number_of_heads_counts_as_given_in_rows_too(home: Home) -> None:
    home.set("[ablate]\ntop = 3")
    rows = home.run("ablate", "a red fox", "-f", "jsonl").out
    assert len(rows.splitlines()) == 3
