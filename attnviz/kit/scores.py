"""Scores of a model's heads: over a text, a saved capture, or the standard probe.

text ─► tokens ─► run ─► rows ─► metrics ─► roles
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attnviz.draw.titles import amount
from attnviz.errors import IdleOption, InputError, UsageError, option
from attnviz.kit import cache
from attnviz.kit.choose import plan_capture
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare, prepare_tokens, side_of
from attnviz.records.apply import exhibit_of
from attnviz.records.capture import VALUE_NORMS, Capture, FloatArray, PatternBlock
from attnviz.records.exhibit import LITTLE_LEFT, Choice, whole_map
from attnviz.records.heads import Head, choose_heads
from attnviz.records.images import MeasurePatches
from attnviz.records.metrics import (
    IMAGE_METRICS,
    SINK,
    HeadMetrics,
    HeadReport,
    Marks,
    MeasureHeads,
    descending,
    estimates,
    marks_of_diagonals,
    marks_of_tokens,
    marks_of_two_texts,
    role_of,
    untold_roles,
)
from attnviz.records.rests import FindRests
from attnviz.records.rows import measured
from attnviz.records.tokens import Token, numbered
from attnviz.records.transforms import PLAIN, Transforms

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel
    from attnviz.records.metrics import MetricName, RoleName


Scored: TypeAlias = tuple[Capture, MeasureHeads | MeasurePatches]
"""A run, without its patterns, and its scores."""


@dataclass(frozen=True)
class Probe:
    """The standard probe: random tokens, twice.

    `length`: the number of different tokens that are repeated; `samples`: the number of draws,
    from `seed` on; `whole`: `previous`, `duplicate` and `induction` over whole diagonals, as in
    TransformerLens, else over the rows of the second copy.
    """

    length: int = 50
    samples: int = 8
    seed: int = 0
    whole: bool = False


def score_text(
    model: "LoadedModel",
    texts: Sequence[str],
    options: TextOptions,
    heads: HeadOptions,
    transforms: Transforms = PLAIN,
) -> HeadReport:
    """Score heads over texts of equal weight, after transforms that keep heads separate.

    A model that reads no text is run on each file that is given.
    """
    model = side_of(model, texts[0], options)
    several = model.reads != "text" and options.given
    each = [replace(options, given=(one,)) for one in several] if several else [options]
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    runs = (prepare(model, text, one) for text in texts for one in each)
    report = _report([_score_run(run, chosen, transforms) for run in runs])
    return replace(report, on_probe=_roles_on_probe(model, report))


def _score_run(prepared: Prepared, chosen: Sequence[Head], transforms: Transforms) -> Scored:
    empty = prepared.empty
    _check_length(empty)
    check_merge(empty, transforms)
    if transforms.any:
        captured = prepared.record(chosen)
        captured = prepared.with_norms(captured) if transforms.weighted else captured
        captured = prepared.with_lengths(captured) if transforms.drop_sink else captured
        return _score_maps(captured, transforms)
    score = _measure_of(empty, lengths=prepared.value_lengths())
    prepared.budget.check_patterns(chosen, 0)
    prepared.run(chosen, score)
    return empty, score


def score_capture(
    captured: Capture, heads: HeadOptions, transforms: Transforms = PLAIN
) -> HeadReport:
    """Score the heads that a saved capture holds, or those of them that are named."""
    everything = heads if heads.named else HeadOptions(everything=True)
    if captured.signed:
        raise UsageError(
            f"this capture holds {captured.values}, not weights", "capture the text again"
        )
    if captured.kind == "answer":
        raise UsageError(
            "the metrics need a whole text, but this capture holds only the rows of an answer",
            f"capture the text with attnviz show, or use generate {option('rows', 'head')}",
        )
    check_merge(captured, transforms)
    chosen = captured.only(plan_capture(captured, everything).recorded)
    return _report([_score_maps(chosen, transforms)])


def _score_maps(captured: Capture, transforms: Transforms) -> Scored:
    """Score whole patterns after transforms, with rows rescaled to sum to 1."""
    exhibit = exhibit_of(captured, Choice(captured.heads), transforms)
    empty = replace(exhibit.capture, layers=())
    _check_length(empty)
    merged = transforms.merge is not None
    lengths = None if merged else captured.extras.get(VALUE_NORMS)
    score = _measure_of(empty, exhibit.dropped, merged=merged, lengths=lengths)
    if isinstance(score, MeasureHeads) and (exhibit.dropped or transforms.weighted):
        score.rests = None  # there are no keys, or no shares, to rest on
    for head_map in map(whole_map, exhibit.maps):
        assert head_map.layer is not None  # no transform joined any of them
        assert head_map.head is not None
        score.dropped = head_map.dropped
        weights = head_map.shares[list(exhibit.queries)]
        if head_map.left is not None:  # the rest of a row is not scaled up
            little = head_map.left[list(exhibit.queries)] < LITTLE_LEFT
            weights[little & ~little.all()] = 0
        sums = weights.sum(axis=1)
        # if a key was left out, a query may attend to nothing else
        some = sums > 0 if exhibit.dropped and sums.any() else np.ones(len(sums), np.bool_)
        weights, queries = weights[some], np.array(exhibit.queries)[some]
        if transforms.weighted:
            weights = weights / np.where(sums > 0, sums, 1)[some, None]
        score(PatternBlock(head_map.layer, (head_map.head,), queries, weights[None]))
    return empty, score


def score_probe(
    model: "LoadedModel", probe: Probe, options: TextOptions, heads: HeadOptions
) -> HeadReport:
    """Score heads on a random sequence, repeated."""
    if model.reads != "text":
        raise UsageError(
            f"the probe is a text, which {model.identity.name} cannot read",
            f"give an {model.reads}",
        )
    if model.kind not in ("self", "encoder"):
        raise UsageError(
            "the probe cannot measure attention between two texts",
            f"give {option('kind', 'encoder')}, or a text",
        )
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    samples, before = [], 0
    for n in range(probe.samples):
        prepared, before = _repeated(model, probe, probe.seed + n, options)
        if prepared.empty.signed:
            raise UsageError(
                f"the probe is of weights, not of {prepared.empty.values}", "show them"
            )
        marks = marks_of_tokens(prepared.ids, since=before + probe.length)
        marks = marks_of_diagonals(probe.length) if probe.whole else marks
        # with random tokens, columns suffice to find rests, without a second run for values
        rests = FindRests(prepared.shape, None, prepared.empty.causal, itself=True)
        score = MeasureHeads(marks, prepared.empty.causal, rests=rests)
        prepared.budget.check_patterns(chosen, 0)
        prepared.run(chosen, score)
        samples.append((prepared.empty, score))
    # the convention, which changes the metrics
    front = "BOS and then " if before else "no BOS, "
    sampled = "1 sample" if probe.samples == 1 else f"{probe.samples} samples"
    drawn = f"{probe.length} random tokens twice, {sampled}"
    rows = "whole diagonals" if probe.whole else "the second copy's rows"
    rows = f"all rows, for previous, duplicate and induction {rows}"
    convention = f"{front}{drawn} from seed {probe.seed}; {rows}"
    report = replace(_report(samples), probe=convention, others=())
    if probe == Probe() and not heads.named and options.bos is None:
        cache.keep(model, PROBED, kept_of(report))
    return report


def _repeated(
    model: "LoadedModel", probe: Probe, seed: int, options: TextOptions
) -> tuple[Prepared, int]:
    """Draw one sample of the probe, with the number of tokens before it."""
    tokenizer = model.tokenizer
    ordinary = np.array(tokenizer.ordinary_ids())
    if probe.length > len(ordinary):
        raise UsageError(
            f"the model has only {len(ordinary)} tokens", f"give a smaller {option('length')}"
        )
    drawn = np.random.default_rng(seed).choice(ordinary, probe.length, replace=False)
    repeated = [Token(0, id_, tokenizer.label(id_), 0, 0) for id_ in drawn.tolist()] * 2
    first, last = tokenizer.ends(tokenizer.bos if options.bos is None else options.bos)
    tokens = numbered((*first, *repeated, *last))
    if len(tokens) > tokenizer.context:
        most = (tokenizer.context - len(first) - len(last)) // 2
        raise UsageError(
            f"the probe has {len(tokens)} tokens, but the model takes at most {tokenizer.context}",
            f"give {option('length', most)} or less",
        )
    return prepare_tokens(model, tokens, options), len(first)


PROBED = "roles"


def kept_of(report: HeadReport) -> dict[str, Any]:
    """What is kept of the probe: for roles beside those on a text, and for sets (sets.py)."""
    roles = {str(each.head): each.role.name for each in report.heads if each.role}
    scores = {
        str(each.head): {name: measured(own.mean) for name, own in each.metrics.items()}
        for each in report.heads
    }
    return {"roles": roles, "scores": scores}


def _roles_on_probe(model: "LoadedModel", report: HeadReport) -> dict[str, str]:
    """The roles of these heads on the probe, if these were kept."""
    from attnviz.records.metrics import ROLES  # of plugins, too, which others do not import

    kept = cache.known(model, PROBED).get("roles")
    names, heads = {role.name for role in ROLES}, {str(each.head) for each in report.heads}
    known = kept.items() if isinstance(kept, dict) else ()
    return {head: role for head, role in known if head in heads and role in names}


def narrow(
    report: HeadReport, sort: "MetricName | None", role: "RoleName | None", top: int | None
) -> HeadReport:
    """The first `top` heads of a role, sorted; the sinks stay those of all heads.

    `sort`: by this metric or its column, the largest first, or None for layer and head.
    """
    listed: Sequence[HeadMetrics] = report.heads
    columns = {score.short: name for name, score in report.scores.items()}
    sort = columns.get(sort or "", sort)
    if sort is not None and sort not in report.scores:
        raise UsageError(
            f"{option('sort', sort)} is not measured here", f"give {', '.join(report.scores)}"
        )
    if role is not None and report.scores is IMAGE_METRICS:
        raise IdleOption(f"{option('role', role)} needs a text, as heads on images have no roles")
    if role is not None:
        listed = [each for each in listed if each.role is not None and each.role.name == role]
        if not listed:
            roles = dict.fromkeys(each.role.name for each in report.heads if each.role)
            hint = f"there are: {', '.join(roles) or 'none'}"
            if role in (each.name for each, _ in report.untold):
                hint = f"a text this short cannot show it; give a longer one, or {option('probe')}"
            raise UsageError(f"no head here has the role {role!r}", hint)
    if sort is not None:
        listed = sorted(listed, key=lambda each: descending(each.metrics[sort].mean))
    return replace(report, heads=listed[:top])


def _measure_of(
    empty: Capture,
    dropped: Sequence[int] = (),
    *,
    merged: bool = False,
    lengths: FloatArray | None = None,
) -> MeasureHeads | MeasurePatches:
    """The consumer that measures heads over a text, or within an image."""
    if empty.image_alone:
        return MeasurePatches(empty.query_tokens, empty.images[0], dropped)
    shape = len(empty.query_tokens), len(empty.key_tokens)
    rests = FindRests(shape, lengths, empty.causal, empty.one_sequence, named=empty.named_heads)
    return MeasureHeads(_marks(empty, merged=merged), empty.causal, dropped, rests)


def check_merge(captured: Capture, transforms: Transforms) -> None:
    """Check that tokens of an image without text are not to be merged to words."""
    if captured.image_alone and transforms.merge is not None:
        raise IdleOption(f"{option(transforms.merge)} is about a text, and there is none")


def _marks(captured: Capture, *, merged: bool = False) -> Marks:
    if captured.kind == "cross":
        return marks_of_two_texts()
    # merged tokens have the id of their first piece alone, which may be a space, and those of an
    # inset all have one
    names = [token.label if merged or token.inset else token.id for token in captured.key_tokens]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return marks_of_tokens([numbers[name] for name in names])


def _check_length(captured: Capture) -> None:
    if len(captured.query_tokens) < (2 if captured.kind == "cross" else 3):
        raise InputError(
            f"a text of {amount(len(captured.query_tokens), 'token')} is too short to score heads",
            f"give a longer text, or {option('probe')}",
        )


def _report(scored: Sequence[Scored]) -> HeadReport:
    """The means over samples, texts or images."""
    (empty, first), *others = scored
    measured, heads = [measure.metrics() for _, measure in scored], list[HeadMetrics]()
    rows = sum((Counter(m.rows()) for _, m in scored if isinstance(m, MeasureHeads)), Counter())
    of_text = isinstance(first, MeasureHeads)
    resting = [m.resting() for _, m in scored if isinstance(m, MeasureHeads)]
    for head in measured[0]:
        metrics = estimates([sample[head] for sample in measured])
        named = tuple(each.behaviour for each in empty.named(head.layer, head.head))
        if not of_text:
            heads.append(HeadMetrics(head, metrics, None, named))
            continue
        off_rests = estimates([sample.get(head, {"rests": nan}) for sample in resting])
        role = role_of(metrics, rows, off_rests)
        heads.append(HeadMetrics(head, metrics, role, named, off_rests["rests"]))
    runs = tuple(each for each, _ in others)
    if not of_text:
        return HeadReport(empty, heads, 0, len(heads), others=runs, scores=IMAGE_METRICS)
    sinks = sum(head.metrics["first"].mean > SINK for head in heads)
    return HeadReport(empty, heads, sinks, len(heads), untold=untold_roles(rows), others=runs)
