"""Sample texts by name: they come with attnviz, and the examples of every help run with them."""

import re
import shlex
from pathlib import Path

import pytest

from attnviz.cli import COMMANDS, command
from attnviz.errors import ExitStatus, InputError
from attnviz.inputs.beside import is_jsonl
from attnviz.inputs.given import found, samples
from attnviz.inputs.images import read_picture
from tests.conftest import Run


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_of_a_help_reads_no_file_of_a_checkout(name: str) -> None:
    examples = command(name).epilog
    assert not re.search("sample_texts|docs/", examples)
    for sample in re.findall(r"sample:\S+", examples):
        assert found(Path(sample)).is_file()


NEEDS_MORE = re.compile("[|]|gpt2|my-model|old.jsonl")
"""Another program, a model or a result of the user's own."""
LONG = re.compile("--image|--pairs| -o |lines .* --check")
RUN = "show explain why predict ablate patch circuit compare tokens heads generate models params"


def check_examples(run: Run, lines: list[str]) -> None:
    assert lines
    for line in lines:
        ended = run(*shlex.split(line)[1:])
        failed = line.endswith("--resume")  # one question of the sample has no documents
        assert ended.status is (ExitStatus.INPUT if failed else ExitStatus.OK), (line, ended.err)
        assert ended.out or " -o " in line


def examples_of(name: str) -> list[str]:
    lines = [line for line in command(name).epilog.split("\n\n") if line.startswith("attnviz ")]
    return [line for line in lines if not NEEDS_MORE.search(line)]


@pytest.mark.parametrize("name", RUN.split())
def test_the_examples_of_a_help_run_in_an_empty_folder(run: Run, name: str) -> None:
    check_examples(run, [line for line in examples_of(name) if not LONG.search(line)])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RUN.split(), "report"])
def test_all_examples_of_a_help_do_so(run: Run, name: str) -> None:
    check_examples(run, examples_of(name))


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("tokens --file sample:bark", "Bark"),
        ("predict --lines --file sample:moles.txt", "line 3"),
        ("generate therefore --doc sample:letter --max-new-tokens 1", "  letter  "),
    ],
)
def test_a_sample_is_read_where_a_file_is(run: Run, typed: str, shown: str) -> None:
    ended = run(*typed.split())
    assert shown in ended.out + ended.err


def test_a_sample_may_have_its_suffix_and_a_file_of_the_same_name_comes_first() -> None:
    named = Path("sample:questions")
    assert found(named) == found(Path("sample:questions.jsonl")) == samples()["questions"]
    assert is_jsonl(named)
    assert found(Path("questions")) == Path("questions")
    named.touch()
    assert found(named) == named


@pytest.mark.parametrize("name", ["", "nope", "bark.jsonl", "../README.md", "README"])
def test_the_samples_are_listed_where_there_is_none_of_a_name(run: Run, name: str) -> None:
    ended = run("tokens", "--file", f"sample:{name}")
    assert ended.status is ExitStatus.INPUT
    assert ended.err.startswith(f"attnviz: there is no sample {name!r}; give sample: and one of ")
    assert ", mystery, " in ended.err


def test_an_image_may_be_a_sample() -> None:
    picture = read_picture(Path("sample:shapes-1"))
    assert picture.pixels.shape == (512, 512, 3)
    assert picture.name == "shapes-1.png"


def test_a_text_that_names_a_sample_is_told_how_it_is_read(run: Run) -> None:
    assert "did you mean --file sample:bark?" in run("tokens", "sample:bark").err
    assert "did you mean --file sample:bark.txt?" in run("tokens", "sample:bark.txt").err
    assert "is a file" not in run("tokens", "sample:nope").err
    told = run("compare", "sample:bark", "bark").err
    assert f'did you mean "$(cat {shlex.quote(str(samples()["bark"]))})"?' in told


def test_a_picture_stands_in_the_place_of_a_text_as_its_file_does(run: Run) -> None:
    alone = run("show", "sample:shapes-1", "-m", "shapes-vit", "-f", "csv")
    assert alone.status is ExitStatus.OK, alone.err
    beside = run("show", "--image", "sample:shapes-1", "-m", "shapes-vit", "-f", "csv")
    assert alone.out == beside.out
    refused = run("tokens", "sample:shapes-1")
    assert refused.status is ExitStatus.USAGE
    assert "'sample:shapes-1' is an image, and the model reads text" in refused.err


def test_no_sample_of_a_name_is_said_where_images_are_read_too(run: Run) -> None:
    refused = run("show", "sample:nope", "-m", "shapes-vit")
    assert refused.status is ExitStatus.INPUT
    assert "there is no sample 'nope'; give sample: and one of " in refused.err


def test_a_sample_that_is_no_image_is_named_as_it_was_typed() -> None:
    with pytest.raises(InputError, match=r"^'sample:mystery' is not an image"):
        read_picture(Path("sample:mystery"))
