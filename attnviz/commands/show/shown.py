"""What `attnviz.show` returns, and the options by which a capture is shown."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from attnviz.commands.show.outputs import Needs, OutputRequest, Setting, Show, choose_output
from attnviz.commands.show.rows import link_columns
from attnviz.commands.show.run import make, show_capture
from attnviz.console import Display, plain_text
from attnviz.draw.titles import text_notes
from attnviz.errors import UsageError, as_argument, option, spelled
from attnviz.kit import options as g
from attnviz.kit.formats import VIEWS, Piece, choose_format
from attnviz.kit.option import check_number, check_value
from attnviz.kit.values import token_names, which_heads
from attnviz.kit.write import encoded, write_bytes
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Exhibit, Filters, Look
from attnviz.records.rows import Column
from attnviz.records.transforms import Transforms

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType


class ShowOptions(TypedDict, total=False):
    """What is shown, and how; docs/selection.md and docs/views.md say more.

    heads, layers: which heads; none named: one that is chosen automatically.
    query, key: only these rows and columns.
    top, least: the most keys of each query, the smallest weight.
    no_self, no_previous: leave out links to the token itself, to the token before.
    chars, words: merge the pieces of a character, of a word; those of a character are merged
        unless `chars` is False.
    weighted, scores: norm-based attention; scores in place of weights.
    drop_sink, drop_key: take the first token, or these keys, out and scale rows to sum to 1.
    reduce, over: join heads ("mean", "max") over "heads", "layers" or "all".
    rollout: the product of the attention of all layers.
    orient: "key-rows" draws keys as rows.
    cmap, color_scale, dpi, title: how a picture is drawn.
    """

    heads: g.HeadsNamed
    layers: g.LayersNamed
    query: g.Queries
    key: g.Keys
    top: g.TopKeys
    least: g.LeastWeight
    no_self: g.NoSelf
    no_previous: g.NoPrevious
    chars: g.Chars
    words: g.Words
    weighted: g.Weighted
    scores: g.ShowScores
    drop_sink: g.DropSink
    drop_key: g.DropKey
    reduce: g.Reduce
    over: g.ReduceOver
    rollout: g.Rollout
    orient: g.Orientation
    cmap: g.ColorMap
    color_scale: g.ScaleOfColors
    dpi: g.Dpi
    title: g.Title


class ViewOptions(ShowOptions, total=False):
    """The same, and the view."""

    view: str | None


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """Patterns on show; made by `attnviz.show` and `AttentionCapture.show`.

    >>> shown = attnviz.show("a fluffy blue creature", heads="L3H2", query="creature", top=1)
    >>> shown.to_columns()["key_token"]
    array(['fluffy'], dtype=object)
    >>> print(shown)  # doctest: +ELLIPSIS
    L3H2 · known for: nouns attend to their adjectives...
    creature → fluffy 0.51 ▇▇▇▇▇  +0.49 on 4 more
    ...

    Attributes:
        record: the exhibit: the maps, what was done to them, and what is shown of them.
    """

    record: Exhibit
    _options: ViewOptions

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the text: that it was cut, or is none of the model's world."""
        return tuple(spelled(note, as_argument) for note in text_notes(self.record.capture))

    def to_columns(self) -> dict[str, Column]:
        """The links by column, as `pandas.DataFrame` and `polars.DataFrame` take them.

        Returns:
            arrays (n_links,) by name: `layer`, `head`, `query`, `query_token`, `key`, `key_token`,
            `weight` (float32; of scores `score`), `query_exact`, `key_exact`; by head and query,
            strongest first, without links that the mask forbids.
        """
        return link_columns(self.record)

    def figure(self) -> "Figure":
        """The picture: one head as a heatmap, several as a grid.

        Raises:
            UsageError: nothing is left to draw, or no such colour map.
        """
        view = self._options.get("view")
        if view in ("table", "text", "links"):
            raise UsageError(f"{option('view', view)} cannot be a picture", "use heatmap or grid")
        from attnviz.draw.picture.heatmap import draw
        from attnviz.draw.picture.paint import options_of

        look = look_of(self._options)
        options = options_of(look, look.orient, by_row=self.record.by_row)
        return draw(self.record, options).figure

    def save(self, path: str | Path) -> None:
        """Write it to a file, whose suffix decides as that of `attnviz show -o` does.

        Raises:
            UsageError: no such suffix, or an option that has no meaning for it.
            OutputError: the file cannot be written.
        """
        form = choose_format(Path(path), None, False)
        if form.name == "txt":
            write_bytes(Path(path), [str(self).encode()])
        else:
            write_bytes(Path(path), encoded(self._pieces(form.name, look_of(self._options))))

    def _pieces(self, format: str, look: Look) -> Iterable[Piece]:
        request = request_of(self._options, format, look, Display())
        return make(self.record, Setting(choose_output(request), request)).pieces

    def __repr__(self) -> str:
        captured = self.record.capture
        maps = ", ".join(each.label for each in self.record.maps[:8])
        more = ", …" if len(self.record.maps) > 8 else ""
        return f"<Shown {captured.model.name}, {len(captured.query_tokens)} tokens, {maps}{more}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        look = look_of(self._options)
        plain = Look(view=look.view, orient=look.orient)  # the rest is for pictures
        shown = cast("Iterable[RenderableType]", self._pieces("txt", plain))
        return plain_text(shown, Display().width)


def viewed_as(view: str | None, options: ShowOptions, *, signed: bool = False) -> ViewOptions:
    """These options, every one of which can be taken; `signed`: of what is no weight, up to 1.

    Raises:
        TypeError: there is no such option.
        UsageError: a value is none that the option takes.
    """
    for name, value in options.items():
        if name not in ShowOptions.__annotations__:
            raise TypeError(f"show() has no option {name!r}")
        if name == "least" and (signed or options.get("scores")):
            check_number(name, value, 0)
        else:
            check_value(name, value, ShowOptions.__annotations__[name])
    if view is not None and not (isinstance(view, str) and view in VIEWS):
        raise UsageError(
            f"{option('view', repr(view))} is not known",
            f"give one of {', '.join(map(repr, VIEWS))}",
        )
    return {**options, "view": view}


def shown_of(capture: Capture, viewed: ViewOptions) -> Shown:
    """A capture on show."""
    return Shown(show_capture(capture, show_of(viewed)), viewed)


def show_of(options: ViewOptions) -> Show:
    """What to record: whole patterns of the heads that the view shows."""
    view = options.get("view")
    look = Look() if view is None else Look(view=view, orient=options.get("orient"))
    request = request_of(options, "json" if view is None else "txt", look, Display())
    show = choose_output(request).show(request)
    return replace(show, needs=Needs(one_query=show.needs.one_query), legible=True)


def request_of(options: ViewOptions, format: str, look: Look, display: Display) -> OutputRequest:
    """The request for an output."""
    plain = {f.name: options[f.name] for f in fields(Transforms) if f.name in options}  # type: ignore[literal-required]
    return OutputRequest(
        format,
        look,
        which_heads(options.get("layers"), options.get("heads")),
        Transforms(**plain, drop_keys=token_names("drop_keys", options.get("drop_key"))),
        Filters(
            queries=token_names("queries", options.get("query")),
            keys=token_names("keys", options.get("key")),
            top=options.get("top"),
            least=options.get("least", 0.0),
            no_self=options.get("no_self", False),
            no_previous=options.get("no_previous", False),
        ),
        display,
    )


def look_of(options: ViewOptions) -> Look:
    """How an exhibit is drawn."""
    return Look(**{f.name: options[f.name] for f in fields(Look) if f.name in options})  # type: ignore[literal-required]
