"""attnviz's statistics of a scan over windows of text: seconds, and bytes above what is loaded.

python scan_windows.py FOLDER WINDOWS LENGTH [ENGINE]
python scan_windows.py builtin DOCUMENTS world|joined
"""

import sys

from inside import report
from texts import CONTEXT, documents, is_of_world

from attnviz.commands.scan.counting import Counter
from attnviz.corpus.places import CorpusText
from attnviz.models.catalog import Source, load
from attnviz.models.reducing import use_threads
from attnviz.records.heads import every_head

folder, windows, length, *engine = sys.argv[1:]
use_threads(1)
model = load(Source(folder, engine=engine[0] if engine else "auto"))  # type: ignore[arg-type]
corpus = [CorpusText("texts", i, text) for i, text in enumerate(documents(int(windows), length))]
most = CONTEXT if is_of_world(length) else int(length)


def count(n: int) -> None:
    counter = Counter(model, every_head(model.identity.heads_per_layer), most)
    for document in corpus[: 1 if n == 16 else None]:
        counter.add(document)
    counter.finish()


report(count, len(corpus) + 16)
