"""Labelled links: which keys a query is to attend to, and how well each head does."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.records.capture import Capture, ModelIdentity
from attnviz.records.heads import Head
from attnviz.records.metrics import Estimate


@dataclass(frozen=True)
class LabelledText:
    """A text, and its links: names of queries, and names of the keys that are true for them.

    `number`: of its line in the file.
    """

    number: int
    text: str
    links: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True)
class LabelScore:
    """How much of a head's attention goes to the true keys; means and errors over texts.

    `mass`: the weight on all true keys of a row. `strongest`: the share of rows whose strongest
    key is a true one.
    """

    head: Head
    mass: Estimate
    strongest: Estimate


@dataclass(frozen=True)
class LabelReport:
    """The scores of the heads, the best first, over `texts` texts with `rows` labelled rows.

    `runs`: of each text, without patterns.
    """

    model: ModelIdentity
    texts: int
    rows: int
    scores: Sequence[LabelScore]
    runs: Sequence[Capture] = ()
