"""The built-in model's figures: each behaviour measured on held-out texts, with its bar."""

from collections.abc import Mapping

import numpy as np

from attnviz.records.heads import Figure, Head
from making.measures import (
    LinkMeasures,
    induction_score,
    is_right,
    measure_link,
    previous_token_score,
)
from making.probe import Seen, WorldProbe
from making.world.text import TrueLink

TEXTS = "generated texts"
FAR = 50

BARS = {
    ("adjectives", "mass"): 0.85,
    ("adjectives", "two or three: all strongest"): 0.85,
    ("adjectives", "two or three: all strongest, by the previous-token head"): None,
    ("adjectives", "what follows the noun"): None,
    ("adjectives", "first adjective named right"): 0.96,
    ("adjectives", "next adjectives named right"): 0.97,
    ("adjectives", "adjectives of several tokens: mass"): 0.86,
    ("pronouns", "mass"): 0.95,
    ("pronouns", "top-1"): 0.97,
    ("pronouns", "what follows"): 0.97,
    ("mystery", "mass"): 0.96,
    ("mystery", "top-1"): 0.97,
    ("mystery", "the murderer"): 0.97,
    ("mystery", "50 tokens and more apart: mass"): 0.95,
    ("mystery", "50 tokens and more apart: the murderer"): 0.96,
    ("senses", "mass"): 0.95,
    ("senses", "top-1"): 0.96,
    ("senses", "the gloss that follows"): 0.95,
    ("induction", "score"): 0.95,
    ("previous token", "score"): 0.95,
}
"""What the weights of a much smaller world reached, less .03."""


def all_figures(probe: WorldProbe, heads: Mapping[str, Head], count: int) -> list[Figure]:
    """Every figure of the chosen heads, on `count` test texts of each kind."""
    return [
        *_adjectives(probe, heads, count),
        *_pronouns(probe, heads["pronouns"], count),
        *_mystery(probe, heads["mystery"], count),
        *_senses(probe, heads["senses"], count),
        *_repetition(probe, heads, count // 8),
    ]


def _adjectives(probe: WorldProbe, heads: Mapping[str, Head], count: int) -> list[Figure]:
    known: list[LinkMeasures] = []
    sets: list[bool] = []
    previous: list[bool] = []
    torn: list[LinkMeasures] = []
    follows: list[bool] = []
    first: list[bool] = []
    later: list[bool] = []
    for seen in probe.see_kind("adjectives", "test", count):
        for link in links_of(seen, "adjectives"):
            measures = measure_link(seen.patterns[heads["adjectives"]], link, seen.positions)
            whole = all(len(seen.pieces[w]) == 1 for w in link.keys)
            (known if whole else torn).append(measures)
            if len(link.keys) > 1:
                sets.append(measures.all_top)
                before = seen.patterns[heads["previous token"]]
                previous.append(measure_link(before, link, seen.positions).all_top)
        follows += _answers(probe, seen, "what follows the noun")
        first += _answers(probe, seen, "first adjective")
        later += _answers(probe, seen, "next adjectives")
    kind = "adjectives"
    return [
        _figure(kind, "mass", [s.mass for s in known]),
        _figure(kind, "two or three: all strongest", sets),
        _figure(kind, "two or three: all strongest, by the previous-token head", previous),
        _figure(kind, "what follows the noun", follows),
        _figure(kind, "first adjective named right", first),
        _figure(kind, "next adjectives named right", later),
        _figure(kind, "adjectives of several tokens: mass", [s.mass for s in torn]),
    ]


def _pronouns(probe: WorldProbe, head: Head, count: int) -> list[Figure]:
    links: list[LinkMeasures] = []
    verbs: list[bool] = []
    for seen in probe.see_kind("pronouns", "test", count):
        links += _measures(seen, "pronouns", head)
        verbs += _answers(probe, seen, "what follows")
    return [
        _figure("pronouns", "mass", [s.mass for s in links]),
        _figure("pronouns", "top-1", [s.top for s in links]),
        _figure("pronouns", "what follows", verbs),
    ]


def _mystery(probe: WorldProbe, head: Head, count: int) -> list[Figure]:
    near: list[LinkMeasures] = []
    far: list[float] = []
    answers: list[bool] = []
    far_answers: list[bool] = []
    for seen in probe.see_kind("mystery", "test", count):
        (link,) = links_of(seen, "mystery")
        (measures,) = _measures(seen, "mystery", head)
        right = _answers(probe, seen, "the murderer")
        nearest = max(seen.positions[w][-1] for w in link.keys)
        near.append(measures)
        answers += right
        if seen.positions[link.query][-1] - nearest >= FAR:
            far.append(measures.mass)
            far_answers += right
    return [
        _figure("mystery", "mass", [s.mass for s in near]),
        _figure("mystery", "top-1", [s.top for s in near]),
        _figure("mystery", "the murderer", answers),
        _figure("mystery", "50 tokens and more apart: mass", far),
        _figure("mystery", "50 tokens and more apart: the murderer", far_answers),
    ]


def _senses(probe: WorldProbe, head: Head, count: int) -> list[Figure]:
    links: list[LinkMeasures] = []
    glosses: list[bool] = []
    for seen in probe.see_kind("senses", "test", count):
        links += _measures(seen, "senses", head)
        glosses += _answers(probe, seen, "the gloss") + _answers(probe, seen, "what follows")
    return [
        _figure("senses", "mass", [s.mass for s in links]),
        _figure("senses", "top-1", [s.top for s in links]),
        _figure("senses", "the gloss that follows", glosses),
    ]


def _repetition(probe: WorldProbe, heads: Mapping[str, Head], count: int) -> list[Figure]:
    runs = list(probe.see_repeated("test", count))
    induction = [induction_score(p[heads["induction"]], period) for period, p in runs]
    previous = [previous_token_score(p[heads["previous token"]]) for _, p in runs]
    return [
        _figure("induction", "score", induction),
        _figure("previous token", "score", previous),
    ]


def links_of(seen: Seen, kind: str) -> list[TrueLink]:
    """The links of one behaviour in a text."""
    return [link for link in seen.text.links if link.behaviour == kind]


def _measures(seen: Seen, kind: str, head: Head) -> list[LinkMeasures]:
    return [measure_link(seen.patterns[head], li, seen.positions) for li in links_of(seen, kind)]


def _answers(probe: WorldProbe, seen: Seen, measure: str) -> list[bool]:
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
    return Figure(kind, measure, round(mean, 4), BARS[kind, measure], len(values), TEXTS)
