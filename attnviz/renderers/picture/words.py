"""What is asked of a picture, and the words that are written on it."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.errors import readable
from attnviz.records.capture import Capture
from attnviz.records.exhibit import ColorScale, Exhibit, Map, Orient, PictureLook
from attnviz.renderers.colors import SEQUENTIAL
from attnviz.renderers.headlines import map_title, sink_said
from attnviz.renderers.labels import distinct_labels
from attnviz.renderers.picture.fonts import Lettering, lettering
from attnviz.renderers.titles import caption, facts, pane_titles, written


@dataclass(frozen=True)
class PictureOptions:
    """How a picture is drawn; `title` None means the head, `""` neither title nor caption."""

    cmap: str = SEQUENTIAL
    dpi: int = 150
    title: str | None = None
    color_scale: ColorScale = "linear"
    orient: Orient = "query-rows"


def options_of(look: PictureLook, orient: Orient | None, *, by_row: bool = False) -> PictureOptions:
    """The options of a picture, with their defaults; `by_row` colours each row by itself."""
    plain = PictureOptions()
    return PictureOptions(
        cmap=look.cmap or plain.cmap,
        dpi=plain.dpi if look.dpi is None else look.dpi,
        title=look.title,
        color_scale=look.color_scale or ("row" if by_row else plain.color_scale),
        orient=orient or plain.orient,
    )


@dataclass(frozen=True)
class Lettered:
    """Everything that is written on a picture, in letters that its fonts have.

    `panes` holds for each map what may stand above it, the fullest first.
    """

    title: str
    subtitle: str
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    panes: tuple[tuple[str, ...], ...]
    fonts: Lettering


def words_for(exhibit: Exhibit, options: PictureOptions) -> Lettered:
    """The words of this exhibit's picture, in letters that the installed fonts have."""
    capture = exhibit.capture
    title, subtitle = _titles(exhibit, options)
    queries = distinct_labels(capture.query_tokens)
    keys = distinct_labels(capture.key_tokens)
    panes = [pane_titles(exhibit, head_map) for head_map in exhibit.maps]
    fonts = lettering([title, subtitle, *queries, *keys, *(pane[0] for pane in panes)])
    return Lettered(
        fonts.spell(title),
        fonts.spell(subtitle),
        tuple(map(fonts.spell, queries)),
        tuple(map(fonts.spell, keys)),
        tuple(tuple(map(fonts.spell, pane)) for pane in panes),
        fonts,
    )


def _titles(exhibit: Exhibit, options: PictureOptions) -> tuple[str, str]:
    """The title, and the caption below it, which says whatever title a user gives."""
    if options.title == "":
        return "", ""
    maps = exhibit.maps
    if exhibit.subtitle:
        title, subtitle = exhibit.caption, exhibit.subtitle
    else:
        title = map_title(exhibit, maps[0]) if len(maps) == 1 else _title_of_many(maps)
        subtitle = _subtitle(exhibit.capture, options.orient) + sink_said(exhibit)
    if options.title is None:
        return title, subtitle
    which = maps[0].label if len(maps) == 1 else title
    return readable(options.title), subtitle if exhibit.subtitle else f"{which} · {subtitle}"


def _subtitle(capture: Capture, orient: Orient) -> str:
    """What was run, on how much, and the text; of an encoder-decoder what it wrote, too."""
    if not capture.target:
        return caption(capture)
    said = written(capture, row="column" if orient == "key-rows" else "row")
    return f"{facts(capture)}; read: “{readable(capture.text)}”, {said}"


def _title_of_many(maps: Sequence[Map]) -> str:
    """`L0H0 to L1H3, 8 attention heads`: which they are, and of what kind."""
    joined = " and " if len(maps) == 2 else " to "
    kind = "maps of attention" if any(m.reduced for m in maps) else "attention heads"
    return f"{maps[0].label}{joined}{maps[-1].label}, {len(maps)} {kind}"
