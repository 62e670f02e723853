"""Programs that pip does not install, without which a test is skipped."""

import subprocess
from functools import cache

import pytest


@cache
def starts(program: str) -> bool:
    """Whether a program can be started: to ask for its path would find what `.ci/run` hides."""
    try:
        subprocess.run([program, "--version"], capture_output=True)
    except OSError:
        return False
    return True


def needs(program: str) -> pytest.MarkDecorator:
    """Skip a test where this program cannot be started."""
    return pytest.mark.skipif(not starts(program), reason=f"needs {program}")
