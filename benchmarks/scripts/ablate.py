"""attnviz's ablation of every head, one at a time: seconds, and bytes above the loaded model.

python ablate.py FOLDER TEXT.txt native|transformers
"""

import sys
from pathlib import Path

from inside import report

from attnviz.models.catalog import Source, load
from attnviz.runs.ablate import Ablating, Targets, ablate_each
from attnviz.runs.options import TextOptions

folder, text, engine = sys.argv[1:]
model = load(Source(folder, engine=engine))  # type: ignore[arg-type]
words = Path(text).read_text().split()


def ablate(n: int) -> None:
    ablate_each(model, " ".join(words[:n]), TextOptions(), Targets(), Ablating())


report(ablate, len(words))
