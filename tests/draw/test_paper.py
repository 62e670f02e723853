"""Pictures for a paper: as wide as its column, with how they were made in the file."""

import io
import json
import re
import zlib
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.draw.picture.canvas import figure_bytes
from attnviz.draw.picture.paper import Page, drawn_for
from attnviz.errors import ExitStatus, UsageError
from tests.conftest import Run

TEXT = "a blue bird slept . the bird was"
SHOWN = ("show", TEXT, "--head", "L4H0")


def test_a_picture_is_as_wide_as_its_column_in_every_format(run: Run, tmp_path: Path) -> None:
    png, svg, pdf = (tmp_path / f"x.{form}" for form in ("png", "svg", "pdf"))
    for path in (png, svg, pdf):
        assert run(*SHOWN, "--paper", "8.5", "-o", str(path)).status == ExitStatus.OK
    with Image.open(png) as image:
        dots = image.info["dpi"][0]
        assert dots == pytest.approx(300, abs=0.1)
        assert image.width / dots * 2.54 == pytest.approx(8.5, abs=0.02)
    assert 'width="8.5000cm"' in svg.read_text()
    (box,) = re.findall(rb"/MediaBox \[ 0 0 ([0-9.]+) ", pdf.read_bytes())
    assert float(box) / 72 * 2.54 == pytest.approx(8.5)
    assert b"/FontFile2" in pdf.read_bytes(), "the letters come along"


def stream_of(data: bytes) -> bytes:
    """What a PDF draws on its page: the first stream."""
    (first,) = re.findall(rb"stream\r?\n(.*?)endstream", data, re.S)[:1]
    return zlib.decompressobj().decompress(first)


def test_a_pdf_is_the_same_drawing_scaled_with_its_page() -> None:
    """Nothing is cut off: but for the scale, each line is that of the figure as it was drawn."""
    found = attnviz.heads(TEXT)
    with drawn_for(Page(8.5)):
        figure = found.figure()
        paper = figure_bytes(figure, "pdf")
    plain = figure_bytes(figure, "pdf")
    scale = re.search(rb"([0-9.]+) 0 0 \1 0 0 cm\n", stream_of(paper))
    assert scale
    assert stream_of(paper).replace(scale[0], b"", 1) == stream_of(plain)
    sides = [re.findall(rb"/MediaBox \[ 0 0 ([0-9.]+) ", each)[0] for each in (paper, plain)]
    assert float(sides[0]) / float(sides[1]) == pytest.approx(float(scale[1]), rel=1e-4)


def test_what_stands_above_a_picture_goes_into_its_file_with_the_command(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "x.png"
    run(*SHOWN, "--paper", "8.5", "-o", str(path))
    with Image.open(path) as image:
        told = image.text  # type: ignore[attr-defined]
    assert "L4H0" in told["Title"]
    made = json.loads(told["Description"])
    assert made["command"].startswith(f"attnviz show '{TEXT}' --head L4H0 --paper 8.5")
    assert set(made["versions"]) >= {"attnviz", "torch", "transformers"}
    svg = tmp_path / "x.svg"
    run(*SHOWN, "--paper", "8.5", "-o", str(svg))
    drawn = svg.read_text().split("</metadata>")[1]
    assert "known for" not in drawn
    run(*SHOWN, "-o", str(svg))
    assert "known for" in svg.read_text(), "what one command sets ends with it"


def test_letters_that_become_too_small_are_told(run: Run, tmp_path: Path) -> None:
    options = ("--head", "all", "--paper", "4", "-o", str(tmp_path / "x.png"))
    ended = run("show", TEXT, *options)
    assert re.search(r"at 4 cm the smallest letters are [0-4]\.\d points high", ended.err)
    wrong = run(*SHOWN, "--paper", "8.5")
    assert wrong.status == ExitStatus.USAGE
    assert "--paper is for pictures" in wrong.err


def _pixels(data: bytes) -> Any:
    return matplotlib.image.imread(io.BytesIO(data))


def test_panels_hold_every_picture_beside_the_others(tmp_path: Path) -> None:
    shown, ablated = attnviz.show(TEXT, heads="L4H0"), attnviz.ablate(TEXT)
    both = attnviz.panels([shown, ablated, shown], width=17.8, across=2)
    figure = both.figure()
    letters = [t.get_text() for axes in figure.axes for t in axes.texts if t.get_weight() == "bold"]
    assert letters == ["a", "b", "c"]
    boxes = [axes.get_position() for axes in figure.axes]
    assert all(0 <= box.x0 <= box.x1 <= 1 and 0 <= box.y0 <= box.y1 <= 1 for box in boxes)
    path = tmp_path / "both.png"
    both.save(path)
    pixels = _pixels(path.read_bytes())[..., :3]
    upper, lower = np.array_split(pixels, 2)
    assert (upper < 0.9).any()
    assert (lower[:, : lower.shape[1] // 3] < 0.9).any()
    with Image.open(path) as image:
        made = json.loads(image.text["Description"])["made"]  # type: ignore[attr-defined]
        assert image.width / image.info["dpi"][0] * 2.54 == pytest.approx(17.8, abs=0.02)
    assert made[0]["options"] == {"heads": "L4H0"}
    assert made[1]["runs"][0]["text"] == TEXT
    assert repr(both) == "<Panels a to c, 17.8 cm>"
    assert attnviz.panels([shown], width=4).notes[0].startswith("at 4 cm the smallest letters")


def test_what_is_no_figure_is_refused() -> None:
    for results, options, said in (
        ([], {}, "0 pictures"),
        (["x"], {}, "str has no picture"),
        ([attnviz.ablate(TEXT)], {"width": 0}, "cannot be drawn"),
        (attnviz.ablate(TEXT), {}, "the results are not a list"),
    ):
        with pytest.raises(UsageError, match=said):
            attnviz.panels(results, **options)
    with pytest.raises(UsageError, match="not a picture"):
        attnviz.panels([attnviz.ablate(TEXT)]).save("x.csv")
