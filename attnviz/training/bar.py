"""The progress bar of a training."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress_bar(console: Console, *, quiet: bool = False) -> Progress:
    """A bar with the steps done and in all, the task's description, and the time gone and left."""
    columns = (
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps, {task.description}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=quiet)
