"""Pictures of coloured shapes, and the questions that they answer; nothing here needs torch.

Those of the encoder have one shape in a pattern, among lines. `python -m making.shapes.draw DIR`
writes example pictures, and the boxes of their shapes.
"""

import itertools
import json
import math
import random
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from PIL import Image, ImageDraw

COLOURS = {
    "red": (220, 40, 40),
    "orange": (245, 150, 30),
    "yellow": (235, 215, 40),
    "green": (40, 160, 70),
    "blue": (45, 90, 215),
    "purple": (130, 50, 170),
    "pink": (245, 140, 190),
    "black": (35, 35, 40),
}
TURNS = [2 * math.pi * n / 60 for n in range(60)]
THIRDS = ((-1, -3), (1, -3), (1, -1), (3, -1), (3, 1), (1, 1))
OUTLINES = {
    "circle": [(math.sin(t), math.cos(t)) for t in TURNS],
    "square": [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
    "triangle": [(math.sin(t), -math.cos(t)) for t in TURNS[::20]],
    "star": [
        ((1, 0.42)[n % 2] * math.sin(t), -(1, 0.42)[n % 2] * math.cos(t))
        for n, t in enumerate(TURNS[::6])
    ],
    "heart": [
        (math.sin(t) ** 3, -(15.5 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t)) / 16)
        for t in TURNS
    ],
    "cross": [(x * 0.31, y * 0.31) for x, y in (*THIRDS, *((-x, -y) for x, y in THIRDS))],
}
NUMBERS = ("two", "three", "four", "five")
DIRECTIONS = {"left of": (-1, 0), "right of": (1, 0), "above": (0, -1), "below": (0, 1)}
RADII, GAP, STEP, MOST_TRIES = (0.11, 0.18), 0.03, 0.06, 200
BORDER, NEARER = (0.7, 1.4), 1.35
SMOOTH, PIXELS = 4, 512
EXAMPLES = (3920, 1592, 3497)  # shapes that all differ, and one on the left of a red circle
PATTERNED = "example 28"


@dataclass(frozen=True)
class Shape:
    """A coloured form; its centre and radius are shares of the picture."""

    colour: str
    form: str
    x: float
    y: float
    radius: float

    @property
    def outline(self) -> list[tuple[float, float]]:
        r = self.radius
        return [(self.x + r * x, self.y + r * y) for x, y in OUTLINES[self.form]]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom, in shares of the picture."""
        xs, ys = zip(*self.outline, strict=True)
        return min(xs), min(ys), max(xs), max(ys)

    @property
    def name(self) -> str:
        return f"{self.colour} {self.form}"

    @property
    def with_article(self) -> str:
        return f"{'an' if self.colour == 'orange' else 'a'} {self.name}"


Scene: TypeAlias = tuple[Shape, ...]


def scene(seed: object) -> Scene:
    """Two to five shapes from left to right, no two of the same colour and form."""
    rng = random.Random(f"shapes {seed}")
    count, shapes = rng.randint(2, 5), list[Shape]()
    for tried in itertools.count(1):
        if len(shapes) == count:
            break
        if tried % MOST_TRIES == 0:  # no room is left for another
            shapes.clear()
        radius = rng.uniform(*RADII)
        x, y = (rng.uniform(radius, 1 - radius) for _ in "xy")
        new = Shape(rng.choice([*COLOURS]), rng.choice([*OUTLINES]), x, y, radius)
        apart = (math.dist((x, y), (s.x, s.y)) > radius + s.radius + GAP for s in shapes)
        if all(apart) and all(new.name != s.name and abs(x - s.x) > STEP for s in shapes):
            shapes.append(new)
    return tuple(sorted(shapes, key=lambda shape: shape.x))


def draw(seed: object, pixels: int = PIXELS) -> Image.Image:
    """The picture of a scene, with smooth edges; the background and the colours vary a little."""
    rng, size = random.Random(f"colours {seed}"), pixels * SMOOTH
    image = Image.new("RGB", (size, size), tuple(rng.randint(225, 255) for _ in "rgb"))
    for shape in scene(seed):
        _paint(image, shape, rng)
    return image.reduce(SMOOTH)


def _paint(image: Image.Image, shape: Shape, rng: random.Random) -> None:
    corners = [(x * image.width, y * image.width) for x, y in shape.outline]
    ImageDraw.Draw(image).polygon(corners, fill=_shade(shape.colour, rng))


def _shade(colour: str, rng: random.Random) -> tuple[int, ...]:
    return tuple(min(255, c + rng.randint(-15, 15)) for c in COLOURS[colour])


# One shape in a patterned picture.

LARGER, TONES, WAVES, LINES, LINE = (0.11, 0.2), (130, 250), (2.0, 9.0), (3, 6), (0.012, 0.03)


def lone(seed: object) -> Shape:
    """The shape of a patterned picture, of any size and anywhere in it."""
    rng = random.Random(f"alone {seed}")
    radius = rng.uniform(*LARGER)
    x, y = (rng.uniform(radius, 1 - radius) for _ in "xy")
    return Shape(rng.choice([*COLOURS]), rng.choice([*OUTLINES]), x, y, radius)


def draw_patterned(seed: object, pixels: int = PIXELS) -> Image.Image:
    """Stripes, checks or rings in two tones, lines in the colours of shapes, and on them a shape.

    As the lines have other colours, no colour of the picture as a whole tells that of the shape.
    """
    rng, size = random.Random(f"pattern {seed}"), pixels * SMOOTH
    image = _pattern(rng, pixels).resize((size, size), Image.Resampling.NEAREST)
    for _ in range(rng.randint(*LINES)):
        ends, width = [size * rng.random() for _ in range(4)], rng.uniform(*LINE)
        colour = _shade(rng.choice([*COLOURS]), rng)
        ImageDraw.Draw(image).line(ends, fill=colour, width=round(width * size))
    _paint(image, lone(seed), rng)
    return image.reduce(SMOOTH)


def _pattern(rng: random.Random, pixels: int) -> Image.Image:
    tones = np.array([[rng.randint(*TONES) for _ in "rgb"] for _ in range(2)], np.float32)
    places = (np.arange(pixels, dtype=np.float32) + 0.5) / pixels
    x, y = places - rng.random(), places[:, None] - rng.random()
    rate, turn = 2 * math.pi * rng.uniform(*WAVES), rng.uniform(0, math.pi)
    along, across = (rate * (x * np.cos(t) + y * np.sin(t)) for t in (turn, turn + math.pi / 2))
    kinds = {"stripes": lambda: np.sin(along), "checks": lambda: np.sin(along) * np.sin(across)}
    kinds["rings"] = lambda: np.sin(np.hypot(along, across))
    share = np.clip(0.5 + kinds[rng.choice([*kinds])](), 0, 1)[..., None]  # (h, w, 1)
    return Image.fromarray((tones[0] + share * (tones[1] - tones[0])).astype(np.uint8))


class Question(NamedTuple):
    """`named`: the shape that each word for a colour or a form is of, in question and answer."""

    kind: str
    text: str
    answer: str
    named: Scene = ()


def questions(shapes: Scene) -> list[Question]:
    """All questions that have one answer in this picture; the first asks for a description."""
    *names, last = (s.with_article for s in shapes)
    twice = tuple(s for s in shapes for _ in range(2))
    asked = [
        Question("describe", "describe it", f"{', '.join(names)} and {last}", twice),
        Question("how many", "how many shapes are there?", NUMBERS[len(shapes) - 2]),
    ]
    forms, colours = Counter(s.form for s in shapes), Counter(s.colour for s in shapes)
    for s in shapes:
        if forms[s.form] == 1:
            asked.append(Question("colour", f"what colour is the {s.form}?", s.colour, (s, s)))
        if colours[s.colour] == 1:
            asked.append(Question("shape", f"what shape is {s.colour}?", s.form, (s, s)))
        for words, direction in DIRECTIONS.items():
            text, (beside, clear) = f"what is {words} the {s.name}?", nearest(s, shapes, direction)
            if clear and beside:
                answer = beside.with_article
                asked.append(Question(words, text, answer, (s, s, beside, beside)))
            elif clear:
                asked.append(Question("nothing there", text, "nothing", (s, s)))
    return asked


def nearest(shape: Shape, shapes: Scene, direction: tuple[int, int]) -> tuple[Shape | None, bool]:
    """The nearest shape in a direction, within about 45° to both sides, and whether that is clear.

    It is clear if the nearest one is not close to the border of these 45°, and no other, there or
    at the border, is nearly as near; or if there is none at all.
    """
    ahead: list[tuple[float, bool, Shape]] = []
    for other in shapes:
        dx, dy = other.x - shape.x, other.y - shape.y
        along = dx * direction[0] + dy * direction[1]
        aside = abs(dx * direction[1]) + abs(dy * direction[0])
        if along > BORDER[0] * aside:
            ahead.append((math.hypot(dx, dy), along > BORDER[1] * aside, other))
    if not ahead:
        return None, True
    (distance, well_inside, found), *rest = sorted(ahead, key=lambda each: each[0])
    return found, well_inside and all(other[0] > NEARER * distance for other in rest)


def main(folder: Path) -> None:
    """Write example pictures, and beside each the boxes of its shapes, in pixels."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {f"example {number}": f"shapes-{n}" for n, number in enumerate(EXAMPLES, 1)}
    pictures = [(names[seed], draw(seed), scene(seed)) for seed in names]
    pictures.append(("patterned", draw_patterned(PATTERNED), (lone(PATTERNED),)))
    for name, image, shapes in pictures:
        image.save(folder / f"{name}.png", optimize=True)
        boxes = [
            {"query": shape.form, "box": [round(side * PIXELS) for side in shape.box]}
            for shape in shapes
        ]
        lines = "".join(json.dumps(box) + "\n" for box in boxes)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
