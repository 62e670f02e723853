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


def test_the_drawing_fills_the_page_of_a_pdf(run: Run, tmp_path: Path) -> None:
    """Its content is scaled by as much as the page, so that it is the same picture."""
    for name, options in (("plain", ()), ("paper", ("--paper", "8.5"))):
        run("heads", TEXT, *options, "-o", str(tmp_path / f"{name}.pdf"))
    content = re.findall(
        rb"stream\r?\n(.*?)\r?\nendstream", (tmp_path / "paper.pdf").read_bytes(), re.S
    )
    whole = b"".join(zlib.decompress(each) for each in content if each[:1] == b"x")
    scaled = re.search(rb"([0-9.]+) 0 0 \1 0 0 cm", whole)
    assert scaled
    assert 0.2 < float(scaled[1]) < 1


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
    assert made[1]["options"] is not None


def test_what_is_no_figure_is_refused() -> None:
    for results, options, said in (
        ([], {}, "0 pictures"),
        (["x"], {}, "str has no picture"),
        ([attnviz.ablate(TEXT)], {"width": 0}, "cannot be drawn"),
    ):
        with pytest.raises(UsageError, match=said):
            attnviz.panels(results, **options)
    with pytest.raises(UsageError, match="not a picture"):
        attnviz.panels([attnviz.ablate(TEXT)]).save("x.csv")
