"""An answer, and the parts that it is made of: tokens, words and sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from attnviz.analyses.shares import shares_of, shares_of_heads
from attnviz.data.shares import Column, Row, Shares, Unit
from attnviz.inputs.prompts import cut
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import Choice
from attnviz.records.positions import groups_of
from attnviz.records.tokens import Token
from attnviz.records.transforms import How


@dataclass(frozen=True, eq=False)
class Answer:
    """An answer, with the joined rows of the chosen heads.

    `capture`: the run, with the rows of each head where they are kept. `weights` (new tokens,
    keys): the rows joined. `choice` and `how`: the heads whose rows were joined, and how.
    `columns`: what can be attended to.
    """

    text: str
    capture: Capture
    weights: FloatArray
    choice: Choice
    how: How
    columns: tuple[Column, ...]

    def mean_shares(self) -> list[tuple[Column, float]]:
        """The share of each column in the whole answer."""
        whole = [Row("", 0, len(self.weights))]
        shares = self._shares(whole)
        return list(zip(shares.columns, shares.shares[0].tolist(), strict=True))

    def shares(self, unit: Unit, some: slice = slice(None)) -> Shares:
        """The shares of the segments in each token, word or sentence, or in each head.

        Args:
            unit: what a row is of.
            some: which of the parts of the answer; of heads, all.

        Raises:
            TypeError: of heads, where their rows are not kept, which is a mistake of the program.
        """
        if unit == "head":
            if not self.capture.layers:
                raise TypeError("the rows of each head were not kept")
            return shares_of_heads(self.capture, self.choice, self.how)
        return self._shares(self.rows(unit)[some])

    def _shares(self, rows: Sequence[Row]) -> Shares:
        return shares_of(self.capture, self.weights, rows, self.choice, self.how, self.columns)

    def rows(self, unit: Unit) -> list[Row]:
        """The parts of the answer, each with its tokens: its tokens, words or sentences."""
        tokens, text = self.capture.query_tokens, self.capture.texts[0]
        if unit == "token":
            return [Row(token.label, i, i + 1) for i, token in enumerate(tokens)]
        if unit == "word":
            groups = groups_of(self.capture, "words")[0]
            return [_row(tokens, text, group.start, group.stop) for group in groups]
        begin = len(text) - len(self.text)
        ends = [begin + end for _, end in cut(self.text, "sentence")]
        firsts = [0]
        for end in ends[:-1]:
            later = range(firsts[-1], len(tokens))
            starts = (i for i in later if tokens[i].start >= end and not tokens[i].special)
            firsts.append(next(starts, len(tokens)))
        return [_row(tokens, text, a, b) for a, b in pairwise([*firsts, len(tokens)]) if a < b]


def _row(tokens: Sequence[Token], text: str, first: int, after: int) -> Row:
    said = text[tokens[first].start : tokens[after - 1].end].strip()
    return Row(said or tokens[first].label, first, after)
