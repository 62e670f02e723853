"""Measure tiny models of speech for docs/models.md: their rows, and their seconds.

The measurements are those of tests/speech.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.speech.test_rows import difference, kinds_of
from tests.speech.test_times import BLOCKS, Heard, far_off
from tests.speech.zoo import ZOO, Spoken

HEAD = """| architecture | writes | a frame | weights | seconds |
| --- | --- | --- | --- | --- |
"""


def speech_table() -> str:
    """A row for each architecture."""
    return HEAD + "".join(map(row, ZOO))


def row(spoken: Spoken) -> str:
    """One architecture, measured."""
    with TemporaryDirectory() as folder:
        path = spoken.make(Path(folder))
        largest = max(difference(spoken, path, kind) for kind in kinds_of(spoken))
        heard = Heard(spoken, path)
        right = sum(not far_off(spoken, heard, blocks=(block,)) for block in BLOCKS)
    writes = "a text" if spoken.writes else "nothing"
    frame = f"{1000 * heard.frame:g} ms"
    return f"| {spoken.name} | {writes} | {frame} | {largest:.1e} | {right} of {len(BLOCKS)} |\n"
