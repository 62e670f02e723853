"""Folders and captures whose files were changed at random: an answer, or one sentence, soon."""

import contextlib
import random
import re
import resource
import shutil
import signal
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnviz.errors import LAYOUT, ExitStatus
from tests.conftest import Result, Run
from tests.fuzzing import change_archive, change_file, random_command

TEXT = "a fluffy blue creature"
SECONDS, MEGABYTES = 5, 300
COMMANDS = (
    ("show", TEXT, "--model", "{}"),
    ("show", TEXT, "--model", "{}", "--engine", "transformers"),
    ("tokens", TEXT, "--model", "{}"),
    ("predict", TEXT, "--model", "{}"),
    ("params", "{}"),
    ("models", "{}"),
)
LONG = pytest.mark.slow


@pytest.mark.parametrize("count", [70, pytest.param(5000, marks=LONG)])
def test_a_folder_changed_at_random_gives_an_answer_or_one_sentence(
    run: Run, gpt2_folder: Path, tmp_path: Path, count: int
) -> None:
    ends: Counter[str] = Counter()
    for case in range(count):
        rng = random.Random(case)
        folder = Path(shutil.copytree(gpt2_folder, tmp_path / "model"))
        (folder / "card.json").write_text('{"schema": 1, "name": "a", "description": "", '
            '"bos": true, "heads": [{"behaviour": "a", "head": "L0H0", "title": "b"}], '
            '"figures": [], "loss_limit": 2.5}')  # fmt: skip
        for _ in range(rng.choice((1, 1, 2))):
            with contextlib.suppress(ValueError, IndexError):  # a second change of the same file
                change_file(rng.choice(sorted(folder.iterdir())), rng)
        with limited(f"case {case}"):
            ended = run(*(part.format(folder) for part in rng.choice(COMMANDS)))
        check(ended, f"case {case}")
        ends[ended.status.name] += 1
        shutil.rmtree(folder)
    report(f"{count} folders", ends)
    assert ends["OK"] < count


@pytest.mark.parametrize("count", [70, pytest.param(2000, marks=LONG)])
def test_a_capture_changed_at_random_gives_an_answer_or_one_sentence(
    run: Run, tmp_path: Path, count: int
) -> None:
    path = tmp_path / "capture.npz"
    assert run("show", TEXT, "-o", str(path), "--head", "all").status is ExitStatus.OK
    whole, ends = path.read_bytes(), Counter[str]()
    for case in range(count):
        path.write_bytes(change_archive(whole, random.Random(case)))
        with limited(f"case {case}"):
            ended = run("show", str(path))
        check(ended, f"case {case}")
        ends[ended.status.name] += 1
    report(f"{count} captures", ends)
    assert ends["OK"] < count


@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=LONG)])
def test_any_text_with_any_options_gives_an_answer_or_one_sentence(
    run: Run, gpt2_folder: Path, count: int
) -> None:
    ends: Counter[str] = Counter()
    for case in range(count):
        arguments = random_command(random.Random(case), str(gpt2_folder))
        with limited(f"case {case}: {arguments}"):
            ended = run(*arguments, terminal=case % 3 == 0)
        shown = "" if is_binary(ended.raw) else ended.out
        columns = "tsv" in arguments  # whose tabs are no letters of the text
        check(ended, f"case {case}: {arguments}", shown.replace("\t", "") if columns else shown)
        ends[ended.status.name] += 1
    report(f"{count} command lines", ends)
    assert count / 10 < ends["OK"] < count


def is_binary(output: bytes) -> bool:
    return output[:4] in (b"\x89PNG", b"%PDF", b"PK\x03\x04")


def report(what: str, ends: Counter[str]) -> None:
    """Say on stderr how the cases ended, for `pytest -s`."""
    sys.stderr.write(f"\n{what}: {dict(ends)}\n")


def check(ended: Result, case: str, printed: str | None = None) -> None:
    """Check that an end is an answer, or one harmless sentence; `printed` instead of its output."""
    out = ended.out if printed is None else printed
    said = re.sub("\x1b\\[[0-9;]*m", "", out) + ended.err  # our own colours
    assert ended.status is not ExitStatus.BUG, f"{case}: {ended.err}"
    assert "Traceback" not in said, case
    assert len(ended.err) < 2000, case
    obeyed = {c for c in said if unicodedata.category(c)[0] == "C" and c not in LAYOUT}
    assert not obeyed, f"{case}: {obeyed!r}"


@contextlib.contextmanager
def limited(case: str) -> Iterator[None]:
    """Fail where something takes more than five seconds, or 300 MB more than anything before."""

    def late(*_: object) -> None:
        raise AssertionError(f"{case}: more than {SECONDS} s")

    before = _largest()
    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
    assert _largest() - before < MEGABYTES, f"{case}: {_largest() - before} MB more"


def _largest() -> int:
    """The most memory that this process has ever had, in MB."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit
