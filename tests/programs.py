"""The program in a process of its own, and programs that pip does not install."""

import json
import os
import subprocess
import sys
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


PROGRAM = """
import json, sys
sys.argv = ["attnviz", *json.loads(sys.argv[1])]
try:
    from attnviz.cli import run
    run()
finally:
    names = ("torch", "transformers", "matplotlib")
    print(json.dumps([n for n in names if n in sys.modules]), file=sys.stderr)
"""


def loaded_by(*arguments: str, **variables: str) -> tuple[list[str], str]:
    """The heavy packages that are loaded at the end of a command, and what it printed."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=True,
    )
    return json.loads(ended.stderr.splitlines()[-1]), ended.stdout
