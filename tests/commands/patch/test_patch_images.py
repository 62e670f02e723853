"""`attnviz patch --from-image`: vectors of a run that sees another image."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText

import attnviz
from attnviz.errors import InputError
from tests.conftest import Run
from tests.vision.folders import processed, processor
from tests.vision.zoo import species

TEXT, SIDE, LAYER, HEAD, WIDTH = "<image>ab", 112, 1, 2, 8


def noise(path: Path, seed: int, width: int = SIDE, height: int = SIDE) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture(scope="module")
def folder(llava_folder: Path) -> Path:
    return llava_folder


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    return [noise(tmp_path / f"{seed}.png", seed) for seed in (0, 1)]


@pytest.mark.parametrize("source", [TEXT, "<image>cab"])
def test_a_head_takes_what_it_writes_where_another_image_is_seen(
    folder: Path, images: list[Path], source: str
) -> None:
    """Beside hooks of one's own on transformers' model; the words at the end are aligned."""
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    ours, theirs = (
        processed(processor(folder), text, Image.open(path))
        for text, path in zip((TEXT, source), images, strict=True)
    )
    more = theirs["input_ids"].shape[1] - ours["input_ids"].shape[1]
    assert more == len(source) - len(TEXT)
    output = model.model.language_model.layers[LAYER].self_attn.o_proj
    part, written = slice(HEAD * WIDTH, (HEAD + 1) * WIDTH), list[torch.Tensor]()

    def replaced(_module: object, args: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        changed = args[0].clone()
        changed[:, :-2, part] = written[0][:, : changed.shape[1] - 2, part]
        changed[:, -2:, part] = written[0][:, -2:, part]
        return (changed,)

    with torch.inference_mode():
        handle = output.register_forward_pre_hook(lambda _, args: written.append(args[0].clone()))
        ends = model(**theirs).logits[0, -1]
        handle.remove()
        before = model(**ours).logits[0, -1]
        handle = output.register_forward_pre_hook(replaced)
        after = model(**ours).logits[0, -1]
        handle.remove()
    asked = {"answer": "a", "versus": "b", "heads": f"L{LAYER}H{HEAD}", "source": source}
    asked |= {"align": ["a=a"]} if more else {}
    image, other = images
    found = attnviz.patch(TEXT, model=folder, image=image, from_image=other, **asked)
    a, b = found.record.question.ids
    assert found.record.before.measured == pytest.approx(float(before[a] - before[b]), abs=1e-4)
    assert found.record.ends.measured == pytest.approx(float(ends[a] - ends[b]), abs=1e-4)
    change = float((after[a] - after[b]) - (before[a] - before[b]))
    assert abs(change) > 1e-3
    assert found.rows[0]["change"] == pytest.approx(change, abs=1e-4)
    together = attnviz.patch(
        TEXT, model=folder, image=image, from_image=other, together=True, **asked
    )
    assert together.record.report.effects[0].change.mean == pytest.approx(change, abs=1e-4)


def test_the_first_line_names_the_image_of_the_source(
    run: Run, folder: Path, images: list[Path]
) -> None:
    given = ("-m", str(folder), "--image", str(images[0]), "--from-image", str(images[1]))
    for more in ((), ("--head", "L1H2", "--together")):
        ended = run("patch", TEXT, *given, "--answer", "a", "--versus", "b", *more)
        assert ended.status == 0, ended.err
        assert "taken from the source (1.png)" in " ".join(ended.out.split())


def test_json_tells_the_runs_of_both_images_apart(folder: Path, images: list[Path]) -> None:
    asked = {"image": images[0], "from_image": images[1], "answer": "a", "versus": "b"}
    made = attnviz.patch(TEXT, model=folder, heads="L1H2", **asked).made
    assert [each["images"] for each in made["runs"]] == [["0.png"], ["1.png"]]


def test_images_of_different_grids_are_refused(tmp_path: Path) -> None:
    wide, tall = noise(tmp_path / "w.png", 0, 224, 112), noise(tmp_path / "t.png", 1, 112, 224)
    folder = species("qwen2_vl").make(tmp_path / "qwen")
    with pytest.raises(InputError, match="read as different grids of tokens"):
        attnviz.patch("ab", model=folder, image=wide, from_image=tall)


def test_another_text_is_a_source_where_kinds_of_tokens_tell_images(tmp_path: Path) -> None:
    """The model is looked at anew for each text, without the images of the first."""
    folder = species("qwen2_vl").make(tmp_path / "qwen")
    image = noise(tmp_path / "a.png", 0)
    asked = {"image": image, "heads": "L1H2", "answer": "a", "versus": "b"}
    assert attnviz.patch("ab", "ac", folder, **asked).rows[0]["head"] == 2


def test_the_same_image_is_no_source(folder: Path, images: list[Path]) -> None:
    with pytest.raises(InputError, match="the source is the text itself"):
        attnviz.patch(TEXT, model=folder, image=images[0], from_image=images[0])
    pixels = np.asarray(Image.open(images[0]))
    with pytest.raises(InputError, match="the source is the text itself"):
        attnviz.patch(TEXT, model=folder, image=pixels, from_image=pixels.copy())
