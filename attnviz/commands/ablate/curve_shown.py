"""The loss by position, shown: a table of ranges, and a picture with a band for each curve."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from attnviz.commands.ablate.curve import LossCurve, Losses
from attnviz.commands.ablate.shown import name_of_set, replaced
from attnviz.draw.effects import numbers
from attnviz.draw.labels import LAYERS
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import GREY, sheet, write_below, write_titles
from attnviz.draw.picture.paint import PictureWords
from attnviz.draw.terminal.cells import words
from attnviz.draw.titles import amount, caption, with_error
from attnviz.draw.view import ResultView, Table
from attnviz.errors import readable
from attnviz.records.rows import at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 5.6, 3.6
"""Inches of the axes."""
SHADES = 0.1, 0.7
"""Places of the colours of both curves on the map of colours."""
POINTS = 120
"""The most points of a curve; those of a longer text are means over several positions."""
MEASURED = "mean loss (nats) of the tokens at these positions; higher = predicted worse"


@dataclass(frozen=True)
class Range:
    """Positions, from the first to the last, with their losses and the texts that have one."""

    first: int
    last: int
    texts: int
    losses: Losses

    @property
    def name(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def ranges(curve: LossCurve) -> Iterator[Range]:
    """Positions in ranges, each of which is twice as long as the one before: 1, 2–3, 4–7, …"""
    positions = curve.positions
    first = 1
    while first <= positions[-1]:
        last = min(2 * first - 1, positions[-1])
        if any(first <= position <= last for position in positions):
            texts = int((~np.isnan(curve.over(first, last)[:, 0])).sum())
            yield Range(max(first, positions[0]), last, texts, curve.at(first, last))
        first *= 2


def view(curve: LossCurve, top: int | None = None, *, unicode: bool = True) -> ResultView:
    """A table of ranges of positions, and the in-context score."""
    every = list(ranges(curve))
    errors = any(each.losses.change.error is not None for each in every)
    columns = [
        words("positions", lambda each: each.name if unicode else each.name.replace("–", "-")),
        numbers("loss", at("losses.whole"), errors=errors, form=".3f"),
        numbers("without", at("losses.without"), errors=errors, form=".3f"),
        numbers("change", at("losses.change"), errors=errors),
    ]
    texts = {each.texts for each in every}
    if len(texts) > 1:
        columns.append(words("texts", lambda each: str(each.texts), right=True))
    report = curve.report
    notes = [f"without: the loss without {name_of_set(report)}"]
    if errors:
        notes.append("means over texts, each of which counts once; ± s.e.: their standard error")
    return ResultView(
        replaced(report),
        report.capture,
        report.lines,
        "text",
        (MEASURED,),
        table=Table(every, columns),
        below=[said_of_score(curve)],
        notes=notes,
    )


def said_of_score(curve: LossCurve) -> str:
    """The in-context score in a sentence."""
    early, late = curve.between.early, curve.between.late
    score = curve.in_context
    if isnan(score.whole.mean):
        context = curve.between.context
        if context is not None and late >= context:
            most = f"the model reads at most {context:,} tokens"
            return f"no in-context score: {most}, and position {late:,} is beyond (see --between)"
        both = f"positions {early:,} and {late:,}"
        return f"no in-context score: no text has {both} (--between sets others)"
    near = f", within {amount(curve.between.around, 'position')}" if curve.between.around else ""
    return (
        f"in-context score, the loss at {late:,} less that at {early:,}{near}: "
        f"{with_error(score.whole)}; without {name_of_set(curve.report)} "
        f"{with_error(score.without)} (change {with_error(score.change)})"
    )


def draw(curve: LossCurve, *, dpi: int = 150, cmap: str = LAYERS) -> Drawn:
    """Draw both curves over the positions; the bands are one standard error over the texts.

    `cmap`: the colours of both.
    """
    report = curve.report
    subtitle = caption(report.capture)
    if report.lines is not None and report.lines > 1:
        subtitle = f"{readable(report.capture.model.name)}, mean of {amount(report.lines, 'text')}"
    names = "all parts", f"without {name_of_set(report)}"
    title = f"Loss by position; {replaced(report)}"
    words = PictureWords(title, subtitle, names, (), ())
    with sheet(words.all, dpi=dpi, cmap=cmap) as (figure, fonts):
        axes = place(figure, 0, 0, WIDTH, HEIGHT)
        _draw_curves(axes, curve, [fonts.spell(name) for name in names], cmap)
        write_titles(axes, words.spelled(fonts), WIDTH, above=4)
        notes = [said_of_score(curve)]
        if (size := _at_once(curve)) > 1:
            notes.append(f"each point: the mean over {size} positions")
        if (report.lines or 1) > 1:
            notes.append("bands: one standard error over the texts, where two or more reach it")
        write_below(figure, -0.55, WIDTH, notes, fonts)
    return Drawn(figure, fonts.notes)


def _at_once(curve: LossCurve) -> int:
    """The number of positions that a point of the picture stands for."""
    return -(-len(curve.positions) // POINTS)


def _draw_curves(axes: "Axes", curve: LossCurve, names: Sequence[str], cmap: str) -> None:
    """Draw a line, its band and its name for each of the two."""
    from matplotlib import colormaps

    positions, size = curve.positions, _at_once(curve)
    starts = range(positions[0], positions[-1] + 1, size)
    losses = [curve.at(first, first + size - 1) for first in starts]
    middles = [(first + min(first + size - 1, positions[-1])) / 2 for first in starts]
    for kind, name, shade in zip(("whole", "without"), names, SHADES, strict=True):
        every = [getattr(each, kind) for each in losses]
        mean = np.array([each.mean for each in every])
        error = np.array([nan if each.error is None else each.error for each in every])
        color = colormaps[cmap](shade)
        axes.plot(middles, mean, color=color, linewidth=1.3, label=name, zorder=3)
        low, high = mean - error, mean + error
        axes.fill_between(middles, low, high, color=color, alpha=0.22, linewidth=0, zorder=2)
    for position in (curve.between.early, curve.between.late):
        if position <= positions[-1]:
            axes.axvline(position, color=GREY, linewidth=0.6, linestyle=":", zorder=1)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("position", fontsize=9)
    axes.set_ylabel("loss (nats)", fontsize=9)
    axes.tick_params(labelsize=7.5, width=0.6, length=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
