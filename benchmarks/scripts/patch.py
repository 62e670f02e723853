"""attnviz's patching of a text from its words reversed: seconds, and bytes above the loaded model.

python patch.py FOLDER TEXT.txt native|transformers head|residual

One run for each head, or for each layer and position of the residual stream.
"""

import sys
from pathlib import Path

from inside import report

from attnviz.commands.patch.run import Patching, patch_text
from attnviz.kit.prepare import TextOptions
from attnviz.models.catalog import Source, load

folder, text, engine, kind = sys.argv[1:]
model = load(Source(folder, engine=engine))  # type: ignore[arg-type]
words = Path(text).read_text().split()
how = Patching(kind, answer="w1", versus="w2")  # type: ignore[arg-type]


def patch(n: int) -> None:
    ours, theirs = " ".join(words[:n]), " ".join(reversed(words[:n]))
    patch_text(model, ours, theirs, TextOptions(), how)


report(patch, len(words))
