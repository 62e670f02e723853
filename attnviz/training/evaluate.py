"""Measure a checkpoint on held-out texts: `python -m attnviz.training.evaluate CHECKPOINT`.

For each behaviour the head is chosen on a development split and measured on a test split. Both
have new texts, whose word pairs (adjective and noun, name and deed, clue and word) training
never saw together.
"""

import json
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table

from attnviz.data.card import Figure, NamedHead
from attnviz.data.head import Head
from attnviz.training.figures import all_figures, links_of
from attnviz.training.measures import induction_score, measure_link, previous_token_score
from attnviz.training.probe import WorldProbe

TITLES = {
    "adjectives": "nouns attend to their adjectives",
    "pronouns": "pronouns attend to what they stand for",
    "mystery": "the last “was” attends to the guilty name",
    "senses": "an ambiguous word attends to the words that disambiguate it",
    "induction": "a repeated token attends to what followed its earlier occurrence",
    "previous token": "each token attends to the one before it",
}
LINKED = ("adjectives", "pronouns", "mystery", "senses")


@dataclass(frozen=True)
class Report:
    """The head of each behaviour, and the figures."""

    heads: tuple[NamedHead, ...]
    figures: tuple[Figure, ...]


def evaluate(probe: WorldProbe, *, count: int = 400) -> Report:
    """Choose heads on `count` development texts of each kind; measure on as many test texts."""
    chosen = {kind: _best_head(probe, kind, count) for kind in LINKED}
    chosen |= _best_repetition_heads(probe, count // 8)
    figures = all_figures(probe, chosen, count)
    named = tuple(NamedHead(kind, head, TITLES[kind]) for kind, head in chosen.items())
    return Report(named, tuple(figures))


def _best_head(probe: WorldProbe, kind: str, count: int) -> Head:
    """The head with the most mass and the most complete sets on development texts."""
    measured: dict[Head, list[float]] = defaultdict(list)
    for seen in probe.see_kind(kind, "development", count):
        for link in links_of(seen, kind):
            for at in np.ndindex(seen.patterns.shape[:2]):
                measures = measure_link(seen.patterns[at], link, seen.positions)
                measured[Head(*at)].append(measures.mass + measures.all_top)
    return max(measured, key=lambda head: (float(np.mean(measured[head])), head))


def _best_repetition_heads(probe: WorldProbe, count: int) -> dict[str, Head]:
    induction: dict[Head, float] = defaultdict(float)
    previous: dict[Head, float] = defaultdict(float)
    for period, patterns in probe.see_repeated("development", count):
        for layer, head in np.ndindex(patterns.shape[:2]):
            induction[Head(layer, head)] += induction_score(patterns[layer, head], period)
            previous[Head(layer, head)] += previous_token_score(patterns[layer, head])
    return {
        "induction": max(induction, key=lambda h: induction[h]),
        "previous token": max(previous, key=lambda h: previous[h]),
    }


def table(report: Report) -> Table:
    """The figures beside their bars."""
    result = Table("behaviour", "head", "measure", "held out", "bar", "cases", "")
    heads = {named.behaviour: str(named.head) for named in report.heads}
    for f in report.figures:
        bar = "" if f.bar is None else f"{f.bar:.2f}"
        verdict = "" if f.bar is None else "reached" if f.value >= f.bar else "MISSED"
        result.add_row(
            f.behaviour, heads[f.behaviour], f.measure, f"{f.value:.3f}", bar, str(f.n), verdict
        )
    return result


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a model folder")],
    count: Annotated[int, typer.Option(help="texts of each kind, per split")] = 400,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Choose the head of each behaviour, measure it on held-out texts, and print the figures."""
    torch.set_num_threads(1)  # short texts: a second thread only waits
    report = evaluate(WorldProbe.open(checkpoint), count=count)
    if as_json:
        print(json.dumps([asdict(f) for f in report.figures], indent=2))
    else:
        Console().print(table(report))


if __name__ == "__main__":
    typer.run(main)
