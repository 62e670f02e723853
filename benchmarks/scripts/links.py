"""attnviz's strongest links of all heads: seconds, and bytes above the loaded model.

python links.py FOLDER TEXT.txt
"""

import sys
from pathlib import Path

from inside import report

from attnviz.models.catalog import Source, load
from attnviz.runs import prepare as pipeline
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.runs.show import Needs, ShowOptions, see

folder, text = sys.argv[1:]
pipeline.SMALL = 0  # short texts are reduced as they come, too
model = load(Source(folder))
words = Path(text).read_text().split()


def links(n: int) -> None:
    everything = HeadOptions(everything=True)
    see(model, " ".join(words[:n]), TextOptions(), everything, ShowOptions(top=5), Needs(links=5))


report(links, len(words))
