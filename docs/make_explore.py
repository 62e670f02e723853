"""Draw docs/explore.svg: the terminal app as it opens on the README's text.

python docs/make_explore.py     needs the extra tui
"""

import asyncio
import re
from pathlib import Path

from attnviz.console import Display
from attnviz.models.catalog import Source
from attnviz.runs.options import TextOptions
from attnviz.runs.prepare import load_model
from attnviz.tui.app import ExploreApp
from attnviz.tui.runs import Opened

TEXT = "a fluffy blue creature roamed the verdant forest . the creature was"
TARGET = Path(__file__).with_name("explore.svg")
FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


async def picture() -> str:
    """The app's screen, without the fonts that Textual would fetch from a server."""
    opened = Opened.of_text(TEXT, load_model(Source("builtin")), TextOptions())
    app = ExploreApp(opened, Display(color=True), Path())
    async with app.run_test(size=(100, 28)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("tab", "tab", "tab", *["left"] * 8, "tab")  # the first creature
        await pilot.pause(0.5)
        return FONTS.sub("", app.export_screenshot())


if __name__ == "__main__":
    TARGET.write_text(asyncio.run(picture()), encoding="utf-8")
