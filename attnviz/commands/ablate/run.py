"""Does a part of a model matter? What the model predicts without it.

text ─► tokens ─► a run for each intervention ─► log-probabilities or an outcome ─► effects
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.ablate.record import (
    EVERY,
    SEGMENT,
    AblationReport,
    BeforeAfter,
    LinkNames,
    Others,
    TokenEffects,
    effect_of,
    is_segment,
)
from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.vectors import StreamVector
from attnviz.kit.intervene import (
    check_memory,
    intervene,
    named_parts,
    next_tokens_after,
    of_stream,
    question_of,
    site_of,
)
from attnviz.kit.others import MeanBy, OtherTexts
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.kit.roles import roles_of
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import Head, choose_heads, choose_layers
from attnviz.records.interventions import (
    ChangedRun,
    CutLink,
    Edit,
    Intervention,
    Replacement,
    Site,
    SourceRun,
)
from attnviz.records.parts import Part
from attnviz.records.positions import find_positions
from attnviz.records.predict import Outcome, Question, log_softmax, mean_outcome, outcome_of
from attnviz.records.tokens import OTHER, Token

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

DRAWS = 10
"""Other texts to draw."""


@dataclass(frozen=True)
class Replacing:
    """The values that replace outputs; or a `direction`, which is projected out of them.

    `texts`: those that the values are from, or None for the text itself. `mean_by`: how a mean over
    them is taken; `draws`, `seed`: the number of texts to draw, for one run after the other.
    """

    by: Replacement = "zero"
    texts: OtherTexts | None = None
    mean_by: MeanBy = "all"
    draws: int = DRAWS
    seed: int = 0
    direction: StreamVector | None = None

    @property
    def edits(self) -> Literal["zero", "mean", "source", "given", "projected"]:
        """The vectors that edits put in."""
        if self.direction is not None:
            return "projected"
        if self.by == "resample":
            return "source"
        return self.by if self.texts is None else "given"


@dataclass(frozen=True)
class Ablating:
    """The parts to ablate, as users name them; how; and what is measured.

    `mlps`, `layers`: the MLPs of layers, and whole layers; without `heads` only these, or, where
    nothing is named, every head. `cut`: the links to remove, in place of the heads' outputs.
    Without `answer`, every token that follows is measured; with it, that word after the text, alone
    or rather than `versus`.
    """

    heads: HeadOptions = field(default_factory=HeadOptions)
    mlps: str | None = None
    layers: str | None = None
    replacing: Replacing = Replacing()
    cut: LinkNames | None = None
    answer: str | None = None
    versus: str | None = None


def ablate_each(
    model: "LoadedModel", text: str, options: TextOptions, how: Ablating
) -> AblationReport:
    """Ablate one part at a time."""
    prepared = _prepared(model, text, options, how)
    return _ablate(prepared, how, [(part,) for part in _chosen(prepared, how)]).report


def ablate_tokens(
    model: "LoadedModel", text: str, options: TextOptions, how: Ablating, *, together: bool = False
) -> TokenEffects:
    """Ablate one part at a time, or all together; the change of each token that followed."""
    prepared = _prepared(model, text, options, how)
    parts = _chosen(prepared, how)
    found = _ablate(prepared, how, [tuple(parts)] if together else [(part,) for part in parts])
    changes = np.stack([after - found.before for after in found.after])
    before, first = found.before.astype(np.float32), _first_followed(prepared)
    tokens = prepared.empty.query_tokens[first - 1 :]
    return TokenEffects(found.report, tokens, before, changes.astype(np.float32), first=first)


def ablate_together(
    model: "LoadedModel", text: str, options: TextOptions, how: Ablating, top: int
) -> BeforeAfter:
    """Ablate some parts at once."""
    prepared = _prepared(model, text, options, how)
    parts = tuple(_chosen(prepared, how))
    found = _ablate(prepared, how, [parts], together=True)
    before, after = (next_tokens_after(prepared, top, last) for last in found.ends)
    return BeforeAfter(found.report, before, after)


def _prepared(model: "LoadedModel", text: str, options: TextOptions, how: Ablating) -> Prepared:
    model.require("predict")
    prepared = prepare(model, text, options)
    if _first_followed(prepared) == len(prepared.ids) and how.answer is None:
        last = "the image" if prepared.empty.images else "a single token"
        raise InputError(f"nothing follows {last}", f"give a longer text, or an {option('answer')}")
    return prepared


def _first_followed(prepared: Prepared) -> int:
    """The position of the first token that is measured: behind all insets, whose tokens are marks
    that no model learns to write."""
    tokens = prepared.empty.query_tokens
    return max((token.index + 1 for token in tokens if token.inset), default=1)


def _chosen(prepared: Prepared, how: Ablating) -> list[Part]:
    """The parts that are named; all heads where none is."""
    heads_per_layer = prepared.model.identity.heads_per_layer
    direction, layers = how.replacing.direction, how.heads.layers
    parts = named_parts(prepared.model, HeadOptions() if direction else how.heads, how.mlps)
    if how.layers is not None:
        whole = choose_layers(len(heads_per_layer), how.layers, "whole_layers")
        parts += [Part("layer", layer) for layer in whole]
    if how.cut is not None and any(part.head is None for part in parts):
        raise UsageError(
            "an MLP has no links", f"leave {option('mlps')} and {option('whole_layers')} out"
        )
    if direction and (layers is not None or not parts):
        streams = choose_layers(len(heads_per_layer), layers or "all", "layers")
        return [*(Part("residual", layer) for layer in streams), *parts]
    every = choose_heads(heads_per_layer, None, None)
    return parts or [Part("head", head.layer, head.head) for head in every]


@dataclass(frozen=True, eq=False)
class _Ablation:
    """A report, and the numbers that it is made of.

    `before` (tokens): what is measured of the text as it is; `after`: the same of each ablation.
    `ends`: the logits (V) after the text, as it is and after the first ablation.
    """

    report: AblationReport
    before: NDArray[np.float64]
    after: Sequence[NDArray[np.float64]]
    ends: Sequence[FloatArray]


def _ablate(
    prepared: Prepared,
    how: Ablating,
    ablations: Sequence[tuple[Part, ...]],
    *,
    together: bool = False,
) -> _Ablation:
    """Run the text as it is, then once for each ablation, and compare."""
    question = question_of(prepared, how.answer, how.versus)
    heads = sum(map(len, ablations))
    links = find_links(prepared.empty, how.cut, heads) if how.cut else ()
    if links and not (question or together):
        _check_followed(prepared, links)
    changes = [(), *(_changes(parts, how, links) for parts in ablations)]
    taken = _taken(prepared, how.replacing, changes)
    every = [_run(prepared, question, changes, each) for each in taken]
    (draws, outcome), *runs = map(_drawn, zip(*(each for each, _ in every), strict=True))
    effects = [
        effect_of(parts, draws, after, own.less(outcome) if own and outcome else None)
        for parts, (after, own) in zip(ablations, runs, strict=True)
    ]
    before = draws.mean(axis=0)
    last, *after_first = (_mean_logits(same) for same in zip(*(e for _, e in every), strict=True))
    report = AblationReport(
        capture=prepared.empty,
        replacement=how.replacing.by,
        baseline=float(before.mean()),
        tokens=len(before),
        effects=effects,
        question=question and question.likely(last),
        rank=int((last > last[question.answer.id]).sum()) + 1 if question else None,
        first=next_tokens_after(prepared, 1, last).candidates[0] if question else None,
        cut=how.cut and replace(how.cut, number=len(links)),
        others=_others(how.replacing, prepared, len(taken)),
        direction=getattr(how.replacing.direction, "name", None),
    )
    return _Ablation(
        report, before, [after.mean(axis=0) for after, _ in runs], [last, *after_first]
    )


def _check_followed(prepared: Prepared, links: Sequence[tuple[int, int]]) -> None:
    """Check that a row that loses links comes before a token of the text, which it predicts."""
    if min(query for query, _ in links) == len(prepared.empty.query_tokens) - 1:
        raise UsageError(
            f"{option('cut')} changes only the last token's row, which predicts no token of the "
            "text",
            f"add {option('answer', 'WORD')}, or cut an earlier query",
        )


def _others(how: Replacing, prepared: Prepared, draws: int) -> Others | None:
    """The other texts, as a report names them."""
    if how.texts is None:
        return None
    count, by_position = len(how.texts.texts), how.mean_by == "position"
    if how.by != "resample":
        return Others(count, how.texts.name, by_position)
    long_enough = len(how.texts.long_enough(prepared))
    return Others(count, how.texts.name, False, (draws,), (long_enough,), how.seed)


Taken: TypeAlias = tuple[SourceRun | None, Mapping[Site, FloatArray]]
"""The values that the edits of all runs put in, except for values from the text itself."""


def _taken(prepared: Prepared, how: Replacing, changes: Sequence[Intervention]) -> list[Taken]:
    """The values that the edits put in: once, or once for each text that is drawn.

    Raises:
        InputError: no other text fits this one.
    """
    sites = {edit.site for each in changes for edit in each if isinstance(edit, Edit)}
    if how.direction is not None:
        return [(None, dict.fromkeys(sites, of_stream(prepared.model, how.direction)[None]))]
    if how.texts is None:
        return [(None, {})]
    if how.by == "resample":
        check_memory(prepared, sites)
        return [(source, {}) for source in how.texts.drawn(prepared, how.draws, how.seed)]
    return [(None, how.texts.means_for(prepared, sites, how.mean_by))]


Measured: TypeAlias = tuple[NDArray[np.float64], Outcome | None]
"""The measure of a run (tokens), and the predictions of a question's tokens."""


def _run(
    prepared: Prepared, question: Question | None, changes: Sequence[Intervention], taken: Taken
) -> tuple[list[Measured], list[FloatArray]]:
    """Each run's numbers, and the logits (V) after the text of the first two."""
    ends, first = dict[int, FloatArray](), _first_followed(prepared)

    def keep(run: ChangedRun) -> Measured:
        if run.index < 2:
            ends[run.index] = run.last
        if question is None:
            return run.followed[first - 1 :].astype(np.float64), None
        outcome = outcome_of(run.last, question.ids)
        return np.array([outcome.measured]), outcome

    source, given = taken
    whole = question is None
    runs = intervene(prepared, changes, keep, whole=whole, source=source, given=given)
    return runs, [ends[i] for i in sorted(ends)]


def _drawn(same: Sequence[Measured]) -> Measured:
    """The measures with each text that was drawn (draws, tokens), and their mean outcome."""
    outcomes = [outcome for _, outcome in same if outcome]
    measured = np.stack([measured for measured, _ in same])
    return measured, mean_outcome(outcomes) if outcomes else None


def _mean_logits(every: Sequence[FloatArray]) -> FloatArray:
    """Logits (V) of the mean probability over the texts that were drawn."""
    if len(every) == 1:
        return every[0]
    logits: FloatArray = np.logaddexp.reduce([log_softmax(e) for e in every]).astype(np.float32)
    return logits


def _changes(
    parts: tuple[Part, ...], how: Ablating, links: Sequence[tuple[int, int]]
) -> Intervention:
    """The changes to a run that ablate some parts."""
    changes = list[Edit | CutLink]()
    for part in parts:
        layer = part.layer or 0
        if how.cut is not None:
            head = Head(layer, part.head or 0)
            changes += [CutLink(head, query, key, how.cut.renormalise) for query, key in links]
        else:
            both = [Site("attention", layer), Site("mlp", layer)]
            sites = both if part.kind == "layer" else [site_of(part)]
            changes += [Edit(site, how.replacing.edits) for site in sites]
    return tuple(changes)


# The links that names stand for: of tokens, of every token, of segments.


MOST_LINKS = 500_000
"""The most links to cut in all runs together."""


def find_links(empty: Capture, cut: LinkNames, heads: int) -> list[tuple[int, int]]:
    """Find the (query, key) pairs that names of links stand for, as far as the model has them.

    A row that `*` or a segment names keeps its links where, renormalised, it would have none left.
    `heads`: the number of heads that lose them, in all runs.

    Raises:
        UsageError: a name stands for no link, nothing is left of a row, or there are too many.
    """
    roles, seen = roles_of(empty, None, cut.segments), empty.allowed_count()
    links = dict[tuple[int, int], bool]()  # whether they are named token by token
    for query, key in cut.names:
        own = [(q, k) for q, k in _pairs(empty, query, key, roles) if k < seen[q]]
        if not own:
            raise UsageError(
                f"{query!r} never attends to {key!r}, which comes after it",
                "name a key that is not after the query",
            )
        plain = query != EVERY and not (roles and is_segment(query))
        links |= {link: plain or links.get(link, False) for link in own}
    if cut.renormalise:
        of_query = Counter(query for query, _ in links)
        alone = {query for query, cuts in of_query.items() if cuts >= seen[query]}
        left = {link: plain for link, plain in links.items() if link[0] not in alone}
        if not left or any(plain for link, plain in links.items() if link[0] in alone):
            label = empty.query_tokens[min(alone)].label
            raise UsageError(
                f"nothing is left of the row of {label!r} to renormalise",
                f"leave {option('renormalise')} out",
            )
        links = left
    if len(links) * heads > MOST_LINKS:
        raise UsageError(
            f"{len(links):,} links of {heads:,} heads are too many to cut",
            f"name fewer tokens, or some heads with {option('heads')}",
        )
    return sorted(links)


def _pairs(empty: Capture, query: str, key: str, roles: tuple[str, ...]) -> list[tuple[int, int]]:
    if roles and SEGMENT in (query, key):
        if query != key:
            raise UsageError(
                f"{option('cut', f'{query}:{key}')} has {SEGMENT} on only one side",
                f"{SEGMENT}:{SEGMENT} is each link within a segment, {SEGMENT}NAME one segment",
            )
        of = [[i for i, own in enumerate(roles) if own == name] for name in {*roles} - {OTHER}]
        return [(q, k) for own in of for q in own for k in own]
    queries = _positions(empty.query_tokens, query, roles)
    keys = _positions(empty.key_tokens, key, roles)
    return [(q, k) for q in queries for k in keys]


def _positions(tokens: tuple[Token, ...], name: str, roles: tuple[str, ...]) -> tuple[int, ...]:
    """The positions of every token, of a segment, or of what a name of tokens matches."""
    if name == EVERY:
        return tuple(range(len(tokens)))
    told = roles or any(token.label.startswith(SEGMENT) for token in tokens)
    if not told and is_segment(name):
        given = option("segments", f"{name[1:] or 'NAME'}=/…/")
        raise UsageError(f"{option('cut', repr(name))} names a segment", f"add {given}")
    if not (roles and is_segment(name)):
        return find_positions(tokens, [name], "cut")
    found = tuple(i for i, own in enumerate(roles) if own == name.removeprefix(SEGMENT))
    if not found:
        names = ", ".join(f"{SEGMENT}{each}" for each in dict.fromkeys(roles))
        raise UsageError(f"{option('cut', repr(name))} is no segment", f"there are: {names}")
    return found
