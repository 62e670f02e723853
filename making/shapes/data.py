"""Batches of pictures, each with several questions, and where the named shapes stand in them."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnviz.commands.train.loop import IGNORED, PADDING, Batch
from making.shapes.draw import (
    COLOURS,
    DIRECTIONS,
    OUTLINES,
    Question,
    Shape,
    draw,
    questions,
    scene,
)
from making.shapes.model import BOS, EOS, IDS, IMAGE, PATCHES, PIXELS, SIDE, processor

BATCH, MOST_SHAPES = 32, 5
AT_ONCE, VARIED, CHATS = (3, 3, 2), 0.15, 0.2
NAMING = torch.tensor([IDS[word] for word in (*COLOURS, *OUTLINES)])
BEFORE = [IDS[BOS], *[IDS[IMAGE]] * PATCHES]
PLACES = slice(1, 1 + PATCHES)
ARTICLES = (IDS["a"], IDS["an"])


@dataclass(frozen=True)
class ShapesBatch(Batch):
    """Document 0 is the picture, which all questions see; a question sees no other, but in a chat.

    `pixels`: (B, 3, h, w). `shares`: (B, shapes, patches), which share of a patch lies in the box
    of a shape. `named`: (B, n), the shape that a token names, or -1; an article counts with its
    noun.
    """

    pixels: Tensor
    shares: Tensor
    named: Tensor

    def mask(self) -> Tensor:
        """What is added to scores, (B, 1, n, n)."""
        of_picture = (self.documents == 0)[:, None, :]
        same = self.documents[:, :, None] == self.documents[:, None, :]  # (B, n, n)
        seen = (same | of_picture).tril()[:, None]
        return torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)

    def mentions(self) -> tuple[Tensor, Tensor]:
        """The rows (batch, position) in which a shape was just named, and those that name one next.

        In "the red circle" the first is that of "circle".
        """
        naming = torch.isin(self.ids, NAMING) & (self.named >= 0)
        after, follows = naming.roll(-1, 1), self.named.roll(-1, 1)
        return naming & ~after, (self.targets != IGNORED) & (follows >= 0)

    def masses(self, pattern: Tensor, rows: Tensor, *, next_one: bool) -> Tensor:
        """(rows, heads): the attention (B, heads, n, n) of these rows to the named shape's box."""
        which, at = rows.nonzero(as_tuple=True)
        shapes = self.named[which, at + next_one]
        weights = pattern[which, :, at, PLACES].float()  # (rows, heads, patches)
        return (weights * self.shares[which, shapes][:, None]).sum(-1)


@cache
def images() -> Any:
    return processor().image_processor


class ShapesSource:
    """Batches of the training; the same ones for the same seed."""

    def __call__(self, seed: str, count: int, begun: float) -> list[ShapesBatch]:
        return [batch([f"{seed} {n} {i}" for i in range(BATCH)], PIXELS) for n in range(count)]


def batch(seeds: Sequence[str], pixels: int, *, every: bool = False) -> ShapesBatch:
    """Pictures of this size with some of their questions, or with every question, as it is."""
    rows = [_row(seed, every=every) for seed in seeds]
    longest = max(len(row[0]) for row in rows)
    fill = (0, 0, PADDING, IGNORED, -1)
    ids, positions, documents, targets, named = (
        torch.tensor([[*row[n], *[value] * (longest - len(row[n]))] for row in rows])
        for n, value in enumerate(fill)
    )
    shares = np.zeros((len(seeds), MOST_SHAPES, PATCHES), np.float32)
    for n, seed in enumerate(seeds):
        shares[n, : len(scene(seed))] = [share_in_box(shape) for shape in scene(seed)]
    drawn = images()([draw(seed, pixels) for seed in seeds], return_tensors="pt")["pixel_values"]
    boxes = torch.from_numpy(shares)
    return ShapesBatch(ids, positions, documents, targets, drawn, boxes, named)


def _row(seed: str, *, every: bool) -> tuple[list[int], ...]:
    """Ids, positions, documents, targets, and the shapes that tokens name."""
    rng, shapes = random.Random(f"questions {seed}"), scene(seed)
    asked, chat = questions(shapes), not every and rng.random() < CHATS
    ids, positions, documents = [*BEFORE], [*range(len(BEFORE))], [0] * len(BEFORE)
    targets, named = [IGNORED] * len(BEFORE), [-1] * len(BEFORE)
    for n, question in enumerate(asked if every else _some(asked, rng), 1):
        text = words(question.text if every else _varied(question.text, rng))
        answer, given = [*words(question.answer), IDS[EOS]], iter(question.named)
        new = text + answer
        of = [shapes.index(next(given)) if id_ in NAMING else -1 for id_ in new]
        ends = range(len(text), len(new) - 1)
        for i in (i for i in ends if new[i] in ARTICLES):
            of[i] = of[i + 1]
        first = len(positions) if chat else len(BEFORE)
        ids += new
        positions += range(first, first + len(new))
        documents += [1 if chat else n] * len(new)
        targets += [*[IGNORED] * (len(text) - 1), *answer, IGNORED]
        named += of
    return ids, positions, documents, targets, named


def _some(asked: list[Question], rng: random.Random) -> list[Question]:
    """The description, often the number, and a few of every other kind, in any order."""
    groups = ({"colour", "shape"}, {*DIRECTIONS}, {"nothing there"})
    some = asked[: 1 + (rng.random() < 0.5)]
    for kinds, most in zip(groups, AT_ONCE, strict=True):
        of_kind = [question for question in asked if question.kind in kinds]
        some += rng.sample(of_kind, min(most, len(of_kind)))
    return rng.sample(some, len(some))


def _varied(text: str, rng: random.Random) -> str:
    """Sometimes in other words, and without the question mark."""
    if rng.random() > VARIED:
        return text
    described = rng.choice(("it.", "the picture", "the picture.", "the image"))
    other = text.replace("describe it", f"describe {described}").replace("colour", "color")
    return re.sub(r"is (left|right)", r"is to the \1", other).rstrip("?")


def words(text: str) -> list[int]:
    """The ids of a text's words, without BOS."""
    return [IDS[word] for word in re.findall(r"\w+|[^\w\s]", text)]


def share_in_box(shape: Shape, patches: int = SIDE) -> np.ndarray:
    """(patches²): which share of each patch, of so many in a row, lies in the box of a shape."""
    x0, y0, x1, y1 = (patches * side for side in shape.box)
    cells = np.arange(patches)
    across = np.clip(np.minimum(cells + 1, x1) - np.maximum(cells, x0), 0, None)
    down = np.clip(np.minimum(cells + 1, y1) - np.maximum(cells, y0), 0, None)
    return np.outer(down, across).ravel()
