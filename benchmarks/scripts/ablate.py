"""attnviz's ablation of every head, one at a time: seconds, and bytes above the loaded model.

python ablate.py FOLDER TEXT.txt native|transformers [mlps|QUERY:KEY]

Or of every MLP, or of some links of every head.
"""

import sys
from pathlib import Path

from inside import report

from attnviz.commands.ablate.record import LinkNames
from attnviz.commands.ablate.run import Ablating, ablate_each
from attnviz.kit.prepare import TextOptions
from attnviz.models.catalog import Source, load

folder, text, engine, *what = sys.argv[1:]
model = load(Source(folder, engine=engine))  # type: ignore[arg-type]
words = Path(text).read_text().split()
how = Ablating()
if what == ["mlps"]:
    how = Ablating(mlps="all")
elif what:
    query, _, key = what[0].rpartition(":")
    how = Ablating(cut=LinkNames(((query, key),)))


def ablate(n: int) -> None:
    ablate_each(model, " ".join(words[:n]), TextOptions(), how)


report(ablate, len(words))
