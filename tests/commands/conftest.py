"""A real browser, which opens a page from disk and reports what goes wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browsing import Open

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    if not CHROMIUM.exists():
        pytest.skip("needs Debian's chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(CHROMIUM),
            args=["--no-sandbox", "--disable-background-networking", "--disable-sync"],
        )
        yield started
        started.close()


@pytest.fixture
def opened(browser: "Browser", tmp_path: Path) -> Iterator[Open]:
    """Opens a page from disk with the network cut off; no request and no error may come of it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    wrong: list[str] = []
    requests: list[str] = []

    def open_page(written: str | Path, fragment: str = "") -> "Page":
        file = tmp_path / "page.html"
        if isinstance(written, Path):
            file = written
        else:
            file.write_text(written, encoding="utf-8")
        opened = context.new_page()
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.on("console", lambda said: wrong.append(said.text))
        opened.on("dialog", lambda dialog: wrong.append(dialog.message))
        opened.on("request", lambda asked: requests.append(asked.url))
        opened.goto(f"file://{file}{fragment}")
        opened.wait_for_selector("body[data-ready]")
        return opened

    yield open_page
    context.close()
    assert wrong == []
    assert all(url.startswith(("file:", "blob:")) for url in requests)
