"""The encoder of images: a short training, and the measure of where it attends."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from attnviz.models.folder.files import bundled_folder
from making.shapes import encoder
from making.shapes.__main__ import LOG, STATE, save
from making.shapes.draw import lone
from tests.reading import without_version

BUNDLED = bundled_folder("shapes-vit")


@pytest.mark.slow
def test_a_short_run_makes_the_files_of_the_bundled_encoder_and_goes_on(tmp_path: Path) -> None:
    encoder.main(tmp_path, seed=3, steps=1, tests=1)
    encoder.main(tmp_path, seed=3, steps=2, tests=1)
    log = (tmp_path / LOG).read_text().splitlines()
    assert [json.loads(line)["step"] for line in log] == [1, 2]
    kept = {path.name for path in BUNDLED.iterdir()}
    assert {path.name for path in tmp_path.iterdir()} - {LOG, STATE} == kept
    for name in ("config.json", "preprocessor_config.json"):
        assert without_version(tmp_path / name) == without_version(BUNDLED / name)
    made, bundled = (json.loads((f / "card.json").read_text()) for f in (tmp_path, BUNDLED))
    assert made["description"] == bundled["description"]
    recipe = json.loads(json.dumps(asdict(encoder.EncoderRecipe())))
    assert {key: bundled["training"][key] for key in recipe} == recipe


def test_attention_without_content_hits_and_weighs_as_chance_does(tmp_path: Path) -> None:
    """All weights 0: each row is uniform, and the first patch is its most-attended one."""
    model = encoder.fresh_encoder(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    save(model, encoder.processor(), tmp_path)
    seeds = [f"of a test {n}" for n in range(10)]
    seen = encoder.looks(tmp_path, seeds)
    boxes = np.array([lone(seed).box for seed in seeds])
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    assert seen.masses == pytest.approx(np.full((4, 4), areas.mean() * 144 / 145), abs=1e-3)
    assert seen.chance == pytest.approx((areas.mean(), areas.mean()), abs=0.01)
    assert (seen.hits <= 0.1).all()  # a shape in the first corner is rare
    assert seen.right["colour and shape"] <= min(seen.right["colour"], seen.right["shape"])
