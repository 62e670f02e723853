"""Draw docs/lesson.png: the lesson page on the README's text.

python docs/make_lesson.py     needs Playwright and Debian's chromium
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import attnviz

TEXT = "a fluffy blue creature roamed the verdant forest"
PICTURE = Path(__file__).with_name("lesson.png")


def draw(page_file: Path) -> None:
    """Write the picture of a page's first screen."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 790}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.wait_for_selector("body[data-ready]")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        lesson = Path(folder) / "lesson.html"
        attnviz.explain(TEXT).save(str(lesson))
        draw(lesson)
