"""The lines above a view (its heads, their choice, their model), and below it (its legend)."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.text import Text

from attnviz.console import PLAIN, Display
from attnviz.draw.headlines import about, image_said, map_titles, next_said, rests_said
from attnviz.draw.labels import ascii_only, fenced
from attnviz.draw.terminal.cells import SHADES, cell_style, cut, folded, shade_of, signed_style
from attnviz.draw.titles import NEAR, facts, gate_sentences, left_out, written
from attnviz.errors import readable, series
from attnviz.records.exhibit import Exhibit, Map, Orient

FLAT = (
    "rows are nearly flat, because embeddings were not trained to be compared; each row has its "
    "own colour scale"
)


def heading(exhibit: Exhibit, display: Display) -> list[Text]:
    """The heading of a view: one line, or more on a narrow terminal."""
    coming, line = next_said(exhibit), Text()
    sentence = about(exhibit, display.speller)
    if sentence:
        title = readable(sentence) + (" · " if display.unicode else " | ")
        line.append(fenced(title) if display.unicode else in_ascii(title))
    what = exhibit.subtitle or facts(exhibit.capture) + image_said(exhibit) + rests_said(exhibit)
    line.append(fenced(what) if display.unicode else ascii_only(what), style="dim")
    first = fenced(readable(coming)) if display.unicode else in_ascii(coming)
    lines = folded(Text(first), display.width) if coming and not exhibit.subtitle else []
    lines += folded(line, display.width)
    plain = exhibit.capture.target and not exhibit.subtitle
    remarks = [written(exhibit.capture)] if plain else []
    for sentence in (*remarks, *([FLAT] if exhibit.by_row else [])):
        remark = fenced(sentence) if display.unicode else ascii_only(sentence)
        lines += folded(Text(remark, style="dim"), display.width)
    return lines


def map_heading(exhibit: Exhibit, head_map: Map, display: Display, style: str = "bold") -> Text:
    """The line above one of several heads: the fullest of its titles that fits."""
    titles = map_titles(exhibit, head_map)
    written = fullest(titles if display.unicode else map(in_ascii, titles), display.width)
    short = cut(written, display.width, unicode=display.unicode).rstrip()
    return Text(fenced(short), style=style, no_wrap=True, overflow="crop")


def fullest(titles: Iterable[str], room: int) -> str:
    """The first title that is at most `room` cells wide; else the last."""
    *longer, last = titles
    return next((title for title in longer if cell_len(title) <= room), last)


def in_ascii(title: str) -> str:
    """A title in ASCII, with its arrows and quotes replaced."""
    return ascii_only(title.translate(IN_ASCII))


IN_ASCII = PLAIN | str.maketrans({"→": ">", "·": "|", "±": "+/-", "…": "..."})


def line_heading(line: int | None, *, first: bool) -> Text:
    """The line above the view of one line of a stream: its number, or None for all lines."""
    named = "all lines" if line is None else f"line {line}"
    return Text(("" if first else "\n") + named, style="bold")


# The lines below the table: the rows that filters left out, and how to shorten a long one.

LONG = 60  # rows; a note below a longer table says how to shorten it
MOST_NAMED = 3


def closing(
    exhibit: Exhibit, rows: int, missing: int, heads: Sequence[str], display: Display
) -> list[Text]:
    """The lines below a table: the number of `missing` rows, and the `heads` without any."""
    every_query = len(exhibit.queries) == len(exhibit.capture.query_tokens)
    if missing and not rows:
        sentence = f"there is no link{_wanted(exhibit)}"
    elif missing:
        named = f"{len(heads):,} heads" if len(heads) > MOST_NAMED else series(heads)
        among = f", among them all of {named}," if heads else ""
        verb = "has" if missing == 1 else "have"
        sentence = f"{missing:,} row{'' if missing == 1 else 's'}{among} {verb} no link"
        sentence += _wanted(exhibit)
    elif rows > LONG and every_query and _every_key(exhibit) and not exhibit.filtered:
        less = [display.speller(name, None) for name in ("queries", "top")]
        picture = display.speller("output", "FILE.png")
        sentence = f"{rows:,} rows; {' and '.join(less)} show fewer, {picture} draws all"
    else:
        return []
    return [Text(), *folded(Text(sentence, style="dim"), display.width)]


def _wanted(exhibit: Exhibit) -> str:
    """` of at least 0.5 to the keys asked for`: the links that pass the filters."""
    least = f" of at least {exhibit.least:g}" if exhibit.least > 0 else ""
    keys = "" if _every_key(exhibit) else " to the keys asked for"
    near = " or ".join(NEAR[distance] for distance in exhibit.skip)
    return least + keys + (f" but {near}" if near else "")


def _every_key(exhibit: Exhibit) -> bool:
    return len(exhibit.keys) == len(exhibit.capture.key_tokens)


def gate_lines(exhibit: Exhibit, display: Display) -> list[Text]:
    """The lines below a view of a model with gates: the share that they let through."""
    told = [readable(sentence) for sentence in gate_sentences(exhibit)]
    plain = map(fenced if display.unicode else ascii_only, told)
    lines = [line for each in plain for line in folded(Text(each, style="dim"), display.width)]
    return [Text(), *lines] if lines else []


# The legend: the meaning of colours, shades and empty cells.

STEPS = 16


def legend(
    exhibit: Exhibit,
    display: Display,
    most: float,
    *,
    numbers: bool,
    orient: Orient,
    sums: bool,
    unit: float = 1.0,
) -> list[Text]:
    """The meaning of a cell's colour or shade and of an empty cell, and the side of the queries.

    `most` and the numbers are in multiples of the `unit`.
    """
    text = Text()
    if display.color:
        text.append_text(ramp(display, most, signed=exhibit.capture.signed))
    elif numbers:
        text.append(f"{shade_of(0, unicode=display.unicode)} less than 0.005")
    elif exhibit.capture.signed:
        text.append(f"darker = higher, from {-most:.2f} to {most:.2f}")
    else:
        text.append(_shades(display, most))
    if unit != 1:
        text.append(f", in units of {unit:g}")
    if exhibit.capture.signed and len(exhibit.maps) > 1:
        text.append(", each head on its own scale")
    empty = left_out(exhibit)
    if empty:
        text.append(f", blank: {empty}")
    rows, columns = exhibit.sides.rows, exhibit.sides.columns
    if orient == "key-rows":
        rows, columns = columns, rows
    text.append(f"; rows are {rows}, columns are {columns}")
    if sums and orient == "key-rows":
        text.append(", each column sums to 1")
    text.stylize("dim", 0 if not display.color else text.plain.index(f" {most:.2f}"))
    return folded(text, display.width)


def ramp(display: Display, most: float, *, signed: bool = False) -> Text:
    """The colours from 0, or from the lowest value, to the strongest weight, with both numbers."""
    text = Text(f"{-most:.2f} " if signed else "0 ")
    for step in (n / (STEPS - 1) for n in range(STEPS)):
        style = signed_style(2 * step - 1, display) if signed else cell_style(step, display)
        text.append(" ", style)
    return text.append(f" {most:.2f}")


def _shades(display: Display, most: float) -> str:
    """`· under 0.05  ░ from 0.05  ▒ from 0.25 ...`, of the strongest weight."""
    levels = [0.05, 0.25, 0.5, 0.75]
    under = f"{shade_of(0, unicode=display.unicode)} under {levels[0] * most:.2f}"
    steps = [f"{shade_of(n, unicode=display.unicode)} {n * most:.2f}" for n in levels]
    assert len(steps) == len(SHADES) - 1
    return "  ".join([under, *steps])
