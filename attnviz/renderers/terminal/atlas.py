"""The scores of a scan as a table."""

from collections.abc import Iterator

from rich.text import Text

from attnviz.commands.heads.terminal import SHORT
from attnviz.console import Display
from attnviz.data.atlas import SCORES, Atlas
from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing
from attnviz.renderers.atlas_titles import atlas_title

SMALL = ("distance", "distance_variance")


def render_atlas(atlas: Atlas, display: Display) -> Iterator[Text]:
    """The table, and the largest standard error."""
    yield from folded(Text(atlas_title(atlas), "dim"), display.width)
    yield Text()
    names = [name for name in SCORES if name != "distance_variance"]
    columns = [Column("head"), *(Column(SHORT[name], right=True) for name in names)]
    rows = [
        [str(head), *(_number(name, row[name]) for name in names)]
        for head, row in zip(atlas.heads, atlas.rows, strict=True)
    ]
    yield from listing(columns, rows, display.width)
    errors = [
        row[f"{name}_error"]
        for row in atlas.rows
        for name in names
        if name not in SMALL and row[f"{name}_error"] is not None
    ]
    if errors:
        yield Text()
        every = display.speller("format", "json")
        said = f"standard errors over documents: at most {max(errors):.3f}, except for distances"
        yield from folded(Text(f"{said} ({every} has all)", "dim"), display.width)


def _number(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if name in SMALL else f"{value:.2f}"
