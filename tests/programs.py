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
for sys.argv in json.loads(sys.argv[1]):
    try:
        from attnviz.cli import run
        run()
    except SystemExit as ended:
        assert not ended.code, sys.argv
    finally:
        names = ("torch", "transformers", "matplotlib")
        print(json.dumps([n for n in names if n in sys.modules]), file=sys.stderr)
"""


def loaded_by(*arguments: str, **variables: str) -> tuple[list[str], str]:
    """The heavy packages that are loaded at the end of a command, and what it printed."""
    (loaded,), printed = loaded_in_turn([*arguments], **variables)
    return loaded, printed


def loaded_in_turn(*commands: list[str], **variables: str) -> tuple[list[list[str]], str]:
    """Commands in one process; the heavy packages that are loaded at the end of each."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([["attnviz", *each] for each in commands])],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=True,
    )
    return [json.loads(line) for line in ended.stderr.splitlines()[-len(commands) :]], ended.stdout
