"""The terminal app on a GPT-2-sized model: how soon it follows, and whether it ever stands still.

    pip install -e ".[tui]"
    python -m benchmarks.explore --json app.json

For texts of 64, 512 and 1,024 tokens, without a terminal (160 x 45 characters). *Longest stall* is
the longest time in which the screen's thread could not run. Nothing else may run meanwhile.
"""

import asyncio
import json
import time
from collections.abc import Awaitable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from textual.pilot import Pilot

from attnviz.commands.explore.app import ExploreApp
from attnviz.commands.explore.scene import Opened, Runs
from attnviz.console import Display
from attnviz.kit.prepare import TextOptions, load_model
from attnviz.models.catalog import Source
from benchmarks.jobs import PYTHON
from benchmarks.measure import run

LENGTHS = (64, 512, 1024)
MOVES = ("down", "right", "up", "left", "tab", "tab", "up", "left")
BEAT = 0.01


def main(
    folder: Annotated[Path | None, typer.Option(help="Where checkpoints are kept.")] = None,
    figures: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    """Measure the terminal app."""
    with TemporaryDirectory() as temporary:
        where = folder or Path(temporary)
        run([PYTHON, "-m", "benchmarks.checkpoints", str(where)])
        rows = [asyncio.run(_measured(where, tokens, Path(temporary))) for tokens in LENGTHS]
    print(json.dumps(rows, indent=2))
    if figures is not None:
        figures.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


async def _measured(folder: Path, tokens: int, out: Path) -> dict[str, str]:
    model = load_model(Source(str(folder / "gpt2")))
    text = (folder / f"{tokens}.txt").read_text(encoding="utf-8")
    opened = Opened(text, Runs(model, TextOptions(truncate="right")))
    app = ExploreApp(opened, Display(80, color=True), out)
    stalls: list[float] = []

    async def beat() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(BEAT)
            stalls.append(time.perf_counter() - start - BEAT)

    async with app.run_test(size=(160, 45)) as pilot:
        heart = asyncio.create_task(beat())
        first = await _timed(_settled(pilot))
        moves = [await _timed(pilot.press(key)) for key in MOVES]
        turns = [await _timed(_turned(pilot, key)) for key in "wsr"]
        for key in "wsr":
            await _turned(pilot, key)
        await pilot.press("e", *"hello you")  # each letter cancels the run before
        await pilot.pause(0.4)
        await _settled(pilot)
        await pilot.press("escape")
        picture, page = [await _timed(_turned(pilot, key)) for key in "po"]
        heart.cancel()
    return {
        "tokens": f"{tokens:,}",
        "first run": f"{first:.1f} s",
        "a key": f"{median(moves):.2f} s",
        "words, sink, rollout": ", ".join(f"{each:.1f} s" for each in turns),
        "PNG": f"{picture:.1f} s",
        "page": f"{page:.1f} s",
        "longest stall": f"{max(stalls):.2f} s",
    }


async def _timed(act: Awaitable[object]) -> float:
    start = time.perf_counter()
    await act
    return time.perf_counter() - start


async def _turned(pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    await _settled(pilot)


async def _settled(pilot: Pilot[None]) -> None:
    """Nothing runs any more, and what came of it is shown."""
    for _ in "12":  # a run is followed by its transforms
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


if __name__ == "__main__":
    typer.run(main)
