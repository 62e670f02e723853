"""The lines above every view: which heads these are and why, of which model, on how many tokens."""

from rich.text import Text

from attnviz.console import Display
from attnviz.data.capture import Capture
from attnviz.data.card import NamedHead
from attnviz.data.exhibit import Exhibit, Map
from attnviz.data.tokens import readable
from attnviz.renderers.direction import fenced
from attnviz.renderers.labels import ascii_only, cut
from attnviz.renderers.prose import folded


def heading(exhibit: Exhibit, display: Display) -> list[Text]:
    """One line (more where it is narrow) that says what this is."""
    line = Text()
    if exhibit.about:
        about = readable(exhibit.about) + (" · " if display.unicode else " | ")
        line.append(fenced(about) if display.unicode else ascii_only(about))
    what = facts(exhibit.capture)
    line.append(fenced(what) if display.unicode else ascii_only(what), style="dim")
    lines = folded(line, display.width)
    remarks = [written(exhibit.capture)] if exhibit.capture.target else []
    for said in (*remarks, *([FLAT] if exhibit.by_row else [])):
        remark = fenced(said) if display.unicode else ascii_only(said)
        lines += folded(Text(remark, style="dim"), display.width)
    return lines


FLAT = (
    "rows are nearly flat, as nothing here was trained to be compared; each is coloured by itself"
)


def written(capture: Capture) -> str:
    """What an encoder-decoder wrote, and what its rows stand for."""
    rows = "each row is the word that a position produces; its input is the word before"
    return f"written: “{readable(capture.target)}” ({rows})"


def map_heading(exhibit: Exhibit, head_map: Map, display: Display, style: str = "bold") -> Text:
    """The line above one of several heads: its title, cut to the display."""
    title = map_title(exhibit, head_map)
    written = title if display.unicode else ascii_only(title)
    short = cut(written, display.width, unicode=display.unicode).rstrip()
    return Text(fenced(short), style=style, no_wrap=True, overflow="crop")


def facts(capture: Capture) -> str:
    """`builtin, 9 tokens with BOS`: what was run, on how much."""
    model = readable(capture.model.name)
    if capture.kind == "cross":
        size = f"{_count(len(capture.query_tokens), 'query token')} to "
        size += _count(len(capture.key_tokens), "key token")
    else:
        size = _count(len(capture.query_tokens), "token")
    around = dict.fromkeys(token.label for token in capture.key_tokens if token.special)
    parts = [model, f"{size} {'with ' + ' and '.join(around) if around else 'without BOS'}"]
    before, after = capture.left_out
    if before or after:
        parts.append(f"the {'first' if before else 'last'} {before or after:,} left out")
    if capture.sinks:
        parts.append("rows sum to less than 1: the rest goes to a sink that is no token")
    parts += [readable(transform) for transform in capture.transforms]
    return ", ".join(parts)


def map_title(exhibit: Exhibit, head_map: Map) -> str:
    """`L1H2: nouns look at their adjectives`; the label alone where the head has no name.

    A head that is known for several behaviours has all their titles.
    """
    titles = dict.fromkeys(readable(named.title) for named in _named(exhibit, head_map))
    return f"{head_map.label}: {'; '.join(titles)}" if titles else head_map.label


def pane_titles(exhibit: Exhibit, head_map: Map) -> tuple[str, ...]:
    """Titles for a small place, the fullest first: `L1H2 adjectives, induction` ... `L1H2`."""
    names = [*dict.fromkeys(readable(named.behaviour) for named in _named(exhibit, head_map))]
    known = (f"{head_map.label} {', '.join(names[:n])}" for n in range(len(names), 0, -1))
    return *known, head_map.label


def _named(exhibit: Exhibit, head_map: Map) -> list[NamedHead]:
    """What the model's card says of this head."""
    place = head_map.layer, head_map.head
    named_heads = exhibit.capture.named_heads
    return [named for named in named_heads if (named.head.layer, named.head.head) == place]


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
