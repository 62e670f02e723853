"""Documents to windows of tokens, and windows to batches, which depend on their shard alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from attnviz.commands.atlas.folder import BATCH, CACHED_BATCH, LARGE
from attnviz.commands.atlas.record import CorpusText
from attnviz.errors import ModelError

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel
    from attnviz.models.tokenizer import TextTokenizer


R = TypeVar("R")
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


class WindowCutter:
    """Cuts the documents of a shard into windows, each with the ends that the model knows."""

    def __init__(self, tokenizer: "TextTokenizer", length: int, seed: int) -> None:
        self._tokenizer, self._seed = tokenizer, seed
        first, last = tokenizer.ends(tokenizer.bos)
        self._first, self._last = (tuple(token.id for token in end) for end in (first, last))
        self._step = max(1, length - len(first) - len(last))
        self._ordinal = self._document = 0

    def of(self, document: CorpusText) -> list[Window]:
        """The windows of the next document."""
        inner = self._tokenizer.ids(document.text)
        windows = []
        name = f"{document.path.rsplit('/', 1)[-1]} {document.start} {document.text}"
        digest = blake2b(name.encode()).hexdigest()
        for number, at in enumerate(range(0, len(inner), self._step)):
            ids = (*self._first, *inner[at : at + self._step], *self._last)
            drawn = blake2b(f"{self._seed} {number} {digest}".encode(), digest_size=8)
            chance = int.from_bytes(drawn.digest()) >> 1  # as a signed integer holds it
            windows.append(Window(self._ordinal, self._document, number, ids, chance))
            self._ordinal += 1
        self._document += 1
        return windows


def batch_tokens(model: "LoadedModel") -> int:
    """The most tokens of a batch of this model."""
    from attnviz.models.reducing import device_name

    is_large = model.identity.parameters >= LARGE and device_name(model) == "cpu"
    return CACHED_BATCH if is_large else BATCH


def batches(windows: Sequence[Window], most: int = BATCH) -> Iterator[list[Window]]:
    """Windows of one length each, at most so many tokens together; the shortest first.

    So nothing is padded.
    """
    batch: list[Window] = []
    for window in sorted(windows, key=lambda w: (len(w.ids), w.ordinal)):
        n = len(window.ids)
        if batch and (n != len(batch[0].ids) or n * (len(batch) + 1) > most):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def run_batches(
    windows: Sequence[Window],
    run: Callable[[Sequence[Window]], R],
    failed: Callable[[Window, str], None],
    most: int = BATCH,
) -> Iterator[tuple[Sequence[Window], R]]:
    """Batches of windows, at most so many tokens each, and what their runs give.

    The windows of a batch that cannot be run are run one by one; `failed` is told of a window that
    cannot be run alone, and why.
    """
    waiting = [*batches(windows, most)][::-1]
    while waiting:
        batch = waiting.pop()
        try:
            result = run(batch)
        except ModelError as error:
            if len(batch) == 1:
                failed(batch[0], error.wrong)
            else:
                waiting += [[window] for window in reversed(batch)]
        else:
            yield batch, result
