"""`attnviz show`: a text goes in, its attention comes out."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypedDict, Unpack

from attnviz.commands.show.outputs import (
    OUTPUTS,
    Needs,
    OutputRequest,
    Show,
    choose_output,
    over_images,
    request_of,
)
from attnviz.commands.show.run import Shown, beside_images, make, show_capture, show_text
from attnviz.draw.headlines import beside_notes
from attnviz.draw.titles import run_notes, without_image
from attnviz.errors import InexactError, InputError, UsageError, as_argument, option, spelled
from attnviz.inputs.given import given_of, medium_of
from attnviz.inputs.text import read_lines
from attnviz.kit import options as g
from attnviz.kit.deliver import check_lines, deliver, destination_of
from attnviz.kit.described import Exclusion
from attnviz.kit.lines import each_line, note_strange, say, text_or_capture
from attnviz.kit.option import Call, check_number, check_text, check_value, command_of, feature
from attnviz.kit.prepare import HeadOptions, TextOptions, verify
from attnviz.kit.session import Session
from attnviz.kit.values import AnyModel, loaded
from attnviz.kit.write import SEPARATORS, Piece
from attnviz.models.catalog import Source
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Choice, Exhibit, Look
from attnviz.records.positions import check_names
from attnviz.records.trace import FromExact, Verified

if TYPE_CHECKING:
    from attnviz.commands.show.capture import AttentionCapture
    from attnviz.inputs.beside import LineText
    from attnviz.models.loaded import LoadedModel

MERGED = (
    "tokens that are parts of one character are merged; "
    f"{option('chars', value=False)} shows them apart"
)
"""A note that a view merged them by default."""


class ShowOptions(TypedDict, total=False):
    """The options of what is shown, and how; docs/selection.md and docs/views.md say more.

    heads, layers: which heads; none named: one that is chosen automatically.
    query, key: only these rows and columns.
    top, least: the most keys of each query, the smallest weight.
    skip: leave out links to the token itself ("self"), to the token before ("previous").
    chars, words: merge the pieces of a character, of a word; those of a character are merged
        unless `chars` is False.
    weighted, contribution, scores: norm-based attention; contribution weights, or scores, in place
        of weights.
    drop_sink, drop_key: take the first token, or these keys, out and scale rows to sum to 1.
    reduce: join heads ("mean", "max"), all or over heads or layers ("mean:layers").
    rollout: the product of the attention of all layers.
    relative: divide the weights on images by those of this neutral prompt.
    orient: "key-rows" draws keys as rows.
    cmap, color_scale, dpi, title: how a picture is drawn.
    """

    heads: g.HeadsNamed
    layers: g.LayersNamed
    query: g.Queries
    key: g.Keys
    top: g.TopKeys
    least: g.LeastWeight
    skip: g.Skip
    no_self: g.NoSelf
    no_previous: g.NoPrevious
    chars: g.Chars
    words: g.Words
    weighted: g.Weighted
    contribution: g.Contribution
    scores: g.ShowScores
    drop_sink: g.DropSink
    drop_key: g.DropKey
    reduce: g.Reduce
    over: g.ReduceOver
    rollout: g.Rollout
    relative: g.RelativeTo
    orient: g.Orientation
    cmap: g.ColorMap
    color_scale: g.ScaleOfColors
    dpi: g.Dpi
    title: g.Title


def viewed_as(view: str | None, options: ShowOptions, *, signed: bool = False) -> OutputRequest:
    """The request of these options, every one of which can be taken.

    `signed`: of values other than weights, up to 1.
    """
    for name, value in options.items():
        if name not in ShowOptions.__annotations__:
            raise TypeError(f"show() has no option {name!r}")
        if name == "least" and (signed or options.get("scores") or options.get("contribution")):
            check_number(name, value, 0)
        else:
            check_value(name, value, ShowOptions.__annotations__[name])
    check_value("view", view, g.ViewName)
    for note in g.notes_of_renamed(options):
        warnings.warn(spelled(note, as_argument), FutureWarning, stacklevel=2)
    return request_of({**options, "view": view})


def shown_of(capture: Capture, view: str | None, options: ShowOptions) -> Shown:
    """A capture on show."""
    request = viewed_as(view, options, signed=capture.signed)
    return Shown(show_capture(capture, show_of(request)), request)


def show_of(request: OutputRequest) -> Show:
    """The request for a capture: whole patterns of the heads that the view shows."""
    view = request.look.view
    look = Look() if view is None else Look(view=view, orient=request.look.orient)
    request = replace(request, format="json" if view is None else "txt", look=look)
    show = choose_output(request).show(request)
    needs, drawn = Needs(one_query=show.needs.one_query), view in ("heatmap", "grid")
    return replace(show, needs=needs, legible=view != "image", bins=not drawn)


def of_implicit(request: OutputRequest) -> OutputRequest:
    """The request to a model that was loaded for its implicit attention."""
    return replace(request, transforms=replace(request.transforms, implicit=True))


@feature(g.check_capture)
def show(
    given: "str | AttentionCapture" = "",
    model: AnyModel = "builtin",
    *,
    image: g.Images = (),
    audio: g.Sound = None,
    start: g.StartSecond = 0.0,
    view: g.ViewName = None,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPair = None,
    target: g.TargetText = None,
    **options: Unpack[ShowOptions],
) -> Shown:
    """Show which tokens attend to which, in a text or a capture.

    >>> attnviz.show("a fluffy blue creature", words=True, reduce="mean")
    <Shown builtin, 5 tokens, mean>

    Args:
        given: a text, or a file for a model that reads only images; or a capture, which has its
            run behind it.
        model: a name as for `load_model`, or a loaded model.
        options: those of `ShowOptions`.
    """
    if hasattr(given, "record"):
        return shown_of(given.record, view, options)
    request = viewed_as(view, options)
    what = show_of(request)  # its errors come before a model is loaded
    check_text(given)
    model = loaded(model, implicit=True)
    if model._loaded.identity.implicit:
        request = of_implicit(request)
        what = show_of(request)
    how = model._text_options(bos, special, truncate, target, image, audio, start, text_pair)
    return Shown(show_text(model._loaded, given, how, what), request)


EXAMPLES = """
attnviz show "a fluffy blue creature roamed the verdant forest"
attnviz show "Bark is very cute and he is a dog" --view text --query he
attnviz show --model translator "a fluffy blue creature"
attnviz show --file sample:mystery --head all -o heads.png
echo "a fluffy blue creature" | attnviz show - -f jsonl | jq -c 'select(.weight > 0.3)'
"""
EXCLUSIONS = [
    Exclusion([option(n) for n in refused], "does nothing here", why, row.formats, row.view)
    for row in OUTPUTS
    for why in dict.fromkeys(row.refuses.values())
    for refused in [[name for name, said in row.refuses.items() if said == why]]
]
SHORT_HELP = "file lines model heads query view top drop_sink words format output quiet"


@command_of(
    show,
    "text text_pair lines image audio start truncate bos special model run verify target kind "
    "causal layers heads reduce over rollout relative scores weighted contribution chars words "
    "drop_sink drop_key query key top least skip no_self no_previous view orient cmap dpi "
    "color_scale title",
)
def command_line(
    session: Session,
    call: Call[Shown],
    *,
    text: g.TextIn,
    lines: Annotated[
        bool,
        g.text_option(
            "--lines",
            help="Treat each line as a separate text, or as JSON with a text and an image, and "
            "show each as soon as it is ready.",
        ),
    ] = False,
    model: g.WhichModel,
    run: g.ModelRun,
    verify: g.Verify = False,
    kind: g.ShowsKind = None,
    causal: g.MaskLater = False,
    output: g.DrawnOutput,
) -> None:
    """Show which tokens attend to which.

    Unless heads are chosen, one is chosen automatically. The first line says which, what it does
    on this text and what it is known for.
    """
    to = destination_of(session, output)
    request = replace(request_of(call.options), format=to.format.name, display=to.display(session))
    request = over_images(request) if call["image"] else request
    request = of_implicit(request) if kind == "implicit" else request
    chosen = choose_output(request)
    if verify and (request.transforms.scores or request.transforms.implicit):
        raise UsageError("only weights can be verified", f"leave {option('verify')} out")
    check_lines(to, alone=chosen.alone, lines=lines)
    for note in g.notes_of_renamed(call.options):
        session.note(note)
    source = g.source_of(session, model, run, kind, causal=causal)
    names = ("bos", "special", "truncate", "target", "start", "text_pair")
    given = given_of(call["image"], call["audio"], call["start"])
    same = {name: call[name] for name in names}
    how = TextOptions(**same, max_memory=source.placement.max_memory, given=given)
    load = partial(_load, session, source, how, verified=verify)
    results = _of_lines if lines else partial(_of_text, free=call["view"] is None)
    deliver(session, to, results(session, text, request, load))


OF_A_TEXT = frozenset({"queries", "keys", "drop_keys"})
"""Options whose values are tokens, which one text has and another has not."""
Results: TypeAlias = Iterator[tuple[int | None, Iterable[Piece]]]
"""The pieces to write for each text, with the number of its line."""
Run: TypeAlias = "Callable[[str, Show, LineText | None], Exhibit]"
"""Runs a text, with what its line has beside it or all have, and puts heads of it on show."""


def _load(session: Session, source: Source, how: TextOptions, *, verified: bool) -> Run:
    """Load the model; `verified`: it is identified by all of its weights, and each text is checked.

    The run raises `InexactError` where a capture is not as exact as float32 allows.
    """
    model: LoadedModel = session.load(source)
    if verified:
        from attnviz.models.weights import with_all_bytes  # torch

        model = with_all_bytes(model)

    def run(text: str, show: Show, line: "LineText | None") -> Exhibit:
        own = how
        if line is not None:
            pair = how.text_pair if line.text_pair is None else line.text_pair
            own = replace(how, given=line.images or how.given, text_pair=pair)
        if verified:
            exactness = verify(model, source, text, own)
            sentence = _exactness(exactness)
            if not exactness.exact:
                raise InexactError(
                    sentence, "float32 does not explain this, so it is a bug; please report it"
                )
            session.consoles.err.print(sentence, markup=False, highlight=False)
        return show_text(model, text, own, show)

    return run


def _exactness(verified: Verified) -> str:
    """The differences, and how far both sides are from float64 where that was measured."""
    parts = [
        f"output with and without capture: largest difference {verified.output:.1e}"
        f"{_from_exact(verified.exact_output)}"
    ]
    if verified.weights is not None:
        parts += [
            "weights and transformers' eager attention: "
            f"{verified.weights:.1e}{_from_exact(verified.exact_weights)}"
        ]
    if verified.products:
        largest = max(verified.products.values())
        parts += [f"weights times values and the attention function's output: {largest:.1e}"]
    return f"{'; '.join(parts)} ({verified.dtype})"


def _from_exact(compared: FromExact | None) -> str:
    if compared is None:
        return ""
    return f" (from float64: {compared.ours:.1e} and {compared.theirs:.1e})"


def _pieces(
    session: Session, exhibit: Exhibit, request: OutputRequest, where: str = ""
) -> Iterable[Piece]:
    """An exhibit as it is written, with what there is to say beside it on stderr."""
    pieces, notes = make(exhibit, request)
    say(session, [*run_notes(exhibit.capture), *beside_notes(exhibit), *notes], where)
    return pieces


def _of_text(
    session: Session,
    given: g.TextIn,
    request: OutputRequest,
    load: Callable[[], Run],
    *,
    free: bool,
) -> Results:
    """The one exhibit of a text, or of a saved capture; `free`: nobody named its view."""
    text = text_or_capture(session, given)
    seen = text.images if isinstance(text, Capture) else medium_of(text) == "image"
    request = over_images(request) if seen else request
    show = choose_output(request).show(request)
    exhibit = show_capture(text, show) if isinstance(text, Capture) else load()(text, show, None)
    request = beside_images(request, exhibit) if free else request
    pieces = _pieces(session, exhibit, request)
    if exhibit.unasked:
        session.note(MERGED)
    captured = exhibit.capture
    note_strange(session, [captured.strange], "text", [without_image(captured)])
    yield None, pieces


def _keeping(show: Show, kept: Choice | None) -> Show:
    """The settings with the heads that were picked on an earlier line."""
    if kept is None:
        return show
    return replace(show, heads=HeadOptions(heads=",".join(map(str, kept.heads))), kept=kept)


def _of_lines(
    session: Session, given: g.TextIn, request: OutputRequest, load: Callable[[], Run]
) -> Results:
    """The exhibit of each line, as soon as the line is there.

    A head that nobody chose is picked on the first good line and kept. A bad line is
    reported on stderr and left out, and becomes the exit code of the program.
    """
    from attnviz.inputs.beside import line_text  # a single text needs it not

    filters, kept = request.filters, None
    choose_output(request).show(request)  # its errors come before a model is loaded
    check_names(filters.queries, "queries")
    check_names(filters.keys, "keys")
    check_names(request.transforms.drop_keys, "drop_keys")
    lines = session.progress(read_lines(given.text, given.file, session.stdin), "line")
    run, strange, merged, seen = load(), list[bool](), False, list[bool]()
    alone = list[str]()

    def of_line(text: str, number: int) -> Iterable[Piece]:
        nonlocal kept, merged
        line = line_text(text, given.file)
        own = over_images(request) if line.images else request
        exhibit = run(line.text, _keeping(choose_output(own).show(own), kept), line)
        seen.append(bool(exhibit.capture.images))
        if own.format in SEPARATORS and seen[-1] != seen[0]:
            raise InputError(
                "texts with images and without have other columns",
                f"use {option('format', 'jsonl')}",
            )
        at_line = replace(own, line=number, first=not strange)
        pieces = _pieces(session, exhibit, at_line, f"line {number}: ")
        if exhibit.choice is not None and exhibit.choice.picked:
            kept = replace(exhibit.choice, line=exhibit.choice.line or number, start=None)
        strange.append(exhibit.capture.strange)
        alone.append(without_image(exhibit.capture))
        if exhibit.unasked and not merged:
            session.note(MERGED)
        merged = merged or exhibit.unasked
        return pieces

    yield from each_line(session, lines, of_line, OF_A_TEXT, none="no line could be shown")
    note_strange(session, strange, "line", alone)
