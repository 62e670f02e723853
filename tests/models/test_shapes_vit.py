"""The bundled encoder of images, through transformers alone: what it names, where it attends."""

import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from PIL import Image
from transformers import ViTForImageClassification, ViTImageProcessorPil

from attnviz.models.catalog import BUNDLED_SIZES
from attnviz.models.folder.config import folder_sizes
from attnviz.models.folder.files import bundled_folder
from making.shapes.draw import COLOURS, draw_patterned, lone

FOLDER = bundled_folder("shapes-vit")
CARD = json.loads((FOLDER / "card.json").read_text(encoding="utf-8"))
FIGURES = {(each["behaviour"], each["measure"].split()[0]): each for each in CARD["figures"]}
SEEDS = [f"test {n}" for n in range(30)]  # the first of those that the card's figures are of


@pytest.fixture(scope="module")
def seen() -> list[tuple[str, Any]]:
    """By picture, the name that the model gives, and the class token's rows of all heads."""
    model = ViTForImageClassification.from_pretrained(FOLDER, attn_implementation="eager").eval()
    reader, each = ViTImageProcessorPil.from_pretrained(FOLDER), []
    for seed in SEEDS:
        given = reader(draw_patterned(seed), return_tensors="pt")
        with torch.inference_mode():
            out = model(**given, output_attentions=True)
        rows = torch.stack([layer[0, :, 0] for layer in out.attentions])
        each.append((model.config.id2label[int(out.logits.argmax())], rows))
    return each


def test_it_names_as_many_shapes_as_its_card_tells(seen: list[tuple[str, Any]]) -> None:
    right = [name == lone(seed).name for seed, (name, _) in zip(SEEDS, seen, strict=True)]
    told = FIGURES["colour and shape", "right"]["held_out"]
    assert sum(right) / 30 == pytest.approx(told, abs=0.1)


@pytest.mark.parametrize("behaviour", ["finds", "covers"])
def test_the_class_token_attends_to_the_shape_in_eight_of_ten_pictures(
    seen: list[tuple[str, Any]], behaviour: str
) -> None:
    """Where the half of a patch or more lies in the box; by chance that is one in twelve."""
    (head,) = (each["head"] for each in CARD["heads"] if each["behaviour"] == behaviour)
    layer, number = map(int, re.findall(r"\d", head))
    hits, masses = 0, []
    for seed, (_, rows) in zip(SEEDS, seen, strict=True):
        x0, y0, x1, y1 = (12 * side for side in lone(seed).box)
        row = rows[layer, number, 1:].reshape(12, 12)
        inside = [
            [
                max(0, min(x + 1, x1) - max(x, x0)) * max(0, min(y + 1, y1) - max(y, y0))
                for x in range(12)
            ]
            for y in range(12)
        ]
        y, x = divmod(int(row.argmax()), 12)
        hits += inside[y][x] >= 0.5
        masses.append(float((row * torch.tensor(inside)).sum()))
    assert hits >= 24
    assert sum(masses) / 30 == pytest.approx(FIGURES[behaviour, "mass"]["held_out"], abs=0.15)


def test_by_its_card_it_names_and_attends_as_well_as_it_had_to() -> None:
    for figure in FIGURES.values():
        assert figure["n"] == 200
        assert figure["bar"] is None or figure["held_out"] >= figure["bar"], figure
    for name in ("finds", "covers"):
        assert FIGURES[name, "pictures"]["bar"] == 0.8
        assert FIGURES[name, "mass"]["held_out"] > 6 * CARD["chance"][1]


def test_the_shape_of_a_picture_has_its_colour_and_lies_in_it() -> None:
    for seed in SEEDS:
        shape, image = lone(seed), draw_patterned(seed, 96)
        assert all(0 <= side <= 1 for side in shape.box)
        assert isinstance(image, Image.Image)
        assert image.size == (96, 96)
        colour = image.getpixel((math.floor(96 * shape.x), math.floor(96 * shape.y)))
        assert all(abs(a - b) <= 15 for a, b in zip(colour, COLOURS[shape.colour], strict=True))


def test_its_files_are_small_and_its_sizes_those_of_the_list() -> None:
    sizes = BUNDLED_SIZES["shapes-vit"]  # the list has the tokens of its own size of images
    assert replace(folder_sizes(FOLDER), context=1 + 12 * 12) == sizes
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 650_000
