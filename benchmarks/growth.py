"""How time and memory grow with the length of a text: exponents of a power law."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from benchmarks.jobs import PYTHON, SCRIPTS
from benchmarks.measure import run

LENGTHS = (512, 1024, 2048, 4096, 8192)
NEAR = 0.15
"""How far the exponent of ours may be above that of the plain forward pass."""


@dataclass(frozen=True)
class Growth:
    """The exponents of seconds, and of bytes above the loaded model."""

    time: float
    memory: float


def growth(script: str, folder: Path, runs: int) -> Growth:
    """Of one script, on the small Llama; of several runs at a length the fastest counts."""
    seconds, more = [], []
    for length in LENGTHS:
        command = [PYTHON, str(SCRIPTS / script), str(folder / "llama")]
        said = [run([*command, str(folder / f"{length}.txt")]).said.split() for _ in range(runs)]
        seconds.append(min(float(words[0]) for words in said))
        more.append(max(1.0, min(float(words[1]) for words in said)))
    return Growth(_slope(seconds), _slope(more))


def _slope(values: Sequence[float]) -> float:
    """The least-squares slope of the logarithms over those of the lengths."""
    x, y = [log(n) for n in LENGTHS], [log(v) for v in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    over = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return over / sum((a - mean_x) ** 2 for a in x)
