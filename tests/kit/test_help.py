"""Help: the usual options first, every option on request, and nothing broken apart."""

import io
import json
import re
from typing import Any

import pytest
from typer.core import TyperOption

from attnviz.cli import COMMANDS, command, main
from attnviz.console import Environment
from attnviz.errors import ExitStatus
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session
from tests.conftest import Run


def _options(name: str) -> list[Any]:
    """Those that a help lists; earlier names are hidden."""
    every = (each for each in command(name).params if isinstance(each, TyperOption))
    return [each for each in every if not each.hidden]


def _prose(help: str) -> list[str]:
    """The lines of a help but those of its examples, which are there to be copied."""
    return [line for line in help.splitlines() if not re.match("  (attnviz|echo) ", line)]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_says_how_many_options_there_are_and_how_to_see_them(
    run: Run, name: str
) -> None:
    short = run(name, "--help", variables={"COLUMNS": "80"}).out.rstrip().splitlines()
    count = len(_options(name)) + 1  # --help is typer's own
    assert short[-1] == f"attnviz {name} --help-all lists all {count} options."
    assert len(short) <= 48


@pytest.mark.parametrize("name", COMMANDS)
def test_the_whole_help_has_every_option_and_choice_and_breaks_none_apart_at_80(
    run: Run, name: str
) -> None:
    help = run(name, "--help-all", variables={"COLUMNS": "80"}).out
    for each in _options(name):
        typed = ", ".join(sorted(each.opts, key=len) + each.secondary_opts)
        kind = "" if each.is_flag else r" \S*[^ |]"
        assert re.search(rf"^  {typed}{kind}( |$)", help, re.M), typed
        for choice in each.type_descriptor.choices or ():
            assert re.search(rf"[ |]{choice}[ |,\]\n]".replace(" t", r"\s+t"), help), choice


@pytest.mark.parametrize("asked", ["--help", "--help-all"])
@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_a_help_keeps_to_the_width_and_leaves_out_what_says_nothing(
    run: Run, name: str, columns: int, asked: str
) -> None:
    if not name and asked == "--help-all":
        pytest.skip("the list of commands has one help")
    help = run(*name.split(), asked, variables={"COLUMNS": str(columns)}).out
    assert max(map(len, _prose(help))) <= columns
    assert not re.search(r"<(bool|str|int)>|default: \(|x>=", help)
    assert "..." not in help.replace("]...", "").replace("}...", "")


def test_an_example_stays_in_one_line_so_that_it_can_be_copied(run: Run) -> None:
    narrow, wide = (
        run("show", "--help", variables={"COLUMNS": str(width)}).out for width in (40, 200)
    )
    examples = [line for line in wide.splitlines() if line.startswith("  attnviz ")]
    assert len(examples) == 4
    assert set(examples) <= set(narrow.splitlines())


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("help show", "show --help"),
        ("help config", "config -h"),
        ("help tokens", "tokens --help"),
        ("help help", "help --help"),
        ("version", "--version"),
    ],
)
def test_help_and_version_may_be_typed_as_commands(
    run: Run, capsys: pytest.CaptureFixture[str], words: str, options: str
) -> None:
    typed, meant = ((run(*line.split()).out, capsys.readouterr().out) for line in (words, options))
    assert typed == meant
    assert any(meant)


def _as_json(typed: str) -> dict[str, Any]:
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    main(typed.split(), Session(Environment(out, out, {}), Stdin(None, is_terminal=False)))
    return json.loads(out.buffer.getvalue(), parse_constant=pytest.fail)  # type: ignore


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return _as_json("--help -f json")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_as_json_has_every_declaration(told: dict[str, Any], name: str) -> None:
    (found,) = (each for each in told["commands"] if each["name"] == name)
    parameters = {each["name"]: each for each in found["options"] + found["arguments"]}
    made = command(name)
    for each in (each for each in made.params if not each.hidden):
        one = parameters[each.name]
        assert one["help"] == each.help
        assert one.get("choices", []) == [*(each.type_descriptor.choices or ())]
        assert one.get("default", False) == (False if each.default is None else each.default)
        assert (one.get("minimum"), one.get("maximum")) == (each.min, each.max)
    flags = {flag for each in found["options"] for flag in each["flags"]}
    for each in found["exclusions"]:
        assert {option.split()[0] for option in each["options"]} <= flags
    assert len(found["examples"]) == made.epilog.count("\n\n")


@pytest.mark.parametrize(
    "typed",
    ["show --help -f json", "help show --format json", "show -qh -fjson", "help -f json show"],
)
def test_the_help_of_one_command_is_its_part_of_the_whole(told: dict[str, Any], typed: str) -> None:
    assert _as_json(typed) == {"schema": told["schema"], **told["commands"][0]}


def test_a_help_as_json_has_types_exclusions_and_exit_codes(told: dict[str, Any]) -> None:
    assert [each["code"] for each in told["exit_codes"]] == [*map(int, ExitStatus)]
    assert all(each["meaning"] for each in told["exit_codes"])
    show = told["commands"][0]
    kinds = {each["name"]: each["type"] for each in show["options"]}
    assert [kinds[name] for name in "top least image words query".split()] == (
        "integer number path boolean string".split()
    )
    assert "npz" in show["formats"]
    bos, image = (next(o for o in show["options"] if o["name"] == n) for n in ("bos", "image"))
    assert bos["off"] == ["--no-bos"]
    assert image["several"]
    assert any("--top" in e["options"] and e["formats"] == ["html"] for e in show["exclusions"])
    predict = next(each for each in told["commands"] if each["name"] == "predict")
    assert predict["exclusions"][0]["instead"] == "add --attribute"


def test_a_text_that_is_spelled_like_a_help_is_no_help(run: Run) -> None:
    assert "unexpected extra argument" in run("show", "--", "--help", "-f", "json").err
    assert run("help", "query", "-f", "json").status is ExitStatus.USAGE
    ended = run(*"predict a --answer -h -f json".split())
    assert json.loads(ended.out)["command"] == "predict"


@pytest.mark.parametrize("typed", ["show -h -f jsonl", "--help -fcsv", "explore -h --format=html"])
def test_a_help_has_no_other_format(run: Run, typed: str) -> None:
    ended = run(*typed.split())
    assert ended.status is ExitStatus.USAGE
    assert ended.err == "attnviz: help is text or json; give -f json, or none.\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_brackets_in_a_help_are_text(run: Run, name: str) -> None:
    """Nothing in a help is markup: `[show]` is a table of the configuration."""
    made = command(name)
    shown = " ".join(run(name, "--help-all", variables={"COLUMNS": "80"}).out.split())
    for told in (made.help, *(each.help for each in made.params if not each.hidden)):
        assert " ".join(told.split()) in shown


@pytest.mark.parametrize("arguments", ["--help --color never", "--no-color --help-all"])
def test_a_help_without_colour_has_no_escape_sequence(run: Run, arguments: str) -> None:
    variables = {"TERM": "xterm-256color"}
    plain = run("show", *arguments.split(), terminal=True, variables=variables)
    assert "\x1b" not in plain.out
    assert "\x1b" in run("show", "--help", terminal=True, variables=variables).out


def test_a_least_number_that_is_not_allowed_is_said_in_words_and_in_data(run: Run) -> None:
    for name, option, said in (("generate", "top_p", "above 0 to 1"), ("train", "lr", "above 0")):
        options = json.loads(run(name, "--help", "-f", "json").out)["options"]
        excluded = [each["name"] for each in options if each.get("exclusive_minimum")]
        assert excluded == [option]
        assert f"[{said}; default:" in " ".join(run(name, "--help-all").out.split())
    assert run("generate", "a", "--top-p", "0", "--temperature", "1").status is ExitStatus.USAGE


def test_an_option_without_its_value_names_the_values(run: Run) -> None:
    err = run("explain", "--example").err
    assert "--example has no value; give one of three-inputs, multi-head" in err
