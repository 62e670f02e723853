"""Time and memory from inside a process, after the model is loaded and has run once."""

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def report(work: Callable[[int], object], n: int) -> None:
    """Print the seconds that the work takes on n tokens, and the bytes above what is loaded."""
    work(16)
    before = _now()
    started = time.perf_counter()
    work(n)
    print(time.perf_counter() - started, _peak() - before)


def _now() -> int:
    """Bytes in use; on Linux the peak is counted anew from here."""
    if not RESET.exists():
        return _peak()
    RESET.write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    if RESET.exists():
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int:
    line = next(row for row in STATUS.read_text().splitlines() if row.startswith(name))
    return int(line.split()[1]) << 10
