"""A corpus cut into shards."""

from collections.abc import Iterable, Iterator

from attnviz.commands.atlas.record import CorpusFile, Piece, Shard, Split
from attnviz.errors import InputError
from attnviz.inputs.corpus.tables import cuts_of
from attnviz.inputs.places import named_form

SHARD = 1 << 18
"""About so many bytes make a shard."""


def shards_of(files: Iterable[CorpusFile], split: Split, most: int = SHARD) -> Iterator[Shard]:
    """The shards of a corpus: files below `most` bytes together, larger ones in parts.

    A file that is one document is never cut, nor is a compressed file, nor a row group.
    """
    number, pieces, size = 0, list[Piece](), 0
    for file in files:
        for piece in _pieces(file, split, most):
            pieces.append(piece)
            size += piece.end - piece.start
            if size >= most:
                yield Shard(number, tuple(pieces))
                number, pieces, size = number + 1, [], 0
    if pieces:
        yield Shard(number, tuple(pieces))


def _pieces(file: CorpusFile, split: Split, most: int) -> Iterator[Piece]:
    form = named_form(file.path)
    whole = form.compression is not None or (form.kind == "text" and split == "file")
    if whole or file.size <= most:
        cuts: Iterable[int] = ()
    elif form.kind == "table":
        try:
            cuts = cuts_of(file.path, most)
        except InputError:
            cuts = ()  # the documents tell
    else:
        cuts = range(most, file.size, most)
    starts = [0, *cuts]
    for start, end in zip(starts, [*starts[1:], file.size], strict=True):
        yield Piece(file.path, start, end, file)
