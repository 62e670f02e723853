"""The summary of a results file: each question, and means over them with standard errors."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from operator import attrgetter
from statistics import fmean
from typing import Any, TypeAlias

from attnviz.inputs.prompts import Source
from attnviz.records.grounding import Contradiction, Groundedness, Use, Verdict
from attnviz.records.heads import grouped
from attnviz.records.metrics import Estimate
from attnviz.records.reasoning import MATTERS
from attnviz.records.rows import ABSENT

Id: TypeAlias = str | int | None
TESTED: tuple[Verdict, ...] = ("contradicted", "not supported", "supported")
"""Verdicts that come of a test, the worst first."""
BY_PLACE = re.compile(r"(document|user|assistant|tool)( [\d.]+)?")
"""A document without a name of its own: that of a list, or a message of a chat."""


@dataclass(frozen=True)
class GroundedStatement:
    """A sentence of an answer; `support` is None where it has no letter and no digit.

    `verdict`: what the documents say of it, and `contradiction`: instead of what. `section`: such
    as "thinking", which has no `support` either, or None for the answer itself.
    """

    text: str
    support: Groundedness | None
    section: str | None = None
    verdict: Verdict | None = None
    contradiction: Contradiction | None = None

    @property
    def share(self) -> float | None:
        """Its groundedness."""
        return self.support.share if self.support else None


@dataclass(frozen=True)
class SourceUse:
    """A segment of a prompt: its share of the attention, the mean over the statements.

    `change`: of the whole answer's log-probability (nats) without it; None if it was kept.
    `needed`: whether it is in the smallest set; None without a set, or for another source. `use`:
    what its loss says; earlier versions did not write it.
    """

    name: str
    source: Source | None
    share: float
    change: float | None
    needed: bool | None
    use: Use | None = None

    @property
    def used(self) -> bool | None:
        """Whether the loss of a document costs the answer more than noise; None: unknown."""
        if self.needed is None or self.change is None:
            return None
        if self.use is not None:
            return self.use == "used"
        return self.needed or self.change < -MATTERS


@dataclass(frozen=True)
class ReportedQuestion:
    """A line of the input, and its answer; or the `error` in its place.

    `page`: the path of the answer's own page. `change`: that of its groundedness from an earlier
    file, as a row has it; `ABSENT` without one.
    """

    line: int
    id: Id
    text: str = ""
    statements: tuple[GroundedStatement, ...] = ()
    sources: tuple[SourceUse, ...] = ()
    page: str | None = None
    error: str | None = None
    change: Any = ABSENT

    @property
    def name(self) -> str:
        """The id of the question; without one, its line."""
        return f"line {self.line}" if self.id is None else str(self.id)

    @property
    def fault(self) -> str:
        """The error without its line, and without what to do about it."""
        wrong, own = (self.error or "").partition("; ")[0], f"line {self.line} "
        return f"it {wrong.removeprefix(own)}" if wrong.startswith(own) else wrong

    @property
    def answer(self) -> str:
        """The text of the answer, without its thinking."""
        return " ".join(each.text for each in self.statements if each.section is None)

    @property
    def documents(self) -> list[SourceUse]:
        """The documents that the answer may rest on."""
        return [each for each in self.sources if each.source == "document"]

    @property
    def supports(self) -> list[Groundedness]:
        """The support of each statement in words; of an empty answer none."""
        return [each.support for each in self.statements if each.support]

    @property
    def groundedness(self) -> float | None:
        """The mean over the statements that have one, each with the same weight."""
        return _mean(each.share for each in self.supports)

    @property
    def told(self) -> list[Verdict]:
        """The verdicts on its statements that were tested."""
        said = (each.verdict for each in self.statements if each.support)
        return [each for each in said if each in TESTED]

    @property
    def contradicted(self) -> float | None:
        """The share of these statements that documents contradict."""
        return _mean(each == "contradicted" for each in self.told)

    @property
    def unsupported(self) -> float | None:
        """The share of these statements that nothing supports or contradicts."""
        return _mean(each == "not supported" for each in self.told)

    @property
    def unused(self) -> float | None:
        """The share of documents that were not used."""
        return _mean(None if each.used is None else not each.used for each in self.documents)

    @property
    def system_share(self) -> float | None:
        """The share of the system prompt, or None without one."""
        shares = [each.share for each in self.sources if each.source == "system"]
        return sum(shares) if shares else None


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that there are."""
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True)
class LeftOut:
    """A row of the file, or a question, that is in no mean, and why.

    `row`: the row in the file, from 1; for a `question`, its first.
    """

    row: int
    why: str
    question: bool = False


MEASURES = ("groundedness", "contradicted", "unsupported", "unused", "system_share")
"""Each number of a question, by its attribute; None where it has none."""


@dataclass(frozen=True)
class ResultsReport:
    """A results file: who made it, its questions, and what is left out of it.

    `against`: an earlier one.
    """

    path: str
    model: str
    settings: str
    questions: tuple[ReportedQuestion, ...]
    left_out: tuple[LeftOut, ...] = ()
    against: "ResultsReport | None" = None

    def seen_from(self, folder: str) -> "ResultsReport":
        """The report with the paths of pages relative to a folder, not to that of this process."""
        questions = (
            replace(each, page=each.page and os.path.relpath(each.page, folder))
            for each in self.questions
        )
        return replace(self, questions=tuple(questions))

    def values(self, measure: str) -> list[float]:
        """A number of the questions that have it."""
        return [x for x in map(attrgetter(measure), self.questions) if x is not None]

    def estimate(self, measure: str) -> Estimate:
        """The mean of a measure over these questions, with the standard error; NaN without any."""
        return Estimate.of(self.values(measure))

    @cached_property
    def tells_use(self) -> bool:
        """Whether documents were deleted one by one, which shows those that are not used."""
        return bool(self.values("unused"))

    @property
    def failed(self) -> list[ReportedQuestion]:
        """The questions that have no answer."""
        return [each for each in self.questions if each.error is not None]

    @property
    def answered(self) -> list[ReportedQuestion]:
        """The questions that have an answer."""
        return [each for each in self.questions if each.error is None]

    @property
    def told_apart(self) -> Mapping[str, int]:
        """The number of answers without groundedness, by the reason."""
        spoken = [each for each in self.answered if each.supports]
        grounds = [each for each in spoken if each.documents]
        return {
            "empty": len(self.answered) - len(spoken),
            "without_documents": len(spoken) - len(grounds),
            "certain": sum(each.groundedness is None for each in grounds),
        }

    @property
    def lost(self) -> int:
        """The number of questions that are left out."""
        return sum(each.question for each in self.left_out)

    @property
    def unanswered(self) -> int:
        """The number of questions that failed, are left out, or have an empty answer."""
        return len(self.failed) + self.lost + self.told_apart["empty"]

    @property
    def told(self) -> list[Verdict]:
        """The verdicts on the statements of all answers that were tested."""
        return [told for each in self.answered for told in each.told]

    @cached_property
    def repeated(self) -> list[Id]:
        """The ids that several questions have."""
        counts = Counter(each.id for each in self.questions if each.id is not None)
        return [id_ for id_, n in counts.items() if n > 1]

    @property
    def never_used(self) -> dict[str, int]:
        """Documents of two questions or more that none of these used, and how many they are.

        Those without a name of their own are called by their place, and are of one question each.
        """
        documents = (each for question in self.answered for each in question.documents)
        named = (each for each in documents if not BY_PLACE.fullmatch(each.name))
        uses = grouped((each.name, each.used) for each in named)
        return {n: len(own) for n, own in uses.items() if len(own) > 1 and {*own} == {False}}

    def name_of(self, each: ReportedQuestion) -> str:
        """The name of a question; where several have its id, with its line."""
        return f"line {each.line}: {each.name}" if each.id in self.repeated else each.name

    @cached_property
    def pairs(self) -> Mapping[int, ReportedQuestion]:
        """By line: the same question in the earlier file, which has its id.

        Without an id, or where one of the files repeats it, it is also on the same line.
        """
        if self.against is None:
            return {}
        no_names = {None, *self.repeated, *self.against.repeated}

        def key(each: ReportedQuestion) -> object:
            return each.id, each.line if each.id in no_names else 0

        earlier = {key(each): each for each in self.against.questions}
        return {n.line: earlier[key(n)] for n in self.questions if key(n) in earlier}

    def differences(self, measure: str) -> Mapping[int, float]:
        """By line: a number of a question less that of the same one in the earlier file."""
        of = attrgetter(measure)
        paired = (each for each in self.questions if each.line in self.pairs)
        values = ((each.line, of(each), of(self.pairs[each.line])) for each in paired)
        return {line: x - y for line, x, y in values if x is not None and y is not None}

    @cached_property
    def changes(self) -> Mapping[int, float]:
        """The differences in groundedness from an earlier file, by line."""
        return self.differences("groundedness")

    def change(self, measure: str) -> Estimate:
        """The mean of its differences, with the standard error of pairs."""
        return Estimate.of([*self.differences(measure).values()])

    def only_in(self, *, earlier: bool) -> list[str]:
        """The names of the questions that only this file has, or only the earlier one."""
        if self.against is None:
            return []
        one, other = (self.against, self) if earlier else (self, self.against)
        paired = {each.line for each in self.pairs.values()} if earlier else {*self.pairs}
        ids = {each.id for each in other.questions} - {None}
        return [one.name_of(n) for n in one.questions if n.line not in paired and n.id not in ids]

    @property
    def unpaired(self) -> list[str]:
        """The names of the questions whose id both files have, and which have no pair."""
        ids = {each.id for each in self.against.questions} - {None} if self.against else {}
        return [
            self.name_of(each)
            for each in self.questions
            if each.id in ids and each.line not in self.pairs
        ]

    @property
    def to_read(self) -> Sequence[ReportedQuestion]:
        """The questions to read first: failed ones; against an earlier file, those that got worse,
        in two digits; those with contradicted statements, or unsupported ones; then the least
        grounded."""

        def rank(each: ReportedQuestion) -> tuple[float, ...]:
            grounded = inf if each.groundedness is None else each.groundedness
            worse = min(round(self.changes.get(each.line, 0.0), 2), 0.0)
            told = min(map(TESTED.index, each.told), default=len(TESTED) - 1)
            return each.error is None, worse, told, grounded, each.line

        return sorted(self.questions, key=rank)
