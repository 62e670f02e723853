"""Time and memory from inside a process, after the model is loaded and has run once."""

import resource
import sys
import time
from collections.abc import Callable


def report(work: Callable[[int], object], n: int) -> None:
    """Print the seconds that the work takes on n tokens, and the bytes that it adds to the peak."""
    work(16)
    before = _peak()
    started = time.perf_counter()
    work(n)
    print(time.perf_counter() - started, _peak() - before)


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
