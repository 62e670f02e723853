"""Does the built-in model's answer look at its source? `python -m making.answers FOLDER`.

On held-out texts of the little world, whose ground truth says which sentence the next word comes
from: how often that sentence has the largest share of the attention, and how often its deletion
costs most. And how often a murderer's name is supported by its own mystery, by another one that
does not tell it, and by a text about other things.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from attnviz.commands.generate.run import Writing, answering
from attnviz.inputs.prompts import Prompt, cut_prompt
from attnviz.kit.prepare import HeadOptions, TextOptions
from attnviz.models.catalog import Source, load
from attnviz.records.tokens import Segment
from making.world.text import Text
from making.world.texts import texts

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

ASKS: Mapping[str, str] = MappingProxyType(
    {"mystery": "the murderer", "adjectives": "first adjective"}
)
"""By kind of text, the answer that is looked at."""
WAYS = ("retrieval heads", "mean of all heads", "nearest sentence", "deletion")


@dataclass(frozen=True)
class Case:
    """A prompt, the word that follows it, and the segments that it can come from."""

    prompt: Prompt
    word: str
    sources: frozenset[str]


def cases(kind: str, count: int) -> Iterator[Case]:
    """The first so many held-out texts with such an answer and three sentences or more."""
    made = 0
    for text in texts("answers", kind, held_out=True):
        case = _case(text, kind)
        if case is not None:
            yield case
            made += 1
        if made == count:
            return


def _case(text: Text, kind: str) -> Case | None:
    answer = next((a for a in text.answers if a.measure == ASKS[kind]), None)
    if answer is None:
        return None
    before = Text(kind, text.words[: answer.word])
    starts, end = [], 0
    for word in before.words:
        starts.append(before.source.index(word, end))
        end = starts[-1] + len(word)
    linked = {key for link in text.links if link.behaviour == kind for key in link.keys}
    told = {i for i, word in enumerate(before.words) if word in answer.accepted}
    keys = linked if kind == "mystery" else told
    prompt = cut_prompt(before.source, "sentence", ())
    sources = {_holding(prompt, starts[key]) for key in keys if key < len(starts)}
    if len(prompt.segments) < 3 or not sources:
        return None
    return Case(prompt, text.words[answer.word], frozenset(sources))


def _holding(prompt: Prompt, at: int) -> str:
    def holds(segment: Segment) -> bool:
        return any(start <= at < end for start, end in segment.slices)

    return next(segment.name for segment in prompt.segments if holds(segment))


def found(model: "LoadedModel", case: Case) -> dict[str, bool]:
    """By each way of looking, whether the first sentence is a source."""
    writing = Writing(target=f" {case.word}")
    options = TextOptions()
    first: dict[str, str] = {"nearest sentence": case.prompt.segments[-2].name}
    for way, heads in (
        ("retrieval heads", HeadOptions()),
        ("mean of all heads", HeadOptions(heads="all")),
    ):
        asked = answering(model, case.prompt, options, writing, heads)
        answer = asked.answer(asked.tokens_with_rows())
        shares = [(c, share) for c, share in answer.mean_shares() if c.part == "segment"]
        first[way] = max(shares, key=lambda each: each[1])[0].name
        if way == "retrieval heads":
            effects = asked.check(answer).effects
            first["deletion"] = min(effects, key=lambda each: each.change).segment
    return {way: name in case.sources for way, name in first.items()}


SUPPORTS = ("its own mystery", "another mystery", "other things")


def supported(model: "LoadedModel", case: Case, documents: str) -> bool | None:
    """Whether sentences support the word of a case, whose question they stand before."""
    (asks, _), *_ = case.prompt.segments[-1].slices
    prompt = cut_prompt(documents + case.prompt.text[asks:], "sentence", ())
    asked = answering(model, prompt, TextOptions(), Writing(target=f" {case.word}"), HeadOptions())
    check = asked.check(asked.answer(asked.tokens_with_rows()))
    return check.statements[0].groundedness.supported


def support(model: "LoadedModel", count: int) -> Table:
    """How many murderers' names the sentences of each kind of text support."""
    mysteries, things = list(cases("mystery", count)), list(cases("adjectives", count))

    def told(case: Case) -> str:
        return case.prompt.text[: case.prompt.segments[-1].slices[0][0]]

    table = Table("a name is", *SUPPORTS)
    found = Counter[tuple[str, bool | None]]()
    for n, case in enumerate(mysteries):
        later = (told(each) for each in (*mysteries[n + 1 :], *mysteries[:n]))
        other = next(each for each in later if case.word not in each.split())
        for way, documents in zip(SUPPORTS, (told(case), other, told(things[n])), strict=True):
            found[way, supported(model, case, documents)] += 1
    for name, value in (("supported", True), ("unsupported", False), ("certain without", None)):
        table.add_row(name, *(str(found[way, value]) for way in SUPPORTS))
    return table


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False)],
    count: Annotated[int, typer.Option(help="texts of each kind")] = 200,
) -> None:
    """Print how often each way of looking finds the sentence that an answer comes from."""
    model = load(Source(str(folder)))
    table = Table("answers", *WAYS, "texts")
    for kind in ASKS:
        results = [found(model, case) for case in cases(kind, count)]
        shares = [sum(each[way] for each in results) / len(results) for way in WAYS]
        table.add_row(kind, *(f"{share:.3f}" for share in shares), str(len(results)))
    Console().print(table)
    Console().print(support(model, count // 2))


if __name__ == "__main__":
    typer.run(main)
