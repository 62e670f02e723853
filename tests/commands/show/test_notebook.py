"""A capture in a real kernel, and the notebook of the documents in a real browser."""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from attnviz.commands.show.page import framed
from tests.browsing import until
from tests.factories import make_capture

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


@pytest.mark.slow
def test_the_notebook_shows_in_a_real_kernel_what_it_shows_in_the_documents() -> None:
    made = subprocess.run(
        [sys.executable, "docs/make_notebook.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr


def test_a_text_is_shown_once_and_every_cell_shows_something() -> None:
    cells = [c for c in nbformat.read(NOTEBOOK, as_version=4).cells if c.cell_type == "code"]
    kinds = [[output.output_type for output in cell.outputs] for cell in cells]
    assert kinds == [[kind] for kind in ("execute_result",) * 3 + ("stream",)] + [
        ["execute_result"],
        ["stream"],
    ]


def page_of_notebook(folder: Path) -> Path:
    """What the cells of the notebook show, below each other."""
    parts = ["<!doctype html><meta charset=utf-8>"]
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f'<img src="data:image/png;base64,{data["image/png"]}">')
            parts.append(f"<div>{data.get('text/html', '')}</div>")
    file = folder / "notebook.html"
    file.write_text("\n".join(parts), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [600, 900, 1400])
def test_the_frame_of_a_capture_is_as_tall_as_its_page(
    browser: "Browser", tmp_path: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 700})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_of_notebook(tmp_path).as_uri())
    page.wait_for_selector("iframe")
    (frame,) = (each for each in page.frames if each.parent_frame)
    until(frame, "document.body?.dataset.ready !== undefined && innerHeight !== 768")
    until(frame, "document.documentElement.scrollHeight - innerHeight <= 1")
    assert all(url.startswith(("file:", "about:", "data:", "blob:")) for url in asked)
    assert page.query_selector('img[src^="data:image/png"]'), "the picture is shown"
    page.close()


def test_a_capture_of_scores_says_why_it_is_no_page() -> None:
    assert "<iframe" in framed(make_capture())
