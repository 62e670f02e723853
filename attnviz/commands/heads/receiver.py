"""Receiver heads: those whose later sentences attend to few earlier ones of a text."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.terminal.cells import Column, TextLines, titled_listing
from attnviz.draw.titles import amount
from attnviz.errors import InputError, UsageError, readable
from attnviz.inputs.prompts import cut
from attnviz.kit.prepare import Prepared, TextOptions, prepare
from attnviz.kit.result import Form
from attnviz.records.capture import Capture, PatternBlock
from attnviz.records.heads import Head, every_head
from attnviz.records.reasoning import LEAST, NEAR, by_span, kurtosis, received
from attnviz.records.rows import Field, Fields, at, head_fields, measured, model_name
from attnviz.records.tokens import Segment, segment_of

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True, eq=False)
class Receivers:
    """The unevenness in the attention that sentences of a text get from later ones, by head.

    `sentences`: their texts. `scores`: the excess kurtosis of each head's vertical scores; NaN
    where they do not vary. `strongest`: the number of the sentence that receives most.
    """

    capture: Capture
    sentences: tuple[str, ...]
    heads: tuple[Head, ...]
    scores: NDArray[np.float64]
    strongest: tuple[int, ...]

    @property
    def ranked(self) -> list[tuple[Head, float, int]]:
        """Every head with its kurtosis and its strongest sentence, the highest kurtosis first."""
        every = zip(self.heads, self.scores.tolist(), self.strongest, strict=True)
        return sorted(every, key=lambda each: (-np.nan_to_num(each[1], nan=-9.0), each[0]))


def receivers(model: "LoadedModel", text: str, options: TextOptions) -> Receivers:
    """Score every head on the sentences of a text, such as a chain of thought.

    Bogdan et al. 2025, "Thought Anchors", arXiv 2506.19143: the kurtosis of the vertical scores,
    the mean weights of links to a sentence from those at least 4 sentences later.

    Raises:
        UsageError: the model does not go on with a text.
        InputError: there are too few sentences.
    """
    prepared, spans = _sentences(model, text, options)
    heads = every_head(model.identity.heads_per_layer)
    squares = {head: np.zeros((len(spans), len(spans))) for head in heads}

    def add(block: PatternBlock) -> None:
        first, n = int(block.queries[0]), block.weights.shape[1]
        for q, span in enumerate(spans):
            rows = slice(max(span.start - first, 0), min(span.stop - first, n))
            if rows.start >= rows.stop:
                continue
            share = (rows.stop - rows.start) / (span.stop - span.start)
            for head, weights in zip(block.heads, block.weights, strict=True):
                keys = [each for each in spans if each.start < weights.shape[1]]
                mean = by_span(weights[rows], [slice(None)], keys)[0]
                squares[Head(block.layer, head)][q, : len(keys)] += share * mean

    prepared.run(heads, add)
    vertical = [received(square) for square in squares.values()]
    tokens = prepared.empty.query_tokens
    texts = tuple(text[tokens[s.start].start : tokens[s.stop - 1].end].strip() for s in spans)
    scores = np.array([kurtosis(each) for each in vertical])
    return Receivers(prepared.empty, texts, heads, scores, tuple(int(v.argmax()) for v in vertical))


def _sentences(
    model: "LoadedModel", text: str, options: TextOptions
) -> tuple[Prepared, list[slice]]:
    """The run of a text, and the tokens of each of its sentences."""
    if model.kind != "self" or not model.causal:
        raise UsageError(
            f"{model.identity.name} does not go on with a text, so no sentence receives from later "
            "ones",
            "use a model that does",
        )
    prepared = prepare(model, text, options)
    tokens = prepared.empty.query_tokens
    segments = [Segment(str(i), (slice_,)) for i, slice_ in enumerate(cut(text, "sentence"))]
    of = segment_of(tokens, segments, text)
    spans = [
        slice(of.index(i), len(of) - of[::-1].index(i)) for i in range(len(segments)) if i in of
    ]
    if len(spans) < NEAR + LEAST:
        raise InputError(
            f"the text has {amount(len(spans), 'sentence')}, but {NEAR + LEAST} are needed, as "
            f"nearer ones than {NEAR} do not count",
            "give a longer text",
        )
    return prepared, spans


RECEIVER = Fields[tuple[Receivers, Head, float, int]](
    "ReceiverRow",
    "How unevenly a head's later sentences attend to earlier ones.",
    (
        model_name(at("0.capture.model.name")),
        *head_fields(at("1")),
        Field(
            "kurtosis",
            float | None,
            "The excess kurtosis of the vertical scores; none where they do not vary.",
            lambda row: measured(float(np.float32(row[2]))),
        ),
        Field(
            "sentence", int, "The number of the sentence that receives most.", lambda r: r[3] + 1
        ),
        Field("text", str, "This sentence.", lambda row: row[0].sentences[row[3]]),
    ),
)


def _render(found: Receivers, display: Display, top: int) -> TextLines:
    """The heads with the highest kurtosis, and the sentence that each attends to most."""
    said = (
        f"{readable(found.capture.model.name)}: kurtosis of what each of "
        f"{amount(len(found.sentences), 'sentence')} receives from those at least {NEAR} later"
    )
    columns = [Column("head"), Column("kurtosis", right=True), Column("attends most to")]
    rows = [
        (
            str(head),
            "—" if np.isnan(score) else f"{score:.2f}",
            fenced(readable(f"{at + 1} {found.sentences[at]}")),
        )
        for head, score, at in found.ranked[:top]
    ]
    return titled_listing(said, columns, rows, display.width)


OF_RECEIVERS = Form[Receivers](
    "heads",
    RECEIVER,
    lambda found, top, line: ((found, *each) for each in found.ranked[:top]),
    lambda found: f"{found.capture.model.name}, receiver heads",
    terminal=_render,
    top=10,
)
