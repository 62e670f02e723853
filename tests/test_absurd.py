"""Absurd arguments end in one short sentence, soon, and never as a bug."""

import json
import re
from pathlib import Path

import pytest

from attnviz.cli import COMMANDS, command
from attnviz.errors import ExitStatus
from tests.conftest import Run

TEXT, DIGITS, LONG = "a fluffy blue creature", "9" * 5000, "x" * 10_000
CASES = [
    ("show", TEXT, "--top", DIGITS),
    ("show", TEXT, "--query", "/" + "(" * 3000 + "a" + ")" * 3000 + "/"),
    ("show", "a" * 200 + "b", "--query", "/^(([a-z])+.)+[A-Z]([a-z])+$/"),
    ("show", TEXT, "--query", "/a{99999999999}/"),
    ("show", TEXT, "--query", "/a{9999}b{9999}/"),
    ("show", TEXT, "--query", "/(?:(?:a{500}){500}){500}/"),
    ("show", TEXT, "--query", DIGITS),
    ("show", TEXT, "--query", f"creature#{DIGITS}"),
    ("show", TEXT, "--head", f"L{DIGITS}H0"),
    ("show", TEXT, "--view", LONG),
    ("show", TEXT, "--width", "1000000000"),
    ("show", TEXT, "--min", "1e400"),
    ("show", TEXT, "--max-memory", f"{'9' * 400}GB"),
    ("show", TEXT, "-o", "x.png", "--dpi", "9" * 30),
    ("explain", TEXT, "--only", f"1-{DIGITS}"),
    ("explain", "--example", "multi-head", "--seed", "9" * 60),
    ("predict", TEXT, "--top", DIGITS),
    ("ablate", TEXT, "--head", "x" * 10_000),
    ("compare", TEXT, TEXT, "--query", LONG),
    ("heads", "--samples", "1000000000"),
    ("heads", "--length", "1000000000"),
    ("train", "README.md", "-o", "m", "--vocab", "1000000000000"),
    ("train", "README.md", "-o", "m", "--n-layer", "1000000000"),
    ("train", "README.md", "-o", "m", "--batch", "60000", "--context", "60000"),
]


@pytest.mark.parametrize("arguments", CASES, ids=lambda case: " ".join(case)[:60])
def test_an_absurd_argument_is_a_usage_error_in_a_short_sentence(
    run: Run, arguments: tuple[str, ...]
) -> None:
    ended = run(*arguments)
    assert ended.status is ExitStatus.USAGE, ended.err
    assert ended.out == ""
    assert len(ended.err) < 600
    assert not re.search(r"\S{82}", ended.err)


@pytest.mark.parametrize("name", ["~nosuchuser/x", LONG, f"./{LONG}", "a\x00b", "/" * 5000])
@pytest.mark.parametrize("command", [("show", TEXT, "--model"), ("params",), ("models",)])
def test_a_model_that_no_folder_can_be_is_a_model_error(
    run: Run, command: tuple[str, ...], name: str
) -> None:
    ended = run(*command, name)
    assert ended.status is ExitStatus.MODEL, ended.err
    assert len(ended.err) < 600


@pytest.mark.parametrize("arguments", [("show",), ("predict",), ("show", "--lines"), ("tokens",)])
def test_an_endless_file_is_not_read_to_its_end(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments, "--file", "/dev/zero")
    assert ended.status is ExitStatus.INPUT
    assert "more than 64 MB" in ended.err
    matrices = run("explain", "--matrices", "/dev/zero")
    assert matrices.status is ExitStatus.INPUT


def test_a_text_that_no_tokens_of_the_model_could_hold_is_not_cut_into_tokens(run: Run) -> None:
    ended = run("show", stdin=b"a fluffy creature " * 100_000)
    assert ended.status is ExitStatus.INPUT
    assert "1,799,999 characters" in ended.err or "1,800,000 characters" in ended.err


@pytest.mark.parametrize("option", ["--query", "--key", "--drop-key"])
def test_an_expression_that_no_line_can_have_stops_at_the_first(run: Run, option: str) -> None:
    ended = run("show", "--lines", option, "/(/", stdin=b"a cat\n" * 50)
    assert ended.status is ExitStatus.USAGE
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("name", [LONG, "x/" * 5000, "/proc/x", "README.md/x"])
def test_a_folder_that_cannot_be_made_is_an_output_error_before_any_training(
    run: Run, name: str
) -> None:
    ended = run("train", "README.md", "-o", name)
    assert ended.status is ExitStatus.OUTPUT, ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("data", [b"\x1f\x8b\x08\x00", b"PK\x03\x04\x14\x00\x00\x8f", b"\x00\xff"])
def test_a_file_that_is_no_text_is_not_to_be_converted(
    run: Run, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "x").write_bytes(data * 9)
    ended = run("show", "--file", str(tmp_path / "x"))
    assert ended.status is ExitStatus.INPUT
    assert "it is not text" in ended.err


@pytest.mark.parametrize(
    "changed",
    [{"x": [[0.5] * 2] * 5000}, {"labels": ["x" * 10**6]}, {"heads": 10**30}, {"x": [["1", "2"]]}],
    ids=["large", "a long label", "heads", "texts"],
)
def test_matrices_that_nobody_could_follow_are_an_input_error(
    run: Run, tmp_path: Path, changed: dict[str, object]
) -> None:
    eye = [[1.0, 0.0], [0.0, 1.0]]
    content = {"x": [[1.0, 2.0]], "w_query": eye, "w_key": eye, "w_value": eye, **changed}
    (tmp_path / "m.json").write_text(json.dumps(content))
    ended = run("explain", "--matrices", str(tmp_path / "m.json"))
    assert ended.status is ExitStatus.INPUT
    assert len(ended.err) < 400


@pytest.mark.parametrize("top", ["9" * 30, str(1 << 62)])
def test_more_than_there_is_is_all_there_is(run: Run, top: str) -> None:
    assert run("show", TEXT, "--top", top).out == run("show", TEXT, "--top", "99").out


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_of_a_tiny_temperature_the_likeliest_tokens_come(run: Run, engine: str) -> None:
    asked = "generate", TEXT, "--max-new-tokens", "2", "--engine", engine
    likeliest = run(*asked).out
    for temperature in ("1e-38", "1e-45", "5e-324", "1e-30", "1e-29"):
        cold = run(*asked, "--temperature", temperature)
        assert (cold.status, cold.err) == (ExitStatus.OK, ""), temperature
        assert cold.out == likeliest, temperature


@pytest.mark.parametrize("least", ["5e-324", "1e-310", "1e-300", "1e-46"])
def test_a_weight_under_all_weights_hides_none(run: Run, least: str) -> None:
    rows = "show", TEXT, "-f", "jsonl"
    assert run(*rows, "--min", least).out == run(*rows).out


NUMBERS = [  # every option of every command that takes a number
    (name, option.opts[0])
    for name in COMMANDS
    for option in command(name).params
    if option.type_descriptor.annotation in (int, float)
]


@pytest.mark.parametrize(("name", "flag"), NUMBERS, ids=" ".join)
def test_a_number_that_no_option_can_have_is_refused_in_a_sentence_of_our_own(
    run: Run, name: str, flag: str
) -> None:
    for typed in ("nan", "inf", "-inf", "9" * 5000, "0x10", "ten", ""):
        ended = run(name, flag, typed)
        assert ended.status is ExitStatus.USAGE, (typed, ended.err)
        assert re.fullmatch(
            rf"attnviz: {flag} .+ is (not a (whole )?number|out of range|too large); give .+\.\n",
            ended.err,
        ), (typed, ended.err)


@pytest.mark.parametrize("typed", ["inf", "1e308", "9" * 400, "nan", "-1"])
def test_a_second_that_no_sound_has_is_refused_in_a_sentence(run: Run, typed: str) -> None:
    for given in (["align"], ["show"], ["heads"]):
        ended = run(*given, "--audio", "none.wav", "--start", typed)
        assert ended.status is ExitStatus.USAGE, ended.err
        assert re.fullmatch(
            r"attnviz: --start \S+ is (not a number|too large|out .*); .*\n", ended.err
        )


def test_a_scan_of_more_documents_than_can_be_counted_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat on the mat\n")
    ended = run("scan", str(tmp_path / "a.txt"), "-o", str(tmp_path / "s"), "--max-docs", "9" * 400)
    assert ended.status is ExitStatus.USAGE
    assert ended.err.endswith(" is out of range; give 1 to 1000000000000000.\n")


def test_a_number_is_read_as_python_reads_it(run: Run) -> None:
    for typed in ("３", "0_3", "+3", "3.0", " 3 "):
        assert run("show", TEXT, "--top", typed).out == run("show", TEXT, "--top", "3").out, typed
