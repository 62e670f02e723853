"""What carries the difference between two texts? One text, run with vectors of the other.

two texts ─► tokens, aligned ─► a run for each site and position ─► outcomes ─► effects
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.commands.patch.record import PatchReport, effect_of
from attnviz.draw.titles import amount
from attnviz.errors import InputError, UsageError, option
from attnviz.kit.intervene import Progress, candidate, check_memory, intervene, likely, question_of
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.models.loaded import predicting
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import choose_heads, choose_layers
from attnviz.records.interventions import (
    ChangedRun,
    Edit,
    Intervention,
    Measure,
    Outcome,
    Question,
    Site,
    SiteKind,
    SourceRun,
)
from attnviz.records.positions import find_matches, find_positions
from attnviz.records.predict import KeepOutcomes, outcome_of

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


SAME = 1e-4
"""Two texts that differ by less than so many logits do not differ."""


@dataclass(frozen=True)
class Patching:
    """What is patched, and what is measured.

    `kind`: of the sites. `answer`, `versus`: words; by default the likeliest token after the source
    and that after the text. `queries`: names of the positions that are patched; none: all.
    `align`: words that stand for each other, as in `blue=red`.
    """

    kind: SiteKind = "head"
    answer: str | None = None
    versus: str | None = None
    queries: Sequence[str] = ()
    align: Sequence[str] = ()

    @property
    def measure(self) -> Measure:
        """What effects are told in."""
        return "difference" if self.answer is None or self.versus is not None else "answer"


def patch_text(
    model: "LoadedModel",
    text: str,
    source: str,
    options: TextOptions,
    heads: HeadOptions,
    how: Patching,
    progress: Progress | None = None,
) -> PatchReport:
    """Run a text once for each site, with the vectors that the site has in the source.

    Heads are patched at all positions at once; other sites at one after the other.

    Raises:
        InputError: a text does not fit the context, the two are the same or cannot be aligned, or
            the model predicts the same after both.
        UsageError: a part that the model does not have, an answer that is no token, or a model that
            predicts no next token.
    """
    predicting(model)
    ours, theirs = prepare(model, text, options), prepare(model, source, options)
    if ours.ids == theirs.ids:
        raise InputError("the source is the text itself", "give another one")
    places = aligned(ours.empty, theirs.empty, how.align)
    positions = _positions(ours, how, places)
    at = _sites(model, heads, how.kind, positions)
    check_memory(theirs, len({(site.kind, site.layer) for site, _ in at}))
    last = [_last(each) for each in (ours, theirs)]
    question = _question(ours, options, how, last)
    before, ends = (outcome_of(logits, question.ids) for logits in last)
    _check_distance(before, ends)
    interventions: list[Intervention] = [
        (Edit(site, "source", positions if place is None else (place,)),) for site, place in at
    ]
    keep = KeepOutcomes(question.ids)
    taken = SourceRun(theirs.ids, [place or 0 for place in places])
    intervene(ours, interventions, [keep], progress, source=taken)
    effects = [
        effect_of(site, place, before, ends, keep.kept[i]) for i, (site, place) in enumerate(at)
    ]
    asked = likely(question, last[0])
    return PatchReport(
        *(ours.empty, theirs.empty, how.kind, asked, before, ends, places, positions, effects),
        named=bool(how.queries),
    )


def _positions(prepared: Prepared, how: Patching, places: Sequence[int | None]) -> tuple[int, ...]:
    """The positions that are patched: those that are named, as far as they are aligned."""
    tokens = prepared.empty.query_tokens
    named = (
        find_positions(tokens, list(how.queries), "queries") if how.queries else range(len(places))
    )
    found = tuple(position for position in named if places[position] is not None)
    if not found:
        raise InputError(
            "none of these positions is aligned with the source",
            f"align words of both texts with {option('align', 'WORD=WORD')}",
        )
    return found


def _last(prepared: Prepared) -> FloatArray:
    """The logits (V) after the last position of a text."""
    found = list[FloatArray]()

    def keep(run: ChangedRun) -> None:
        found.append(run.last)

    intervene(prepared, [()], [keep])
    return found[0]


def _question(
    prepared: Prepared, options: TextOptions, how: Patching, last: Sequence[FloatArray]
) -> Question:
    """What is measured."""
    named = question_of(prepared, options, how.answer, how.versus)
    if named is not None:
        return named
    ours, theirs = (int(logits.argmax()) for logits in last)
    if ours == theirs:
        label = prepared.model.tokenizer.label(ours)
        raise InputError(
            f"{label!r} is the likeliest token after both texts",
            f"name an {option('answer')} and a {option('versus')}",
        )
    return Question(candidate(prepared, theirs), candidate(prepared, ours))


def _check_distance(before: Outcome, ends: Outcome) -> None:
    if not abs(ends.measured - before.measured) >= SAME:
        raise InputError(
            "the model predicts the answer equally after both texts",
            "choose another answer, or another source",
        )


def _sites(
    model: "LoadedModel", heads: HeadOptions, kind: SiteKind, positions: Sequence[int]
) -> list[tuple[Site, int | None]]:
    """What is patched in each run: a head at all positions, or a layer at one."""
    heads_per_layer = model.identity.heads_per_layer
    if kind == "head":
        chosen = choose_heads(heads_per_layer, heads.layers, heads.heads)
        return [(Site("head", head.layer, head.head), None) for head in chosen]
    layers = choose_layers(len(heads_per_layer), heads.layers or "all", "layers")
    if kind == "attention":
        layers = tuple(layer for layer in layers if heads_per_layer[layer])
    return [(Site(kind, layer), position) for layer in layers for position in positions]


# Which position of one text takes its vectors from which of another.


def aligned(text: Capture, source: Capture, words: Sequence[str]) -> tuple[int | None, ...]:
    """For each position of the text that of the source; None where there is none.

    Texts of one length are aligned position by position. With `words`, such as `blue=red`, the
    tokens that both texts begin and end with are aligned, and these words with each other,
    occurrence by occurrence: token by token where they have equally many, else the last with the
    last.

    Args:
        text, source: the runs of both, without patterns.
        words: pairs of names of tokens.

    Raises:
        InputError: the texts have other lengths, and no words are given.
        UsageError: a pair cannot be read, names no token, or a word more often in one text.
    """
    ours, theirs = text.query_tokens, source.query_tokens
    if not words:
        if len(ours) != len(theirs):
            raise InputError(
                f"the text has {amount(len(ours), 'token')}, and the source {len(theirs)}",
                "give two texts of one length, or align words of theirs with "
                + option("align", "WORD=WORD"),
            )
        return tuple(range(len(ours)))
    alike = [a.id == b.id for a, b in zip(ours, theirs, strict=False)]
    ends = [a.id == b.id for a, b in zip(reversed(ours), reversed(theirs), strict=False)]
    n = len(ours)
    places = dict[int, int]()
    behind = _run(ends)
    for i in range(behind):
        places[n - 1 - i] = len(theirs) - 1 - i
    for i in range(min(_run(alike), min(n, len(theirs)) - behind)):
        places[i] = i
    for pair in words:
        places |= _of_words(text, source, pair)
    return tuple(places.get(position) for position in range(n))


def _run(alike: Sequence[bool]) -> int:
    """How many of the first are true."""
    return next((i for i, same in enumerate(alike) if not same), len(alike))


def _of_words(text: Capture, source: Capture, pair: str) -> dict[int, int]:
    ours, equals, theirs = pair.partition("=")
    if not (equals and ours and theirs):
        raise UsageError(
            f"{option('align', repr(pair))} is not a pair of words", "give them as in blue=red"
        )
    mine = find_matches(text.query_tokens, ours, "align")
    try:
        other = find_matches(source.query_tokens, theirs, "align")
    except UsageError as error:
        raise UsageError(" source".join(error.wrong.rsplit(" text", 1)), error.hint) from None
    if len(mine) != len(other):
        raise UsageError(
            f"{ours!r} stands {amount(len(mine), 'time')} in the text, and {theirs!r} "
            f"{amount(len(other), 'time')} in the source",
            f"name one of each, as in {option('align', f'{ours}#1={theirs}#1')}",
        )
    places = dict[int, int]()
    for a, b in zip(mine, other, strict=True):
        places |= dict(zip(a, b, strict=True)) if len(a) == len(b) else {a[-1]: b[-1]}
    return places
