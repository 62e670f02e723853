"""Attention to an image of 1,024 × 1,024 pixels, beside a plain pass and the usual overlay script.

    python -m benchmarks.images FOLDER

A LLaVA-NeXT (tiles) and a Qwen2.5-VL (patches merged by four) of random weights, made with the
tests' own table of architectures. Whole processes, in turn; medians. Ends with 1 where `show` of
one word takes more than 1.15 times the time or the memory of a plain pass, or the picture more than
half of the script's time.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measure import compare
from tests.vision.folders import Sighted
from tests.vision.zoo import species

SIDE, PAIRS = 1024, 5
MOST_SHOW, MOST_PICTURE = 1.15, 0.5
TEXT = {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 8, "head_dim": 64}
TEXT |= {"num_attention_heads": 8, "num_key_value_heads": 4}
CLIP = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 6, "image_size": 336}
QWEN = {"depth": 6, "hidden_size": 256, "num_heads": 4, "intermediate_size": 512}
TILES = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]


def models() -> list[Sighted]:
    """The two, larger than in the tests."""
    tiled, merged = species("llava_next"), species("qwen2_5_vl")
    text, vision = ({**tiled.config[name]} for name in ("text_config", "vision_config"))
    crop = {"size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336}}
    rope = {"rope_type": "default", "mrope_section": [16, 8, 8]}
    own = {**merged.config["text_config"], **TEXT, "rope_parameters": rope}
    seen = {**merged.config["vision_config"], **QWEN, "out_hidden_size": TEXT["hidden_size"]}
    return [
        replace(
            tiled,
            config={
                **tiled.config,
                "image_grid_pinpoints": TILES,
                "text_config": {**text, **TEXT, "max_position_embeddings": 8192},
                "vision_config": {**vision, **CLIP},
            },
            images={**crop, "image_grid_pinpoints": TILES},
        ),
        replace(
            merged,
            config={
                **merged.config,
                "text_config": {**own, "max_position_embeddings": 8192},
                "vision_config": {**seen, "fullatt_block_indexes": [5]},
            },
            images={"size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1600}},
        ),
    ]


def main() -> int:
    """Print the table; say whether it is within its bounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="where models and images are written")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    image, within = folder / "image.png", True
    pixels = np.random.default_rng(0).integers(0, 255, (SIDE // 8, SIDE // 8, 3), np.uint8)
    Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(image)
    for each in models():
        where = folder / each.name
        if not where.is_dir():
            each.make(where)
        text = f"{each.place}what colour is the circle?"
        scripts = [sys.executable, "-m", "benchmarks.scripts.image_"]
        given = [str(where), str(image), text]
        show = [sys.executable, "-m", "attnviz", "show", text, "--special", "--head", "L7H1"]
        show += ["--image", str(image), "-m", str(where), "--query", "-1", "-q"]
        plain = compare(
            show, [*scripts[:2], f"{scripts[2]}plain", *given], PAIRS, timed_inside=False
        )
        picture = [*show, "-o", str(folder / "ours.png")]
        usual = [*scripts[:2], f"{scripts[2]}overlay", *given, str(folder / "theirs.png")]
        drawn = compare(picture, usual, PAIRS, timed_inside=False)
        print(
            f"{each.name}: show {plain.time:.2f} x the time, {plain.memory:.2f} x the memory of a "
            f"plain pass; picture {drawn.time:.2f} x the time, {drawn.memory:.2f} x the memory of "
            "the usual script"
        )
        within &= plain.time <= MOST_SHOW and plain.memory <= MOST_SHOW
        within &= drawn.time <= MOST_PICTURE
    return int(not within)


if __name__ == "__main__":
    sys.exit(main())
