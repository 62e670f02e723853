"""Every way to write an exhibit: a table with a row for each pair of format and view.

A row says what the output needs of the run, which options it refuses and why, whether it
takes every head, and who renders or writes it. A new view is a renderer and a row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

from attnviz.console import Display
from attnviz.errors import IdleOption, option, series
from attnviz.kit.options import NEAR, by_new_names
from attnviz.kit.prepare import HeadOptions
from attnviz.kit.values import token_names, which_heads
from attnviz.kit.write import PICTURES, ROWS, Piece
from attnviz.records.apply import EVERYTHING
from attnviz.records.exhibit import Choice, Exhibit, Filters, HeadPlace, Look, PictureLook
from attnviz.records.heads import Head
from attnviz.records.transforms import PLAIN, SavedTransforms, Transforms

Medium: TypeAlias = Literal["terminal", "picture", "file"]
MOST_LINKS = 64
"""The most links of a row to keep; with more, rows are kept in full."""


@dataclass(frozen=True)
class Needs:
    """The part of the patterns that an output needs; without links or cells, all of them.

    `links`: how many of the strongest of each row. `cells`: the most blocks a side, from the heads
    and the number of (queries, keys). `norms`: also the norms of the values. `one_query`: exactly
    one row is shown. `page`: a browser has to open it. `text`: all rows of text are needed, too;
    `mean_patches`: one row for patches of only an image; `choice`: also what a head is chosen by.
    """

    links: int | None = None
    cells: Callable[[Sequence[Head], tuple[int, int]], int] | None = None
    norms: bool = False
    one_query: bool = False
    page: bool = False
    text: bool = False
    mean_patches: bool = False
    choice: bool = False


@dataclass(frozen=True)
class Show:
    """The part of a text or a capture to show, and what its output needs.

    `kept`: the choice of heads that was made on an earlier line, and is named as such. `legible`:
    people read it, to whom a part of a character says nothing; `unasked`: such parts are merged for
    that alone. `bins`: there is no room for each frame.
    """

    heads: HeadOptions = field(default_factory=HeadOptions)
    transforms: Transforms = PLAIN
    filters: Filters = EVERYTHING
    needs: Needs = field(default_factory=Needs)
    kept: Choice | None = None
    legible: bool = False
    unasked: bool = False
    bins: bool = False


@dataclass(frozen=True)
class OutputRequest:
    """The format, the look and the content of an output, as the user asks for them.

    `line`: that of the input, with --lines; `first`: rows begin with their header.
    """

    format: str = "txt"
    look: Look = Look()  # frozen
    heads: HeadOptions = HeadOptions()  # frozen
    transforms: Transforms = PLAIN
    filters: Filters = EVERYTHING
    display: Display = Display()  # frozen
    line: int | None = None
    first: bool = True


def request_of(options: Mapping[str, Any]) -> OutputRequest:
    """The request for an output in the terminal, of options by their names in Python."""

    def chosen(record: type[Any]) -> dict[str, Any]:
        return {each.name: options[each.name] for each in fields(record) if each.name in options}

    options = by_new_names(options)
    how, _, over = (options.pop("reduce") or "").partition(":")
    joined: dict[str, Any] = {"reduce": how or None, "over": over or None}
    drop_keys = token_names("drop_keys", options.get("drop_key"))
    return OutputRequest(
        look=Look(**chosen(Look)),
        heads=which_heads(None, options.get("layers"), options.get("heads")),
        transforms=Transforms(**chosen(Transforms), **joined, drop_keys=drop_keys),
        filters=Filters(
            top=options.get("top"),
            least=options.get("least") or 0.0,
            skip=tuple(distance for distance, name in enumerate(NEAR) if name in options["skip"]),
            queries=token_names("queries", options.get("query")),
            keys=token_names("keys", options.get("key")),
        ),
    )


@dataclass(frozen=True)
class Output:
    """One row of the table.

    Attributes:
        formats: the formats that it is for.
        view: its name; None where the format has no views.
        make: "module:function", what makes it of an exhibit and, by its medium, more: a renderer
            of the terminal takes a display, a picture its look, and a writer the request.
        medium: a renderer of the terminal returns renderables, a picture is drawn, and a writer
            returns chunks.
        needs: what it needs of the run.
        every_head: whether it shows every head, where the user names none.
        refuses: for each parameter that has no meaning here, why.
        shows_signed: whether it can show values below zero, such as scores.
        turns: whether it can draw keys as rows.
        alone: whether one file holds one exhibit only.
    """

    formats: tuple[str, ...]
    view: str | None
    make: str
    medium: Medium
    needs: Callable[[OutputRequest], Needs]
    every_head: bool = False
    refuses: Mapping[str, str] = field(default_factory=dict)
    shows_signed: bool = True
    turns: bool = False
    alone: bool = False

    def show(self, request: OutputRequest) -> Show:
        """The heads, transforms, filters and needs of this output."""
        transforms, heads = request.transforms, request.heads
        joined = transforms.rollout or transforms.reduce is not None
        heads = replace(heads, everything=self.every_head or joined)
        if transforms.rollout:
            transforms = replace(transforms, rollout_layers=heads.layers)
            heads = replace(heads, layers=None)
        needs, filters = self.needs(request), request.filters
        if needs.norms:  # saved beside the weights, which stay as they are
            transforms = replace(transforms, weighted=False)
        if needs.page:  # it holds everything, and opens as the filters say
            if switches(transforms).any:
                transforms = replace(transforms, words=False, chars=False, drop_sink=False)
            filters = EVERYTHING
        legible = self.medium != "file" and self.view != "image"
        bins = needs.page or self.medium == "terminal"
        return Show(heads, transforms, filters, needs, legible=legible, bins=bins)

    def load(self) -> Callable[..., Any]:
        """Load the function that makes it; imported only now, as pictures take a second to."""
        module, _, name = self.make.partition(":")
        return getattr(import_module(module), name)  # type: ignore[no-any-return]


def _links(request: OutputRequest) -> Needs:
    """The strongest links of each row, where the filters say how many at most."""
    filters = request.filters
    links = filters.top
    if links is None and filters.least > 0:
        # the weights of a row sum to 1 at most; of a tiny number, the inverse is infinite
        links = int(min(1 / filters.least, MOST_LINKS)) + 1
    return Needs(links=links if links is not None and links <= MOST_LINKS else None)


def _links_of_table(request: OutputRequest) -> Needs:
    from attnviz.draw.terminal.table import MOST_SHOWN

    plain = request.filters.top is None and request.filters.least <= 0
    return replace(Needs(links=MOST_SHOWN) if plain else _links(request), mean_patches=True)


def _links_of_list(request: OutputRequest) -> Needs:
    from attnviz.draw.terminal.table import MOST_COUNTED

    plain = request.filters.top is None and request.filters.least <= 0
    return Needs(links=MOST_COUNTED) if plain else _links(request)


def _blocks(most_cells: Callable[..., int], drawn: object) -> Needs:
    """The strongest weight of each block, for as many as have cells where it is `drawn`."""
    return Needs(
        cells=lambda heads, tokens: most_cells(
            [HeadPlace(head.layer, head.head) for head in heads], max(tokens), drawn
        )
    )


def _blocks_of_grid(request: OutputRequest) -> Needs:
    from attnviz.draw.terminal.grid import most_cells

    return _blocks(most_cells, request.display)


def _blocks_of_picture(request: OutputRequest) -> Needs:
    from attnviz.draw.picture.heatmap import most_cells
    from attnviz.draw.picture.paint import options_of

    options = options_of(request.look, request.look.orient)
    return Needs() if options.color_scale == "row" else _blocks(most_cells, options)


def switches(transforms: Transforms) -> Transforms:
    """The transforms that a page has switches for, and applies itself.

    They come last there, so there are none where another transform has to come after them.
    """
    if transforms.rollout or transforms.reduce is not None or transforms.drop_keys:
        return PLAIN
    return replace(
        PLAIN, words=transforms.words, chars=transforms.chars, drop_sink=transforms.drop_sink
    )


def _names(record: type[Any], *but: str) -> tuple[str, ...]:
    return tuple(each.name for each in fields(record) if each.name not in but)


def _refuse(why: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, why)


MEASURED = {"contribution": "contributions", "scores": "scores", "implicit": "implicit weights"}
"""The transforms that put other values in the place of weights, with what these are called."""
_NO_RATIO = _refuse(
    f"it is for {option('view', 'image')}, pictures of images, and rows", "relative"
)
_NO_PICTURE = _refuse(f"it is for pictures: {option('output', 'FILE.png')}", *_names(PictureLook))
_NO_TURN = _NO_PICTURE | _refuse(
    f"it turns {option('view', 'heatmap')}, {option('view', 'grid')} and pictures", "orient"
)
_NO_VIEW = _NO_PICTURE | _refuse("rows and captures have no view", "view", "orient")
_NO_FILTER = _NO_VIEW | _refuse(
    "a capture holds whole patterns; filter when you show it",
    *_names(Transforms, *_names(SavedTransforms)),
    *_names(Filters),
)
_NO_CHOICE = (
    _NO_VIEW
    | _refuse("a page shows whole patterns", *_names(Filters, "queries", "least"))
    | _refuse(f"a page is of weights; {option('view', 'heatmap')} shows these", *MEASURED)
    | _NO_RATIO
)


def _view(
    name: str, needs: Callable[[OutputRequest], Needs], *, turns: bool = False, **more: Any
) -> Output:
    """A view of the terminal: the module of its name in `draw/terminal/`, or what `make` names."""
    refuses = (_NO_PICTURE if turns else _NO_TURN) | ({} if name == "image" else _NO_RATIO)
    more = {"make": f"attnviz.draw.terminal.{name}:render", "refuses": refuses, **more}
    more = {"shows_signed": False, **more}
    return Output(("txt",), name, medium="terminal", needs=needs, turns=turns, **more)


def _picture(view: str, **more: Any) -> Output:
    more = {"make": "attnviz.commands.show.run:drawn_as", "turns": True, **more}
    more = {"needs": _blocks_of_picture, "refuses": _NO_RATIO, **more}
    return Output(PICTURES, view, medium="picture", alone=True, **more)


def _file(*formats: str, make: str, needs: Callable[[OutputRequest], Needs], **more: Any) -> Output:
    return Output(formats, None, make, "file", needs, **{"refuses": _NO_VIEW, **more})


OUTPUTS: tuple[Output, ...] = (
    _view("table", _links_of_table),
    _view("heatmap", lambda _: Needs(), turns=True, shows_signed=True),
    _view("grid", _blocks_of_grid, every_head=True, turns=True),
    _view("text", lambda request: replace(_links(request), one_query=True)),
    _view("links", _links_of_list, every_head=True, make="attnviz.draw.terminal.table:render_list"),
    _view("image", lambda _: Needs(one_query=True, text=True)),
    _picture("heatmap"),
    _picture(
        "image",
        make="attnviz.draw.picture.overlay:drawn_as",
        needs=lambda _: Needs(text=True),
        turns=False,
        shows_signed=False,
        refuses=_refuse("an image lies as it lies", "orient"),
    ),
    _picture("grid", every_head=True),
    _picture(
        "links",
        make="attnviz.draw.picture.links:drawn_as",
        needs=lambda _: Needs(choice=True),
        turns=False,
        shows_signed=False,
        refuses=_NO_RATIO
        | _refuse("queries stand on the left", "orient")
        | _refuse("its lines have a colour for each head", "cmap", "color_scale"),
    ),
    _file(*ROWS, make="attnviz.commands.show.rows:row_chunks", needs=_links),
    _file("json", make="attnviz.commands.show.rows:json_chunks", needs=lambda _: Needs()),
    _file(
        "npz",
        make=f"{__name__}:saved",
        needs=lambda request: Needs(norms=request.transforms.weighted, choice=True),
        every_head=True,
        alone=True,
        refuses=_NO_FILTER,
    ),
    _file(
        "html",
        make="attnviz.commands.show.page:page_as",
        needs=lambda _: Needs(page=True, choice=True),
        every_head=True,
        alone=True,
        refuses=_NO_CHOICE,
    ),
)
"""The table. Without a named view, the first row of a format is used."""


def over_images(request: OutputRequest) -> OutputRequest:
    """The request of a text with images, of which a picture shows the image by default."""
    asked, view = request.transforms, request.look.view
    drawn = ("txt", *PICTURES) if asked.relative is not None else PICTURES
    if view or request.format not in drawn or any(getattr(asked, name) for name in MEASURED):
        return request
    return replace(request, look=replace(request.look, view="image"))


def choose_output(request: OutputRequest, *, signed: str = "") -> Output:
    """Choose the row for a request, every option of which has a meaning there.

    `signed`: what values are called that may have a sign, such as scores; then a heatmap stands in
    for a view of weights that nobody named.

    Raises:
        UsageError: there is no such output, or an option does nothing for it.
    """
    view, format, asked = request.look.view, request.format, request.transforms
    measured = next((name for name in MEASURED if getattr(asked, name)), None)
    rows = [row for row in OUTPUTS if format in row.formats]
    row = rows[0]
    if view is not None and row.view is not None:
        named = [row for row in rows if row.view == view]
        if not named:
            raise IdleOption(
                f"{option('view', view)} cannot be a picture",
                f"use {series([option('view', row.view) for row in rows], 'or')}",
            )
        row = named[0]
    these = MEASURED[measured] if measured else signed
    if these and not (row.shows_signed or (row.view, these) == ("image", "additions")):
        if view is not None:
            raise IdleOption(
                f"{option('view', view)} shows weights, and these are {these}",
                f"leave it or {_option(measured)} out" if measured else "leave it out",
            )
        row = next(row for row in rows if row.shows_signed)
    _check(row, request)
    return row


def _check(row: Output, request: OutputRequest) -> None:
    """Check that every given option has a meaning."""
    changed = [
        name
        for record in (request.transforms, request.filters, request.look)
        for name, plain in vars(type(record)()).items()
        if getattr(record, name) != plain and getattr(record, name) is not False  # off: as it was
    ]
    transforms, view = request.transforms, request.look.view
    for name, value in (("heads", request.heads.heads), ("reduce", transforms.reduce)):
        if transforms.rollout and value is not None:
            raise IdleOption(f"{option('rollout')} combines all heads", f"leave {option(name)} out")
    for name in changed:
        for values in ("scores", "implicit"):
            if getattr(transforms, values) and name not in (values, *SHOWN_UNCHANGED):
                unchanged = f"{MEASURED[values]} are shown unchanged"
                raise IdleOption(unchanged, f"leave {_option(name)} out")
        changes = name in FOR_WEIGHTS or (name == "reduce" and transforms.reduce == "max")
        if transforms.contribution and changes:
            wrong = f"contributions have a sign, which {option(name)} does not keep"
            raise IdleOption(wrong, f"leave it or {option('contribution')} out")
        if name in row.refuses:
            where = option("view", view) if view and row.view else request.format
            raise IdleOption(f"{_option(name)} does nothing for {where}", row.refuses[name])


def _option(name: str) -> str:
    """An option as its user wrote it."""
    return option("kind", name) if name == "implicit" else option(name)


SHOWN_UNCHANGED = (*_names(Filters, "least"), *_names(Look, "color_scale"))
"""The options that scores and implicit weights take: others take them for shares of attention."""
FOR_WEIGHTS = ("weighted", "rollout", "drop_sink", "drop_keys", "relative")
"""The options that take no contributions: they are for weights, which sum to 1 without a sign."""


def saved(exhibit: Exhibit, _: OutputRequest) -> Iterable[Piece]:
    """The capture, to be shown again."""
    from attnviz.inputs.captures import npz_chunks

    return npz_chunks(exhibit.capture)
