"""A scan's worker over documents that are made as they are read: how its memory grows.

python scan_documents.py DOCUMENTS
"""

import sys
from itertools import islice

from attnviz.commands.scan.counting import Counter
from attnviz.corpus.places import CorpusText
from attnviz.corpus.record import record_to_bytes
from attnviz.models.catalog import Source, load
from attnviz.models.reducing import use_threads
from attnviz.records.heads import every_head
from making.world.texts import texts

SHARD = 1000
"""Documents of a shard."""
use_threads(1)
model = load(Source())
heads = every_head(model.identity.heads_per_layer)
stream = (CorpusText("world", i, " ".join(text.words)) for i, text in enumerate(texts("scan")))
for shard in range(int(sys.argv[1]) // SHARD):
    counter = Counter(model, heads, 256, shard=shard)
    for document in islice(stream, SHARD):
        counter.add(document)
    record_to_bytes(counter.finish())
