"""Measure the capture of every architecture, and write the table of docs/models.md.

python docs/make_models.py
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.architectures import ARCHITECTURES, Architecture
from tests.exactness import exactness_of

TARGET = Path(__file__).with_name("models.md")
TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- /table -->)", re.DOTALL)
HEAD = """| architecture | what is particular | how it is captured | weights | output |
| --- | --- | --- | --- | --- |
"""


def row(architecture: Architecture) -> str:
    """One architecture, measured."""
    exactness = exactness_of(architecture)
    how = "what its modules return" if architecture.fallback else "attention function"
    what = architecture.what + (
        "" if architecture.kind == "self" else f" ({architecture.kind}-attention)"
    )
    measured = f"{exactness.weights:.1e} | {exactness.output:.1e}"
    return f"| {architecture.name} | {what} | {how} | {measured} |\n"


def main() -> None:
    """Write the table into the document."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    table = HEAD + "".join(row(architecture) for architecture in ARCHITECTURES)
    text = TARGET.read_text(encoding="utf-8")
    TARGET.write_text(TABLE.sub(lambda _: table, text), encoding="utf-8")


if __name__ == "__main__":
    main()
