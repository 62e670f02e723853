"""How time and memory grow with the length of a text: exponents of a power law."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from benchmarks.jobs import PYTHON, SCRIPTS
from benchmarks.measure import Pair, compare

LENGTHS = (512, 1024, 2048, 4096, 8192)
NEAR = 0.15
"""How far the exponent of ours may be above that of the plain forward pass."""


@dataclass(frozen=True)
class Growth:
    """The exponents of seconds, and of bytes above the loaded model."""

    time: float
    memory: float


def growth(folder: Path, runs: int) -> tuple[Growth, Growth, list[Pair]]:
    """Ours, theirs, and the medians behind them, on the small Llama."""
    pairs = []
    for length in LENGTHS:
        ours, theirs = (
            [PYTHON, str(SCRIPTS / script), str(folder / "llama"), str(folder / f"{length}.txt")]
            for script in ("links.py", "forward.py")
        )
        pairs.append(compare(ours, theirs, runs, timed_inside=True))
    return (
        Growth(*(_slope(v) for v in zip(*(_numbers(p.ours.said) for p in pairs), strict=True))),
        Growth(*(_slope(v) for v in zip(*(_numbers(p.theirs.said) for p in pairs), strict=True))),
        pairs,
    )


def _numbers(said: str) -> tuple[float, float]:
    """Seconds, and bytes above what was loaded."""
    seconds, more = said.split()
    return float(seconds), max(1.0, float(more))


def _slope(values: Sequence[float]) -> float:
    """The least-squares slope of the logarithms over those of the lengths."""
    x, y = [log(n) for n in LENGTHS], [log(v) for v in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    over = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return over / sum((a - mean_x) ** 2 for a in x)
