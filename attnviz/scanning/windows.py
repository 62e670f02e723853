"""Documents to windows of tokens, and windows to batches, which depend on their shard alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

from attnviz.commands.atlas.folder import BATCH
from attnviz.commands.atlas.record import Document

if TYPE_CHECKING:
    from attnviz.models.tokenizer import TextTokenizer

Ids: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """A window of a document of a shard.

    `ordinal`: its number in the shard; `document`: that of its document; `number`: which of the
    document's windows it is; `ids`: its tokens; `chance`: a hash of a seed, of
    `number`, and of the document: its text, its place and the name of its file.
    """

    ordinal: int
    document: int
    number: int
    ids: Ids
    chance: int


class Windows:
    """Cuts the documents of a shard into windows, each with the ends that the model knows."""

    def __init__(self, tokenizer: "TextTokenizer", length: int, seed: int) -> None:
        self._tokenizer, self._seed = tokenizer, seed
        first, last = tokenizer.ends(tokenizer.bos)
        self._first, self._last = (tuple(token.id for token in end) for end in (first, last))
        self._step = max(1, length - len(first) - len(last))
        self._ordinal = self._document = 0

    def of(self, document: Document) -> list[Window]:
        """The windows of the next document.

        Raises:
            ModelError: the tokenizer makes a token that the model does not know.
        """
        inner = self._tokenizer.ids(document.text)
        made = []
        name = f"{document.path.rsplit('/', 1)[-1]} {document.start} {document.text}"
        digest = blake2b(name.encode()).hexdigest()
        for number, at in enumerate(range(0, len(inner), self._step)):
            ids = (*self._first, *inner[at : at + self._step], *self._last)
            chance = self._chance(digest, number)
            made.append(Window(self._ordinal, self._document, number, ids, chance))
            self._ordinal += 1
        self._document += 1
        return made

    def _chance(self, document: str, number: int) -> int:
        hashed = blake2b(f"{self._seed} {number} {document}".encode(), digest_size=8)
        return int.from_bytes(hashed.digest()) >> 1  # as a signed integer holds it


def batches(windows: Sequence[Window]) -> Iterator[list[Window]]:
    """Windows of one length each, so that nothing is padded; the shortest first."""
    found: list[Window] = []
    for window in sorted(windows, key=lambda w: (len(w.ids), w.ordinal)):
        n = len(window.ids)
        if found and (n != len(found[0].ids) or n * (len(found) + 1) > BATCH):
            yield found
            found = []
        found.append(window)
    if found:
        yield found
