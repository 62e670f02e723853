"""What a model predicts, and which tokens its last position attends to.

text ─► tokens ─► run ─► logits ─► candidates; the last position's rows ─► evidence
"""

from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import TYPE_CHECKING

from attnviz.errors import InputError, ModelError, UsageError, option
from attnviz.kit.intervene import candidate_after, keep_next_tokens, likely, question_of
from attnviz.kit.prepare import Prepared, TextOptions, frozen, prepare
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import KeepLinks
from attnviz.records.heads import every_head
from attnviz.records.predict import (
    Attribution,
    KeepNextTokens,
    LastLink,
    LogitRows,
    PredictedAnswer,
    Prediction,
    Question,
    outcome_of,
)
from attnviz.records.tokens import MASKS

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class Reading:
    """What to read: the number of candidates; also those after `each` position, or by `lens`.

    `answer`: also the prediction of this word, alone or compared with `versus`. `attribute`: also
    the answer's logit by part (the likeliest token's without an answer), or its difference from
    that of `versus`.
    """

    top: int = 10
    each: bool = False
    lens: bool = False
    attribute: bool = False
    answer: str | None = None
    versus: str | None = None


def predict_text(
    model: "LoadedModel", text: str, options: TextOptions, reading: Reading
) -> Prediction:
    """What the model predicts to come next, and the strongest links of its last position.

    A model that reads both sides fills the masks of the text.
    """
    if model.can("fill"):
        return _fill(model, text, options, reading)
    model.require("predict")
    prepared = prepare(model, text, options)
    ids, last = prepared.ids, len(prepared.ids) - 1
    _check_memory(prepared)
    every, through = (keep_next_tokens(prepared, reading.top) for _ in range(2))
    question, end = None, list[FloatArray]()
    if reading.answer is not None:
        question = question_of(prepared, options, reading.answer, reading.versus)

    def consume(rows: LogitRows) -> None:
        every(rows)
        if question:  # the last rows are those of the last position
            end[:] = [rows.logits[-1].copy()]

    model.predict(ids, range(len(ids)) if reading.each else [last], consume, lens=False)
    if reading.lens:
        model.predict(ids, [last], through, lens=True)
    return Prediction(
        capture=prepared.empty,
        last=every.next_tokens[-1],
        each=every.next_tokens[:-1] if reading.each else (),
        lens=through.next_tokens,
        evidence=_evidence(prepared, last),
        attribution=_attribution(prepared, options, reading, every) if reading.attribute else None,
        asked=_answered(question, end[0]) if question else None,
    )


def _answered(question: Question, last: FloatArray) -> PredictedAnswer:
    """What the logits (V) after the text predict of a question."""
    ranks = tuple(int((last > last[id_]).sum()) + 1 for id_ in question.ids)
    return PredictedAnswer(likely(question, last), outcome_of(last, question.ids), ranks)


def _check_memory(prepared: Prepared) -> None:
    """Transformers makes the logits of every position at once."""
    size = 4 * len(prepared.ids) * prepared.model.tokenizer.vocab_size
    prepared.budget.check(size, "shorten the text")


def _fill(model: "LoadedModel", text: str, options: TextOptions, reading: Reading) -> Prediction:
    """What the model puts in place of each mask of the text."""
    mask = model.tokenizer.mask
    if mask is None:
        raise UsageError(f"{model.identity.name} has no mask to fill", "use another model")
    for name in ("each", "attribute", "answer"):
        if getattr(reading, name):
            raise UsageError(
                f"{model.identity.name} fills masks, and {option(name)} is for next tokens",
                "leave it out",
            )
    for name in MASKS:
        text = text.replace(name, mask.name)
    prepared = prepare(model, text, replace(options, special=True))
    masks = [position for position, id_ in enumerate(prepared.ids) if id_ == mask.id]
    if not masks:
        raise InputError(
            f"{model.identity.name} fills masks, and the text has none", f"write {mask.name}"
        )
    _check_memory(prepared)
    every, through = (keep_next_tokens(prepared, reading.top, follow=False) for _ in range(2))
    model.fill(prepared.ids, masks, every, lens=False)
    if reading.lens:
        model.fill(prepared.ids, masks[-1:], through, lens=True)
    return Prediction(
        capture=prepared.empty,
        last=every.next_tokens[-1],
        each=every.next_tokens[:-1],
        lens=through.next_tokens,
        evidence=_evidence(prepared, masks[-1]),
        fills=True,
    )


def _attribution(
    prepared: Prepared, options: TextOptions, reading: Reading, every: KeepNextTokens
) -> Attribution:
    """The answer's logit, or the likeliest token's, as a sum over parts."""
    best, position = every.next_tokens[-1].candidates[0], len(prepared.ids) - 1
    if reading.answer is not None:
        best = candidate_after(prepared, options, reading.answer, "answer")
    ids, versus = [best.id], None
    if reading.versus is not None:
        versus = candidate_after(prepared, options, reading.versus, "versus")
        if versus.id == best.id:
            raise UsageError(
                f"{option('versus', repr(reading.versus))} is the likeliest token itself",
                "name another one",
            )
        ids.append(versus.id)
    sums = frozen(prepared)
    output = sums.output
    if output is None:
        raise ModelError(
            f"the logits of {prepared.model.identity.name} are not a sum over its parts",
            "it caps them, or has no output layer that attnviz can follow; use another model",
        )
    signs = output.weight.new_tensor([1.0, -1.0][: len(ids)])
    shares = sums.of_logits(position, signs[None] @ output.weight[ids]).shares
    bias = 0.0 if output.bias is None else float(signs @ output.bias[ids])
    return Attribution(best, versus, shares, bias)


PER_LAYER, FAINT = 3, 0.1


def _evidence(prepared: Prepared, position: int) -> list[LastLink]:
    """The strongest links of a position, layer by layer, without those to the first token."""
    seen = position + 1 if prepared.empty.causal else len(prepared.ids)
    keep = KeepLinks(seen, range(1, seen), prepared.empty.causal, PER_LAYER, FAINT)
    heads = every_head(prepared.model.identity.heads_per_layer)
    prepared.run(heads, keep, (position,))
    evidence = [
        LastLink(head, int(key), float(weight))
        for head, head_map in zip(heads, keep.maps(), strict=True)
        for key, weight in zip(head_map.links.key, head_map.links.weight, strict=True)
    ]
    evidence.sort(key=lambda link: (link.head.layer, -link.weight))
    layers = groupby(evidence, key=lambda link: link.head.layer)
    return [link for _, links in layers for link in islice(links, PER_LAYER)]
