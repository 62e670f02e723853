"""The loss curve: from step 0 on, with what was trained."""

import math
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from attnviz.commands.train.command import loss_curve
from attnviz.commands.train.plan import UNTRAINED, Point, TrainingOutcome


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Figure:
    """The curve of a training of ten steps in two shards."""
    figures: list[Figure] = []

    def caught(figure: Figure, format: str) -> bytes:
        figures.append(figure)
        return format.encode()

    monkeypatch.setattr("attnviz.draw.picture.canvas.figure_bytes", caught)
    nats = math.log(2)
    points = (
        Point(UNTRAINED, 6.0),
        Point(replace(UNTRAINED, step=5, loss=4 * nats), 3.5),
        Point(replace(UNTRAINED, step=10, loss=3 * nats), 2.5),
    )
    outcome = TrainingOutcome(2.5, 2.0, points, tokens_per_byte=1.0)
    assert loss_curve(outcome, "mine, trained from scratch on $a.txt") == b"png"
    return figures[0]


def test_the_curve_begins_at_step_0_where_nothing_was_trained_on(drawn: Figure) -> None:
    (axes,) = drawn.axes
    training, held_out, trigram = axes.lines
    assert held_out.get_xydata().tolist() == [[0, 6.0], [5, 3.5], [10, 2.5]]
    assert training.get_xydata().tolist() == [[5, 4.0], [10, 3.0]]
    assert set(trigram.get_ydata()) == {2.0}
    assert axes.get_xlim()[0] == 0
    low, high = axes.get_ylim()
    assert low < 2.0
    assert high > 6.0


def test_the_curve_says_which_model_it_is_of(drawn: Figure) -> None:
    assert drawn.axes[0].get_title(loc="left") == "mine, trained from scratch on $a.txt"
