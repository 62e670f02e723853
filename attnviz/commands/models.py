"""`attnviz models`: which models there are, and what a model's card says."""

import typer


def models(context: typer.Context) -> None:
    """Show."""
