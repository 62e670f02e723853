"""`attnviz tokens --image`: an image is one line, and each of its tokens has its pixels in rows."""

import csv
import io
import json
from pathlib import Path

import pytest
from PIL import Image

import attnviz
from attnviz.errors import IdleOption, UsageError
from tests.conftest import Run
from tests.vision.zoo import species

PICTURE = "docs/images/shapes-1.png"
TEXT = "what is <image> of"


def test_an_image_is_one_line_that_says_its_grid(run: Run) -> None:
    out = run("tokens", TEXT, "--image", PICTURE, "-m", "shapes").out
    lines = out.splitlines()
    assert lines[0].startswith("68 tokens, image of 512 × 512 pixels as 8 × 8 tokens, model")
    assert [line.split()[:2] for line in lines[-2:]] == [["3-66", "4"], ["67", "19"]]
    assert lines[-2].split(maxsplit=2)[2] == "image  64 tokens (8 × 8)"


def test_tiles_are_counted_and_two_images_have_numbers(run: Run, tmp_path: Path) -> None:
    folder = species("idefics3").make(tmp_path)
    wide = tmp_path / "wide.png"
    Image.new("RGB", (90, 60), "red").save(wide)
    asked = ("--image", str(wide), "--image", PICTURE, "-m", str(folder))
    out = run("tokens", "<image> and <image>", *asked).out
    assert [n for n in ("image 1  ", "image 2  ", "tiles of") if n not in out] == []


def test_rows_have_the_pixels_that_the_attention_to_the_same_tokens_has(run: Run) -> None:
    asked = (TEXT, "--image", PICTURE, "-m", "shapes", "-f", "jsonl")
    rows = [json.loads(line) for line in run("tokens", *asked).out.splitlines()]
    shown = [json.loads(line) for line in run("show", *asked, "--query", "-1").out.splitlines()]
    place = ("image", "row", "column", "x0", "y0", "x1", "y1")
    keys = {row["key"]: [row[name] for name in place] for row in shown}
    assert {row["index"]: [row[name] for name in place] for row in rows} == keys
    assert sum(row["image"] == 1 for row in rows) == 64
    assert rows == attnviz.tokens(TEXT, "shapes", image=PICTURE).rows


def test_names_in_a_table_of_cells_are_those_that_options_take(run: Run) -> None:
    asked = (TEXT, "--image", PICTURE, "-m", "shapes")
    cells = csv.DictReader(io.StringIO(run("tokens", *asked, "-f", "csv").out, newline=""))
    label = [row["label"] for row in cells if row["image"]][-1]
    assert run("show", *asked, "--key", label).out.count("@r7c7")


def test_python_has_the_tokens_of_a_text_without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnviz.models.catalog.load", None)
    found = attnviz.tokens("a fluffy blue creature", bos=False)
    assert [token.label for token in found.record] == "a fluffy blue creature".split()
    assert "x0" not in found.to_columns()


@pytest.mark.parametrize(
    ("model", "more", "wrong", "error"),
    [
        ("shapes", {"truncate": "left"}, "truncate cannot cut an image", IdleOption),
        ("builtin", {}, "reads no images", UsageError),
    ],
)
def test_images_are_refused_where_they_mean_nothing(
    model: str, more: dict[str, str], wrong: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=wrong):
        attnviz.tokens(TEXT, model, image=PICTURE, **more)  # type: ignore[arg-type]
