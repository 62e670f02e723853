"""Measure a checkpoint on held-out texts: `python -m attnviz.training.evaluate CHECKPOINT`.

For each behaviour the head is chosen on a development split and measured on a test
split; both hold new texts, whose word pairs (adjective and noun, name and deed, clue
and word) training never saw together.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table

from attnviz.data.card import Figure, NamedHead
from attnviz.data.heads import Head
from attnviz.training.measures import (
    LinkScore,
    induction_score,
    is_right,
    previous_token_score,
    score_link,
)
from attnviz.training.probe import Probe, Seen
from attnviz.training.world.text import Link

TITLES = {
    "adjectives": "nouns look at their adjectives",
    "pronouns": "pronouns look at the name they stand for",
    "mystery": "the last “was” looks at the guilty name",
    "senses": "a word with several senses looks at the words that tell which",
    "induction": "a repeated token looks behind its earlier copy",
    "previous token": "each token looks at the one before it",
}
LINKED = ("adjectives", "pronouns", "mystery", "senses")
FAR = 50

BARS = {
    ("adjectives", "mass"): 0.87,
    ("adjectives", "two or three: all strongest"): 0.90,
    ("adjectives", "two or three: all strongest, by the previous-token head"): None,
    ("adjectives", "first adjective named right"): 0.90,
    ("adjectives", "next adjectives named right"): 0.98,
    ("adjectives", "made-up adjectives: mass"): 0.60,
    ("pronouns", "mass"): 0.70,
    ("pronouns", "top-1"): 0.82,
    ("pronouns", "what follows"): 0.97,
    ("mystery", "mass"): 0.90,
    ("mystery", "top-1"): 0.97,
    ("mystery", "the murderer"): 0.98,
    ("mystery", "50 tokens and more apart: mass"): 0.80,
    ("mystery", "50 tokens and more apart: the murderer"): 0.97,
    ("senses", "mass"): 0.92,
    ("senses", "top-1"): 0.97,
    ("senses", "the gloss that follows"): 0.98,
    ("induction", "score"): 0.95,
    ("previous token", "score"): 0.95,
}


@dataclass(frozen=True)
class Report:
    """The head of each behaviour, and the figures."""

    heads: dict[str, Head]
    figures: tuple[Figure, ...]


def evaluate(probe: Probe, *, count: int = 400) -> Report:
    """Choose heads on `count` development texts of each kind; measure on as many new ones."""
    heads = {kind: _best_head(probe, kind, count) for kind in LINKED}
    heads |= _best_repetition_heads(probe, count // 8)
    figures = [
        *_adjectives(probe, heads, count),
        *_pronouns(probe, heads["pronouns"], count),
        *_mystery(probe, heads["mystery"], count),
        *_senses(probe, heads["senses"], count),
        *_repetition(probe, heads, count // 8),
    ]
    return Report(heads, tuple(figures))


def named_heads(report: Report) -> tuple[NamedHead, ...]:
    return tuple(NamedHead(kind, head, TITLES[kind]) for kind, head in report.heads.items())


def _best_head(probe: Probe, kind: str, count: int) -> Head:
    """The head with the most mass and the most complete sets on development texts."""
    scores: dict[Head, list[float]] = defaultdict(list)
    for seen in probe.see_kind(kind, "development", count):
        for link in _links(seen, kind):
            for head in _all_heads(seen):
                score = score_link(seen.patterns[head], link, seen.positions)
                scores[head].append(score.mass + score.all_top)
    return max(scores, key=lambda head: (float(np.mean(scores[head])), head))


def _best_repetition_heads(probe: Probe, count: int) -> dict[str, Head]:
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


def _adjectives(probe: Probe, heads: dict[str, Head], count: int) -> list[Figure]:
    known: list[LinkScore] = []
    sets: list[bool] = []
    previous: list[bool] = []
    made_up: list[LinkScore] = []
    first: list[bool] = []
    later: list[bool] = []
    for seen in probe.see_kind("adjectives", "test", count):
        for link in _links(seen, "adjectives"):
            score = score_link(seen.patterns[heads["adjectives"]], link, seen.positions)
            torn = any(len(seen.pieces[w]) > 1 for w in link.keys)
            (made_up if torn else known).append(score)
            if len(link.keys) > 1:
                sets.append(score.all_top)
                before = seen.patterns[heads["previous token"]]
                previous.append(score_link(before, link, seen.positions).all_top)
        first += _answers(probe, seen, "first adjective")
        later += _answers(probe, seen, "next adjectives")
    kind = "adjectives"
    return [
        _figure(kind, "mass", [s.mass for s in known]),
        _figure(kind, "two or three: all strongest", sets),
        _figure(kind, "two or three: all strongest, by the previous-token head", previous),
        _figure(kind, "first adjective named right", first),
        _figure(kind, "next adjectives named right", later),
        _figure(kind, "made-up adjectives: mass", [s.mass for s in made_up]),
    ]


def _pronouns(probe: Probe, head: Head, count: int) -> list[Figure]:
    scores: list[LinkScore] = []
    verbs: list[bool] = []
    for seen in probe.see_kind("pronouns", "test", count):
        scores += _scores(seen, "pronouns", head)
        verbs += _answers(probe, seen, "what follows")
    return [
        _figure("pronouns", "mass", [s.mass for s in scores]),
        _figure("pronouns", "top-1", [s.top for s in scores]),
        _figure("pronouns", "what follows", verbs),
    ]


def _mystery(probe: Probe, head: Head, count: int) -> list[Figure]:
    near: list[LinkScore] = []
    far: list[float] = []
    answers: list[bool] = []
    far_answers: list[bool] = []
    for seen in probe.see_kind("mystery", "test", count):
        (link,) = _links(seen, "mystery")
        (score,) = _scores(seen, "mystery", head)
        right = _answers(probe, seen, "the murderer")
        nearest = max(seen.positions[w][-1] for w in link.keys)
        near.append(score)
        answers += right
        if seen.positions[link.query][-1] - nearest >= FAR:
            far.append(score.mass)
            far_answers += right
    return [
        _figure("mystery", "mass", [s.mass for s in near]),
        _figure("mystery", "top-1", [s.top for s in near]),
        _figure("mystery", "the murderer", answers),
        _figure("mystery", "50 tokens and more apart: mass", far),
        _figure("mystery", "50 tokens and more apart: the murderer", far_answers),
    ]


def _senses(probe: Probe, head: Head, count: int) -> list[Figure]:
    scores: list[LinkScore] = []
    glosses: list[bool] = []
    for seen in probe.see_kind("senses", "test", count):
        scores += _scores(seen, "senses", head)
        glosses += _answers(probe, seen, "the gloss") + _answers(probe, seen, "what follows")
    return [
        _figure("senses", "mass", [s.mass for s in scores]),
        _figure("senses", "top-1", [s.top for s in scores]),
        _figure("senses", "the gloss that follows", glosses),
    ]


def _repetition(probe: Probe, heads: dict[str, Head], count: int) -> list[Figure]:
    runs = list(probe.see_repeated("test", count))
    induction = [induction_score(p[heads["induction"]], period) for period, p in runs]
    previous = [previous_token_score(p[heads["previous token"]]) for _, p in runs]
    return [
        _figure("induction", "score", induction),
        _figure("previous token", "score", previous),
    ]


def _links(seen: Seen, kind: str) -> list[Link]:
    return [link for link in seen.text.links if link.behaviour == kind]


def _all_heads(seen: Seen) -> list[Head]:
    return [Head(*index) for index in np.ndindex(seen.patterns.shape[:2])]


def _scores(seen: Seen, kind: str, head: Head) -> list[LinkScore]:
    return [score_link(seen.patterns[head], li, seen.positions) for li in _links(seen, kind)]


def _answers(probe: Probe, seen: Seen, measure: str) -> list[bool]:
    return [
        is_right(
            seen.predicted,
            answer,
            seen.positions,
            seen.pieces,
            {probe.encoder.word(word)[0] for word in answer.accepted},
        )
        for answer in seen.text.answers
        if answer.measure == measure
    ]


def _figure(kind: str, measure: str, values: list[float] | list[bool]) -> Figure:
    mean = float(np.mean(values)) if values else float("nan")
    return Figure(kind, measure, round(mean, 4), BARS[kind, measure], len(values))


def table(report: Report) -> Table:
    """The figures beside their bars."""
    result = Table("behaviour", "head", "measure", "held out", "bar", "cases", "")
    for f in report.figures:
        bar = "" if f.bar is None else f"{f.bar:.2f}"
        verdict = "" if f.bar is None else "reached" if f.value >= f.bar else "MISSED"
        head = str(report.heads[f.behaviour])
        result.add_row(f.behaviour, head, f.measure, f"{f.value:.3f}", bar, str(f.n), verdict)
    return result


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a model folder")],
    count: Annotated[int, typer.Option(help="texts of each kind, per split")] = 400,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Choose the head of each behaviour, measure it on held-out texts, and print the figures."""
    torch.set_num_threads(1)  # short texts: a second thread only waits
    report = evaluate(Probe.open(checkpoint), count=count)
    if as_json:
        print(json.dumps([vars(f) for f in report.figures], indent=2))
    else:
        Console().print(table(report))


if __name__ == "__main__":
    typer.run(main)
