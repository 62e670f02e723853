"""A corpus: files of text, JSON lines and Parquet, here or behind a URL, read in shards.

A document belongs to the shard in which it begins, so that shards can be read in any order, by
any number of processes. Nothing that is read grows with the corpus but the list of its files.
"""

from attnviz.inputs.corpus.documents import READ, documents_of, longest_texts
from attnviz.inputs.corpus.listing import check_field, check_unchanged, corpus_files
from attnviz.inputs.corpus.shards import SHARD, shards_of
from attnviz.inputs.corpus.spool import spool
from attnviz.inputs.corpus.units import LONGEST

__all__ = [
    "LONGEST",
    "READ",
    "SHARD",
    "check_field",
    "check_unchanged",
    "corpus_files",
    "documents_of",
    "longest_texts",
    "shards_of",
    "spool",
]
