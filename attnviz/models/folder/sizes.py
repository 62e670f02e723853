"""What a capture needs to know of any model, whatever its architecture."""

from dataclasses import dataclass

from attnviz.data.capture import Kind
from attnviz.errors import UsageError, option


@dataclass(frozen=True)
class ModelSizes:
    """What a capture needs to know of any architecture.

    `heads_per_layer` are those of `kind`: of an encoder-decoder's three attentions one is
    shown. `context` is the largest number of tokens that it takes; `bos_id` its beginning
    token.
    """

    architecture: str
    heads_per_layer: tuple[int, ...]
    vocab_size: int
    context: int
    bos_id: int | None
    kind: Kind = "self"


def pair_kind(kind: Kind | None) -> Kind:
    """The kind of an encoder-decoder's attention: cross unless another is asked for."""
    return "cross" if kind in (None, "self") else kind


def check_kind(kind: Kind | None) -> None:
    """A model that is no encoder-decoder has one kind of attention.

    Raises:
        UsageError: another was asked for.
    """
    if kind not in (None, "self"):
        raise UsageError(
            f"{option('kind', kind)} is for encoder-decoders, which this model is not",
            "leave it out",
        )
