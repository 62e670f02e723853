"""attnviz's strongest links of all heads: seconds, and bytes above the loaded model.

python links.py FOLDER TEXT.txt
"""

import sys
from pathlib import Path

from inside import report

from attnviz.commands.show.outputs import Needs, Show
from attnviz.commands.show.run import show_text
from attnviz.kit import prepare
from attnviz.kit.prepare import HeadOptions, TextOptions
from attnviz.models.catalog import Source, load
from attnviz.records.exhibit import Filters

folder, text = sys.argv[1:]
prepare.SMALL = 0  # short texts are reduced as they come, too
model = load(Source(folder))
words = Path(text).read_text().split()


def links(n: int) -> None:
    everything, strongest = HeadOptions(everything=True), Filters(top=5)
    show = Show(everything, filters=strongest, needs=Needs(links=5))
    show_text(model, " ".join(words[:n]), TextOptions(), show)


report(links, len(words))
