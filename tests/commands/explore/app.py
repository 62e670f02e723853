"""Runs the terminal app in tests, without a terminal."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from unittest.mock import patch

from textual._context import active_app
from textual.content import Content
from textual.pilot import Pilot
from textual.widget import Widget

from attnviz.commands.explore.app import ExploreApp
from attnviz.commands.explore.pane import ScenePane
from attnviz.commands.explore.scene import Opened
from attnviz.console import Display
from attnviz.kit.intervene import GaveWay
from attnviz.kit.session import as_flag
from attnviz.records.apply import Between

Does = Callable[["Visit"], Awaitable[None]]
COLORS = Display(80, color=True)
TEXT = "a fluffy blue creature roamed the verdant forest"


class Visit:
    """Someone at the keys of a running app."""

    def __init__(self, app: ExploreApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def settle(self) -> None:
        """Wait until nothing runs, and all of it is shown."""
        await self.app.workers.wait_for_complete()
        await idle()
        await self.app.workers.wait_for_complete()  # a run is followed by its transforms
        await idle()

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


async def idle(*_: float) -> None:
    """Wait until nothing is left to do but to wait for a key, a thread or a timer.

    It stands in for Textual's own, which waits for an idle processor: that takes 20 ms or more
    each time, and up to a second where the machine has other work.
    """
    app = active_app.get()
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    while True:
        await app.animator.wait_until_complete()
        while ready or app._resize_timer:
            await asyncio.sleep(0 if ready else 0.005)
        if app.screen_stack:
            app.screen._on_timer_update()
        if not ready:
            return


def until(happens: Callable[[], bool], seconds: float = 5) -> None:
    """Wait for what happens in another thread."""
    end = time.monotonic() + seconds
    while not happens() and time.monotonic() < end:
        time.sleep(0.005)


def gave_way(between: Between) -> bool:
    """Whether the thread that calls this has been cancelled."""
    try:
        between()
    except GaveWay:
        return True
    return False


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
    wait: bool = True,
) -> None:
    """Open the app, and do something in it; `wait`: once its first run has ended."""

    async def visit() -> None:
        app = ExploreApp(opened, display, folder, as_flag)
        async with app.run_test(size=size) as pilot:
            there = Visit(app, pilot)
            if wait:
                await there.settle()
            await does(there)

    with patch("textual.app.wait_for_idle", idle), patch("textual.pilot.wait_for_idle", idle):
        asyncio.run(visit())
