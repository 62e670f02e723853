"""A capture to a page: the words of its text, the head to begin with, and each head's scores."""

from collections.abc import Iterator, Mapping
from html import escape

from attnviz.analyses.default_head import default_head
from attnviz.data.capture import Capture
from attnviz.data.exhibit import Exhibit, HeadMap
from attnviz.data.head import Head, every_head
from attnviz.data.heads import HeadMetrics
from attnviz.errors import AttnvizError
from attnviz.renderers.webpage import AT_FIRST, Start, Words, page_chunks
from attnviz.runs.heads import score_capture
from attnviz.runs.options import HeadOptions
from attnviz.transforms.merge import groups_of


def page_of(exhibit: Exhibit, start: Start | None = None) -> Iterator[str]:
    """The page of an exhibit of whole patterns, piece by piece; where `start` says no head, it
    begins with the one that tells most about the text."""
    captured = exhibit.capture
    words = Words(*groups_of(captured, "words"), *groups_of(captured, "chars"))
    # a changed pattern has no scores of its own, and no rule picks a head by it
    if captured.transforms:
        return page_chunks(exhibit, words, start or AT_FIRST)
    whole = captured.heads == every_head(captured.model.heads_per_layer)
    start = start or Start(default_head(captured).head if whole else None)
    return page_chunks(exhibit, words, start, _scores(captured))


def framed(captured: Capture) -> str:
    """A capture's page as an element of another page."""
    maps = tuple(HeadMap(*head, weights=captured.weights(head)) for head in captured.heads)
    queries, keys = range(len(captured.query_tokens)), range(len(captured.key_tokens))
    page = "".join(page_of(Exhibit(captured, maps, tuple(queries), tuple(keys))))
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(page)}" '
        'style="width: 100%; height: 48rem; border: 0"></iframe>'
    )


def _scores(captured: Capture) -> Mapping[Head, HeadMetrics]:
    try:
        report = score_capture(captured, HeadOptions(everything=True))
    except AttnvizError:  # too short a text to tell anything
        return {}
    return {each.head: each for each in report.heads}
