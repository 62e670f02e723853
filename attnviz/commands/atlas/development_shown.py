"""The heads whose scores change most between the first and the last checkpoint, as a table."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from attnviz.commands.atlas.development import Change, Development
from attnviz.commands.atlas.headlines import development_title
from attnviz.commands.atlas.record import SCORES
from attnviz.commands.atlas.terminal import letters, score_number
from attnviz.console import Display
from attnviz.draw.labels import LAYERS, ascii_only, fenced
from attnviz.draw.picture.canvas import Drawn, Lettering, place
from attnviz.draw.picture.frame import GREY, sheet, write_line
from attnviz.draw.picture.panes import axis_label, draw_layers, layer_color, layer_scale, spread
from attnviz.draw.terminal.colors import cut, folded, pad, widest
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, readable
from attnviz.records.rows import measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable


LISTED_HEADS = 3
NAME = 12  # cells of a checkpoint's name
GAP = 2
ROOMY = 80  # cells; a narrower table has short names


def render(development: Development, top: int | None, display: Display) -> Iterator[Text]:
    """For each score the heads that change most, with their means at the checkpoints that fit.

    `top`: how many heads of each score; None for 3.
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
    roomy = display.width >= ROOMY
    header = "score" if development.steps is None else "score, at step" if roomy else "at step"
    scores = [SCORES[each.score] for each in shown]
    left = [
        ["head", *(str(each.head) for each in shown)],
        [header, *(score.label if roomy else score.short for score in scores)],
    ]
    means = [
        [name, *(letters(score_number(c.score, measured(c.means[i])), display) for c in shown)]
        for i, name in enumerate(_names(development, display))
    ]
    right = [
        ["change", *(score_number(c.score, c.change, signed=True) for c in shown)],
        ["", *(letters(f"±{score_number(c.score, c.error)}", display) for c in shown)],
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


# How scores develop over checkpoints: a panel for each score, a line for each head.


ACROSS = 3
WIDTH, HEIGHT = 2.7, 1.7  # inches of a panel
GAP_ACROSS, GAP_DOWN = 1.2, 0.65
NAMED_LINES = 3
MANY = 60  # heads; the lines of more are thinner
NAME_HEIGHT = 0.13  # inches
LETTERS = 12  # of the title, in an inch
LONGEST = 18  # letters of a checkpoint's name
TICK = 0.07  # inches of a letter below the axis
EVEN = 4  # times as large as the smallest gap: the mean gap of steps that are no line


def draw(
    development: Development, *, top: int | None = None, dpi: int = 150, cmap: str = LAYERS
) -> Drawn:
    """A panel for each score that was measured.

    `top`: how many heads are named in each, those that change most; `cmap`: the layers' colours.
    """
    layers = [head.layer for head in development.heads]
    title = development_title(development)
    if len(layers) > (top or NAMED_LINES):
        title += "; named: the heads that change most from first to last"
    names = [readable(name) for name in development.names]
    with sheet([title, *names], dpi=dpi, cmap=cmap) as (figure, fonts):
        scale = layer_scale(layers, cmap)
        scores = _measured(development)
        ticks = _ticks(development, fonts)
        down = GAP_DOWN + ticks.height
        for i, score in enumerate(scores):
            left, bottom = i % ACROSS * (WIDTH + GAP_ACROSS), -(i // ACROSS) * (HEIGHT + down)
            axes = place(figure, left, bottom, WIDTH, HEIGHT)
            _draw_lines(axes, development, score, scale, ticks)
            _name_heads(axes, development.changes(score)[: top or NAMED_LINES], scale, ticks)
        right = min(ACROSS, len(scores)) * (WIDTH + GAP_ACROSS)
        if len(set(layers)) > 1:
            draw_layers(place(figure, right - 0.5, 0, 0.13, HEIGHT), scale, layers)
        write_line(figure, HEIGHT + 0.42, fill(fonts.spell(title), int(right * LETTERS)))
    return Drawn(figure, fonts.notes)


def _measured(development: Development) -> list[str]:
    means = development.means
    found = [score for score in SCORES if score in means and not np.isnan(means[score]).all()]
    if not found:
        raise UsageError(f"no head has a value of {', '.join(means)}", "choose another score")
    return found


@dataclass(frozen=True)
class _Ticks:
    """Where the checkpoints stand along the axis, from 0 to 1, and which of them are named there.

    `turned`: names stand upright, as they are long; `height`: what they take below, in inches.
    """

    places: tuple[float, ...]
    names: tuple[str, ...]
    turned: bool
    height: float
    label: str


def _ticks(development: Development, fonts: Lettering) -> _Ticks:
    """Steps along a line, or along a logarithmic one where they grow; else even distances."""
    steps = development.steps
    names = tuple(_short(fonts.spell(readable(name))) for name in development.names)
    label = ""
    if steps is None:
        values = np.arange(len(names), dtype=float)
    else:
        values = np.array(steps, float)
        label = "training step"
        gaps = [after - before for before, after in pairwise(steps)]
        if min(gaps) * len(gaps) * EVEN < steps[-1] - steps[0]:
            values = np.log(values - values[0] + max(1.0, values[1] - values[0]))
            label = "training step, logarithmic"
    places = (values - values[0]) / (values[-1] - values[0])
    longest = max(map(len, names)) * TICK
    gap = float(np.diff(places).min()) * WIDTH
    turned = longest > max(gap, WIDTH / len(names) * 0.6)
    shown = _apart(places.tolist(), names, NAME_HEIGHT if turned else longest)
    return _Ticks(tuple(places.tolist()), shown, turned, longest if turned else 0.12, label)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST // 2] + "…" + name[-LONGEST // 2 + 1 :]


def _apart(places: Sequence[float], names: tuple[str, ...], room: float) -> tuple[str, ...]:
    """The names, empty where one would cover another; the first and the last always stay."""
    shown, before = [names[0]], places[0]
    for at, name in zip(places[1:-1], names[1:-1], strict=True):
        free = (at - before) * WIDTH >= room and (places[-1] - at) * WIDTH >= room
        shown.append(name if free else "")
        before = at if free else before
    return (*shown, names[-1])


def _draw_lines(
    axes: "Axes", development: Development, score: str, scale: "ScalarMappable", ticks: _Ticks
) -> None:
    from matplotlib.collections import LineCollection

    # by head before layer, so that the last layers do not hide all others
    order = sorted(range(len(development.heads)), key=lambda i: development.heads[i][::-1])
    means = development.means[score]
    lines = [np.column_stack((ticks.places, means[i])) for i in order]
    colors = [layer_color(scale, development.heads[i].layer) for i in order]
    width, alpha = (0.8, 0.55) if len(lines) <= MANY else (0.5, 0.35)
    axes.add_collection(
        LineCollection(lines, colors=colors, linewidths=width, alpha=alpha, zorder=2)
    )
    axes.autoscale()
    axes.set_title(axis_label(SCORES[score]), fontsize=9, loc="left")
    axes.set_xticks(
        ticks.places,
        ticks.names,
        fontsize=6.5,
        rotation=90 if ticks.turned else 0,
        parse_math=False,
    )
    axes.set_xlabel(ticks.label, fontsize=7, color=GREY)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(axes.get_ylim())
    axes.tick_params(axis="y", labelsize=7)
    axes.tick_params(width=0.6, length=2.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)


def _name_heads(
    axes: "Axes", changes: Sequence[Change], scale: "ScalarMappable", ticks: _Ticks
) -> None:
    """Draw these heads' lines in full, with their names right of the last checkpoint."""
    low, high = axes.get_ylim()
    ends = [(each.means[-1] - low) / (high - low) * HEIGHT for each in changes]
    for each, end, at in zip(changes, ends, spread(ends, NAME_HEIGHT, HEIGHT), strict=True):
        color = layer_color(scale, each.head.layer)
        axes.plot(ticks.places, each.means, color=color, linewidth=1.7, zorder=3)
        axes.plot(
            [1.0, 1.0 + 0.1 / WIDTH],
            [end / HEIGHT, at / HEIGHT],
            color=color,
            linewidth=0.7,
            transform=axes.transAxes,
            clip_on=False,
        )
        axes.text(
            1 + 0.13 / WIDTH,
            at / HEIGHT,
            str(each.head),
            transform=axes.transAxes,
            fontsize=7,
            va="center",
            parse_math=False,
        )
