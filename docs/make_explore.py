"""Draw docs/explore.svg and docs/explore-miniatures.svg: the terminal app on the README's text.

python docs/make_explore.py     needs the extra tui
"""

import asyncio
import re
from pathlib import Path

from attnviz.commands.explore.app import ExploreApp
from attnviz.commands.explore.scene import Opened, Runs
from attnviz.console import Display
from attnviz.kit.prepare import TextOptions, load_model
from attnviz.models.catalog import Source

TEXT = "a fluffy blue creature roamed the verdant forest . the creature was"
HERE = Path(__file__).parent
PICTURES = {
    "explore.svg": ((100, 28), ["slash", *"creature", "enter", "tab"]),
    "explore-miniatures.svg": ((100, 40), ["g"]),
}
FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


async def picture(size: tuple[int, int], keys: list[str]) -> str:
    """The app's screen, without the fonts that Textual would fetch from a server."""
    opened = Opened(TEXT, Runs(load_model(Source("builtin")), TextOptions()))
    app = ExploreApp(opened, Display(color=True), Path())
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause(0.5)
        return FONTS.sub("", app.export_screenshot())


if __name__ == "__main__":
    for name, shown in PICTURES.items():
        (HERE / name).write_text(asyncio.run(picture(*shown)), encoding="utf-8")
