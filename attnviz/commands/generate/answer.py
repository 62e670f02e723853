"""An answer, and the parts that it is made of: tokens, words and sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from attnviz.commands.generate.sections import BEGINS, Section, sections_of
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option
from attnviz.inputs.prompts import cut
from attnviz.records.capture import GATES, Capture, FloatArray, IntArray
from attnviz.records.exhibit import Choice
from attnviz.records.grounding import Check
from attnviz.records.heads import Head, grouped, listed
from attnviz.records.merging import groups_of
from attnviz.records.reasoning import carried
from attnviz.records.rests import ALIKE, ASKED
from attnviz.records.rows import ABSENT, Field
from attnviz.records.tokens import Segment, Token
from attnviz.records.transforms import How

KeyKind: TypeAlias = Literal["sink", "segment", "special", "answer", "region"]
"""The first token, a learned sink and other rests; a segment; special tokens within the prompt; the
answer; in rows only, a region of an image."""
RowUnit: TypeAlias = Literal["token", "word", "sentence", "section", "head"]
"""The unit of a row of shares: a part of the answer, or the whole answer in one head."""
AnswerView: TypeAlias = Literal["table", "links", "heatmap", "text", "image"]


OWN_ID = Field[Any]("id", str | int | None, "The chat's or the question's own id.", optional=True)
ADDED = Field[Any](
    "added", str, "With --add: what is added to the stream of the model.", optional=True
)


@dataclass(frozen=True, eq=False)
class KeyGroup:
    """A group of keys: its name, and the positions of its keys (n)."""

    name: str
    part: KeyKind
    keys: IntArray


@dataclass(frozen=True)
class AnswerPart:
    """A part of the answer: its text, and its tokens from `first` up to, and without, `after`.

    `head`: the row is of the whole answer in this head, whose name is `text`. `section`: the name
    of the section that it is.
    """

    text: str
    first: int
    after: int
    head: Head | None = None
    section: str | None = None


@dataclass
class FindResting:
    """Finds, row by row, what heads spend on keys on which they rest: the column is alike for all.

    Each row is judged by itself and those before it, as rows go out while the model writes.
    `heads`: their number. `may`: the keys that may be rests (n), which are in no document:
    one that the head copies from would look the same.
    """

    heads: int
    may: IntArray
    _above: IntArray = field(init=False)
    """(heads, n): how many rows gave more than ALIKE."""

    def __post_init__(self) -> None:
        self._above = np.zeros((self.heads, len(self.may)), int)

    def of_row(self, number: int, heads: Sequence[int], weights: FloatArray) -> FloatArray:
        """The weights (h, keys) of the next row of these heads, whose number is given, (h, n).

        They are 0 on keys other than rests.
        """
        own = weights[:, self.may]
        self._above[heads] += own > ALIKE
        rests = (2 * self._above[heads] > number + 1) & (number + 1 >= ASKED)
        return np.where(rests, own, 0).astype(np.float32)


def _without_rests(rows: FloatArray, may: IntArray, rests: FloatArray) -> FloatArray:
    """The rows (m, keys), with the weight on rests (m, n) moved to the first token, the sink."""
    moved = rows.copy()
    moved[:, may] = np.maximum(moved[:, may] - rests, 0)
    moved[:, 0] += rests.sum(axis=1)
    return moved


@dataclass(frozen=True, eq=False)
class Answer:
    """An answer, with the joined rows of the chosen heads.

    `capture`: the run, with the rows of each head where they are kept. `weights` (new tokens,
    keys): the rows joined. `choice` and `how`: the heads whose rows were joined, and how.
    `columns`: the groups of keys. `id`, `asking`: as of its prompt. `hops`: how many times the
    weights on the answer were carried back. `named`: the sections that the user names. `images`:
    the names of columns that are images. `may`, `rests` (new tokens, n): the keys
    that may be rests, and what the joined rows spend there where they are.
    """

    text: str
    capture: Capture
    weights: FloatArray
    choice: Choice
    how: How
    columns: tuple[KeyGroup, ...]
    id: Any = ABSENT
    asking: frozenset[str] = frozenset()
    hops: int = 0
    named: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    may: IntArray = field(default_factory=lambda: np.zeros(0, int))
    rests: FloatArray = field(default_factory=lambda: np.zeros((1, 0), np.float32))

    def in_rows(self, line: int | None) -> dict[str, Any]:
        """The fields that every row about it has."""
        return {"line": line or 1, "id": self.id, "added": self.added}

    @cached_property
    def carried(self) -> FloatArray:
        """The rows, their weights on written tokens carried back to what these attended to."""
        return self._back(self.weights)

    @cached_property
    def counted(self) -> FloatArray:
        """The share of each key without rests, which count as the sink."""
        return self._back(_without_rests(self.weights, self.may, self.rests))

    def _back(self, rows: FloatArray) -> FloatArray:
        return carried(rows, self.hops).astype(np.float32) if self.hops else rows

    @cached_property
    def gates(self) -> FloatArray | None:
        """The share that gates after the softmax let through, (2, heads, new tokens), as `GATES`.

        None where a head has no gate.
        """
        held = self.capture.extras.get(GATES)
        if held is None:
            return None
        layers, heads = zip(*self.choice.heads, strict=True)
        own: FloatArray = held[:, list(layers), list(heads)]
        return None if np.isnan(own).any() else own

    @property
    def added(self) -> Any:
        """What is added to the model's stream; `ABSENT` where nothing is."""
        return self.capture.model.added or ABSENT

    @property
    def read(self) -> int:
        """The number of keys that are tokens of the prompt."""
        keys, new = len(self.capture.key_tokens), len(self.capture.query_tokens)
        return keys if self.capture.kind == "cross" else keys + 1 - new

    @cached_property
    def sections(self) -> list[Section]:
        """The sections: thinking, tool calls and tool results if it has any, and the answer."""
        capture = self.capture
        prompt = self.before.rstrip()
        tokens = capture.query_tokens
        begin = len(capture.texts[0]) - len(self.text)
        moved = [replace(t, start=t.start - begin, end=t.end - begin) for t in tokens]
        return sections_of(self.text, moved, self.named, begun=prompt.endswith(BEGINS))

    @property
    def before(self) -> str:
        """The prompt."""
        capture = self.capture
        return capture.text[: None if capture.kind == "cross" else capture.query_tokens[0].start]

    @property
    def by_section(self) -> "Answer":
        """The answer with its own column cut into sections."""
        *others, own = self.columns
        if own.part != "answer" or len(self.sections) < 2:
            return self
        groups = [KeyGroup(s.name, "answer", own.keys[s.first : s.after]) for s in self.sections]
        return replace(self, columns=(*others, *groups))

    @property
    def about(self) -> str:
        """`builtin, 2 tokens, L4H0`."""
        size = amount(len(self.capture.query_tokens), "token")
        return f"{self.capture.model.name}, {size}, {listed(self.choice.heads)}"

    def mean_shares(self) -> list[tuple[KeyGroup, float]]:
        """The share of each column in the whole answer."""
        return list(zip(self.columns, self._mean(self.counted).tolist(), strict=True))

    def shares(self, unit: RowUnit, some: slice = slice(None)) -> "AnswerShares":
        """The shares of the segments in each token, word or sentence, or in each head.

        `some`: the parts of the answer to give; for heads, all.
        """
        if unit == "section" and len(self.sections) > 1:
            cut = self.by_section
            return cut.shares_of(cut.parts(unit))
        if unit == "head":
            if self.hops:
                raise UsageError(
                    f"{option('hops')} carries the joined rows back, but each head has its own",
                    "leave one of them out",
                )
            if not self.capture.layers:  # a mistake of the program
                raise TypeError("the rows of each head were not kept")
            capture = self.capture
            rows = {head: capture.weights(head) for head in capture.heads}
            parts = tuple(AnswerPart(str(h), 0, len(capture.query_tokens), h) for h in rows)
            shares = np.stack([self._mean(self._of_head(weights)) for weights in rows.values()])
            ratios = [_lookback(capture, weights) for weights in rows.values()]
            return AnswerShares(self, parts, shares, np.array(ratios, np.float32))
        return self.shares_of(self.parts(unit)[some], some.start or 0)

    def shares_of(self, parts: Sequence[AnswerPart], before: int = 0) -> "AnswerShares":
        """The shares of the segments in these parts; `before`: the number of parts before them."""
        means = [self._mean(self.counted[part.first : part.after]) for part in parts]
        shares = np.array(means, np.float32).reshape(len(parts), len(self.columns))
        return AnswerShares(self, tuple(parts), shares, before=before)

    def _mean(self, weights: FloatArray) -> FloatArray:
        """The mean share of each column in these rows (rows, keys).

        The sink is a column of its own: the first token, which models use for attention that must
        go somewhere (Xiao et al. 2024, arXiv 2309.17453), what a learned sink takes, and rests.
        """
        mean = weights.mean(axis=0, dtype=np.float64)  # (n_keys,)
        shares = np.array([mean[column.keys].sum() for column in self.columns])
        if self.capture.sinks and self.columns[0].part == "sink":
            shares[0] += max(0.0, 1 - mean.sum())
        return shares.astype(np.float32)

    def _of_head(self, rows: FloatArray) -> FloatArray:
        """The rows of one head without its rests."""
        if not len(self.may):
            return rows
        find = FindResting(1, self.may)
        rests = [find.of_row(n, [0], row[None])[0] for n, row in enumerate(rows)]
        return _without_rests(rows, self.may, np.stack(rests))

    def parts(self, unit: RowUnit) -> list[AnswerPart]:
        """The parts of the answer, each with its tokens: tokens, words, sentences or sections."""
        tokens, text = self.capture.query_tokens, self.capture.texts[0]
        if unit == "token":
            return [AnswerPart(token.label, i, i + 1) for i, token in enumerate(tokens)]
        if unit == "word":
            groups = groups_of(self.capture, "words")[0]
            return [_part(tokens, text, group.start, group.stop) for group in groups]
        if unit == "section":
            return [
                replace(_part(tokens, text, s.first, s.after), section=s.name)
                for s in self.sections
            ]
        begin = len(text) - len(self.text)
        ends = [begin + end for _, end in cut(self.text, "sentence")]
        firsts = [0]
        for end in ends[:-1]:
            later = range(firsts[-1], len(tokens))
            starts = (i for i in later if tokens[i].start >= end and not tokens[i].special)
            firsts.append(next(starts, len(tokens)))
        bounds = sorted({*firsts, *(s.first for s in self.sections), len(tokens)})
        return [_part(tokens, text, a, b) for a, b in pairwise(bounds)]


APART = 20_000_000
"""The most weights of a page that shows each of all heads; a larger one shows them joined."""


def shown_apart(choice: Choice, queries: int, keys: int) -> bool:
    """Whether a page of an answer shows each head: those that were chosen, or not too many."""
    return choice.why != "all" or len(choice.heads) * queries * keys <= APART


def _part(tokens: Sequence[Token], text: str, first: int, after: int) -> AnswerPart:
    words = text[tokens[first].start : tokens[after - 1].end].strip()
    return AnswerPart(words or tokens[first].label, first, after)


def _lookback(capture: Capture, weights: FloatArray) -> float:
    if capture.kind == "cross" or len(weights) < 2:
        return float("nan")
    n = len(capture.key_tokens) + 1 - len(weights)
    ratios = []
    for new, row in enumerate(weights[1:], start=1):
        prompt, answer = row[:n].mean(dtype=np.float64), row[n : n + new].mean(dtype=np.float64)
        if prompt + answer > 0:  # a learned sink may take all of a row
            ratios.append(prompt / (prompt + answer))
    return float(np.mean(ratios)) if ratios else float("nan")


def repeats(ids: Sequence[int]) -> bool:
    """Whether some tokens come twice in a row and begin a third time, four or more tokens later."""
    for period in range(1, (len(ids) + 1) // 2):
        same = 0
        for now, before in zip(ids[period:], ids, strict=False):
            same = same + 1 if now == before else 0
            if same > max(period, 3):
                return True
    return False


def columns_of_prompt(
    of: Sequence[int | None], segments: Sequence[Segment], *, crossed: bool, sinks: bool
) -> tuple[KeyGroup, ...]:
    """The sink, the segments in order that have tokens, and special tokens; each key is in one.

    `of`: for each token the number of its segment; None for a special token. `crossed`: the answer
    attends to its source, whose first token is not a sink. `sinks`: the model has a learned sink.
    """
    first = 0 if crossed else 1
    keys = grouped((segment, key) for key, segment in enumerate(of[first:], start=first))
    columns: list[tuple[str, KeyKind, Sequence[int]]] = [
        (each.name, "segment", keys[i]) for i, each in enumerate(segments) if i in keys
    ]
    if sinks or first:
        columns.insert(0, ("sink", "sink", range(first)))
    if None in keys:
        columns.append(("special", "special", keys[None]))
    return tuple(KeyGroup(name, part, np.fromiter(own, int)) for name, part, own in columns)


@dataclass(frozen=True, eq=False)
class AnswerShares:
    """The shares of the prompt's segments in what each part of an answer attended to.

    `shares` (parts, columns): the mean over the tokens of a part of the weight on the keys of a
    column; each row sums to 1. `lookback` (parts): where the parts are heads, the lookback ratio of
    each; NaN where the answer is one token. `before`: the number of parts of the answer before
    them. `check`: the changes by deletions, where they were measured.
    """

    answer: Answer
    parts: tuple[AnswerPart, ...]
    shares: FloatArray
    lookback: FloatArray | None = None
    before: int = 0
    check: Check | None = None

    @property
    def rests(self) -> FloatArray:
        """The weight of each part on rests, which is not a share of a segment (parts)."""
        columns = [i for i, c in enumerate(self.answer.columns) if c.part in ("sink", "special")]
        resting: FloatArray = self.shares[:, columns].sum(axis=1)
        return resting

    @property
    def gates(self) -> FloatArray | None:
        """The share that gates let through in each part, (2, parts), heads joined like the rows."""
        own = self.answer.gates
        if own is None:
            return None
        if self.lookback is None:
            joined = own.max(axis=1) if self.answer.how == "max" else own.mean(axis=1)
            means = [joined[:, part.first : part.after].mean(axis=1) for part in self.parts]
        else:
            means = [of_head.mean(axis=1) for of_head in own.swapaxes(0, 1)]
        return np.stack(means, axis=1)

    @property
    def through(self) -> FloatArray | None:
        """The share through the answer's own words: the shares less those without hops."""
        if not self.answer.hops:
            return None
        direct = replace(self.answer, hops=0).shares_of(self.parts)
        return self.shares - direct.shares
