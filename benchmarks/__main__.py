"""Run the benchmarks and print one table.

    python -m benchmarks                      # everything, five runs of each
    python -m benchmarks --only Llama --runs 7 --json figures.json
    python -m benchmarks --only "1,000 windows" --runs 1   # a long job
    python -m benchmarks --gpu                # on a graphics processor

Nothing else may run on the machine meanwhile.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.growth import NEAR, growth
from benchmarks.jobs import PYTHON, Job, jobs
from benchmarks.measure import MIB, Pair, compare, imports, run

GROWTH = "small Llama, 512 to 8,192 tokens: growth"
LEAST_RUNS = 5
"""A median of fewer says little; a job that takes hours may have them."""


def main(
    runs: Annotated[
        int,
        typer.Option(min=1, help="Runs of each command; medians count. At least 5 without --only."),
    ] = LEAST_RUNS,
    only: Annotated[str, typer.Option(help="Only jobs with this in their name.")] = "",
    folder: Annotated[Path | None, typer.Option(help="Where checkpoints are kept.")] = None,
    figures: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
    gpu: Annotated[bool, typer.Option("--gpu", help="The jobs of a graphics processor.")] = False,
    tiny: Annotated[bool, typer.Option("--tiny", help="With --gpu, of a small model.")] = False,
) -> None:
    """Measure attnviz against what a user would pick instead."""
    if gpu:
        from benchmarks.gpu import measure

        measure(tiny=tiny)
        return
    if runs < LEAST_RUNS and not only:
        raise typer.BadParameter(f"{LEAST_RUNS} or more without --only", param_hint="--runs")
    with TemporaryDirectory() as temporary:
        where = folder or Path(temporary)
        where.mkdir(parents=True, exist_ok=True)
        run([PYTHON, "-m", "benchmarks.checkpoints", str(where)])
        run([PYTHON, "-m", "attnviz", "show", "a blue creature", "-o", str(where / "capture.npz")])
        rows = [_measured(job, runs) for job in _chosen(jobs(where), only)]
        if only.lower() in GROWTH.lower():
            rows.append(_growth(where, runs))
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(_table(rows))
    if figures is not None:
        figures.write_text(json.dumps(rows, indent=2) + "\n")
    if not all(row["reached"] for row in rows):
        raise typer.Exit(1)


def _chosen(every: Sequence[Job], only: str) -> list[Job]:
    """Jobs with this in their name; long ones only where there are no others."""
    named = [job for job in every if only.lower() in job.name.lower()]
    return [job for job in named if not job.long] or named


def _measured(job: Job, runs: int) -> dict[str, object]:
    _say(job.name)
    pair = compare(job.ours, job.theirs, runs, timed_inside=job.timed_inside, warm=not job.long)
    reached = (job.most_time is None or pair.time <= job.most_time) and (
        job.most_memory is None or pair.memory <= job.most_memory
    )
    must = [
        f"{what} ≤ {most:.2f}"
        for what, most in (("time", job.most_time), ("memory", job.most_memory))
        if most is not None
    ]
    if job.without_torch:
        must.append("no torch")
        reached = reached and not imports(job.ours, "torch")
    return {
        "job": job.name,
        "ours": _written(pair, ours=True),
        "against": job.against,
        "theirs": _written(pair, ours=False),
        "ratio": f"time {pair.time:.2f}, memory {pair.memory:.2f}",
        "must": ", ".join(must),
        "reached": reached,
        "medians": asdict(pair),
    }


def _growth(folder: Path, runs: int) -> dict[str, object]:
    _say(GROWTH)
    ours, theirs, pairs = growth(folder, runs)
    return {
        "job": GROWTH,
        "ours": f"time n^{ours.time:.2f}, memory n^{ours.memory:.2f}",
        "against": "plain SDPA forward",
        "theirs": f"time n^{theirs.time:.2f}, memory n^{theirs.memory:.2f}",
        "ratio": f"{ours.time - theirs.time:+.2f}, {ours.memory - theirs.memory:+.2f}",
        "must": f"both ≤ {NEAR:+.2f}",
        "reached": max(ours.time - theirs.time, ours.memory - theirs.memory) <= NEAR,
        "medians": [asdict(pair) for pair in pairs],
    }


def _written(pair: Pair, *, ours: bool) -> str:
    sample = pair.ours if ours else pair.theirs
    return f"{sample.seconds:.2f} s, {sample.bytes / MIB:,.0f} MiB"


def _table(rows: list[dict[str, object]]) -> Table:
    table = Table()
    for column in ("job", "ours", "against", "theirs", "ratio", "must", "reached"):
        table.add_column(column)
    for row in rows:
        cells = [str(row[c]) for c in ("job", "ours", "against", "theirs", "ratio", "must")]
        table.add_row(*cells, "yes" if row["reached"] else "NO")
    return table


def _say(name: str) -> None:
    print(name, file=sys.stderr, flush=True)


if __name__ == "__main__":
    typer.run(main)
