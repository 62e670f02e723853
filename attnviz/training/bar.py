"""The progress bar of a training, on stderr."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress_bar(console: Console, *, quiet: bool = False) -> Progress:
    """Steps taken of all, what a task's description says, the time that went and that is left."""
    columns = (
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps, {task.description}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=quiet)
