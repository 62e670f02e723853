"""What may be asked of a run: how a text becomes tokens, and which heads are meant."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Truncation: TypeAlias = Literal["left", "right"]


@dataclass(frozen=True)
class TextOptions:
    """How a text becomes tokens.

    Attributes:
        bos: whether a beginning token stands in front; None means as the model was trained.
        special: whether `<|endoftext|>` in the text is read as the special token.
        truncate: the side from which a text that is too long is cut.
        target: what an encoder-decoder is to have written.
        max_memory: how many bytes may be used; None means a share of what is free.
    """

    bos: bool | None = None
    special: bool = False
    truncate: Truncation | None = None
    target: str | None = None
    max_memory: int | None = None


@dataclass(frozen=True)
class HeadOptions:
    """Which heads: those of `layers` and `heads` as a user names them, `everything`, or a default.

    Attributes:
        layers: a list such as `1`, `0-3` or `all`.
        heads: the same, or full names such as `L1H2`.
        everything: every head, where none is named.
    """

    layers: str | None = None
    heads: str | None = None
    everything: bool = False

    @property
    def named(self) -> bool:
        """Whether the user named layers or heads."""
        return self.layers is not None or self.heads is not None
