"""The lines above every view: which heads these are and why, of which model, on how many tokens."""

from collections.abc import Iterable

from rich.cells import cell_len
from rich.text import Text

from attnviz.console import PLAIN, Display
from attnviz.errors import readable
from attnviz.records.exhibit import Exhibit, Map
from attnviz.renderers.direction import fenced
from attnviz.renderers.headlines import about, map_titles
from attnviz.renderers.labels import ascii_only
from attnviz.renderers.terminal.cells import cut
from attnviz.renderers.terminal.prose import folded
from attnviz.renderers.titles import facts, written

FLAT = (
    "rows are nearly flat, because embeddings were not trained to be compared; each row has its "
    "own colour scale"
)


def heading(exhibit: Exhibit, display: Display) -> list[Text]:
    """One line (more where it is narrow) that says what this is."""
    line = Text()
    said = about(exhibit, display.speller)
    if said:
        title = readable(said) + (" · " if display.unicode else " | ")
        line.append(fenced(title) if display.unicode else in_ascii(title))
    what = exhibit.subtitle or facts(exhibit.capture)
    line.append(fenced(what) if display.unicode else ascii_only(what), style="dim")
    lines = folded(line, display.width)
    plain = exhibit.capture.target and not exhibit.subtitle
    remarks = [written(exhibit.capture)] if plain else []
    for said in (*remarks, *([FLAT] if exhibit.by_row else [])):
        remark = fenced(said) if display.unicode else ascii_only(said)
        lines += folded(Text(remark, style="dim"), display.width)
    return lines


def map_heading(exhibit: Exhibit, head_map: Map, display: Display, style: str = "bold") -> Text:
    """The line above one of several heads: the fullest of its titles that there is room for."""
    titles = map_titles(exhibit, head_map)
    written = fullest(titles if display.unicode else map(in_ascii, titles), display.width)
    short = cut(written, display.width, unicode=display.unicode).rstrip()
    return Text(fenced(short), style=style, no_wrap=True, overflow="crop")


def fullest(titles: Iterable[str], room: int) -> str:
    """The first of some titles that is no wider than so many cells; else the last."""
    *longer, last = titles
    return next((title for title in longer if cell_len(title) <= room), last)


def in_ascii(title: str) -> str:
    """A title on a terminal without other letters: its arrows and quotes are those of ASCII."""
    return ascii_only(title.translate(IN_ASCII))


IN_ASCII = PLAIN | str.maketrans({"→": ">", "·": "|", "±": "+/-", "…": "..."})


def line_heading(line: int | None, *, first: bool) -> Text:
    """The line above what is shown of one line of a stream: its number; None: of all lines."""
    named = "all lines" if line is None else f"line {line}"
    return Text(("" if first else "\n") + named, style="bold")
