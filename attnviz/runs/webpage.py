"""A capture to a page: the words of its text, the head to begin with, and each head's metrics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape

from attnviz.draw.titles import amount
from attnviz.errors import AttnvizError, InputError, UsageError, option
from attnviz.inputs.prompts import cut
from attnviz.kit.choose import found, start_choice, telling_query, told_query
from attnviz.kit.prepare import HeadOptions
from attnviz.kit.scores import score_capture
from attnviz.records.apply import EVERYTHING, queries_of, whole_exhibit
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Exhibit, Filters
from attnviz.records.heads import Head
from attnviz.records.metrics import HeadMetrics
from attnviz.records.patterns import merged
from attnviz.records.positions import groups_of
from attnviz.records.transforms import PLAIN, Transforms
from attnviz.renderers.webpage import AT_FIRST, PageWords, Start, page_chunks

MOST_WEIGHTS = 400_000_000
"""Chromium opened a page with nearly so many, of 484 MB, in 11 seconds; more is not promised."""


def check_page(captured: Capture, heads: int) -> None:
    """Check that a browser can open a page of so many heads; their patterns may be yet to come.

    Raises:
        InputError: that is doubtful.
    """
    weights = heads * int(captured.allowed_count().sum())
    if weights > MOST_WEIGHTS:
        raise InputError(
            f"a page of {amount(heads, 'head')} would hold {weights:,} weights, and a browser "
            f"should not be given more than {MOST_WEIGHTS:,}",
            f"choose fewer heads with {option('heads')}, or a part of the text",
        )


def page_of(exhibit: Exhibit, start: Start | None = None) -> Iterator[str]:
    """The page of an exhibit of whole patterns, piece by piece.

    Without `start`, it begins with the head and the word that tell most about the text.

    Raises:
        InputError: it is doubtful that a browser opens it.
        UsageError: it would show scores.
    """
    captured = exhibit.capture
    if captured.signed:
        raise UsageError(
            "a page shows weights, and this capture holds scores",
            f"use {option('view', 'heatmap')}, or capture the text again",
        )
    check_page(captured, len(exhibit.maps))
    pieces = *groups_of(captured, "words"), *groups_of(captured, "chars")
    words = PageWords(*pieces, sentences=_sentence_slices(captured))
    plain = exhibit.origin or captured
    # a capture that was saved changed has no metrics of its own
    metrics = {} if plain.transforms else _metrics(plain)
    return page_chunks(exhibit, words, start or start_of(exhibit), metrics)


def start_of(
    exhibit: Exhibit, switched: Transforms = PLAIN, filters: Filters = EVERYTHING
) -> Start:
    """What a page shows at first, by what was asked.

    The head is the one that tells most about the text as the model computed it, whatever is
    merged or left out. The word is the one that was named, or the one that tells most.

    Args:
        exhibit: whole patterns.
        switched: which of the page's switches are on.
        filters: the query whose first occurrence is pinned, and the least weight that is shown.

    Raises:
        UsageError: several queries, or one that is not in the text.
    """
    start = _telling_start(exhibit)
    query, merged_to = start.query, switched.merge
    if switched.chars is None and any(token.part for token in exhibit.capture.query_tokens):
        merged_to = merged_to or "chars"  # as for all that people read
    if filters.queries:
        captured = replace(exhibit.capture, layers=())
        tokens = (merged(captured, merged_to) if merged_to else captured).query_tokens
        if len(filters.queries) > 1:
            raise UsageError("a page pins one query", f"give {option('queries')} once")
        query = queries_of(tokens, filters)[0]
    elif query is not None and merged_to:
        groups, _ = groups_of(exhibit.capture, merged_to)
        query = next(n for n, group in enumerate(groups) if query in group)
    return replace(start, sink=switched.drop_sink, unit=merged_to, query=query, least=filters.least)


def _sentence_slices(captured: Capture) -> Sequence[tuple[int, int]]:
    """The slices of an answer's sentences in its text; none of what is no answer."""
    if not captured.segments:
        return ()
    text, begin = captured.texts[0], captured.query_tokens[0].start
    return [(begin + start, begin + end) for start, end in cut(text[begin:], "sentence")]


def _telling_start(exhibit: Exhibit) -> Start:
    """The head that tells most about the text, what it does there, and a word that shows it."""
    if not exhibit.maps or exhibit.capture.signed:
        return AT_FIRST
    choice = start_choice(exhibit.origin or exhibit.capture)
    maps = [m for m in exhibit.maps if choice and (m.layer, m.head) == choice.heads[0]]
    if choice is None or not maps:
        return Start(query=telling_query(exhibit, exhibit.maps[0]))
    (head,) = choice.heads
    finding = found(replace(exhibit, choice=choice), head).finding
    query = told_query(finding)
    query = telling_query(exhibit, maps[0]) if query is None else query
    return Start(head, query=query, choice=choice, finding=finding)


FRAME = """\
<script>
addEventListener("message", ({ data, source }) => {
  const height = Number(data && data.attnvizHeight);
  for (const frame of document.querySelectorAll("iframe[data-attnviz]"))
    if (frame.contentWindow === source && height > 0)
      frame.style.height = `${Math.min(height, 4000)}px`;
});
</script>
"""
"""By which a frame is as tall as its page says. The page can say that, and do nothing else: it has
no origin, and only a number is taken from it. Where no script runs, the frame can be pulled taller,
and its page scrolled."""


def framed(captured: Capture) -> str:
    """A capture's page as an element of another page, with a script that fits its height."""
    if captured.signed:
        return "<p>This capture holds scores. A page shows weights.</p>"
    page = "".join(page_of(whole_exhibit(captured)))
    return (
        f"{FRAME}<iframe data-attnviz "
        f'sandbox="allow-scripts allow-downloads" srcdoc="{escape(page)}" '
        'style="width: 100%; height: 48rem; border: 0; resize: vertical"></iframe>'
    )


def _metrics(captured: Capture) -> Mapping[Head, HeadMetrics]:
    try:
        report = score_capture(captured, HeadOptions(everything=True))
    except AttnvizError:  # too short a text to tell anything
        return {}
    return {each.head: each for each in report.heads}
