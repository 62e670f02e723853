"""The heads whose scores change most between the first and the last checkpoint, as a table."""

from collections.abc import Generator, Iterator, Sequence
from math import isnan

from rich.text import Text

from attnviz.commands.heads.terminal import SHORT
from attnviz.console import Display
from attnviz.data.atlas import SCORES
from attnviz.data.development import Change, Development
from attnviz.draw.labels import ascii_only, fenced
from attnviz.draw.terminal.colors import cut, folded, pad, widest
from attnviz.draw.titles import amount
from attnviz.errors import readable
from attnviz.renderers.atlas_titles import development_title
from attnviz.renderers.terminal.atlas_head import letters, score_number

LISTED_HEADS = 3
NAME = 12  # cells of a checkpoint's name
GAP = 2
ROOMY = 80  # cells; a narrower table has short names


def render(development: Development, top: int | None, display: Display) -> Iterator[Text]:
    """For each score the heads that change most, with their means at the checkpoints that fit.

    Args:
        development: several checkpoints.
        top: how many heads of each score; None for 3.
        display: where it is shown.
    """
    title = letters(development_title(development), display)
    yield from folded(Text(title, "dim"), display.width)
    yield Text()
    shown = [
        change
        for score in SCORES
        if score in development.means
        for change in development.changes(score)[: top or LISTED_HEADS]
    ]
    if not shown:
        yield Text("no score was measured at the first and the last checkpoint", "dim")
        return
    left_out = yield from _table(development, shown, display)
    yield Text()
    said = (
        "change: the last mean minus the first; ±: its standard error, with the two scans taken as "
        "independent"
    )
    if left_out:
        every = display.speller("format", "csv")
        said += f"; {amount(left_out, 'checkpoint')} left out for want of room ({every} has all)"
    yield from folded(Text(letters(said, display), "dim"), display.width)


def _table(
    development: Development, shown: Sequence[Change], display: Display
) -> Generator[Text, None, int]:
    """A line for each change, with as many of its means as fit; returns how many do not."""
    left = [
        _column("head", [str(each.head) for each in shown]),
        _column(
            _score_header(development, display),
            [_score(each.score, display) for each in shown],
        ),
    ]
    means = [
        _column(name, [letters(score_number(c.score, _known(c.means[i])), display) for c in shown])
        for i, name in enumerate(_names(development, display))
    ]
    right = [
        _column("change", [score_number(c.score, c.change, signed=True) for c in shown]),
        _column("", [letters(f"±{score_number(c.score, c.error)}", display) for c in shown]),
    ]
    arrow = letters(" → ", display)
    least = _cells(left, "") + _cells([means[0], means[-1]], arrow) - len(arrow)
    while right and least + _cells(right, "") > display.width:
        right.pop()
    room = display.width - _cells(left, "") - _cells(right, "")
    chosen = _fitting(means, arrow, room)
    for n in range(len(shown) + 1):
        line = Text(no_wrap=True, overflow="crop", style="bold" if n == 0 else "")
        line.append("".join(pad(column[n], widest(column) + GAP) for column in left))
        between = arrow if n else " " * len(arrow)
        line.append(between.join(_right(means[i], n) for i in chosen))
        line.append("".join(" " * GAP + _right(column, n) for column in right))
        line.rstrip()
        yield line
    return len(means) - len(chosen)


def _score_header(development: Development, display: Display) -> str:
    if development.steps is None:
        return "score"
    return "score, at step" if display.width >= ROOMY else "at step"


def _score(name: str, display: Display) -> str:
    if display.width >= ROOMY:
        return name.replace("_", " ")
    return SHORT.get(name, "dist var")


def _column(name: str, cells: Sequence[str]) -> list[str]:
    return [name, *cells]


def _right(column: Sequence[str], n: int) -> str:
    return pad(column[n], widest(column), right=True)


def _cells(columns: Sequence[Sequence[str]], arrow: str) -> int:
    """How wide the columns are, each with the gap behind it."""
    return sum(widest(column) + (len(arrow) or GAP) for column in columns)


def _fitting(means: Sequence[Sequence[str]], arrow: str, room: int) -> list[int]:
    """The checkpoints that fit, at even distances, the first and the last always."""
    for n in range(len(means), 1, -1):
        chosen = sorted({round(i * (len(means) - 1) / (n - 1)) for i in range(n)})
        if _cells([means[i] for i in chosen], arrow) - len(arrow) <= room:
            return chosen
    return [0, len(means) - 1]


def _names(development: Development, display: Display) -> list[str]:
    """The checkpoints' steps, or their names."""
    if development.steps is not None:
        return [f"{step:,}" for step in development.steps]
    unicode = display.unicode
    names = [
        readable(name) if unicode else ascii_only(readable(name)) for name in development.names
    ]
    return [fenced(cut(name, NAME, unicode=unicode)) for name in names]


def _known(mean: float) -> float | None:
    return None if isnan(mean) else mean
