"""`attnviz tokens`: how a model cuts a text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from attnviz.draw.labels import fenced
from attnviz.draw.terminal.cells import Column, listing
from attnviz.draw.titles import amount
from attnviz.errors import readable
from attnviz.inputs.given import given_of
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import say, text_alone
from attnviz.kit.option import Call, command_of, feature
from attnviz.kit.prepare import TextOptions, as_read, encode, fit, notes_on, prepare
from attnviz.kit.result import Form, Result
from attnviz.kit.session import Session
from attnviz.models.catalog import Source, identity_of, tokenizer_of
from attnviz.records.capture import Capture, ModelIdentity
from attnviz.records.places import lie_beside
from attnviz.records.rows import ABSENT, TOKEN, Fields, JsonOutput, placed_fields, placed_of
from attnviz.records.tokens import Token, current_call

if TYPE_CHECKING:
    from attnviz.kit.values import AnyModel
    from attnviz.models.tokenizer import TextTokenizer

PlacedToken: TypeAlias = tuple[Token, Sequence[float | None]]
"""A token and, of a text with images, the part of an image that it stands for."""


def _place(number: int, row: PlacedToken) -> object:
    return row[1][number] if row[1] else ABSENT


ROWS = Fields[PlacedToken](
    "TokenRow",
    "A token of a text; of a text with images also the part of an image that it stands for.",
    (
        *(f.within(itemgetter(0)) for f in TOKEN.all if f.name not in ("image", "patch")),
        *(replace(field, of=partial(_place, n)) for n, field in enumerate(placed_fields("token"))),
    ),
)
JSON = JsonOutput((ROWS,))


def render(captured: Capture, width: int) -> Iterator[RenderableType]:
    """Render the number of tokens, and each with its slice of the text; images as one."""
    size = amount(len(captured.query_tokens), "token")
    if captured.images:
        from attnviz.draw.overlay import image_facts

        size += f", {image_facts(captured)}"
    yield Text(f"{size}, model {readable(captured.model.name)}", style="dim")
    yield Text()
    columns = [
        Column("index", right=True),
        Column("id", right=True),
        Column("token", wraps=True),
        Column("characters", right=True),
        *([Column("segment")] if any(t.segment for t in captured.key_tokens) else []),
    ]
    yield from listing(columns, [line[: len(columns)] for line in _lines(captured)], width)


def _lines(captured: Capture) -> Iterator[tuple[str, ...]]:
    def whole(token: Token) -> tuple[int | None, int]:
        return token.image, 0 if token.inset else token.index

    for _, group in groupby(captured.query_tokens, whole):
        token, *more = group
        place = f"{token.start}:{token.end}" if token.start < token.end else ""
        index, name = str(token.index), fenced(token.quoted)
        if token.image is not None:
            index += f"-{more[-1].index}" if more else ""
            name = _named(captured, token.image, 1 + len(more))
        yield index, str(token.id), name, place, token.segment or ""


def _named(captured: Capture, number: int, tokens: int) -> str:
    """`image 2  64 tokens (8 × 8)`: the tokens of an image."""
    from attnviz.draw.overlay import grids_of

    grids = grids_of(captured.images[number]) if captured.images[number].views else ""
    beside = lie_beside(captured.images, captured.query_tokens)
    grids = f" ({grids}{' beside the text' * beside})" * bool(grids)
    return f"{captured.inset_name(number)}  {amount(tokens, 'token')}{grids}"


def _result(captured: Capture) -> Result[tuple[Token, ...]]:
    def rows(cut: tuple[Token, ...], _top: int | None, _line: int | None) -> list[PlacedToken]:
        return [(token, placed_of(captured, token) if captured.images else ()) for token in cut]

    form = Form[tuple[Token, ...]](
        "tokens",
        ROWS,
        rows,
        lambda cut: f"{readable(captured.model.name)}, {amount(len(cut), 'token')}",
        lambda cut, display: render(captured, display.width),
    )
    return Result(form, captured.query_tokens, [captured])


def _without_images(
    tokenizer: "TextTokenizer", model: ModelIdentity, text: str, options: TextOptions
) -> Result[tuple[Token, ...]]:
    text, options = as_read(tokenizer, text, options)
    cut, text = encode(tokenizer, text, options), options.whole(text)
    if options.truncate is not None:
        cut = fit(cut, tokenizer.context, options.truncate)[0]
    bare = Capture(text, cut, cut, (), model, cut[0].special, asked=current_call())
    return _result(replace(bare, notes=notes_on(tokenizer, text, cut, options)))


@feature()
def tokens(
    text: str,
    model: "AnyModel" = "builtin",
    *,
    image: g.Images = (),
    truncate: g.Truncate = None,
    bos: g.Bos = None,
    special: g.Special = False,
    text_pair: g.TextPair = None,
) -> Result[tuple[Token, ...]]:
    """Split a text as a model does; no weights are loaded, but for a text with images.

    >>> [token.label for token in attnviz.tokens("a fluffy blue creature").record]
    ['BOS', 'a', 'fluffy', 'blue', 'creature']

    Args:
        text: the text, be it longer than the model takes.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record are the tokens.
    """
    from attnviz.kit.values import loaded  # which the name of a model needs not

    options = TextOptions(bos, special, truncate, given=given_of(image), text_pair=text_pair)
    if isinstance(model, str | PathLike) and not options.given:
        source = Source(fspath(model), quiet=True)
        return _without_images(tokenizer_of(source), identity_of(source), text, options)
    own = loaded(model)._loaded
    if options.given:
        return _result(prepare(own, text, options).empty)
    return _without_images(own.tokenizer, own.identity, text, options)


EXAMPLES = """
attnviz tokens "a fluffy blue creature"
attnviz tokens --file sample:chuliuxiang -f jsonl | jq -r .label
attnviz tokens "what is left of the circle?" --image sample:shapes-1 -m shapes
"""
SHORT_HELP = "file model format output quiet"


@command_of(tokens, "text text_pair image truncate bos special")
def command_line(
    session: Session,
    call: Call[Result[tuple[Token, ...]]],
    *,
    text: g.TextIn,
    model: g.WhichModel,
    output: g.RecordOutput,
) -> None:
    """Show how a model splits a text: each token's index, id, text and characters.

    An image is one line; as rows, each of its tokens has the pixels that it stands for.
    """
    to = destination_of(session, output)
    refusal = "this command takes a text, not a capture"
    words = text_alone(session, text, refusal, "attnviz show shows a capture")
    source = g.source_of(session, model)
    if call["image"]:
        from attnviz.kit.values import model_of

        deliver_result(session, to, call(words, model_of(session, model, g.ModelRun(device="cpu"))))
        return
    tokenizer = tokenizer_of(source)
    if tokenizer.differs:
        session.note(tokenizer.differs)
    bos, special, cut, pair = (call[n] for n in ("bos", "special", "truncate", "text_pair"))
    options = TextOptions(bos, special, cut, text_pair=pair)
    result = _without_images(tokenizer, identity_of(source), words, options)
    say(session, result.captures[0].notes)
    if len(result.record) > tokenizer.context:
        session.note(
            f"the text has {len(result.record)} tokens, but the model takes at most "
            f"{tokenizer.context}"
        )
    deliver_result(session, to, result)
