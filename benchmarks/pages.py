"""Pages in a browser: how large they are, how soon they show something, how fast a head changes.

    pip install -e ".[bench]"
    python -m benchmarks.pages --scripts FOLDER --json pages.json

The same captures as our page, BertViz's and CircuitsVis's, each made by a process of its own and
opened in Chromium from the disk. BertViz's page loads require.min.js, d3.min.js (5.7.0) and
jquery.min.js from a content network; `--scripts` is a folder that has them, where there is none.
Nothing else may run on the machine meanwhile.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.jobs import PYTHON, SCRIPTS
from benchmarks.measure import run
from benchmarks.seeded import write_seeded

PATIENCE = 120  # seconds


@dataclass(frozen=True)
class Tool:
    """Who makes a page, when its first head is drawn, and how another is chosen (JavaScript)."""

    name: str
    make: Callable[[Path, Path], list[str]]
    drawn: str
    switch: str


TOOLS = (
    Tool(
        "attnviz",
        lambda capture, out: [PYTHON, "-m", "attnviz", "show", str(capture), "-o", str(out)],
        "document.body && document.body.dataset.ready",
        "(n) => choose((n + 1) * 3 % data.heads.length)",
    ),
    Tool(
        "BertViz, head view, one head at a time",
        lambda capture, out: [PYTHON, str(SCRIPTS / "bertviz.py"), str(capture), str(out)],
        "document.querySelector('#vis line')",
        """(n) => {
          const layers = document.querySelector('#layer');
          layers.selectedIndex = (n + 1) % layers.options.length;
          layers.dispatchEvent(new Event('change', { bubbles: true }));
        }""",
    ),
    Tool(
        "CircuitsVis, attention heads, code inlined",
        lambda capture, out: [PYTHON, str(SCRIPTS / "circuitsvis.py"), str(capture), str(out)],
        "document.querySelectorAll('h4').length < document.querySelectorAll('canvas').length",
        """(n) => {
          const names = document.querySelectorAll('h4');
          const over = new MouseEvent('mouseover', { bubbles: true });
          names[(n + 1) * 3 % names.length].parentElement.dispatchEvent(over);
        }""",
    ),
)


@dataclass(frozen=True)
class Case:
    """A capture, who shows it, and what ours must reach."""

    name: str
    make: Callable[[Path], object]
    tools: tuple[Tool, ...]
    most_bytes: int | None = None
    most_switch: float | None = None


def _builtin(path: Path) -> object:
    text = "a fluffy blue creature roamed the verdant forest"
    return run([PYTHON, "-m", "attnviz", "show", text, "-o", str(path)])


CASES = (
    Case("built-in, 9 tokens × 16 heads", _builtin, TOOLS),
    Case("seeded, 256 × 144", lambda path: write_seeded(path, 256), TOOLS, 5_000_000, 100),
    Case("seeded, 1,024 × 144", lambda path: write_seeded(path, 1024), TOOLS[:1], 40_000_000, 100),
)
MOST_PAINT = 1000.0


def main(
    runs: Annotated[int, typer.Option(min=3, help="Openings of each page; medians count.")] = 5,
    scripts: Annotated[Path | None, typer.Option(help="Scripts of BertViz's page.")] = None,
    figures: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    """Measure pages, ours and what a user would open instead."""
    with TemporaryDirectory() as temporary:
        rows = [row for case in CASES for row in _rows(case, Path(temporary), scripts, runs)]
    Console(width=None if sys.stdout.isatty() else 150).print(_table(rows))
    if figures is not None:
        figures.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    if not all(row["reached"] in ("yes", "") for row in rows):
        raise typer.Exit(1)


def _rows(case: Case, folder: Path, scripts: Path | None, runs: int) -> list[dict[str, str]]:
    capture = folder / "capture.npz"
    case.make(capture)
    rows = []
    for tool in case.tools:
        print(f"{case.name}: {tool.name}", file=sys.stderr, flush=True)
        page = folder / "page.html"
        made = run(tool.make(capture, page)).seconds
        size = page.stat().st_size
        paint, drawn, switch = _medians(tool, page, scripts, runs)
        rows.append(
            {
                "page": case.name,
                "by": tool.name,
                "size": f"{size / 1e6:.2f} MB",
                "made in": f"{made:.1f} s",
                "first paint": _seconds(paint),
                "first head": _seconds(drawn),
                "another head": f"{switch:.0f} ms" if isfinite(switch) else "",
                "must": _must(case) if tool is TOOLS[0] else "",
                "reached": _reached(case, size, paint, switch) if tool is TOOLS[0] else "",
            }
        )
    return rows


def _medians(tool: Tool, page: Path, scripts: Path | None, runs: int) -> list[float]:
    """Milliseconds to first paint, first head and another head, of several openings.

    Infinite where a page shows nothing in all the patience we have.
    """
    opened = [_opened(tool, page, scripts)]
    while len(opened) < runs and isfinite(opened[0][0]):
        opened.append(_opened(tool, page, scripts))
    return [median(figures) for figures in zip(*opened, strict=True)]


def _opened(tool: Tool, page: Path, scripts: Path | None) -> list[float]:
    """One opening, in a process that can be killed: a page may be busy for minutes."""
    asked = {"page": str(page), "switch": tool.switch, "drawn": tool.drawn}
    command = [PYTHON, str(SCRIPTS / "open_page.py"), json.dumps(asked), str(scripts or "")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return [inf, inf, inf]
    if process.returncode:
        sys.exit(f"{tool.name} could not be opened")
    found: list[float] = json.loads(said)
    return found


def _seconds(milliseconds: float) -> str:
    within = isfinite(milliseconds)
    return f"{milliseconds / 1000:.2f} s" if within else f"> {PATIENCE} s"


def _must(case: Case) -> str:
    must = [f"first paint ≤ {MOST_PAINT / 1000:.0f} s"]
    if case.most_bytes:
        must.insert(0, f"≤ {case.most_bytes / 1e6:.0f} MB")
    if case.most_switch:
        must.append(f"head ≤ {case.most_switch:.0f} ms")
    return ", ".join(must)


def _reached(case: Case, size: int, paint: float, switch: float) -> str:
    bars = (case.most_bytes or size, MOST_PAINT, case.most_switch or switch)
    figures = (size, paint, switch)
    return "yes" if all(a <= b for a, b in zip(figures, bars, strict=True)) else "**no**"


def _table(rows: list[dict[str, str]]) -> Table:
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*row.values())
    return table


if __name__ == "__main__":
    typer.run(main)
