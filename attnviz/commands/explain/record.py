"""A head that is explained: which one, why, and what was found."""

from dataclasses import dataclass, replace
from pathlib import Path

from attnviz.kit.bringing import one_row
from attnviz.kit.choose import with_finding
from attnviz.kit.prepare import Prepared
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Finding
from attnviz.records.meaning import Meaning
from attnviz.records.trace import HeadTrace, OtherRow, Similarity

NO_IMAGE = "is not for a page, which runs the model only on text"
AS_TEXT = "write txt or json, or leave it out"
"""The advice in messages on images that a page cannot have."""


@dataclass(frozen=True)
class Traced:
    """A head's calculation, why it is this head and what it does on the text; what its addition
    means; and the query's row by another similarity."""

    trace: HeadTrace
    choice: Choice
    meaning: Meaning
    finding: Finding | None = None
    other: OtherRow | None = None


@dataclass(frozen=True)
class Subject:
    """The subject of an explanation, and another similarity to compare with the model's own.

    Without `head`, the one that `show` would pick; without `query`, the first query of that head's
    headline, or the last word. `among`: a file of texts in which to look for contexts.
    """

    head: str | None = None
    query: str | None = None
    similarity: Similarity | None = None
    among: Path | None = None


def picked(prepared: Prepared, subject: Subject) -> tuple[Choice, int, Finding | None]:
    """The head and the position of the query that are explained, and what the row shows."""
    choice, position, shown = one_row(prepared, subject.head, subject.query)
    if shown is None:
        return choice, position, None
    row = replace(shown, queries=(position,))
    return choice, position, with_finding(row, choice.heads[0]).finding
