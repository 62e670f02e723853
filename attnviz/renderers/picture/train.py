"""The loss curve of a training, as a picture."""

from collections.abc import Sequence

from attnviz.renderers.picture.canvas import drawing, figure_bytes
from attnviz.renderers.picture.frame import GREY


def loss_curve(
    steps: Sequence[int], train: Sequence[float], held_out: Sequence[float], baseline: float
) -> bytes:
    """A PNG of the losses (bits per byte) over the steps, with a trigram model's as a line."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with drawing():
        figure = Figure(figsize=(6.4, 4.0), dpi=150, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.plot(steps, train, color="#3b528b", linewidth=1.2, label="training text")
        axes.plot(steps, held_out, color="#d1495b", linewidth=1.6, label="held-out text")
        axes.axhline(
            baseline, color=GREY, linestyle="--", linewidth=1, label="trigram model, held out"
        )
        axes.set_xlabel("step")
        axes.set_ylabel("loss, bits per byte")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        low = min(*train, *held_out, baseline)
        high = max(baseline, *held_out[len(held_out) // 10 :])
        axes.set_ylim(max(0.0, low - 0.1), high + 0.25 * (high - low) + 0.05)
        return figure_bytes(figure, "png")
