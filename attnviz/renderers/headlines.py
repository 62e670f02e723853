"""The first line: what a head does on this text, what it is known for, and why it is shown.

    L2H3: creature → blue .69, fluffy .30 · known for: nouns attend to their adjectives

A title is a claim. Before the `·` stands what was computed from what is shown; what a head is
known for is knowledge from its model's card, and worded so.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from types import MappingProxyType

from attnviz.data.capture import Capture
from attnviz.data.card import NamedHead
from attnviz.data.exhibit import Choice, Exhibit, Map, Why
from attnviz.data.finding import Finding, FoundLink, Habit, Tendency
from attnviz.data.head import listed
from attnviz.errors import Speller
from attnviz.harmless import readable
from attnviz.renderers.labels import distinct_labels, name_of

CHOSEN: Mapping[Why, str] = MappingProxyType(
    {
        "acts": "chosen automatically",
        "card": "chosen automatically, as the model's card names it",
        "generic": "chosen automatically by a generic score",
    }
)
HABITS: Mapping[Habit, str] = MappingProxyType(
    {
        "previous": "the one before",
        "followers": "what followed their earlier occurrence",
        "self": "themselves",
    }
)
LONGEST = 24  # letters of a label


def about(exhibit: Exhibit, speller: Speller | None = None) -> str:
    """The exhibit's caption, or which heads these are, what is so of them and why they are shown.

    Args:
        exhibit: what is shown.
        speller: spells the options of whoever reads it, to say how others are shown.
    """
    if exhibit.caption or exhibit.choice is None:
        return exhibit.caption
    return headline(exhibit.choice, exhibit.finding, exhibit.capture, speller)


def headline(
    choice: Choice, finding: Finding | None, capture: Capture, speller: Speller | None = None
) -> str:
    """The first line of some heads: `L2H3: … · known for: … (chosen automatically …)`.

    Args:
        choice: the heads.
        finding: what the head does here, where a rule picked it.
        capture: the tokens, and what the model's card says.
        speller: as in `about`.
    """
    if choice.why == "only" and choice.named is not None:
        return choice.named.title
    if len(choice.heads) != 1:
        return listed(choice.heads)
    title = head_title(choice, finding, capture)
    why = CHOSEN.get(choice.why, "") if choice.line is None else f"chosen on line {choice.line}"
    if not why:
        return title
    others = f"; {speller('heads', 'all')} shows every head" if speller else ""
    return f"{title} ({why}{others})"


def head_title(choice: Choice, finding: Finding | None, capture: Capture) -> str:
    """What the one head of a choice does here, and what it is known for.

    That is left out where the head was picked without regard to it, as it may not be so here.
    """
    (head,) = choice.heads
    if choice.why == "generic":
        return _title(str(head), finding, capture, ())
    known = [each for each in capture.named(*head) if each != choice.named]
    return _title(str(head), finding, capture, [*filter(None, [choice.named]), *known])


def map_title(exhibit: Exhibit, head_map: Map) -> str:
    """`L1H2 · known for: nouns attend to their adjectives`; the label alone of other heads.

    What the head does here stands before it, where it was looked for.
    """
    choice, capture = exhibit.choice, exhibit.capture
    if choice is not None and [(head_map.layer, head_map.head)] == list(choice.heads):
        if choice.why == "only" and choice.named is not None:
            return f"{head_map.label}: {readable(choice.named.title)}"
        return head_title(choice, exhibit.finding, capture)
    return _title(head_map.label, None, capture, capture.named(head_map.layer, head_map.head))


def _title(
    label: str, finding: Finding | None, capture: Capture, named: Iterable[NamedHead]
) -> str:
    said = f"{label}: {finding_title(finding, capture)}" if finding else label
    known = known_for(named)
    return f"{said} · {known}" if known else said


def known_for(named: Iterable[NamedHead]) -> str:
    """`known for: nouns attend to their adjectives`; empty where there is nothing."""
    titles = "; ".join(dict.fromkeys(readable(each.title) for each in named))
    return f"known for: {titles}" if titles else ""


def finding_title(finding: Finding, capture: Capture) -> str:
    """`creature → blue .69, fluffy .30`, or `9 of 12 tokens attend most to the one before`."""
    if finding.tendency is not None:
        return _tendency(finding.tendency, capture)
    queries, keys = (
        [_cut(label) for label in distinct_labels(tokens)]
        for tokens in (capture.query_tokens, capture.key_tokens)
    )

    def said(query: int, links: Iterable[FoundLink]) -> str:
        ends = ", ".join(f"{name_of(keys[link.key])} {share(link.weight)}" for link in links)
        return f"{queries[query]} → {ends}"

    by_query = groupby(finding.links, key=lambda link: link.query)
    return "; ".join(said(query, links) for query, links in by_query)


def _tendency(tendency: Tendency, capture: Capture) -> str:
    rows, of = tendency.rows, tendency.of
    many = f"all {of:,}" if rows == of else f"{rows:,} of {of:,}"
    if tendency.key is None:
        where = HABITS[tendency.habit]
    else:
        token = capture.key_tokens[tendency.key]
        labels = distinct_labels(capture.key_tokens)
        first = "the first token, " if tendency.key == 0 else ""
        where = token.label if token.special else f"{first}“{_cut(labels[tendency.key])}”"
    return f"{many} tokens attend most to {where}"


def share(weight: float) -> str:
    """A weight in two digits, as it stands in a sentence: `.69`, `1.00`."""
    return f"{weight:.2f}".removeprefix("0")


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
