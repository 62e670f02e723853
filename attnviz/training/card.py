"""What the cards of all trained models share."""

from collections.abc import Iterable
from typing import Any

from attnviz.records.heads import Figure

SCHEMA = 1


def figure_entries(figures: Iterable[Figure]) -> list[dict[str, Any]]:
    """Figures in the form of a card."""
    return [
        {
            "behaviour": figure.behaviour,
            "measure": figure.measure,
            "held_out": figure.value,
            "bar": figure.bar,
            "n": figure.n,
            **({"texts": figure.texts} if figure.texts else {}),
        }
        for figure in figures
    ]
