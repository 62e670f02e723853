"""A circuit, drawn: what it loses without each part, F(C∖K) beside F(M∖K), a search's curve."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import TYPE_CHECKING, TypeAlias

from attnviz.commands.circuit.record import CircuitReport, CircuitSearch, CircuitTask
from attnviz.commands.circuit.shown import (
    complete,
    divided,
    ends_of,
    faithful,
    names_of,
    ran_on,
    replaced,
)
from attnviz.draw.effects import part_name, unit_of
from attnviz.draw.labels import LAYERS
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import GREY, SMALL_LETTERS, sheet, write_heading, write_line
from attnviz.draw.titles import caption
from attnviz.records.metrics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT, APART, BAR = 3.4, 3.4, 0.95, 0.22
"""Inches of a pane, between two panes, and of a bar with the space around it."""
MARKS = {
    "none": ("D", "nothing"),
    "part": ("o", "a part of C"),
    "random": ("x", "a random subset of C"),
    "circuit": ("s", "all of C"),
}
Rgba: TypeAlias = tuple[float, ...]


def draw(report: CircuitReport, *, dpi: int = 150, cmap: str = LAYERS) -> Drawn:
    """A bar for each part of the circuit, and a point for each subset of it."""
    task, height = report.task, max(HEIGHT, BAR * len(report.circuit))
    below = [ends_of(task, report.whole, report.nothing), complete(report)]
    if (task.lines or 1) > 1:
        below.append("lines: ± the standard error over these texts")
    with _sheet(task, faithful(report), below, height, dpi, cmap) as (figure, color):
        _draw_bars(place(figure, 0, 0, WIDTH, height), report, color)
        axes = place(figure, WIDTH + APART, height - HEIGHT, WIDTH, HEIGHT)
        _draw_subsets(axes, report, color)
    return Drawn(figure)


@contextmanager
def _sheet(
    task: CircuitTask, title: str, below: Sequence[str], height: float, dpi: int, cmap: str
) -> Iterator[tuple["Figure", Rgba]]:
    """A figure two panes wide with its sentences around it, and the colour to draw with."""
    from matplotlib import colormaps

    about, wide = f"{ran_on(task, caption)}; {replaced(task)}", 2 * WIDTH + APART
    with sheet([title, about, *below], dpi=dpi, cmap=cmap) as (figure, fonts):
        yield figure, colormaps[cmap](0.35)
        write_heading(figure, height + 0.2, wide, title, about, fonts)
        lines = "\n".join(fill(fonts.spell(each), int(wide * SMALL_LETTERS)) for each in below)
        write_line(figure, -0.55, lines, size=7.5, va="top", color=GREY)


def _draw_bars(axes: "Axes", report: CircuitReport, color: Rgba) -> None:
    parts = report.minimality
    at = range(len(parts))
    axes.barh(
        at,
        [each.loss.mean for each in parts],
        xerr=_errors([each.loss for each in parts]),
        color=color,
        height=0.7,
        error_kw={"elinewidth": 0.8},
    )
    axes.set_yticks(at, [part_name(each.subset.removed[0], ()) for each in parts], fontsize=7)
    axes.set_ylim(len(parts) - 0.5, -0.5)
    axes.axvline(0, color="0.4", linewidth=0.6)
    axes.set_xlabel("faithfulness that C loses without the part", fontsize=8)
    _plain(axes)


def _draw_subsets(axes: "Axes", report: CircuitReport, color: Rgba) -> None:
    for kind, (mark, name) in MARKS.items():
        some = [each for each in report.without if each.subset.kind == kind]
        if some:
            axes.errorbar(
                [each.model.mean for each in some],
                [each.circuit.mean for each in some],
                xerr=_errors([each.model for each in some]),
                yerr=_errors([each.circuit for each in some]),
                fmt=mark,
                markersize=4.5,
                color="black" if kind == "none" else "0.45" if kind == "random" else color,
                mfc="none" if kind == "circuit" else None,
                elinewidth=0.5,
                label=name,
            )
    ends = [*axes.get_xlim(), *axes.get_ylim()]
    low, high = min(ends), max(ends)
    axes.plot([low, high], [low, high], color="0.7", linewidth=0.8, zorder=0)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    unit = unit_of(report.measure)
    axes.set_xlabel(f"F(M∖K): the model without K ({unit})", fontsize=8)
    axes.set_ylabel(f"F(C∖K): the circuit without K ({unit})", fontsize=8)
    axes.legend(title="K is", frameon=False, fontsize=7, title_fontsize=7)
    _plain(axes)


def _errors(values: Sequence[Estimate]) -> list[float] | None:
    errors = [value.error for value in values if value.error is not None]
    return errors if len(errors) == len(values) else None


def _plain(axes: "Axes") -> None:
    axes.tick_params(labelsize=7, width=0.6, length=2)
    axes.spines[["top", "right"]].set_visible(False)


def draw_search(search: CircuitSearch, *, dpi: int = 150, cmap: str = LAYERS) -> Drawn:
    """The curve of faithfulness over the parts in the order in which they were added."""
    task, steps = search.task, search.steps
    title = "faithfulness of a circuit as parts are added"
    if search.start:
        title += f" to {names_of(search.start, task)}"
    below = [ends_of(task, search.whole, search.nothing), divided(search)]
    with _sheet(task, title, below, HEIGHT, dpi, cmap) as (figure, color):
        axes, at = place(figure, 0, 0, 2 * WIDTH + APART, HEIGHT), range(len(steps))
        own = [each.faithfulness for each in steps]
        errors = _errors(own)
        label = "on the other texts" + (", ± their standard error" if errors else "")
        values = [each.mean for each in own]
        axes.errorbar(at, values, yerr=errors, fmt="o-", color=color, markersize=4, label=label)
        if search.measured_on:
            chosen = [each.chosen.mean for each in steps]
            label = "on the texts on which they were chosen"
            axes.plot(at, chosen, ".:", color="0.45", label=label)
            axes.legend(frameon=False, fontsize=7)
        axes.axhline(1, color="0.7", linewidth=0.8, zorder=0)
        axes.set_xticks(at, [part_name(each.part, ()) for each in steps], fontsize=7, rotation=90)
        axes.set_ylabel("faithfulness", fontsize=8)
        axes.set_xlabel("part added", fontsize=8)
        _plain(axes)
    return Drawn(figure)
