"""Run `attnviz ARGUMENTS`, and end with a line on stderr on the parts of the package it needed.

These are the number of modules that were loaded, and of files that were entered: a function was
called in them, or a class was made. A file with only constants is loaded, and not entered.
"""

import sys
import threading
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import attnviz

PACKAGE = str(Path(attnviz.__file__).parent)
entered = set[str]()


def note(frame: FrameType, event: str, _: object) -> None:
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(PACKAGE):
        entered.add(code.co_filename)


threading.setprofile(note)
sys.setprofile(note)
try:
    from attnviz.cli import run

    run()
finally:
    sys.setprofile(None)
    loaded = [name for name in sys.modules if name.split(".")[0] == "attnviz"]
    print(len(loaded), len(entered), file=sys.stderr)
