"""A circuit, shown: sentences, views, and pictures."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from attnviz.commands.circuit.record import CircuitReport, CircuitSearch, CircuitTask
from attnviz.draw.effects import (
    CHANCE,
    listed_parts,
    little_apart,
    numbers,
    part_name,
    unit_of,
    what_is_measured,
)
from attnviz.draw.labels import LAYERS, fenced
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import sheet, write_below, write_heading
from attnviz.draw.terminal.cells import words
from attnviz.draw.titles import amount, amounts, with_error
from attnviz.draw.view import ResultView, Table
from attnviz.errors import option
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Part
from attnviz.records.rows import at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BY = {
    "source": "taken from the source",
    "mean": "replaced by their means over the text's positions",
    "zero": "replaced by 0",
}
LOSS = "loss: the faithfulness that the circuit loses without the part"
MODEL = "C: the circuit; M: the whole model"
LETTERS = f"{MODEL}; K: what is taken from both; gap: F(M∖K) - F(C∖K)"
LITTLE = "*: adds less than two standard errors of what it adds, over these texts"
GIVES = "these give completeness and minimality"
ALL_COUNT = ", over all texts: also those on which parts were chosen"
OVER_TEXTS = f"±: standard error over these texts; {CHANCE}"


def replaced(task: CircuitTask) -> str:
    """The treatment of parts outside of a circuit, and of MLPs."""
    parts = "heads and MLPs" if task.with_mlps else "heads"
    mlps = "" if task.with_mlps else "; MLPs run as they are, on what arrives"
    by = BY[task.replacement]
    if any(task.unaligned):
        by += f" but for {amounts(*task.unaligned, 'position')}"
    if task.other_texts is not None:
        at = " at the same position" if task.by_position else ""
        of_file = f" of {fenced(task.file_name)}" if task.file_name else ""
        by = f"replaced by their means{at} over {amount(task.other_texts, 'text')}{of_file}"
    return f"{parts} outside of the circuit {by}{mlps}"


def ends_of(task: CircuitTask, whole: Estimate, nothing: Estimate) -> str:
    """The measure, and its values in the model and with everything replaced."""
    measured = what_is_measured(task.measure, task.answer, task.versus)
    mean = "mean of " if task.lines else ""
    ends = f"F(M) = {whole.mean:+.3f}, with every part replaced F(∅) = {nothing.mean:+.3f}"
    little = little_apart(whole.mean, nothing.mean)
    return f"F: {mean}{measured}; {ends}" + (f", {little}" if little else "")


def names_of(parts: Sequence[Part], task: CircuitTask) -> str:
    return listed_parts(parts, task.captures[0].model.heads_per_layer) or "nothing"


def _view(record: CircuitReport | CircuitSearch, *about: str, **more: Any) -> ResultView:
    """A view of what is replaced and what is measured, with the finding."""
    task, ends = record.task, ends_of(record.task, record.whole, record.nothing)
    first = task.captures[0]
    return ResultView(replaced(task), first, task.lines, task.noun, (ends, *about), **more)


def faithful(report: CircuitReport) -> str:
    """The faithfulness of the circuit, and its gap to the model."""
    own, unit = report.itself, unit_of(report.measure)
    gap = Estimate(abs(own.gap.mean), own.gap.error)
    return (
        f"{names_of(report.circuit, report.task)}: faithfulness {with_error(own.faithfulness)}, "
        f"F(C) = {own.circuit.mean:+.3f}, |F(M) - F(C)| = {with_error(gap, '.3f')} {unit}"
    )


def complete(report: CircuitReport) -> str:
    """The largest gap over all subsets, and the mean."""
    worst = report.completeness[0]
    drawn = sum(each.subset.kind == "random" for each in report.without)
    subsets = amount(len(report.completeness), "subset")
    if drawn:
        subsets += f", {drawn} of them random"
    return (
        f"completeness over {subsets}: mean |gap| {report.mean_gap:.3f}, largest gap "
        f"{with_error(worst.gap)} without {names_of(worst.subset.removed, report.task)}"
    )


def view(report: CircuitReport, *, unicode: bool = True) -> ResultView:
    """Faithfulness in a sentence; what each part adds, in a table; completeness."""
    task, errors = report.task, (report.task.lines or 1) > 1
    columns = [
        words(
            "K",
            lambda each: (
                names_of(each.subset.removed, task) if each.subset.kind == "part" else "all of C"
            ),
        ),
        numbers("loss", at("loss"), errors=errors),
        words("F(C∖K)", lambda each: f"{each.circuit.mean:+.3f}", right=True),
        words("F(M∖K)", lambda each: f"{each.model.mean:+.3f}", right=True),
        numbers("gap", at("gap"), errors=errors),
    ]
    whole = (each for each in report.without if each.subset.kind == "circuit")
    return _view(
        report,
        found=faithful(report),
        table=Table([*report.minimality, *whole], columns),
        below=[complete(report)],
        notes=[LOSS, LETTERS, *([OVER_TEXTS] if errors else [])],
    )


# A search.


def divided(search: CircuitSearch) -> str:
    """The texts on which parts were chosen, and those on which the circuits are measured."""
    if not search.measured_on:
        return "chosen and measured on one text: faithfulness is higher here than on others"
    number = amount(search.chosen_on, search.task.noun)
    chosen = "1" if search.chosen_on == 1 else "1, 3, 5, …"
    return (
        f"parts chosen on {number} ({chosen}); F and faithfulness measured on the other "
        f"{search.measured_on}"
    )


def view_search(search: CircuitSearch, *, unicode: bool = True) -> ResultView:
    """The parts in the order in which they were added, and the circuit as options."""
    errors = search.steps[0].faithfulness.error is not None
    columns = [
        words("", lambda step: str(step[0]), right=True),
        words("part added", lambda step: part_name(step[1].part, ()) + " *" * step[1].little),
        numbers("faithfulness", at("1.faithfulness"), errors=errors),
        words("F(C)", lambda step: f"{step[1].circuit.mean:+.3f}", right=True),
    ]
    if search.measured_on:
        chosen = words("where chosen", lambda step: f"{step[1].chosen.mean:+.3f}", right=True)
        columns.append(chosen)
    named = " ".join(option(name, value) for name, value in search.options.items())
    more = ALL_COUNT if search.measured_on else ""
    little = [LITTLE] if any(each.little for each in search.steps) else []
    return _view(
        search,
        divided(search),
        found=f"from {names_of(search.start, search.task)}" if search.start else "",
        table=Table([*enumerate(search.steps, start=1)], columns),
        below=[f"the circuit: {named}", f"without {option('find')}, {GIVES}{more}"],
        notes=[*little, *([OVER_TEXTS] if errors else [])],
    )


# Drawn: what a circuit loses without each part, F(C∖K) beside F(M∖K), the curve of a search.


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
    shown, height = view(report), max(HEIGHT, BAR * len(report.circuit))
    below = [*shown.about, *shown.below, LETTERS]
    if (shown.texts or 1) > 1:
        below.append("lines: ± the standard error over these texts")
    with _sheet(shown, shown.found, below, height, dpi, cmap) as (figure, color):
        _draw_bars(place(figure, 0, 0, WIDTH, height), report, color)
        axes = place(figure, WIDTH + APART, height - HEIGHT, WIDTH, HEIGHT)
        _draw_subsets(axes, report, color)
    return Drawn(figure)


@contextmanager
def _sheet(
    shown: ResultView, title: str, below: Sequence[str], height: float, dpi: int, cmap: str
) -> Iterator[tuple["Figure", Rgba]]:
    """A figure two panes wide with its sentences around it, and the colour to draw with."""
    from matplotlib import colormaps

    about, wide = f"{shown.caption}; {shown.done}", 2 * WIDTH + APART
    with sheet([title, about, *below], dpi=dpi, cmap=cmap) as (figure, fonts):
        yield figure, colormaps[cmap](0.35)
        write_heading(figure, height + 0.2, wide, title, about, fonts)
        write_below(figure, -0.75, wide, below, fonts)


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
    shown, steps = view_search(search), search.steps
    title = "Faithfulness of a circuit as parts are added"
    if search.start:
        title += f" to {names_of(search.start, search.task)}"
    with _sheet(shown, title, [*shown.about, MODEL], HEIGHT, dpi, cmap) as (figure, color):
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
