"""The first lines over annotated sentences, and the limit of the loss."""

from pathlib import Path

import pytest

import attnviz
from attnviz.models.scratch.native import load_native
from making.first_lines import FALSE_BAR, SPARED_BAR, WARNED_BAR, Line, figures_of, first_lines
from making.loss_limit import best_limit

BUILTIN = Path(attnviz.__path__[0]) / "builtin" / "gpt"
SENTENCES = Path(__file__).parents[1] / "sentences" / "development"


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_a_title_claims_what_is_there_and_strange_texts_are_called_so(every: int) -> None:
    builtin = load_native(BUILTIN, "builtin")
    figures = figures_of(first_lines(builtin, SENTENCES, every=every))
    assert figures.false <= FALSE_BAR
    assert figures.warned_strange >= WARNED_BAR
    assert figures.warned_plain <= SPARED_BAR


def test_the_figures_count_what_the_annotation_says() -> None:
    def line(file: str, claim: str | None, there: bool | None, *, true: bool = False) -> Line:
        return Line(file, "", "", claim, there, true, strange=file == "strange")

    lines = [
        line("adjectives", "adjectives", True, true=True),
        line("adjectives", "pronouns", None),
        line("none", "senses", False),
        line("none", None, None),
        line("strange", None, None),
        line("plain", "adjectives", None),
    ]
    figures = figures_of(lines)
    assert (figures.false, figures.not_judged, figures.true) == (0.25, 0.25, 0.5)
    assert (figures.warned_strange, figures.warned_plain) == (1, 0)


def test_the_limit_is_the_middle_of_the_gap_that_errs_least() -> None:
    assert best_limit([1.0, 2.0], [4.0, 5.0]) == 3
    assert best_limit([1.0, 2.0, 4.5], [4.0, 5.0, 6.0]) == 3
