"""The loss curve of a training, as a picture."""

from collections.abc import Sequence
from textwrap import fill

from attnviz.draw.picture.canvas import drawing, figure_bytes, lettering, use_fonts
from attnviz.draw.picture.frame import GREY

TRAINING = "training text, mean since the point before"
LETTERS = 90


def loss_curve(
    steps: Sequence[int],
    train: Sequence[float],
    held_out: Sequence[float],
    baseline: float,
    title: str,
) -> bytes:
    """A PNG of the losses (bits per byte) over the steps, with a trigram model's as a line.

    Args:
        steps (n): from 0 on.
        train (n - 1): of every step but 0, before which there is no text of the training.
        held_out (n): of every step.
        baseline: the trigram model's.
        title: which model it is, and what it was trained on.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with drawing():
        fonts = lettering([title])
        use_fonts(fonts.families)
        figure = Figure(figsize=(6.4, 4.0), dpi=150, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.plot(steps[1:], train, ".-", color="#3b528b", linewidth=1.2, label=TRAINING)
        axes.plot(steps, held_out, ".-", color="#d1495b", linewidth=1.6, label="held-out text")
        axes.axhline(
            baseline, color=GREY, linestyle="--", linewidth=1, label="trigram model, held out"
        )
        said = fill(fonts.spell(title), LETTERS)
        axes.set_title(said, fontsize=9, loc="left", color=GREY, parse_math=False)
        axes.set_xlabel("step")
        axes.set_ylabel("loss, bits per byte")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        axes.set_xlim(0, 1.01 * steps[-1])
        losses = [*train, *held_out, baseline]
        low, high = min(losses), max(losses)
        axes.set_ylim(max(0.0, low - 0.1), high + 0.05 * (high - low))
        return figure_bytes(figure, "png")
