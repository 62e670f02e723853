"""Measure a checkpoint: `python -m making.evaluate CHECKPOINT`.

For each behaviour a head is chosen on the development half of the annotated sentences, for
repetition on random tokens. It is measured on the world's test texts, whose word pairs (adjective
and noun, name and deed, clue and word) training never saw together, and on one half of the
sentences: the development half, or with --held-out the other.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from attnviz.records.heads import Figure, Head, NamedHead
from making import ordinary
from making.figures import all_figures
from making.measures import induction_score, previous_token_score
from making.probe import WorldProbe
from making.sentences import BEHAVIOURS, DEVELOPMENT, HELD_OUT, SENTENCES
from making.wordnet import FOLDER

TITLES = {
    "adjectives": "nouns attend to their adjectives",
    "pronouns": "pronouns attend to what they stand for",
    "mystery": "the last “was” attends to the guilty one",
    "senses": "an ambiguous word attends to the words that disambiguate it",
    "induction": "a repeated token attends to what followed its earlier occurrence",
    "previous token": "each token attends to the one before it",
}
TEXTS = 400
ALSO_FROM = 0.5
"""From this score on a head is named for a second behaviour, too."""

Scores: TypeAlias = NDArray[np.float64]
"""What share of a behaviour each head shows, 0 to 1, (layer, head)."""


@dataclass(frozen=True)
class Report:
    """The head of each behaviour, and the figures."""

    heads: tuple[NamedHead, ...]
    figures: tuple[Figure, ...]


def evaluate(
    probe: WorldProbe,
    sentences: Path = SENTENCES,
    half: str = DEVELOPMENT,
    *,
    count: int = TEXTS,
    database: Path = FOLDER,
) -> Report:
    """Choose the heads, and measure them.

    Args:
        probe: the model.
        sentences: the folder with the two halves of the annotated sentences.
        half: the half that is measured; heads are always chosen on the development half.
        count: how many texts of each kind of the little world are read, for each purpose.
        database: the WordNet that the model was trained on.
    """
    scores = {kind: _scores(probe, kind, sentences / DEVELOPMENT) for kind in BEHAVIOURS}
    scores |= _repetition_scores(probe, count // 8)
    heads = {kind: _highest(each) for kind, each in scores.items()}
    figures = [
        *all_figures(probe, heads, count),
        *ordinary.figures(probe, sentences / half, heads, database),
    ]
    return Report(named_heads(heads, scores), tuple(figures))


def _scores(probe: WorldProbe, kind: str, development: Path) -> Scores:
    """Half mass and half complete sets, on ordinary English."""
    found = ordinary.measured(probe, development, kind)
    scores: Scores = (found.mass + found.all_top).mean(0) / 2
    return scores


def _repetition_scores(probe: WorldProbe, count: int) -> dict[str, Scores]:
    runs = list(probe.see_repeated(DEVELOPMENT, count))
    shape = runs[0][1].shape[:2]
    induction, previous = np.zeros(shape), np.zeros(shape)
    for period, patterns in runs:
        for at in np.ndindex(shape):
            induction[at] += induction_score(patterns[at], period) / count
            previous[at] += previous_token_score(patterns[at]) / count
    return {"induction": induction, "previous token": previous}


def _highest(scores: Scores) -> Head:
    return Head(*(int(i) for i in np.unravel_index(scores.argmax(), scores.shape)))


def named_heads(heads: Mapping[str, Head], scores: Mapping[str, Scores]) -> tuple[NamedHead, ...]:
    """The head of each behaviour, then the second behaviour of heads that show another, too."""
    named = [NamedHead(kind, head, TITLES[kind]) for kind, head in heads.items()]
    for kind, head in heads.items():
        others = [other for other in heads if other != kind]
        most = max(others, key=lambda other: float(scores[other][head]))
        twice = any(heads[other] == head for other in others)
        if not twice and scores[most][head] >= ALSO_FROM:
            named.append(NamedHead(most, head, TITLES[most]))
    return tuple(named)


def tables(report: Report) -> Iterator[Table]:
    """The figures beside their bars, a table for each kind of text."""
    heads = {named.behaviour: str(named.head) for named in reversed(report.heads)}  # the first
    for texts in dict.fromkeys(figure.texts for figure in report.figures):
        columns = ("behaviour", "head", "measure", "value", "bar", "cases", "")
        table = Table(*columns, title=f"measured on {texts}")
        for f in report.figures:
            if f.texts == texts:
                bar = "" if f.bar is None else f"{f.bar:.2f}"
                verdict = "" if f.bar is None else "reached" if f.value >= f.bar else "MISSED"
                numbers = (f"{f.value:.3f}", bar, str(f.n), verdict)
                table.add_row(f.behaviour, heads[f.behaviour], f.measure, *numbers)
        yield table


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a model folder")],
    count: Annotated[int, typer.Option(help="generated texts of each kind, per split")] = TEXTS,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="measure on the held-out half of the sentences")
    ] = False,
) -> None:
    """Choose the head of each behaviour, measure it, and print the figures."""
    torch.set_num_threads(1)  # short texts: a second thread only waits
    half = HELD_OUT if held_out else DEVELOPMENT
    report = evaluate(WorldProbe.open(checkpoint), half=half, count=count)
    Console().print(*tables(report))


if __name__ == "__main__":
    typer.run(main)
