"""A capture to a page: the words of its text, the head to begin with, and each head's metrics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape

from attnviz.data.capture import Capture
from attnviz.data.exhibit import Exhibit
from attnviz.data.head import Head
from attnviz.data.heads import HeadMetrics
from attnviz.data.words import groups_of
from attnviz.errors import AttnvizError, InputError, option
from attnviz.inputs.segments import cut
from attnviz.renderers.titles import amount
from attnviz.renderers.webpage import AT_FIRST, PageWords, Start, page_chunks
from attnviz.runs.choose import found, start_choice
from attnviz.runs.heads import score_capture
from attnviz.runs.options import HeadOptions
from attnviz.transforms.apply import whole_exhibit

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

    Where `start` names no head, it begins with the one that tells most about the text.

    Raises:
        InputError: it is doubtful that a browser opens it.
    """
    captured = exhibit.capture
    check_page(captured, len(exhibit.maps))
    pieces = *groups_of(captured, "words"), *groups_of(captured, "chars")
    words = PageWords(*pieces, sentences=_sentences(captured))
    # a changed pattern has no metrics of its own, and no rule picks a head by it
    if captured.transforms:
        return page_chunks(exhibit, words, start or AT_FIRST)
    return page_chunks(exhibit, words, start or _start(exhibit), _metrics(captured))


def _sentences(captured: Capture) -> Sequence[tuple[int, int]]:
    """The slices of an answer's sentences in its text; none of what is no answer."""
    if not captured.segments:
        return ()
    text, begin = captured.texts[0], captured.query_tokens[0].start
    return [(begin + start, begin + end) for start, end in cut(text[begin:], "sentence")]


def _start(exhibit: Exhibit) -> Start:
    """The head that tells most about the text, and what it does there."""
    choice = start_choice(exhibit.capture)
    if choice is None:
        return AT_FIRST
    (head,) = choice.heads
    shown = found(replace(exhibit, choice=choice), head)
    return Start(head, choice=choice, finding=shown.finding)


def framed(captured: Capture) -> str:
    """A capture's page as an element of another page."""
    page = "".join(page_of(whole_exhibit(captured)))
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(page)}" '
        'style="width: 100%; height: 48rem; border: 0"></iframe>'
    )


def _metrics(captured: Capture) -> Mapping[Head, HeadMetrics]:
    try:
        report = score_capture(captured, HeadOptions(everything=True))
    except AttnvizError:  # too short a text to tell anything
        return {}
    return {each.head: each for each in report.heads}
