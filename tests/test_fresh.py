"""What `.ci/run` hides from the tests: what the test command does not install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FRESH = Path(__file__).parents[1] / ".ci" / "fresh"
INSTALLED = """
from pathlib import Path
import os, subprocess, sys

BY_HAND = os.environ["BY_HAND"]

def test_a_folder_that_pip_did_not_install():
    Path(BY_HAND, "data.noun").read_text()

def test_its_list():
    os.listdir(BY_HAND)

def test_a_program_that_pip_did_not_install():
    subprocess.run([Path(BY_HAND, "program")])

def test_a_process_that_reads_it():
    read = "import sys; open(sys.argv[1])"
    subprocess.run([sys.executable, "-c", read, f"{BY_HAND}/data.noun"], check=True)

def test_what_every_machine_has(tmp_path):
    (tmp_path / "a").write_text("a")
    subprocess.run(["sh", "-c", "true"], check=True)
    subprocess.run([sys.executable, "-c", "import numpy"], check=True)

def test_the_settings_of_its_user():
    Path.home().joinpath("settings").read_text()
"""


@pytest.mark.parametrize("hidden", [True, False])
def test_a_test_that_reads_what_was_installed_by_hand_fails(tmp_path: Path, hidden: bool) -> None:
    by_hand, temporary, home = (tmp_path / name for name in ("by-hand", "temporary", "home"))
    for folder in (by_hand, temporary, home):
        folder.mkdir()
    (by_hand / "data.noun").write_text("")
    (by_hand / "program").write_text("#!/bin/sh\n")
    (by_hand / "program").chmod(0o755)
    (home / "settings").write_text("")
    (temporary / "pytest.ini").write_text("[pytest]\n")  # so that none above is looked for
    (temporary / "test_it.py").write_text(INSTALLED)
    environment = {**os.environ, "TMPDIR": str(temporary), "BY_HAND": str(by_hand)}
    environment |= {"HOME": str(home), "PYTHONPATH": str(FRESH) if hidden else ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
    ended = subprocess.run(
        [*command, "test_it.py"], cwd=temporary, env=environment, capture_output=True, text=True
    )
    assert ("5 failed, 1 passed" if hidden else "6 passed") in ended.stdout, ended.stdout
