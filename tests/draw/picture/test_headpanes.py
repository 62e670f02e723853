"""Pictures with a value for each head: what was run, colour bars, and the roles."""

import itertools
from math import nan

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from attnviz.commands.ablate.record import AblationReport
from attnviz.commands.ablate.shown import view
from attnviz.commands.heads import rows as heads_rows
from attnviz.draw.picture.canvas import drawing, fit, new_figure, place
from attnviz.draw.picture.frame import BOX
from attnviz.draw.picture.paint import draw_bar
from attnviz.draw.picture.panes import draw_view, panes_across
from attnviz.records.heads import Head
from attnviz.records.interventions import Effect
from attnviz.records.metrics import METRICS, Estimate, HeadMetrics, HeadReport, Role
from attnviz.records.parts import Part
from tests.factories import make_capture

PREVIOUS = Role("previous token", "previous", 0.4)


def report(probe: str = "") -> HeadReport:
    """Two layers of two heads; L1H0 is a previous-token head, and its model's card names L0H1."""
    values = {name: Estimate(0.25) for name in METRICS} | {"induction": Estimate(nan)}
    found = [
        HeadMetrics(
            head,
            values,
            PREVIOUS if head == Head(1, 0) else None,
            ("adjectives",) if head == Head(0, 1) else (),
        )
        for head in (Head(0, 0), Head(0, 1), Head(1, 0), Head(1, 1))
    ]
    return HeadReport(make_capture("a blue whale"), found, 0, len(found), probe)


def said(figure: Figure) -> str:
    """Every text of the picture, on one line."""
    texts = [text.get_text() for text in figure.findobj(Text)]
    return " ".join(" ".join(texts).split())


def boxes(axes: Axes) -> list[tuple[float, float]]:
    """The lower corners of the marked cells, as (head, layer)."""
    patches = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return [patch.get_xy() for patch in patches if to_hex(patch.get_edgecolor()) == BOX]


@pytest.mark.parametrize(("count", "across"), [(1, 1), (4, 4), (5, 5), (6, 3), (8, 4), (9, 3)])
def test_panes_fill_their_rows(count: int, across: int) -> None:
    assert panes_across(count) == across
    assert count % across == 0


def test_of_seven_panes_one_place_is_empty() -> None:
    assert panes_across(7) == 4


@pytest.mark.parametrize("most", [1.0, 3.02, 28.9, 38.5, 30.1, 999.0])
@pytest.mark.parametrize("inches", [0.5, 1.1, 3.6])
def test_no_number_of_a_colour_bar_touches_that_of_an_end(most: float, inches: float) -> None:
    with drawing():
        figure = new_figure(150)
        axes = place(figure, 0, 0, 0.1, inches)
        draw_bar(axes, ScalarMappable(Normalize(0, most)))
        fit(figure)
        figure.canvas.draw()
        boxes = [each.get_window_extent() for each in axes.get_yticklabels() if each.get_text()]
    boxes.sort(key=lambda box: box.y0)
    assert len(boxes) >= 2
    assert all(lower.y1 <= upper.y0 for lower, upper in itertools.pairwise(boxes))


def pane(figure: Figure, title: str) -> Axes:
    return next(axes for axes in figure.axes if axes.get_title(loc="left") == title)


def bar(figure: Figure, title: str) -> Axes:
    """The colour bar, which is drawn right after its pane."""
    return figure.axes[figure.axes.index(pane(figure, title)) + 1]


def test_a_head_is_boxed_in_the_score_that_gives_it_its_role() -> None:
    figure = heads_rows.draw(report()).figure
    assert boxes(pane(figure, "previous (share)")) == [(-0.5, 0.5)]
    assert boxes(pane(figure, "self (share)")) == []
    told = "first threshold that it meets (previous token: previous ≥ 0.4; measured on the weight"
    assert told in said(figure)
    assert "known for: L0H1 adjectives" in said(figure)


def test_each_score_has_a_colour_bar_and_what_was_not_measured_no_pane() -> None:
    figure = heads_rows.draw(report()).figure
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    panes = [title for title in titles if title]
    shares = [f"{name} (share)" for name in [*METRICS][3:7]]
    assert panes == ["entropy (nats)", "normalised (share)", "distance (tokens)", *shares]
    assert bar(figure, "entropy (nats)").get_ylim() == (0.0, 0.25)
    assert bar(figure, "normalised (share)").get_ylim() == (0.0, 1.0)


def test_scores_say_what_was_measured() -> None:
    plain = said(heads_rows.draw(report()).figure)
    assert "Scores of 4 heads" in plain
    assert "tiny, 3 tokens without BOS: “a blue whale”" in plain
    probed = said(heads_rows.draw(report("random tokens")).figure)
    assert "tiny, probe: random tokens" in probed
    assert "whale" not in probed


def test_an_ablation_says_on_what_text_and_has_a_colour_bar_around_zero() -> None:
    effects = [
        Effect((Part("head", 0, i),), Estimate(change)) for i, change in enumerate((-0.5, 0.25))
    ]
    capture = make_capture("a blue whale")
    made = AblationReport(capture, "zero", -2.0, 2, effects)
    figure = draw_view(view(made)).figure
    assert "A head's output replaced by 0" in said(figure)
    assert "mean log-probability of the 2 tokens that followed: -2.000 nats" in said(figure)
    assert "tiny, 3 tokens without BOS: “a blue whale”" in said(figure)
    assert np.allclose(bar(figure, "change (nats)").get_ylim(), (-0.5, 0.5))
