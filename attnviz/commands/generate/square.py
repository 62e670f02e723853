"""Sentence × sentence within an answer: attention, and what follows where a sentence is hidden."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.generate.answer import ADDED, OWN_ID, Answer, AnswerPart
from attnviz.commands.generate.chain import hidden
from attnviz.commands.generate.choice import names_of
from attnviz.commands.generate.shown import about_answer, exhibit_of
from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.picture import heatmap
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.paint import options_of
from attnviz.draw.terminal import heatmap as terminal_heatmap
from attnviz.draw.terminal.cells import GAP, Column, cut, folded, listing
from attnviz.errors import InputError, readable
from attnviz.kit.result import Form, Result
from attnviz.records.exhibit import Exhibit, PictureLook, Sides
from attnviz.records.interventions import ChangedRun, Interventions
from attnviz.records.predict import log_softmax
from attnviz.records.reasoning import by_span, received
from attnviz.records.rows import LINE, Field, Fields, keyed, measured

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

SIDES = Sides("sentence", "sentences", "sentence", "sentences")


@dataclass(frozen=True, eq=False)
class Square:
    """The sentences of an answer, and what each is to each later one; earlier ones are 0 or NaN.

    `shares` (s, s): the mean over a sentence's tokens of the weight on another's. `received` (s):
    the vertical score, NaN of the last ones. `divergence` (s, s): the mean KL divergence, nats a
    token, of the predictions of a sentence's tokens with another one hidden; None if not measured.
    """

    answer: Answer
    sentences: tuple[AnswerPart, ...]
    shares: NDArray[np.float64]
    received: NDArray[np.float64]
    divergence: NDArray[np.float64] | None = None


def square_of(answer: Answer) -> Square:
    """The attention between the sentences of an answer, whatever was carried back.

    Raises:
        InputError: it has one sentence.
    """
    sentences = tuple(answer.parts("sentence"))
    if len(sentences) < 2 or answer.capture.kind == "cross":
        raise InputError(
            "the answer has no two sentences that attend to each other", "give a longer answer"
        )
    n, new = answer.read, len(answer.weights)
    own = np.zeros((new, new))
    own[:, : new - 1] = answer.weights[:, n:]
    spans = [slice(each.first, each.after) for each in sentences]
    means = by_span(own, spans, spans)
    lengths = np.array([each.after - each.first for each in sentences])
    scores = np.full(len(sentences), np.nan)
    vertical = received(means)
    scores[: len(vertical)] = vertical
    return Square(answer, sentences, means * lengths, scores)


def with_suppression(model: "LoadedModel", square: Square) -> Square:
    """The square with the effect of each sentence on later ones, whose links to it are cut.

    Bogdan et al. 2025, arXiv 2506.19143, section on attention suppression. The divergence is
    KL(as it is ‖ without) of the next-token distributions.
    """
    model.require("predict")
    answer, parts = square.answer, square.sentences
    capture, n = answer.capture, answer.read
    ids = [token.id for token in (*capture.key_tokens[:n], *capture.query_tokens)]
    end = n + len(capture.query_tokens) - 1
    cuts = [
        hidden(model, range(n + each.after - 1, end), range(n + each.first, n + each.after))
        for each in parts[:-1]
    ]
    rows = range(n - 1, end)
    logs: dict[int, NDArray[np.float64]] = {}
    matrix = np.full((len(parts), len(parts)), np.nan)

    def keep(run: ChangedRun) -> None:
        if run.rows is not None:
            logs[run.index] = log_softmax(run.rows)

    model.intervene(ids, Interventions([()], rows=rows), keep)
    base = logs.pop(0)
    for k, changes in enumerate(cuts):
        model.intervene(ids, Interventions([changes], rows=rows), keep)
        divergence = (np.exp(base) * (base - logs.pop(0))).sum(axis=1)
        for q in range(k + 1, len(parts)):
            matrix[q, k] = divergence[parts[q].first : parts[q].after].mean()
    return replace(square, divergence=matrix)


SQUARE = Fields[Mapping[str, Any]](
    "SquareRow",
    "The effect of an earlier sentence of an answer on a later one.",
    keyed(
        LINE,
        OWN_ID,
        Field("row", int, "The number of the later sentence, from 1."),
        Field("text", str, "The later sentence."),
        Field("source", int, "The number of the earlier sentence."),
        Field("source_text", str, "The earlier one."),
        Field("share", float, "The mean weight of the later one's tokens on the earlier one."),
        Field(
            "received",
            float | None,
            "The mean weight of a link to the earlier one from sentences that are not near.",
        ),
        Field(
            "kl",
            float | None,
            "With --check: KL divergence (nats a token) of the later one, the earlier one hidden.",
        ),
        Field("heads", str, "The heads whose rows were joined."),
        ADDED,
    ),
)


def _rows(square: Square, top: int | None, line: int | None) -> Iterator[Mapping[str, Any]]:
    answer, effects = square.answer, square.divergence
    same = answer.in_rows(line)
    heads, received_by = names_of(answer.choice), square.received.astype(np.float32).tolist()
    for query, later in enumerate(square.sentences):
        for key, earlier in enumerate(square.sentences[:query]):
            yield {
                **same,
                "row": query + 1,
                "text": later.text,
                "source": key + 1,
                "source_text": earlier.text,
                "share": float(np.float32(square.shares[query, key])),
                "received": measured(received_by[key]),
                "kl": None if effects is None else measured(float(effects[query, key])),
                "heads": heads,
            }


def of_square(square: Square, line: int = 1) -> Result[Square]:
    """The sentences of an answer in every form."""
    about = attrgetter("answer.about")
    form = Form[Square]("generate", SQUARE, _rows, about, terminal=_render, picture=_draw)
    capture = square.answer.capture
    return Result(form, square, (capture,), asked=capture.asked, _line=line)


def _exhibit(square: Square) -> Exhibit:
    numbers = [str(n) for n in range(1, len(square.sentences) + 1)]
    shown = exhibit_of(square.answer, numbers, numbers, square.shares.astype(np.float32))
    about = about_answer(square.answer.shares("sentence"))
    said = "what sentences of the answer (rows) attended to"
    return replace(shown, caption=said, subtitle=about, sides=SIDES)


def _draw(square: Square, **look: Any) -> Drawn:
    return heatmap.draw(_exhibit(square), options_of(PictureLook(**look), None))


def _render(square: Square, display: Display) -> Iterator[RenderableType]:
    """The square in colours; then each sentence with what it receives and does."""
    yield from terminal_heatmap.render(_exhibit(square), display)
    yield Text()
    effects = square.divergence
    titles = ["received", *(["KL of what follows"] if effects is not None else [])]
    room = max(12, display.width - 4 - GAP - sum(GAP + len(title) for title in titles))
    columns = [Column(""), Column("sentence"), *(Column(title, right=True) for title in titles)]
    rows = list[tuple[str, ...]]()
    for i, (part, score) in enumerate(zip(square.sentences, square.received, strict=True)):
        cells = ["—" if np.isnan(score) else f"{score:.4f}"]
        if effects is not None:
            later = effects[i + 1 :, i]
            cells.append(f"{later.mean():.3f}" if len(later) else "—")
        text = cut(readable(part.text), room, unicode=display.unicode)
        rows.append((str(i + 1), fenced(text), *cells))
    yield from listing(columns, rows, display.width)
    said = "received: the mean weight of a link from sentences that are not among the next 3"
    if effects is not None:
        said += "; KL of what follows: nats a token where the links to the sentence are cut"
    yield from folded(Text(said), display.width)
