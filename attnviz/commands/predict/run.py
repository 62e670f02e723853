"""Predict the next token, and find the tokens that the last position attends to.

text ─► tokens ─► run ─► logits ─► candidates; the last position's rows ─► evidence
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING

import numpy as np

from attnviz.errors import InputError, ModelError, UsageError, option, readable
from attnviz.kit.bringing import read_last, read_with_rests
from attnviz.kit.intervene import candidate_after, keep_next_tokens, question_of
from attnviz.kit.prepare import Prepared, TextOptions, frozen_with, prepare, side_of
from attnviz.kit.roles import Alike, roles_of
from attnviz.records.capture import FloatArray, PatternBlock
from attnviz.records.heads import Head, every_head
from attnviz.records.merging import WHOLE, groups_of
from attnviz.records.predict import (
    Attribution,
    Candidate,
    KeepNextTokens,
    LastLink,
    LogitRows,
    PredictedAnswer,
    Prediction,
    Question,
    outcome_of,
)
from attnviz.records.rests import FindRests

if TYPE_CHECKING:
    from attnviz.models.frozen.last import LastRead
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class Reading:
    """The reading: the number of candidates; also those after `each` position, or by `lens`.

    `answer`: also this word's prediction, by itself or compared with `versus`. `attribute`: also
    the answer's logit by part (the likeliest token's without an answer), or its difference from
    that of `versus`; in a mean over texts also by `roles` of tokens, or by `segments`; by the
    `features` of the dictionary in a folder, where its stream is.
    """

    top: int = 10
    each: bool = False
    lens: bool = False
    attribute: bool = False
    answer: str | None = None
    versus: str | None = None
    roles: Alike | None = None
    segments: tuple[str, ...] = ()
    features: str | None = None


def predict_text(
    model: "LoadedModel", text: str, options: TextOptions, reading: Reading
) -> Prediction:
    """The predictions of the next token, and the strongest links of the last position.

    A model that reads both sides fills the masks of the text; one of images names their class.
    """
    if side_of(model, text, options).reads == "image":
        return _of_classes(model, text, options, reading)
    fills = model.can("fill")
    prepared, positions = (_with_masks if fills else _whole)(model, text, options, reading)
    run = prepared.model.fill if fills else prepared.model.predict
    size = 4 * model.tokenizer.vocab_size  # bytes of the logits after one position
    prepared.budget.check(size, "shorten the text")
    read, rests = _read(prepared, reading, follow=not (reading.each or fills))
    every, through = (keep_next_tokens(prepared, reading.top, follow=not fills) for _ in range(2))
    question, end = None, list[FloatArray]()
    if reading.answer is not None:
        question = question_of(prepared, reading.answer, reading.versus)

    def consume(rows: LogitRows) -> None:
        every(rows)
        if question:  # the last rows are those of the last position
            end[:] = [rows.logits[-1].copy()]

    if read is not None:
        consume(LogitRows(None, np.array(positions), read.logit_row))
    else:
        prepared.budget.check(len(prepared.ids) * size, "shorten the text")  # all at once
        run(prepared.ids, positions, consume, lens=False)
    if reading.lens:
        run(prepared.ids, positions[-1:], through, lens=True)
    *each, last = every.next_tokens
    return Prediction(
        capture=prepared.empty,
        last=last,
        each=each,
        lens=through.next_tokens,
        evidence=_evidence(prepared, positions[-1], read, rests) if rests else (),
        attribution=_attribution(prepared, reading, question, last.candidates[0], read),
        asked=_answered(question, end[0]) if question else None,
        fills=fills,
    )


def _read(
    prepared: Prepared, reading: Reading, *, follow: bool
) -> "tuple[LastRead | None, FindRests | None]":
    """Read the last position, and where heads rest; not with parts, which replace evidence."""
    if reading.attribute:
        return read_last(prepared) if follow and reading.features is None else None, None
    return read_with_rests(prepared, follow=follow)


def _of_classes(
    model: "LoadedModel", text: str, options: TextOptions, reading: Reading
) -> Prediction:
    """The classes of an image, the likeliest first."""
    _refuse(reading, "each lens attribute answer", f"{model.identity.name} reads images")
    prepared = prepare(model, text, options)
    names, logits = prepared.model.classes()
    keep = KeepNextTokens((), reading.top, lambda id_: readable(names[id_]), lambda id_: names[id_])
    keep(LogitRows(None, np.array([0]), logits[None]))
    return Prediction(prepared.empty, keep.next_tokens[0])


def _whole(
    model: "LoadedModel", text: str, options: TextOptions, reading: Reading
) -> tuple[Prepared, Sequence[int]]:
    """The text, and the positions after which to predict."""
    model.require("predict")
    prepared = prepare(model, text, options)
    *others, last = prepared.empty.query_tokens
    each = [token.index - 1 for token in (*others[1:], last) if not token.inset]
    return prepared, [*(each if reading.each else ()), last.index]


def _with_masks(
    model: "LoadedModel", text: str, options: TextOptions, reading: Reading
) -> tuple[Prepared, Sequence[int]]:
    """The text, and the positions of its masks."""
    mask, name = model.tokenizer.mask, model.identity.name
    if mask is None:
        raise UsageError(f"{name} has no mask to fill", "use another model")
    _refuse(reading, "each attribute answer", f"{name} fills masks")
    prepared = prepare(model, text, options)
    masks = [position for position, id_ in enumerate(prepared.ids) if id_ == mask.id]
    if not masks:
        raise InputError(f"{name} fills masks, but the text has none", f"write {mask.name}")
    return prepared, masks


def _refuse(reading: Reading, names: str, wrong: str) -> None:
    """Check that nothing is wanted that needs next tokens."""
    for name in names.split():
        if getattr(reading, name):
            raise UsageError(f"{wrong}, but {option(name)} is for next tokens", "leave it out")


def _answered(question: Question, last: FloatArray) -> PredictedAnswer:
    """The answer that the logits (V) after the text give to a question."""
    ranks = tuple(int((last > last[id_]).sum()) + 1 for id_ in question.ids)
    return PredictedAnswer(question.likely(last), outcome_of(last, question.ids), ranks)


def _attribution(
    prepared: Prepared,
    reading: Reading,
    question: Question | None,
    likeliest: Candidate,
    read: "LastRead | None",
) -> Attribution | None:
    """The answer's logit, or the likeliest token's (beside `versus`), as a sum over parts."""
    if not reading.attribute:
        return None
    other = reading.versus
    if question is None and other is not None:
        versus = candidate_after(prepared, other, "versus")
        if versus.id == likeliest.id:
            raise UsageError(
                f"{option('versus', repr(other))} is the likeliest token itself", "name another one"
            )
        question = Question(likeliest, versus)
    question = question or Question(likeliest)
    sums, explained = (read, None) if read else frozen_with(prepared, reading.features)
    output = sums.output
    if output is None:
        raise ModelError(
            f"the logits of {prepared.model.identity.name} are not a sum over its parts",
            "it caps them, or has no output layer that attnviz can follow; use another model",
        )
    ids = list(question.ids)
    signs = output.weight.new_tensor([1.0, -1.0][: len(ids)])
    shares = sums.shares(signs[None] @ output.weight[ids])
    bias = 0.0 if output.bias is None else float(signs @ output.bias[ids])
    roles = roles_of(prepared.empty, reading.roles, reading.segments)
    by_position = reading.roles == "position"
    return Attribution(
        question.answer, question.versus, shares, bias, roles, by_position, explained
    )


PER_LAYER, FAINT = 3, 0.1


def _evidence(
    prepared: Prepared, position: int, read: "LastRead | None", rests: FindRests
) -> list[LastLink]:
    """The strongest links of a position to others, without the first token and rests, by layer.

    The links to an inset are one, from its first token.
    """
    evidence = list[LastLink]()
    starts = np.array([group.start for group in groups_of(prepared.empty, WHOLE)[1]])

    def consume(block: PatternBlock) -> None:
        for number, row in zip(block.heads, block.weights[:, 0].copy(), strict=True):
            head = Head(block.layer, number)
            row[[0, position]], row[rests.of(head)[: len(row)]] = 0, 0
            wholes = np.add.reduceat(row, starts[starts < len(row)])
            for key in np.flatnonzero(wholes >= FAINT).tolist():
                evidence.append(LastLink(head, int(starts[key]), float(wholes[key])))

    if read is None:
        prepared.run(every_head(prepared.model.identity.heads_per_layer), consume, (position,))
    else:
        for layer, rows in read.weight_rows():
            heads = tuple(range(len(rows)))
            consume(PatternBlock(layer, heads, np.array([position]), rows[:, None]))
    evidence.sort(key=lambda link: (link.head.layer, -link.weight))
    layers = groupby(evidence, key=lambda link: link.head.layer)
    return [link for _, links in layers for link in islice(links, PER_LAYER)]
