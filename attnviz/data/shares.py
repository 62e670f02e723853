"""The shares of a prompt's segments in what an answer attended to."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from attnviz.records.capture import Capture, FloatArray, IntArray
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Head
from attnviz.records.transforms import How

Part: TypeAlias = Literal["sink", "segment", "special", "answer"]
"""The first token, or a learned sink; a segment; special tokens within the prompt; the answer."""
Unit: TypeAlias = Literal["token", "word", "sentence", "head"]
"""What a row of shares is of: a part of the answer, or the whole answer in one head."""
View: TypeAlias = Literal["table", "heatmap", "text"]


@dataclass(frozen=True, eq=False)
class Column:
    """A part of what can be attended to: its name, and the positions of its keys (n).

    `segment`: which of the capture's segments it is.
    """

    name: str
    part: Part
    keys: IntArray
    segment: int | None = None


@dataclass(frozen=True)
class Row:
    """A part of the answer: its text, and its tokens from `first` up to, and without, `after`.

    `head`: the row is of the whole answer in this head, whose name is `text`.
    """

    text: str
    first: int
    after: int
    head: Head | None = None


@dataclass(frozen=True, eq=False)
class Shares:
    """What each part of an answer attended to.

    `shares` (rows, columns): the mean over the tokens of a row of the weight on the keys of a
    column; each row sums to 1. `weights` (new tokens, keys): what they were made of. `capture`: the
    run. `choice`: the heads whose rows were joined, and `how`. `lookback` (rows): where the rows
    are heads, the lookback ratio of each; NaN where the answer is one token.
    """

    capture: Capture
    choice: Choice
    how: How
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    shares: FloatArray
    weights: FloatArray
    lookback: FloatArray | None = None
