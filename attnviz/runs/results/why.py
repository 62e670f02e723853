"""A score taken apart, and what a head writes, as results."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attnviz.console import Display
from attnviz.kit.result import Result
from attnviz.records.parts import Why, Write
from attnviz.records.rows import why_to_dict, write_to_dict
from attnviz.renderers.rows import why as rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn


def of_why(why: Why, top: int) -> Result[Why]:
    """A contrast of a head's scores, in its `top` strongest parts."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import why as table

        return table.render(why, top, display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture import why as picture

        return picture.draw(why, **look)

    return Result(
        "why",
        why,
        why.about,
        (rows.PairRow,),
        lambda: rows.pair_rows(why),
        shown,
        draw,
        lambda: why_to_dict(why),
        captures=(why.capture,),
    )


def of_write(write: Write) -> Result[Write]:
    """What a head writes."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import why as table

        return table.render_write(write, display)

    return Result(
        "why",
        write,
        write.about,
        (rows.ReaderRow,),
        lambda: rows.reader_rows(write),
        shown,
        None,
        lambda: write_to_dict(write),
        captures=(write.capture,),
    )
