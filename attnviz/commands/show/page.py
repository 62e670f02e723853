"""One self-contained interactive page: every head, its pattern, the text itself.

The files in `show/page/` are put together with the parts that pages share and with the data, and
nothing else: no server, no network. Weights have one byte each (two where the page stays small) on
a square-root scale, so that small ones survive, and are compressed head by head; the page unpacks a
head when it is shown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from itertools import accumulate, zip_longest
from math import isnan

import numpy as np

from attnviz.commands.show.outputs import OutputRequest, switches
from attnviz.draw import page as document
from attnviz.draw.headlines import beside_notes, head_title, map_title
from attnviz.draw.labels import BLUES, BLUES_ON_DARK, distinct_labels, fenced, told_apart
from attnviz.draw.page import (
    COMMON,
    HEAD,
    LINES,
    MAP,
    filled,
    in_frame,
    policies,
    policy,
    safe_json,
    source,
)
from attnviz.draw.page.images import PageImages, opening_rows, section, what_of, whole_images
from attnviz.draw.titles import amount, beginning, facts, text_notes
from attnviz.errors import AttnvizError, InputError, UsageError, option, readable, spelled
from attnviz.inputs.prompts import cut
from attnviz.kit.choose import first_query, start_choice, strongest_query, with_finding
from attnviz.kit.prepare import HeadOptions
from attnviz.kit.scores import score_capture
from attnviz.records.apply import EVERYTHING, merged, queries_of, whole_exhibit
from attnviz.records.capture import Capture
from attnviz.records.exhibit import LITTLE_LEFT, Choice, Exhibit, Filters, HeadMap, whole_map
from attnviz.records.heads import Finding, Head, every_head
from attnviz.records.merging import WHOLE, groups_of
from attnviz.records.metrics import HeadMetrics
from attnviz.records.rests import rests_in, with_rests
from attnviz.records.tokens import Token
from attnviz.records.transforms import PLAIN, KeysDropped, SpecialDropped, Transforms, Unit

FOLDER = "commands/show/page"
STYLES = (f"{COMMON}.css", f"{FOLDER}/page.css")
_PARTS = "state weights overview text answer exports page".split()


def _scripts(seen: PageImages | None) -> tuple[str, ...]:
    """The scripts of a page; with images, those of their overlays before the one that starts it."""
    *parts, page = (f"{FOLDER}/{name}.js" for name in _PARTS)
    return (f"{COMMON}.js", *MAP, LINES, *parts, *(("draw/page/image.js",) if seen else ()), page)


@dataclass(frozen=True)
class Start:
    """The state in which a page opens: a head (None: the first of the exhibit), and its view.

    `sink`: without the keys on which heads rest. `unit`: what tokens are merged to (None: kept);
    `query`: the position that is pinned among these, of several up to `after`. Links under `least`
    are hidden.
    `choice`: the rule that picked the head, if any; `finding`: its behaviour on the text.
    """

    head: Head | None = None
    sink: bool = False
    unit: Unit | None = None
    query: int | None = None
    after: int | None = None
    least: float = 0.0
    choice: Choice | None = None
    finding: Finding | None = None


@dataclass(frozen=True)
class Lead:
    """The part of a page that another command puts before the heads.

    `heading`: the markup above the heads; `pointed`: the elements that respond to the mouse.
    """

    markup: str = ""
    heading: str = "<h1>Which words attend to which</h1>"
    pointed: str = "a word"
    style: str = ""
    script: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def values(self) -> Mapping[str, str]:
        return {"lead": self.markup, "heading": self.heading, "what": self.pointed}


OF_SOUND = Lead(heading="<h1>Which seconds attend to which</h1>", pointed="a time")
OF_IMAGE = Lead(
    heading="<h1>Which parts of an image attend to which</h1>",
    pointed="a token, or a place in the image,",
)


def _chunks(
    exhibit: Exhibit,
    start: Start,
    metrics: Mapping[Head, HeadMetrics],
    lead: Lead,
    seen: PageImages | None,
) -> Iterator[str]:
    """The page: its beginning, then each head's weights, then its end."""
    maps = [whole_map(head_map) for head_map in exhibit.maps]
    top = max((float(m.weights.max(initial=0.0)) for m in maps), default=0.0) or 1.0
    size = document.bytes_of(exhibit, maps)
    error = max((document.error(exhibit, m, top, size) for m in maps), default=0.0)
    style, script = source(*STYLES) + lead.style, source(*_scripts(seen)) + lead.script
    shown = [i for i, m in enumerate(maps) if start.head and (m.layer, m.head) == start.head]
    facts_of_page = {
        **_facts(exhibit, maps, top, error),
        **lead.facts,
        **({"seen": seen.facts} if seen else {}),
        "bytes": size,
        "heads": [_head(exhibit, m, metrics, start) for m in maps],
        "initial": {"heads": shown[:1] or [0], **_opened(start)},
    }
    before, after = source(HEAD, f"{FOLDER}/page.html").split("{{weights}}")
    values = {
        "title": escape(
            f"{beginning(exhibit.capture.text)}: {readable(exhibit.capture.model.name)}"
        ),
        "policies": policies(policy(style, script)),
        "held": escape(_held(exhibit, maps)),
        "images": section(exhibit.capture) if seen else "",
        **lead.values,
        "style": style,
        "data": safe_json(facts_of_page),
        "thumbnails": document.packed(document.thumbnails(maps, top)),
    }
    yield filled(before, values)
    packed = (document.packed(document.levels(exhibit, each, top, size)) for each in maps)
    for name, weights in (("head", packed), ("heat", seen.heats() if seen else ())):
        for number, each in enumerate(weights):  # made only now: all at once they take gigabytes
            yield f'<script type="text/plain" id="{name}-{number}">{each}</script>\n'
    yield after.replace("{{script}}", script)


def _held(exhibit: Exhibit, maps: Sequence[HeadMap]) -> str:
    """`all heads`, `L3H2`, `12 of 20 heads`, `L0 mean to L4 mean`: what there are miniatures of."""
    every = every_head(exhibit.capture.model.heads_per_layer)
    if len(maps) > 1 and [(each.layer, each.head) for each in maps] == [*every]:
        return "all heads"
    if len(maps) <= 4:
        return ", ".join(each.label for each in maps)
    reduced = any(each.reduced for each in maps)
    ends = f"{maps[0].label} to {maps[-1].label}"
    return ends if reduced else f"{len(maps):,} of {len(every):,} heads"


def _opened(start: Start) -> Mapping[str, object]:
    """The state in which a page opens, but for its head."""
    pin = None if start.query is None else {"side": "q", "index": start.query}
    if pin and start.after:
        pin["after"] = start.after
    return {
        "sink": start.sink,
        "unit": start.unit or "tokens",
        "threshold": min(max(start.least, 0.0), 1.0),
        "pin": pin,
    }


def _facts(
    exhibit: Exhibit, maps: Sequence[HeadMap], top: float, error: float
) -> Mapping[str, object]:
    """Everything of the page but its weights."""
    capture, texts = exhibit.capture, exhibit.capture.texts
    segments = [(*ends, s.name) for s in capture.segments for ends in s.slices]
    return {
        "title": beginning(capture.text),
        "about": facts(capture),
        # a page names an option, which it has none of, by its value
        "notes": [
            spelled(note, lambda name, value: value or name)
            for note in (*text_notes(capture), *beside_notes(exhibit))
        ],
        "causal": capture.causal,
        "little": LITTLE_LEFT,
        "before": int(capture.allowed_count()[0]) - 1 if capture.causal else 0,
        "cross": capture.kind in ("answer", "cross"),
        "top": top,
        "error": error,
        "thumbnail": list(document.thumbnail_shape(maps)),
        "colors": {"light": BLUES, "dark": BLUES_ON_DARK},
        "queries": _side(capture, 0),
        "keys": _side(capture, 1),
        "parts": {
            "keys": _parts(texts[1], segments),
            "queries": _parts(texts[0], _sentences(capture)),
        },
        "what": what_of(capture),
        "changed": bool(capture.transforms),
        "dropped": capture.transformed_by(KeysDropped) or capture.transformed_by(SpecialDropped),
    }


def _sentences(capture: Capture) -> Sequence[tuple[int, int, str]]:
    """The sentences of an answer, in the text of the queries; by number where there are several."""
    if not capture.segments:
        return []
    text, begin = capture.texts[0], capture.query_tokens[0].start
    slices = list(cut(text[begin:], "sentence"))
    return [
        (begin + start, begin + end, f"answer {n}" if len(slices) > 1 else "answer")
        for n, (start, end) in enumerate(slices, start=1)
    ]


def _head(
    exhibit: Exhibit, head_map: HeadMap, metrics: Mapping[Head, HeadMetrics], start: Start
) -> Mapping[str, object]:
    """A head's place and names, its role and its metrics where they are known.

    `name` says nothing of the weights, for where the page shows changed ones.
    """
    title, known, rests = map_title(exhibit, head_map), None, list[int]()
    if start.choice and start.finding and (head_map.layer, head_map.head) == start.head:
        title = head_title(start.choice, start.finding, exhibit.capture)
    if head_map.layer is not None and head_map.head is not None:
        head = Head(head_map.layer, head_map.head)
        known = metrics.get(head)
        rests = np.flatnonzero(rests_in(exhibit.capture, head)).tolist()
    numbers = known.metrics.items() if known else ()
    return {
        "layer": head_map.layer,
        "head": head_map.head,
        "label": head_map.label,
        "rests": rests,
        "title": fenced(title),
        "name": fenced(map_title(replace(exhibit, choice=None), head_map)),
        "role": known.role.name if known and known.role else "",
        "scores": ", ".join(f"{name} {e.mean:.2f}" for name, e in numbers if not isnan(e.mean)),
    }


def _side(capture: Capture, side: int) -> Mapping[str, object]:
    """The tokens of the queries (0) or keys (1): labels, their places in their text, their words.

    `shown`: the part of the text that is shown. An answer's text is the prompt with the answer
    behind it, whose last token is not a key.
    """
    tokens, text = (capture.query_tokens, capture.key_tokens)[side], capture.texts[side]
    begin, end, units = 0, len(text), _units(text)
    if capture.kind == "answer":
        begin, end = (begin, tokens[-1].end) if side else (tokens[0].start, end)
    together = {}
    if capture.image_alone:  # its text is the name of a file
        end, groups = 0, groups_of(capture, WHOLE)[side]
        named = [
            (g.start, g.stop, "image" if len(g) > 1 else tokens[g.start].label) for g in groups
        ]
        together = {"together": named}
    words, pieces = groups_of(capture, "words")[side], groups_of(capture, "chars")[side]
    return {
        **together,
        "labels": [fenced(label) for label in distinct_labels(tokens)],
        "text": text,
        "shown": [units[begin], units[end]],
        "spans": [[units[start], units[end]] for start, end in _spans(tokens)],
        "special": [token.special for token in tokens],
        "units": {"words": _merged(tokens, text, words), "chars": _merged(tokens, text, pieces)},
    }


def _spans(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The places of tokens in their text; that of an inset reaches over its mark."""
    for token, following in zip_longest(tokens, tokens[1:]):
        marked = token.inset and following is not None
        yield token.start, following.start if marked else token.end


def _merged(tokens: Sequence[Token], text: str, groups: Sequence[range]) -> Mapping[str, object]:
    """The groups of tokens that are merged to one, and their names, as merging calls them."""
    names = []
    for group in groups:
        first, last = tokens[group.start], tokens[group.stop - 1]
        word = readable(text[first.start : last.end]) or "␣"  # pieces of one letter hold all of it
        names.append(first.label if first.special else word)
    return {
        "groups": [[group.start, group.stop] for group in groups],
        "labels": [fenced(label) for label in told_apart(names)],
    }


def _units(text: str) -> list[int]:
    """For each character of a text, and its end, the units of UTF-16 before it."""
    return [0, *accumulate(2 if ord(letter) > 0xFFFF else 1 for letter in text)]


def _parts(text: str, slices: Iterable[tuple[int, int, str]]) -> Sequence[Sequence[object]]:
    """Named slices of a text, in order: name, start and end, in units of UTF-16."""
    units = _units(text)
    return [[readable(name), units[start], units[end]] for start, end, name in sorted(slices)]


MOST_WEIGHTS = 400_000_000
"""Chromium opened a page with nearly this many, of 484 MB, in 11 s; more is not promised."""


def check_page(captured: Capture, heads: int) -> None:
    """Check that a browser can open a page of this many heads; the patterns may be yet to come.

    Raises:
        InputError: the page is too large.
    """
    weights = heads * int(captured.allowed_count().sum())
    if weights > MOST_WEIGHTS:
        raise InputError(
            f"a page of {amount(heads, 'head')} would hold {weights:,} weights, over the "
            f"limit for a browser of {MOST_WEIGHTS:,}",
            f"choose fewer heads with {option('heads')}, or a part of the text",
        )


def page_of(
    exhibit: Exhibit,
    start: Start | None = None,
    lead: Lead | None = None,
    seen: PageImages | None = None,
) -> Iterator[str]:
    """The page of an exhibit of whole patterns, piece by piece, after what leads to it.

    Without `start`, it opens with the head and the word that show most about the text. `seen`: the
    images, each of which is one token of the exhibit.

    Raises:
        UsageError: it would show scores.
    """
    captured = with_rests(exhibit.capture)
    if exhibit.value_name != "weight":
        raise UsageError(
            f"a page shows weights, but this capture holds {captured.values}",
            f"use {option('view', 'heatmap')}, or capture the text again",
        )
    check_page(captured, len(exhibit.maps))
    lead = lead or {"image": OF_IMAGE, "sound": OF_SOUND, "text": Lead()}[what_of(captured)]
    plain, metrics = exhibit.origin or captured, dict[Head, HeadMetrics]()
    if not plain.transforms:  # a capture that was saved changed has no metrics of its own
        with suppress(AttnvizError):  # too short a text to show anything
            heads = score_capture(plain, HeadOptions(everything=True)).heads
            metrics = {each.head: each for each in heads}
    exhibit = replace(exhibit, capture=captured)
    return _chunks(exhibit, start or start_of(exhibit), metrics, lead, seen)


def page_as(exhibit: Exhibit, request: OutputRequest) -> Iterator[str]:
    """The page of an exhibit, which opens as the options say."""
    exhibit, seen = whole_images(replace(exhibit, capture=with_rests(exhibit.capture)))
    start = start_of(exhibit, switches(request.transforms), request.filters)
    return page_of(exhibit, start, seen=seen)


def start_of(
    exhibit: Exhibit, switched: Transforms = PLAIN, filters: Filters = EVERYTHING
) -> Start:
    """The state in which a page opens, by the options.

    The head is the one that shows most about the text as the model computed it, whatever is
    merged or left out. The word is the one that was named, or the one that shows most.

    Args:
        exhibit: whole patterns.
        switched: which of the page's switches are on.
        filters: the query whose first occurrence is pinned, and the least weight that is shown.

    Raises:
        UsageError: several queries.
    """
    start = _telling_start(exhibit)
    if exhibit.capture.image_alone:
        query, after = opening_rows(exhibit.capture.query_tokens, start.query)
        start = replace(start, query=query, after=after)
    query, merged_to = start.query, switched.merge
    if switched.chars is None and any(token.part for token in exhibit.capture.query_tokens):
        merged_to = merged_to or "chars"  # as for all that people read
    if filters.queries:
        captured = replace(exhibit.capture, layers=())
        tokens = (merged(captured, merged_to) if merged_to else captured).query_tokens
        if len(filters.queries) > 1:
            raise UsageError("a page pins one query", f"give {option('queries')} once")
        start, query = replace(start, after=None), queries_of(tokens, filters)[0]
    elif query is not None and merged_to:
        groups, _ = groups_of(exhibit.capture, merged_to)
        query = next(n for n, group in enumerate(groups) if query in group)
    return replace(start, sink=switched.drop_sink, unit=merged_to, query=query, least=filters.least)


def _telling_start(exhibit: Exhibit) -> Start:
    """The head that shows most about the text, its behaviour there, and a word that shows it."""
    if not exhibit.maps or exhibit.capture.signed:
        return Start()
    choice = start_choice(exhibit.origin or exhibit.capture)
    maps = [m for m in exhibit.maps if choice and (m.layer, m.head) == choice.heads[0]]
    if choice is None or not maps:
        return Start(query=strongest_query(exhibit, exhibit.maps[0]))
    (head,) = choice.heads
    finding = with_finding(replace(exhibit, choice=choice), head).finding
    query = first_query(finding)
    query = strongest_query(exhibit, maps[0]) if query is None else query
    return Start(head, query=query, choice=choice, finding=finding)


def framed(captured: Capture) -> str:
    """A capture's page as an element of another page, with a script that fits its height."""
    if captured.signed:
        return f"<p>This capture holds {captured.values}. A page shows weights.</p>"
    exhibit, seen = whole_images(whole_exhibit(captured))
    return in_frame("".join(page_of(exhibit, seen=seen)))
