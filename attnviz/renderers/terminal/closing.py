"""The lines below the table: what the filters left out of it, and how to see less of a long one."""

from collections.abc import Sequence

from rich.text import Text

from attnviz.console import Display
from attnviz.records.exhibit import Exhibit
from attnviz.renderers.terminal.prose import folded
from attnviz.renderers.titles import NEAR

LONG = 60  # rows; of more a reader is told how to see less
MOST_NAMED = 3


def closing(
    exhibit: Exhibit, rows: int, missing: int, heads: Sequence[str], display: Display
) -> list[Text]:
    """What is to be said below the table, after an empty line; often nothing.

    Args:
        exhibit: what the table shows.
        rows: how many rows stand in it.
        missing: how many were left out, as they have no link that is shown.
        heads: the names of the heads that were left out altogether.
        display: where the table stands.
    """
    if missing and not rows:
        said = f"there is no link{_wanted(exhibit)}"
    elif missing:
        among = f", among them all of {_listed(heads)}," if heads else ""
        verb = "has" if missing == 1 else "have"
        said = f"{missing:,} row{'' if missing == 1 else 's'}{among} {verb} no link"
        said += _wanted(exhibit)
    elif rows > LONG and _whole(exhibit):
        less = [display.speller(name, None) for name in ("queries", "top")]
        picture = display.speller("output", "FILE.png")
        said = f"{rows:,} rows; {' and '.join(less)} show fewer, {picture} draws all"
    else:
        return []
    return [Text(), *folded(Text(said, style="dim"), display.width)]


def _wanted(exhibit: Exhibit) -> str:
    """` of at least 0.5 to the keys asked for`: what the filters let through."""
    least = f" of at least {exhibit.least:g}" if exhibit.least > 0 else ""
    keys = "" if _every_key(exhibit) else " to the keys asked for"
    near = " or ".join(NEAR[distance] for distance in exhibit.skip)
    return least + keys + (f" but {near}" if near else "")


def _listed(heads: Sequence[str]) -> str:
    if len(heads) > MOST_NAMED:
        return f"{len(heads):,} heads"
    *others, last = heads
    return f"{', '.join(others)} and {last}" if others else last


def _whole(exhibit: Exhibit) -> bool:
    """Whether nothing was filtered out, neither queries nor keys nor links."""
    every_query = len(exhibit.queries) == len(exhibit.capture.query_tokens)
    return every_query and _every_key(exhibit) and not exhibit.filtered


def _every_key(exhibit: Exhibit) -> bool:
    return len(exhibit.keys) == len(exhibit.capture.key_tokens)
