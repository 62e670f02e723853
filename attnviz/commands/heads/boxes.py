"""Boxes in images: the share of each head's attention in the box that a word is about."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.heads.labels import named_in_line, run_each
from attnviz.console import Display
from attnviz.draw.effects import number_cells
from attnviz.draw.labels import SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import draw_panes
from attnviz.draw.terminal.cells import Column, TextLines, titled_listing
from attnviz.draw.titles import amount
from attnviz.draw.view import Pane
from attnviz.errors import InputError, option, readable
from attnviz.inputs.beside import BoxLine, box_of, local_picture
from attnviz.inputs.images import read_picture
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.kit.result import Form
from attnviz.records.capture import Capture, ModelIdentity, PatternBlock
from attnviz.records.heads import Head, choose_heads
from attnviz.records.images import are_sinks, one_sheet, spatial_entropy, take_much
from attnviz.records.metrics import Estimate
from attnviz.records.places import BESIDE, Box
from attnviz.records.rows import Field, Fields, at, estimate_fields, head_fields, model_name

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

ROUNDED = 1
"""Pixels by which a rounded edge may lie outside of the image."""
MEASURES = {
    "mass": "Weight in the box, of the whole row.",
    "on_image": "Weight on the image.",
    "within": "The share of that in the box.",
    "entropy": "The entropy of the weights on the image, in nats.",
    "spatial_entropy": "The entropy of the image regions with weights above the mean, in nats.",
    "sinks": "The share on the image that tokens take which nearly every word attends to.",
}
"""What is measured of a row, in this order."""


@dataclass(frozen=True, eq=False)
class BoxRun:
    """A line that was run: its capture without patterns, and for each head the means of `MEASURES`.

    `chance`: the share of the image's tokens in the box. `alone`: the word itself was run,
    as there was no text.
    """

    capture: Capture
    chance: float
    means: Mapping[Head, NDArray[np.float64]]
    alone: bool = False


@dataclass(frozen=True)
class BoxScore:
    """The relation of a head's attention to the boxes, by `MEASURES`; means and errors over lines.

    `spatial_entropy`: of the regions in which the weights on the image are above their mean.
    """

    head: Head
    mass: Estimate
    on_image: Estimate
    within: Estimate
    entropy: Estimate
    spatial_entropy: Estimate
    sinks: Estimate


@dataclass(frozen=True, eq=False)
class BoxReport:
    """The heads' scores over boxes."""

    model: ModelIdentity
    runs: Sequence[BoxRun]

    @property
    def chance(self) -> float:
        """The mean share of an image's tokens in its box."""
        return float(np.mean([run.chance for run in self.runs]))

    @cached_property
    def scores(self) -> Sequence[BoxScore]:
        """The heads' means, the most mass in the box first."""
        scores = []
        for head in self.runs[0].means:
            means = np.stack([run.means[head] for run in self.runs])  # (lines, measures)
            estimates = (Estimate.of(column[~np.isnan(column)].tolist()) for column in means.T)
            scores.append(BoxScore(head, **dict(zip(MEASURES, estimates, strict=True))))
        return sorted(scores, key=lambda each: (-each.mass.mean, each.head))


# lines ─► image and text ─► rows of the word, and of the whole text ─► measures ─► means over lines


@dataclass(frozen=True, eq=False)
class BoxTask:
    """The setting of lines: the model, the heads, the text and the images of the call.

    `folder`: the folder of the lines' image files.
    """

    model: "LoadedModel"
    options: TextOptions
    heads: HeadOptions
    text: str | None = None
    folder: Path = Path()

    def run(self, line: object) -> BoxRun:
        """Run one line, and measure each head."""
        asked = box_of(line)
        prepared, number = self._prepared(asked)
        box = _in_shares(asked.box, prepared.empty, number)
        heads = choose_heads(
            self.model.identity.heads_per_layer, self.heads.layers, self.heads.heads
        )
        queries = named_in_line(prepared.empty.query_tokens, [asked.query], "queries")
        measure = MeasureBoxes(prepared.empty, number, box, queries)
        if not measure.chance:
            raise InputError(
                "the box is where the model read nothing", "give a place that was not cropped away"
            )
        prepared.budget.check_patterns(heads, 0)
        prepared.run(heads, measure, measure.rows)
        alone = not (asked.text or self.text or self.model.reads == "image")
        return BoxRun(prepared.empty, measure.chance, measure.means(), alone)

    def _prepared(self, asked: BoxLine) -> tuple[Prepared, int]:
        """The text of a line with its images, and which of them is meant."""
        options, number = self.options, 0
        alone, text = self.model.reads == "image", asked.text or self.text
        if alone and self.text and not options.given:
            options, text = replace(options, given=(read_picture(Path(self.text)),)), asked.text
        if isinstance(asked.image, str):
            options = replace(options, given=(local_picture(asked.image, self.folder),))
        elif asked.image is not None:
            number = asked.image - 1
        if not 0 <= number < len(options.given):
            raise InputError(
                "there is no such image", f"give it as {option('image')}, or with the box"
            )
        if alone:
            options = replace(options, given=(options.given[number],))
            return prepare(self.model, text or "", options), 0
        return prepare(self.model, text or asked.query, options), number


def _in_shares(box: Box, capture: Capture, number: int) -> Box:
    """A box in shares of the image; one of numbers up to 1 is that already."""
    image = capture.images[number]
    if not image.views:
        raise InputError(
            f"it is not known which pixels the image tokens of {capture.model.name} stand for",
            "use another model",
        )
    if capture.beside:
        raise InputError(BESIDE, f"measure them with {option('kind', 'cross')}")
    width, height = image.raw.size
    across, down = (1, 1) if max(map(abs, box)) <= 1 else (width, height)
    x0, y0, x1, y1 = box[0] / across, box[1] / down, box[2] / across, box[3] / down
    if max(-x0, x1 - 1) * width > ROUNDED or max(-y0, y1 - 1) * height > ROUNDED:
        raise InputError(
            f"the box reaches outside of the image, which is {width:,} × {height:,} pixels",
            "give its edges in pixels, or in shares up to 1",
        )
    return x0, y0, x1, y1


@dataclass
class MeasureBoxes:
    """Consumes the rows of one text, and measures the weight of the rows of `queries` in a box.

    Those of the other tokens of text, or of only patches of an image, show which of it are sinks.
    """

    empty: Capture
    number: int
    box: Box
    queries: tuple[int, ...]
    _kept: dict[Head, list[NDArray[np.float32]]] = field(default_factory=dict)
    _much: dict[Head, NDArray[np.int64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tokens = self.empty.key_tokens
        own = [t for t in tokens if t.image == self.number and t.patch is not None]
        self._own = np.array([token.index for token in own])
        places = [token.patch for token in own if token.patch]
        self._sheet = one_sheet(self.empty.images[self.number], places)
        self._inside = np.array([place.within(self.box) for place in places])
        after = int(self._own.min(initial=0)) if self.empty.causal else -1
        self.text_rows = [
            q
            for q, token in enumerate(self.empty.query_tokens)
            if (token.patch if self.empty.image_alone else not token.inset) and q > after
        ]
        self.rows = tuple(sorted({*self.text_rows, *self.queries}))

    @property
    def chance(self) -> float:
        """The share of the image's tokens in the box."""
        return float(self._inside.mean())

    def __call__(self, block: PatternBlock) -> None:
        seen = self._own[self._own < block.weights.shape[2]]
        weights = np.zeros((*block.weights.shape[:2], len(self._own)), np.float32)
        weights[:, :, : len(seen)] = block.weights[:, :, seen]
        kinds = self.queries, self.text_rows
        asked, of_text = (np.isin(block.queries, rows) for rows in kinds)
        for head, rows in zip((Head(block.layer, h) for h in block.heads), weights, strict=True):
            self._kept.setdefault(head, []).extend(rows[asked])
            much = self._much.setdefault(head, np.zeros(len(self._own), np.int64))
            much += take_much(rows[of_text]).sum(axis=0)

    def means(self) -> dict[Head, NDArray[np.float64]]:
        """For each head the means of `MEASURES` over the rows of the queries; NaN: undefined."""
        return {head: self._measured(head) for head in self._kept}

    def _measured(self, head: Head) -> NDArray[np.float64]:
        rows = np.stack(self._kept[head]).astype(np.float64)  # (queries, tokens of the image)
        sinks = are_sinks(self._much[head], len(self.text_rows))
        on_image = rows.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = rows / on_image[:, None]
            logs = np.where(shares > 0, np.log(np.where(shares > 0, shares, 1)), 0)
            mass = rows @ self._inside
            columns = (
                mass,
                on_image,
                mass / on_image,
                np.where(on_image > 0, -(shares * logs).sum(axis=1), np.nan),
                spatial_entropy(np.where(self._sheet < 0, np.nan, rows[:, self._sheet])),
                rows[:, sinks].sum(axis=1) / on_image,
            )
        return np.array([np.mean(column) for column in columns])


def score_boxes(
    task: BoxTask, boxes: str | PathLike[str] | Iterable[Mapping[str, Any]]
) -> BoxReport:
    """Score the heads over the boxes of a file, or of objects.

    Raises:
        UsageError: it is neither.
        InputError: a line or its image is wrong.
    """
    if isinstance(boxes, str | PathLike):
        task = replace(task, folder=Path(boxes).parent)
    hint = "give a file, or objects with a query and its box"
    return BoxReport(task.model.identity, run_each("boxes", boxes, hint, task.run))


BOX_ROW = Fields[tuple[BoxReport, BoxScore]](
    "BoxRow",
    "A head's attention in the boxes that words are about; means over lines.",
    (
        model_name(at("0.model.name")),
        *head_fields(at("1.head")),
        *(
            field
            for name, about in MEASURES.items()
            for field in estimate_fields(name, about, at(f"1.{name}"))
        ),
        Field("chance", float, "The share of tokens in the box.", at("0.chance")),
        Field("boxes", int, "How many boxes.", lambda row: len(row[0].runs)),
    ),
)


def _render(report: BoxReport, display: Display, top: int) -> TextLines:
    """The heads with the most mass in the box, and what the columns are."""
    error = ["± s.e."] if len(report.runs) > 1 else []
    columns = [Column("head"), *(Column(n, right=True) for n in ("mass", *error))]
    columns += [Column(n, right=True) for n in ("on image", "within", "spatial", "sinks")]
    rows = [
        [
            str(score.head),
            *number_cells(score.mass, ".3f"),
            *(f"{each.mean:.2f}" for each in (score.on_image, score.within)),
            *(f"{each.mean:.2f}" for each in (score.spatial_entropy, score.sinks)),
        ]
        for score in report.scores[:top]
    ]
    one = "patch" if report.runs[0].capture.image_alone else "word"
    about = (
        "mass: weight in the box; on image: weight on the image; within: the share of that in the "
        f"box (chance {report.chance:.2f}); spatial: entropy of the regions with weights above the "
        f"mean, in nats; sinks: share that tokens take which nearly every {one} attends to"
    )
    return titled_listing(_title(report), columns, rows, display.width, about)


def _title(report: BoxReport) -> str:
    boxes = len(report.runs)
    title = f"{readable(report.model.name)}, attention in {boxes:,} box{'es' * (boxes != 1)}"
    alone = sum(run.alone for run in report.runs)
    return title + (f"; {amount(alone, 'word')} run without a text" if alone else "")


def _draw(report: BoxReport, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """Draw the mass in the box, and the share within it, of all heads, from 0 to 1."""
    mass = by_head((each.head, each.mass.mean) for each in report.scores)
    within = by_head((each.head, each.within.mean) for each in report.scores)
    panes = [Pane("mass in the box, 0 to 1", mass), Pane("of what is on the image, 0 to 1", within)]
    return draw_panes(_title(report), panes, dpi=dpi, cmap=cmap)


OF_BOXES = Form[BoxReport](
    "heads",
    BOX_ROW,
    lambda report, top, line: ((report, score) for score in report.scores[:top]),
    _title,
    terminal=_render,
    picture=_draw,
    top=sys.maxsize,
)
