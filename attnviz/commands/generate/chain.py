"""The chain from an answer through its own sentences to the prompt, and whether it holds.

answer ─► the sentence that it attended to most ─► … ─► the segment that this one attended to most

Each link is cut in every head, and the last source is deleted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attnviz.commands.generate.answer import ADDED, OWN_ID, Answer, AnswerPart, AnswerShares
from attnviz.errors import UsageError, option
from attnviz.records.grounding import Check, CheckMethod
from attnviz.records.heads import every_head
from attnviz.records.interventions import ChangedRun, CutLink, Intervention, Interventions
from attnviz.records.reasoning import Chain, ChainLink
from attnviz.records.rows import LINE, Field, Fields, keyed
from attnviz.records.tokens import TEMPLATE

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

OTHERS = 5
"""The number of other sources to cut for comparison: those with the most attention."""


@dataclass(frozen=True)
class _Source:
    """A sentence of the answer, or a segment of the prompt (`part` is None), and its keys."""

    name: str
    keys: tuple[int, ...]
    part: AnswerPart | None = None


_Step: TypeAlias = tuple[AnswerPart, list[tuple[_Source, float]]]
"""A part of the answer, and its sources, the one with the most attention first."""


def check_hops(method: CheckMethod | None, hops: int) -> None:
    """See that there are hops where the chain is asked for."""
    if method == "chain" and not hops:
        raise UsageError(
            f"{option('check_method', method)} goes back through the answer, as far as "
            f"{option('hops')} says",
            f"add {option('hops', 2)}",
        )


def chain_of(model: "LoadedModel", answer: Answer, check: Check) -> Chain | None:
    """Follow the strongest source, through at most `answer.hops` sentences, and cut each link.

    A link is cut by hiding its keys from the softmax of every head and layer, for the positions
    that write the part. None where the last section attended to no segment.
    """
    model.require("predict")
    n, capture = answer.read, answer.capture
    steps = _steps(answer)
    if not steps:
        return None
    ids = [token.id for token in (*capture.key_tokens[:n], *capture.query_tokens)]
    cuts: list[Intervention] = [()]
    for part, sources in steps:
        queries = range(n + part.first - 1, n + part.after - 1)
        cuts += [hidden(model, queries, source.keys) for source, _ in sources]
    followed: dict[int, list[float]] = {}

    def keep(run: ChangedRun) -> None:
        followed[run.index] = run.followed[n - 1 :].tolist()

    model.intervene(ids, Interventions(cuts, whole=True), keep)
    links, run = list[ChainLink](), 0
    for part, sources in steps:
        whole = sum(followed[0][part.first : part.after])
        runs = range(run + 1, run + 1 + len(sources))
        changes = [sum(followed[i][part.first : part.after]) - whole for i in runs]
        (source, share), run = sources[0], run + len(sources)
        names = [each.name for each, _ in sources]
        other, named = min(zip(changes[1:], names[1:], strict=True), default=(None, None))
        text = part.section or part.text
        links.append(ChainLink(text, source.name, share, changes[0], other, named))
    last = steps[-1][0]
    of = {each.segment: sum(each.changes[last.first : last.after]) for each in check.effects}
    own = of.pop(links[-1].source, None)
    other, named = min(((change, name) for name, change in of.items()), default=(None, None))
    return Chain(tuple(links), own, other, named)


def _steps(answer: Answer) -> list[_Step]:
    """From the last section, or sentence, to the segment that it comes from."""
    sentences = answer.parts("sentence")
    sections = answer.parts("section")
    part = (sections if len(sections) > 1 else sentences)[-1]
    steps = list[_Step]()
    for left in range(answer.hops, -1, -1):
        earlier = [each for each in sentences if each.after <= part.first] if left else []
        sources = _sources(answer, part, earlier)
        if not sources:
            return []
        steps.append((part, sources))
        strongest = sources[0][0].part
        if strongest is None:
            break
        part = strongest
    return steps


def _sources(
    answer: Answer, part: AnswerPart, earlier: Sequence[AnswerPart]
) -> list[tuple[_Source, float]]:
    """The sources of a part, those with the most attention; only segments if it is the last."""
    row = answer.weights[part.first : part.after].mean(axis=0, dtype=float)
    n = answer.read
    segments = [c for c in answer.columns if c.part == "segment" and c.name != TEMPLATE]
    found = [_Source(each.name, tuple(each.keys.tolist())) for each in segments]
    found += [_Source(e.text, tuple(range(n + e.first, n + e.after)), e) for e in earlier]
    shares = [(each, float(row[list(each.keys)].sum())) for each in found]
    return sorted(shares, key=lambda each: -each[1])[: OTHERS + 1]


MOST_LINKS = 2_000_000


def hidden(model: "LoadedModel", queries: range, keys: Sequence[int]) -> Intervention:
    """All links from some positions to some keys cut in every head; the others sum to 1 again.

    Raises:
        UsageError: there are too many.
    """
    heads = every_head(model.identity.heads_per_layer)
    count = len(heads) * len(queries) * len(keys)
    if count > MOST_LINKS:
        raise UsageError(
            f"{count:,} links are to be cut, over the limit of {MOST_LINKS:,}",
            f"give a shorter answer, or leave {option('check')} out",
        )
    return tuple(
        CutLink(head, query, key, renormalise=True)
        for head in heads
        for query in queries
        for key in keys
        if key <= query
    )


CHAIN = Fields[Mapping[str, Any]](
    "ChainRow",
    "With --check-method chain: a link from the answer back to the prompt, cut or deleted.",
    keyed(
        LINE,
        OWN_ID,
        Field("row", int, "Its number from 1, the answer's own first."),
        Field("part", str, "The part of the answer."),
        Field(
            "source",
            str,
            "The source it attended to most: a sentence of the answer, or a segment's name.",
        ),
        Field("share", float, "The source's share."),
        Field(
            "test",
            Literal["cut", "deletion"],
            "Whether the link is cut, or, last, its source deleted.",
        ),
        Field("change", float, "The change of the part's log-probability (nats)."),
        Field("other", float | None, "The largest loss with another source, or null without one."),
        Field("other_source", str | None, "That source, or null without one."),
        Field(
            "holds",
            bool,
            "Whether the change is a loss of more than 0.1, and larger than any other; the chain "
            "holds where all do.",
        ),
        ADDED,
    ),
)


def chain_rows(
    shares: AnswerShares, top: int | None, line: int | None
) -> Iterator[Mapping[str, Any]]:
    chain = shares.check.chain if shares.check else None
    same = shares.answer.in_rows(line)
    for n, test in enumerate(chain.tests if chain else (), start=1):
        link, of_test = test.link, {**vars(test), "test": test.kind, "holds": test.holds}
        of_link = {"part": link.part, "source": link.source, "share": link.share}
        yield {**of_link, **of_test, **same, "row": n}
