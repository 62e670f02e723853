"""How much memory there is, and a size as a person writes it; nothing heavy is imported."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SHARE = 0.8
"""The share of free memory that is used unless the user sets a limit."""
BATCH_TOKENS = 2048
"""How many tokens of several runs form a batch; more make no processor faster."""
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def free_bytes() -> int:
    """Bytes that can still be used on this machine, or in the container of this process."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, TypeError):
        available = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
        free = int(available[1]) << 10 if available else free
    return min([free, *_left_to_groups()])


GROUPS = Path("/sys/fs/cgroup")
CGROUP_FILES = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Both versions of control groups: controller, limit, use, and cached files within the use."""


def _left_to_groups() -> Iterator[int]:
    """Bytes that each control group of this process may still use, where it has a limit."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller, limit, used, cached in CGROUP_FILES:
                if controller in controllers.split(","):
                    inside = GROUPS / controller / path.lstrip("/")
                    for group in (inside, *inside.parents):
                        yield from _left_to(group, limit, used, cached)


def _left_to(group: Path, limit: str, used: str, cached: str) -> Iterator[int]:
    with suppress(OSError, ValueError):  # no limit, or none of this version
        most, now = int((group / limit).read_text()), int((group / used).read_text())
        files = re.search(rf"^{cached} (\d+)", (group / "memory.stat").read_text(), re.MULTILINE)
        yield most - now + (int(files[1]) if files else 0)


def size_of(text: str) -> int:
    """Bytes from `4GB`, `500M` or `1.5 GiB`; a number alone is bytes.

    Raises:
        ValueError: it is no size.
    """
    match = re.fullmatch(
        r"(\d{1,18}(?:\.\d{1,18})?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE
    )
    if match is None:
        raise ValueError(f"{text!r} is no size")
    return int(float(match[1]) * UNITS[match[2].upper()])


def written(size: int) -> str:
    """`1.5 GB`, `12 MB`: a size as a person reads it."""
    for unit in "TGM":
        if size >= UNITS[unit]:
            amount = size / UNITS[unit]
            return f"{amount:.1f} {unit}B" if amount < 10 else f"{amount:.0f} {unit}B"
    return f"{-(-size // UNITS['K'])} KB"
