"""`attnviz tokens`: how a model cuts a text."""

import typer


def tokens(context: typer.Context) -> None:
    """Show."""
