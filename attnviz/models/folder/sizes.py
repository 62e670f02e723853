"""The facts that a capture needs of any model."""

from dataclasses import dataclass

from attnviz.errors import UsageError, option
from attnviz.records.capture import Kind


@dataclass(frozen=True)
class ModelSizes:
    """The facts that a capture needs of a model of any architecture.

    `heads_per_layer`: those of `kind`, one of an encoder-decoder's three attentions.
    `context`: the largest number of tokens that the model takes. `bos_id`: its beginning token.
    """

    architecture: str
    heads_per_layer: tuple[int, ...]
    vocab_size: int
    context: int
    bos_id: int | None
    kind: Kind = "self"


def token_id(value: object, vocab_size: int) -> int | None:
    """An id of the vocabulary, else None.

    A smaller GPT-2's configuration often keeps 50256, the beginning token of the first GPT-2.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < vocab_size:
        return value
    return None


def pair_kind(kind: Kind | None) -> Kind:
    """The kind of an encoder-decoder's attention, by default "cross"."""
    return "cross" if kind in (None, "self") else kind


def check_kind(kind: Kind | None) -> None:
    """Check the kind of attention of a model that is no encoder-decoder.

    Raises:
        UsageError: it is not "self".
    """
    if kind not in (None, "self"):
        raise UsageError(
            f"{option('kind', kind)} is for encoder-decoders, which this model is not",
            "leave it out",
        )
