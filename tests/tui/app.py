"""Runs the terminal app in tests, without a terminal."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.content import Content
from textual.pilot import Pilot
from textual.widget import Widget

from attnviz.commands.flags import as_flag
from attnviz.console import Display
from attnviz.tui.app import ExploreApp
from attnviz.tui.pane import ScenePane
from attnviz.tui.runs import Opened

Does = Callable[["Visit"], Awaitable[None]]
COLORS = Display(80, color=True)


class Visit:
    """Someone at the keys of a running app."""

    def __init__(self, app: ExploreApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def settle(self) -> None:
        """Wait until nothing runs, and all of it is shown."""
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()
        await self.app.workers.wait_for_complete()  # a run is followed by its transforms
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys, and wait for what comes of each."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    def pane(self, name: str) -> ScenePane:
        return self.app.query_one(f"#{name}", ScenePane)

    def seen(self, name: str) -> list[str]:
        """The lines that a pane shows."""
        pane = self.pane(name)
        return [pane.render_line(y).text.rstrip() for y in range(pane.size.height)]

    def title(self, name: str) -> str:
        return plain(self.app.query_one(f"#{name}").border_title)

    def subtitle(self, name: str) -> str:
        return plain(self.app.query_one(f"#{name}").border_subtitle)

    @property
    def focus(self) -> str | None:
        focused = self.app.focused
        return focused.id if isinstance(focused, Widget) else None

    @property
    def told(self) -> list[str]:
        """What came up in the corner."""
        return [each.message for each in self.app._notifications]


def plain(content: Content | str | None) -> str:
    """A title without its markup."""
    return Content.from_text(content).plain if isinstance(content, str) else str(content or "")


def explore(
    opened: Opened,
    does: Does,
    *,
    folder: Path = Path("unused"),
    size: tuple[int, int] = (80, 24),
    display: Display = COLORS,
) -> None:
    """Open the app, and do something in it."""

    async def visit() -> None:
        app = ExploreApp(opened, display, folder, as_flag)
        async with app.run_test(size=size) as pilot:
            there = Visit(app, pilot)
            await there.settle()
            await does(there)

    asyncio.run(visit())
