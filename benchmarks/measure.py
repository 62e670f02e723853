"""One process at a time, measured from outside: wall time and peak memory."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryFile

MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    """One run of a process: `seconds` and `bytes` at its peak; `said` is what it printed."""

    seconds: float
    bytes: float
    said: str


@dataclass(frozen=True)
class Pair:
    """Medians of two commands that were run in turn: ours, and theirs."""

    ours: Sample
    theirs: Sample

    @property
    def time(self) -> float:
        """Ours as a share of theirs."""
        return self.ours.seconds / self.theirs.seconds

    @property
    def memory(self) -> float:
        """Ours as a share of theirs."""
        return self.ours.bytes / self.theirs.bytes


def run(command: Sequence[str]) -> Sample:
    """Run a command to its end.

    Raises:
        SystemExit: it failed; what it said is shown.
    """
    with TemporaryFile() as out, TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{err.read().decode()}")
        said = out.read(4096).decode(errors="replace")
    unit = 1 if sys.platform == "darwin" else 1 << 10
    return Sample(seconds, usage.ru_maxrss * unit, said)


def imports(command: Sequence[str], module: str) -> bool:
    """Does this Python command import the module?"""
    python, *arguments = command
    timed = [python, "-X", "importtime", *arguments]
    told = subprocess.run(timed, capture_output=True, text=True, check=True).stderr
    return any(line.split("|")[-1].strip() == module for line in told.splitlines())


def compare(
    ours: Sequence[str],
    theirs: Sequence[str],
    runs: int,
    *,
    timed_inside: bool,
    warm: bool = True,
) -> Pair:
    """Run both in turn, after one run of each that does not count (`warm`).

    `timed_inside`: the commands print their own seconds, and how many bytes above what was
    loaded they took.
    """
    samples: tuple[list[Sample], list[Sample]] = [], []
    for turn in range(runs + warm):
        for command, kept in zip((ours, theirs), samples, strict=True):
            sample = run(command)
            if turn >= warm:
                kept.append(_inside(sample) if timed_inside else sample)
    return Pair(*(_median(kept) for kept in samples))


def _inside(sample: Sample) -> Sample:
    return Sample(float(sample.said.split()[0]), sample.bytes, sample.said)


def _median(samples: Sequence[Sample]) -> Sample:
    """The medians, and what the run nearest to the median time said."""
    seconds = median(s.seconds for s in samples)
    typical = min(samples, key=lambda s: abs(s.seconds - seconds))
    return Sample(seconds, median(s.bytes for s in samples), typical.said)
