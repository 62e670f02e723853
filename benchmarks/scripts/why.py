"""One head's score taken apart, after the run that it needs: seconds, and bytes.

python why.py FOLDER TEXT.txt ENGINE STEP, which is `why` or `tree`
"""

import sys
from pathlib import Path

from inside import report

from attnviz.commands.why.command import WhyQuestion, ask_why
from attnviz.kit.prepare import TextOptions, load_model
from attnviz.models.catalog import Source

folder, text, engine, step = sys.argv[1:]
model = load_model(Source(folder, engine=engine))
words = Path(text).read_text()
asked = WhyQuestion(head="L11H5", query="-1", depth=3 if step == "tree" else None)


def work(n: int) -> None:
    """The whole of it, on n characters or more."""
    ask_why(model, words if n > 16 else words[:200], asked, TextOptions())


report(work, len(words))
