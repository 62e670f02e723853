"""The sources of an answer, as its page shows them: which columns they are, and the strongest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from attnviz.commands.generate.answer import Answer, AnswerShares, KeyGroup
from attnviz.draw.labels import fenced
from attnviz.errors import readable
from attnviz.records.grounding import Check
from attnviz.records.reasoning import MATTERS
from attnviz.records.tokens import RESTS

NAMED = 40
"""The most sources that have a line and a column of their own, unless more are needed."""
LEAST_TOP, BEGINS = 0.25, 24
"""The least share that has the strongest blue; letters of a beginning."""
APART = {"sink": "the first token", "special": "special tokens", "answer": "the answer itself"}


@dataclass(frozen=True, eq=False)
class AnswerReport:
    """An answer, and which of its columns are sources."""

    shares: AnswerShares

    @property
    def answer(self) -> Answer:
        return self.shares.answer

    @property
    def check(self) -> Check | None:
        return self.shares.check

    @property
    def unit(self) -> str:
        """The noun for a statement."""
        return "sentence" if [*self.shares.parts] == self.answer.parts("sentence") else "word"

    @cached_property
    def whole(self) -> list[float]:
        """The share of each column in the whole answer."""
        return [share for _, share in self.answer.mean_shares()]

    @cached_property
    def asking(self) -> int | None:
        """The column of the segment that asks, or None if all that was read is one."""
        named = [each for each in self._segments if each[1].name in self.answer.asking]
        if self.answer.capture.kind == "cross" or len(self._segments) < 2:
            return None
        return max(named or self._segments, key=lambda each: int(each[1].keys[-1]))[0]

    @cached_property
    def _segments(self) -> list[tuple[int, KeyGroup]]:
        columns = enumerate(self.answer.columns)
        return [(i, column) for i, column in columns if column.part == "segment"]

    @cached_property
    def sources(self) -> list[int]:
        """The columns of documents and images, or of all that does not ask; the largest first."""
        asks = {*RESTS, *self.answer.asking}
        some = [i for i, c in self._segments if c.name not in asks and i != self.asking]
        return sorted(some or [i for i, _ in self._segments], key=lambda i: -self.whole[i])

    @property
    def together(self) -> list[int]:
        """The segments that a check deletes together: not images, which it makes grey."""
        return [i for i in self.sources if self.answer.columns[i].name not in self.answer.images]

    @cached_property
    def named(self) -> list[int]:
        """The sources with a line of their own: those that matter, and the largest shares."""
        matter = [i for i in self.sources if self.answer.columns[i].name in self.needed]
        some = dict.fromkeys([self.strongest, *matter, *self.sources])
        kept = [*some][: max(NAMED, len({self.strongest, *matter}))]
        return [i for i in self.sources if i in kept]

    @property
    def others(self) -> list[int]:
        return [i for i in self.sources if i not in self.named]

    @cached_property
    def changes(self) -> Mapping[int, Sequence[float]]:
        """By column, the change of each token of the answer without it, where it was measured."""
        effects = self.check.effects if self.check else ()
        numbers = {column.name: i for i, column in self._segments}
        return {numbers[each.segment]: each.changes for each in effects}

    @cached_property
    def strongest(self) -> int:
        """The source that matters most: one that is needed, if any is.

        If several are, the one whose deletion costs most, if it costs anything; else by its share.
        """
        needed = [i for i in self.sources if self.answer.columns[i].name in self.needed]
        some = needed or self.sources
        costliest = min(some, key=lambda i: sum(self.changes.get(i, ())))
        lost = sum(self.changes.get(costliest, ()))
        return costliest if lost < -MATTERS else some[0]

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of a smallest set."""
        return self.check.smallest.segments if self.check and self.check.smallest else ()

    def name(self, column: int) -> str:
        """A column as the page calls it."""
        group = self.answer.columns[column]
        return APART.get(group.part) or fenced(readable(group.name))

    def begun(self, column: int) -> str:
        """The name of a segment, with the beginning of its text if it has only a number."""
        group = self.answer.columns[column]
        if group.part != "segment" or not group.name.isdigit():
            return self.name(column)
        text = readable(" ".join(self.text(column).split()))
        return fenced(f"{group.name}: {text[:BEGINS]}{'…' if len(text) > BEGINS else ''}")

    def text(self, column: int) -> str:
        """The text of a segment."""
        name = self.answer.columns[column].name
        found = (each for each in self.answer.capture.segments if each.name == name)
        slices = next(found).slices
        return "".join(self.answer.capture.text[a:b] for a, b in slices).strip()

    @property
    def costs(self) -> bool:
        """Whether the strongest source is one whose deletion costs the answer something."""
        return sum(self.changes.get(self.strongest, ())) < -MATTERS

    @property
    def top(self) -> float:
        """The share that has the strongest blue: the largest of a statement, and no small one."""
        return max(float(self.shares.shares[:, self.sources].max(initial=0)), LEAST_TOP)
