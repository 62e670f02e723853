"""Are the first lines true? `python -m making.first_lines CHECKPOINT SENTENCES`.

Three figures over annotated sentences, each with its bar: how often a title claims a behaviour
that is not there, how often it is specific and true where there is a pair, and how often it is
said that the model has not seen such text.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from attnviz.commands.show.outputs import Show
from attnviz.commands.show.run import show_text
from attnviz.draw.headlines import about
from attnviz.kit.prepare import TextOptions
from attnviz.models.scratch.native import NativeModel, load_native
from attnviz.records.exhibit import Exhibit
from making.sentences import (
    BEHAVIOURS,
    ENGLISH,
    STRANGE,
    Sentence,
    marked,
    read_sentences,
)

FALSE_BAR, TRUE_BAR, WARNED_BAR, SPARED_BAR = 0.05, 0.60, 0.90, 0.10


@dataclass(frozen=True)
class Line:
    """The first line over one sentence, and whether the annotation bears it out.

    `claim`: the behaviour that it names, None where it names none. `there`: whether a row that it
    tells of has this behaviour, None where the sentence's file does not annotate it. `true`: its
    first link is an annotated one. `strange`: the model has not seen such text.
    """

    file: str
    text: str
    said: str
    claim: str | None
    there: bool | None
    true: bool
    strange: bool


def first_line(model: NativeModel, file: str, sentence: Sentence) -> Line:
    """The first line over a sentence of this file."""
    exhibit = show_text(model, sentence.text, TextOptions(truncate="right"), Show())
    claim = exhibit.finding.behaviour if exhibit.finding else None
    there, true = _judged(exhibit, file, sentence) if claim else (None, False)
    strange = exhibit.capture.strange
    return Line(file, sentence.text, about(exhibit), claim, there, true, strange)


def _judged(exhibit: Exhibit, file: str, sentence: Sentence) -> tuple[bool | None, bool]:
    """Whether a claimed behaviour is there, and its first link true."""
    capture, finding = exhibit.capture, exhibit.finding
    assert finding is not None
    if file == "none":
        return False, False
    if finding.behaviour == "induction":  # that words occur again is no matter of opinion
        return True, False
    if file != finding.behaviour:
        return None, False
    spans = [(token.start, token.end) for token in capture.query_tokens]
    links: dict[int, set[int]] = defaultdict(set)
    for link in sentence.links:
        true = marked(sentence.text, link, spans)
        links[true.query[-1]].update(token for key in true.keys for token in key)
    first = finding.links[0]
    there = any(link.query in links for link in finding.links)
    return there, first.key in links.get(first.query, ())


def first_lines(model: NativeModel, sentences: Path, *, every: int = 1) -> list[Line]:
    """The first lines over the sentences of all files, or over one in so many."""
    return [
        first_line(model, file, sentence)
        for file in (*ENGLISH, STRANGE)
        for sentence in read_sentences(sentences, file)[::every]
    ]


@dataclass(frozen=True)
class Figures:
    """Shares of first lines: false claims and claims that no annotation judges, true ones where
    there is a pair, and warnings over plain and over strange texts."""

    false: float
    not_judged: float
    true: float
    warned_plain: float
    warned_strange: float


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
    )


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


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
    yield f"warned on strange texts  {figures.warned_strange:.3f}  (bar: ≥ {WARNED_BAR})"
    yield f"warned on plain English  {figures.warned_plain:.3f}  (bar: ≤ {SPARED_BAR})"


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a model folder")],
    sentences: Annotated[Path, typer.Argument(help="a folder of sentences")],
    show: Annotated[bool, typer.Option("--show", help="print lines that are not true")] = False,
) -> None:
    """Print the figures of a checkpoint's first lines."""
    lines = first_lines(load_native(checkpoint, "builtin"), sentences)
    for line in lines if show else ():
        if line.claim and not line.true:
            print(f"{line.file} {line.there}: {line.text}\n    {line.said}")
    print("\n".join(report(lines)))


if __name__ == "__main__":
    typer.run(main)
