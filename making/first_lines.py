"""Are the first lines true? `python -m making.first_lines CHECKPOINT SENTENCES`.

Figures over annotated sentences, each with its bar: how often a title claims a behaviour that is
not there, how often it is specific and true where there is a pair, how many of the links that it
tells are right, and how often it is said that the model has not seen such text.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from attnviz.builtin.evidence import LIMITS, Limits, acts_of, evidence
from attnviz.commands.show.outputs import Show
from attnviz.commands.show.run import show_text
from attnviz.draw.headlines import about
from attnviz.kit.prepare import HeadOptions, TextOptions
from attnviz.models.scratch.native import NativeModel, load_native
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import Exhibit
from attnviz.records.heads import Behaviour, Head, Occasion
from making.sentences import (
    BEHAVIOURS,
    ENGLISH,
    EVERYDAY,
    LINKED,
    STRANGE,
    Sentence,
    marked,
    read_sentences,
)

FALSE_BAR, TRUE_BAR, WARNED_BAR, SPARED_BAR = 0.05, 0.60, 0.90, 0.10
RIGHT_BAR, TOLD_BAR = 0.97, 0.65


@dataclass(frozen=True)
class Line:
    """The first line over one sentence, and whether the annotation bears it out.

    `claim`: the behaviour that it names, None where it names none. `there`: whether a row that it
    tells of has this behaviour, None where the sentence's file does not annotate it. `true`: its
    first link is an annotated one. `right`: which of the links that it tells are annotated, empty
    where the file does not annotate the behaviour. `paired`: the sentence has annotated links.
    `strange`: the model has not seen such text.
    """

    file: str
    text: str
    said: str
    claim: str | None
    there: bool | None
    true: bool
    strange: bool
    right: tuple[bool, ...] = ()
    paired: bool = False


def first_line(model: NativeModel, file: str, sentence: Sentence) -> Line:
    """The first line over a sentence of this file."""
    exhibit = show_text(model, sentence.text, TextOptions(truncate="right"), Show())
    claim = exhibit.finding.behaviour if exhibit.finding else None
    there, right = _judged(exhibit, file, sentence) if claim else (None, ())
    strange, true = exhibit.capture.strange, bool(right) and right[0] and claim != "induction"
    paired = bool(sentence.links)
    return Line(file, sentence.text, about(exhibit), claim, there, true, strange, right, paired)


def _judged(
    exhibit: Exhibit, file: str, sentence: Sentence
) -> tuple[bool | None, tuple[bool, ...]]:
    """Whether a claimed behaviour is there, and which of its links are annotated."""
    capture, finding = exhibit.capture, exhibit.finding
    assert finding is not None
    if finding.behaviour == "induction":  # that words occur again is no matter of opinion
        return file != "none", (file != "none",) * len(finding.links)
    if file == "none":
        return False, (False,) * len(finding.links)
    if file not in (finding.behaviour, EVERYDAY):
        return None, ()
    links = _true_keys(capture, sentence)
    there = any(link.query in links for link in finding.links)
    return there, tuple(link.key in links.get(link.query, ()) for link in finding.links)


def _true_keys(capture: Capture, sentence: Sentence) -> Mapping[int, set[int]]:
    """By query token, the tokens of its annotated keys."""
    spans = [(token.start, token.end) for token in capture.query_tokens]
    links: dict[int, set[int]] = defaultdict(set)
    for link in sentence.links:
        true = marked(sentence.text, link, spans)
        links[true.query[-1]].update(token for key in true.keys for token in key)
    return links


def first_lines(model: NativeModel, sentences: Path, *, every: int = 1) -> list[Line]:
    """The first lines over the sentences of all files, or over one in so many."""
    return [
        first_line(model, file, sentence)
        for file in (*ENGLISH, EVERYDAY, STRANGE)
        for sentence in read_sentences(sentences, file)[::every]
    ]


@dataclass(frozen=True)
class Figures:
    """Shares of first lines: false claims and claims that no annotation judges, true ones where
    there is a pair, and warnings over plain and over strange texts.

    Where all behaviours are annotated: the share of right links among those told, and of the
    sentences with links the share in which a right one is told.
    """

    false: float
    not_judged: float
    true: float
    warned_plain: float
    warned_strange: float
    right: float
    told: float


def figures_of(lines: Sequence[Line]) -> Figures:
    """The figures of all first lines."""
    judged = [line for line in lines if line.file in (*BEHAVIOURS, "none")]
    paired = [line for line in lines if line.file in BEHAVIOURS]
    return Figures(
        false=_share([line.there is False for line in judged]),
        not_judged=_share([line.claim is not None and line.there is None for line in judged]),
        true=_share([line.true for line in paired]),
        warned_plain=_share([line.strange for line in lines if line.file == "plain"]),
        warned_strange=_share([line.strange for line in lines if line.file == STRANGE]),
        right=_share([right for line in lines if line.file == EVERYDAY for right in line.right]),
        told=_share([any(line.right) for line in lines if line.file == EVERYDAY and line.paired]),
    )


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else float("nan")


def thresholds(model: NativeModel, sentences: Path) -> Iterator[str]:
    """By behaviour and limit: the share of right links, and how many rows are told."""
    rows: dict[Behaviour, list[tuple[Occasion, FloatArray, set[int]]]] = defaultdict(list)
    every_head = Show(heads=HeadOptions(heads="all"))
    for file in (EVERYDAY, *LINKED):
        for sentence in read_sentences(sentences, file):
            capture = show_text(model, sentence.text, TextOptions(), every_head).capture
            true = _true_keys(capture, sentence)
            for behaviour, occasions in evidence(capture).items():
                if behaviour in LINKED and file in (EVERYDAY, behaviour):
                    weights = capture.weights(_first_named(capture, behaviour))
                    rows[behaviour] += [(o, weights, true.get(o.query, set())) for o in occasions]
    for behaviour, found in rows.items():
        for limit in np.arange(0.3, 0.81, 0.05):
            limits = Limits(LIMITS.all_keys, limit, limit)
            acts = [(acts_of(weights, [each], limits), true) for each, weights, true in found]
            told = [links[0][0].key in true for links, true in acts if links]
            yield (
                f"{behaviour}  from {limit:.2f}: {_share(told):.3f} right of {len(told)} told, "
                f"{len(found)} rows"
            )


def _first_named(capture: Capture, behaviour: Behaviour) -> Head:
    return next(named.head for named in capture.named_heads if named.behaviour == behaviour)


def report(lines: Sequence[Line]) -> Iterator[str]:
    """The figures with their bars, and the true lines of each behaviour."""
    figures = figures_of(lines)
    yield f"claims a behaviour that is not there  {figures.false:.3f}  (bar: ≤ {FALSE_BAR})"
    yield f"claims one that the file does not annotate  {figures.not_judged:.3f}"
    yield f"specific and true where there is a pair  {figures.true:.3f}  (bar: ≥ {TRUE_BAR})"
    for file in BEHAVIOURS:
        of_file = [line for line in lines if line.file == file]
        claims, true = ([getattr(each, name) for each in of_file] for name in ("claim", "true"))
        named = sum(claim == file for claim in claims)
        yield f"  {file}: {sum(true)} of {len(of_file)}, {named} claim it"
    yield f"everyday: links that are right  {figures.right:.3f}  (bar: ≥ {RIGHT_BAR})"
    yield f"everyday: told where there is a pair  {figures.told:.3f}  (bar: ≥ {TOLD_BAR})"
    yield f"warned on strange texts  {figures.warned_strange:.3f}  (bar: ≥ {WARNED_BAR})"
    yield f"warned on plain English  {figures.warned_plain:.3f}  (bar: ≤ {SPARED_BAR})"


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a model folder")],
    sentences: Annotated[Path, typer.Argument(help="a folder of sentences")],
    show: Annotated[bool, typer.Option("--show", help="print lines that are not true")] = False,
    limits: Annotated[
        bool, typer.Option("--thresholds", help="print what each limit of the weights would give")
    ] = False,
) -> None:
    """Print the figures of a checkpoint's first lines."""
    if limits:
        print("\n".join(thresholds(load_native(checkpoint, "builtin"), sentences)))
        return
    lines = first_lines(load_native(checkpoint, "builtin"), sentences)
    for line in lines if show else ():
        if line.claim and not all(line.right or (line.true,)):
            print(f"{line.file} {line.there}: {line.text}\n    {line.said}")
    print("\n".join(report(lines)))


if __name__ == "__main__":
    typer.run(main)
