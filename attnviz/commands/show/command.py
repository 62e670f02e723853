"""`attnviz show`: a text goes in, its attention comes out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeAlias, Unpack, cast

from attnviz.commands.show.outputs import Output, OutputRequest, Setting, Show, choose_output
from attnviz.commands.show.run import Written, make, show_capture, show_text
from attnviz.commands.show.shown import (
    Shown,
    ShowOptions,
    ViewOptions,
    look_of,
    request_of,
    show_of,
    shown_of,
    viewed_as,
)
from attnviz.draw.titles import MERGED
from attnviz.errors import InexactError, UsageError, option
from attnviz.inputs.text import read_lines
from attnviz.kit import options as g
from attnviz.kit.deliver import check_lines, deliver, destination_of
from attnviz.kit.formats import Piece
from attnviz.kit.lines import each_line, note_strange, text_or_capture
from attnviz.kit.model import AnyModel, loaded, text_options
from attnviz.kit.option import Call, command_of, feature, panel_option
from attnviz.kit.prepare import HeadOptions, TextOptions, verify
from attnviz.kit.session import Session
from attnviz.kit.values import check_text
from attnviz.models.catalog import Source
from attnviz.records.capture import Capture
from attnviz.records.positions import check_names
from attnviz.records.trace import FromExact, Verified

if TYPE_CHECKING:
    from attnviz.commands.show.capture import AttentionCapture
    from attnviz.models.loaded import LoadedModel


@feature(g.check_capture)
def show(
    given: "str | AttentionCapture",
    model: AnyModel = "builtin",
    *,
    view: g.ViewName = None,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    target: g.TargetText = None,
    **options: Unpack[ShowOptions],
) -> Shown:
    """Show which tokens attend to which, in a text or a capture.

    >>> attnviz.show("a fluffy blue creature", words=True, reduce="mean")
    <Shown builtin, 5 tokens, mean>

    Args:
        given: a text; or a capture, which has its run behind it.
        model: a name as for `load_model`, or a loaded model.
        options: those of `ShowOptions`.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    if hasattr(given, "record"):
        viewed = viewed_as(view, options, signed=given.record.signed)
        return shown_of(given.record, viewed)
    viewed = viewed_as(view, options)
    what = show_of(viewed)  # its errors come before a model is loaded
    check_text(given)
    model = loaded(model)
    how = text_options(model, bos, special, truncate, target)
    return Shown(show_text(model._loaded, given, how, what), viewed)


EPILOG = """
Examples

attnviz show "a fluffy blue creature roamed the verdant forest"

attnviz show "Bark is very cute and he is a dog" --view text --query he

attnviz show --model translator "a fluffy blue creature"

attnviz show --file sample_texts/mystery.txt --head all -o heads.png

echo "a fluffy blue creature" | attnviz show - -f jsonl | jq -c 'select(.weight > 0.3)'
"""
COMMON = "file lines model heads query view top drop_sink words format output quiet".split()
"""The options that the short help lists."""


@command_of(
    show,
    "text lines truncate bos special model run verify target kind causal layers heads reduce over "
    "rollout scores weighted chars words drop_sink drop_key query key top least no_self "
    "no_previous view orient cmap dpi color_scale title screen output noise",
)
def command_line(
    session: Session,
    call: Call[Shown],
    *,
    text: g.TextIn,
    lines: Annotated[
        bool,
        panel_option(
            g.TEXT,
            "--lines",
            help="Treat each line of the input as a separate text, and show each as soon as it is "
            "ready.",
        ),
    ] = False,
    model: g.WhichModel,
    run: g.ModelRun,
    verify: g.Verify = False,
    kind: g.WhichKind = None,
    causal: g.MaskLater = False,
    screen: g.Screen,
    output: g.OutputOptions,
    noise: g.Noise,
) -> None:
    """Show which tokens attend to which.

    Unless heads are chosen, one is chosen automatically. The first line says which, what it does
    on this text and what it is known for.
    """
    to = destination_of(session, output)
    viewed = cast("ViewOptions", call.options)
    request = request_of(viewed, to.format.name, look_of(viewed), to.display(session))
    chosen = choose_output(request)
    if request.transforms.scores and verify:
        raise UsageError("scores are shown unchanged", f"leave {option('verify')} out")
    check_lines(to, alone=chosen.alone, lines=lines)
    source = g.source_of(session, model, run, kind, causal=causal)
    options = TextOptions(
        call["bos"], call["special"], call["truncate"], call["target"], source.placement.max_memory
    )
    asked = _Asked(session, source, options, request, chosen, verify=verify)
    deliver(session, to, _of_lines(asked, text) if lines else _of_text(asked, text))


@dataclass(frozen=True)
class _Asked:
    """What was asked for, apart from the text and from where the answer goes."""

    session: Session
    source: Source
    text: TextOptions
    request: OutputRequest
    output: Output
    verify: bool

    def note(self, made: Written, where: str = "") -> None:
        """Say on stderr what there is to say beside an exhibit."""
        for note in made.notes:
            self.session.note(where + note)


OF_A_TEXT = frozenset({"queries", "keys", "drop_keys"})
"""Options whose values are tokens, which one text has and another has not."""
Results: TypeAlias = Iterator[tuple[int | None, Iterable[Piece]]]
"""What goes out for each text, with the number of its line."""


def _of_text(asked: _Asked, given: g.TextIn) -> Results:
    """The one exhibit of a text, or of a saved capture.

    Raises:
        AttnvizError: the text, the model or an option cannot be used.
    """
    text = text_or_capture(asked.session, given)
    show, setting = asked.output.show(asked.request), Setting(asked.output, asked.request)
    if isinstance(text, Capture):
        made = make(show_capture(text, show), setting)
    else:
        made = _made(asked, _loaded(asked), text, show, setting)
    asked.note(made)
    if made.merged:
        asked.session.note(MERGED)
    note_strange(asked.session, [made.strange], "text")
    yield None, made.pieces


def _loaded(asked: _Asked) -> "LoadedModel":
    """The model, identified by all of its weights where it is verified."""
    model = asked.session.load(asked.source)
    if not asked.verify:
        return model
    from attnviz.models.weights import with_all_bytes  # torch

    verified: LoadedModel = with_all_bytes(model)
    return verified


def _made(asked: _Asked, model: "LoadedModel", text: str, show: Show, setting: Setting) -> Written:
    if asked.verify:
        _verify(asked, model, text)
    return make(show_text(model, text, asked.text, show), setting)


def _verify(asked: _Asked, model: "LoadedModel", text: str) -> None:
    """Say on stderr how exact the capture of a text is.

    Raises:
        InexactError: it is not as exact as float32 allows.
    """
    verified = verify(model, asked.source, text, asked.text)
    said = _said(verified)
    if not verified.exact:
        raise InexactError(said, "float32 does not explain this, so it is a bug; please report it")
    asked.session.consoles.err.print(said, markup=False, highlight=False)


def _said(verified: Verified) -> str:
    """The differences, and how far both sides are from float64 where that was measured."""
    said = [
        f"output with and without capture: largest difference {verified.output:.1e}"
        f"{_from_exact(verified.exact_output)}"
    ]
    if verified.weights is not None:
        said += [
            "weights and transformers' eager attention: "
            f"{verified.weights:.1e}{_from_exact(verified.exact_weights)}"
        ]
    if verified.products:
        largest = max(verified.products.values())
        said += [f"weights times values and the attention function's output: {largest:.1e}"]
    return f"{'; '.join(said)} ({verified.dtype})"


def _from_exact(compared: FromExact | None) -> str:
    if compared is None:
        return ""
    return f" (from float64: {compared.ours:.1e} and {compared.theirs:.1e})"


def _of_lines(asked: _Asked, given: g.TextIn) -> Results:
    """The exhibit of each line, as soon as the line is there.

    A head that nobody chose is picked on the first good line and kept. A bad line is
    reported on stderr and left out, and becomes the exit code of the program.

    Raises:
        UsageError: an option does not fit, whatever the text.
        ModelError: the model cannot be had.
        InputError: at the end, where no line was good.
    """
    session, show = asked.session, asked.output.show(asked.request)
    filters, transforms = asked.request.filters, asked.request.transforms
    check_names(filters.queries, "queries")
    check_names(filters.keys, "keys")
    check_names(transforms.drop_keys, "drop_keys")
    lines = session.progress(read_lines(given.text, given.file, session.stdin), "line")
    model = _loaded(asked)
    strange, merged = list[bool](), False

    def of_line(text: str, number: int) -> Iterable[Piece]:
        nonlocal show, merged
        setting = Setting(asked.output, asked.request, number, first=not strange)
        made = _made(asked, model, text, show, setting)
        if made.choice is not None and made.choice.picked:
            kept = replace(made.choice, line=made.choice.line or number)
            named = HeadOptions(heads=",".join(map(str, kept.heads)))
            show = replace(show, heads=named, kept=kept)
        strange.append(made.strange)
        asked.note(made, f"line {number}: ")
        if made.merged and not merged:
            session.note(MERGED)
        merged = merged or made.merged
        return made.pieces

    yield from each_line(session, lines, of_line, OF_A_TEXT, none="no line could be shown")
    note_strange(session, strange, "line")
