"""Hides from the tests, and from the Python processes that they start, what pip did not install.

`.ci/run` puts this folder on PYTHONPATH, so that every Python process imports this file. In those
of pytest, a file, a folder or a program is as if it were not there unless it belongs to the
checkout, the environment, Python or the system: libraries, settings, devices, fonts, a shell.

It does not see what C, Rust or a shell opens. It does not hide that a path exists, either: a test
that asks for a path and then reads it fails, where on another machine it would be skipped.
"""

import os
import sys
from tempfile import gettempdir
from typing import Any

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SYSTEM = "/bin /dev /etc /lib /proc /run /sys /usr/lib /usr/share/fonts /usr/share/zoneinfo".split()
SEEN = [CHECKOUT, sys.prefix, *sys.path, gettempdir(), *SYSTEM]
PROGRAMS = "sh", "bash", "fc-list", "ldconfig", "uname", *map(os.path.basename, [sys.executable])


def is_seen(path: Any) -> bool:
    """Whether a fresh machine has a path, or a folder on the way to such a path."""
    if not isinstance(path, str | bytes):  # an open file, or the current folder
        return True
    full = os.path.join(os.path.abspath(os.fsdecode(path)), "")
    places = [os.path.join(place, "") for place in SEEN if place]
    return any(full.startswith(place) or place.startswith(full) for place in places)


def hide(event: str, arguments: tuple[Any, ...]) -> None:
    """What Python calls before it opens a path or starts a program."""
    if event in ("open", "os.listdir", "os.scandir"):
        there = is_seen(arguments[0])
    elif event in ("subprocess.Popen", "os.exec", "os.posix_spawn"):
        program = os.fsdecode(arguments[0])
        there = os.path.basename(program) in PROGRAMS or (os.sep in program and is_seen(program))
    else:
        return
    if not there:
        raise FileNotFoundError(2, "hidden by .ci/fresh", os.fsdecode(arguments[0]))


if "PYTEST_VERSION" in os.environ or any(os.path.basename(x) == "pytest" for x in sys.orig_argv):
    os.environ["HOME"] = os.path.join(sys.prefix, "home")  # no settings or caches of its user
    os.makedirs(os.environ["HOME"], exist_ok=True)
    sys.addaudithook(hide)
