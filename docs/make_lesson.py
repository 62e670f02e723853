"""Draw docs/lesson.png, the lesson page on the README's text, and docs/answer.png, of an answer.

python docs/make_lesson.py     needs Playwright and Debian's chromium
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import attnviz

TEXT = "a fluffy blue creature roamed the verdant forest"
ASKS = "therefore the murderer was"
DOCS, SAMPLES = ("diary", "letter", "report"), Path(__file__).parent.parent / "sample_texts"


def draw(page_file: Path, height: int) -> None:
    """Write the picture of a page's first screen beside this file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": height}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.wait_for_selector("body[data-ready]")
        page.screenshot(path=Path(__file__).with_name(f"{page_file.stem}.png"))
        browser.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        lesson, page = Path(folder) / "lesson.html", Path(folder) / "answer.html"
        attnviz.explain(TEXT).save(str(lesson))
        draw(lesson, 790)
        documents = {name: (SAMPLES / f"{name}.txt").read_text() for name in DOCS}
        answer = attnviz.generate(ASKS, docs=documents)
        answer.check()
        answer.save(page)
        draw(page, 830)
