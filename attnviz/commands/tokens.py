"""`attnviz tokens`: how a model cuts a text."""

from collections.abc import Iterator, Sequence

import typer
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands import options as o
from attnviz.commands.records import deliver_records, record_format
from attnviz.commands.session import session_of
from attnviz.console import make_consoles
from attnviz.data.serial import token_to_dict
from attnviz.data.tokens import Token
from attnviz.errors import UsageError
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.models.catalog import Source, tokenizer_of
from attnviz.renderers.direction import fenced
from attnviz.renderers.terminal.listing import Column, listing
from attnviz.runs.options import TextOptions
from attnviz.runs.prepare import encode, fit

COLUMNS = (
    Column("index", right=True),
    Column("id", right=True),
    Column("token", wraps=True),
    Column("characters", right=True),
)

EPILOG = """
[bold]Examples[/]

attnviz tokens "a fluffy blue creature"

attnviz tokens --file sample_texts/chuliuxiang.txt -f jsonl | jq -r .label
"""


def tokens(
    context: typer.Context,
    text: o.TextArgument = None,
    file: o.FileOption = None,
    truncate: o.TruncateOption = None,
    bos: o.BosOption = None,
    special: o.SpecialOption = False,
    model: o.ModelOption = "builtin",
    revision: o.RevisionOption = None,
    offline: o.OfflineOption = False,
    width: o.WidthOption = None,
    no_color: o.NoColorOption = False,
    form: o.RecordFormatOption = None,
    output: o.OutputOption = None,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """Show how a model cuts a text: each token's index, id, text and characters."""
    session = session_of(context)
    session.consoles = make_consoles(session.environment, width=width, no_color=no_color)
    chosen = record_format(session, output, form)
    given = read_text(text, file, session.stdin)
    if isinstance(given, SavedCapture):
        raise UsageError("this command takes a text, not a capture", "attnviz show shows a capture")
    if given.note:
        session.note(given.note)
    tokenizer = tokenizer_of(Source(model, revision, offline, quiet))
    cut = encode(tokenizer, given.text, TextOptions(bos, special))
    if truncate is not None:
        cut = fit(cut, tokenizer.context, truncate).tokens
    elif len(cut) > tokenizer.context:
        session.note(f"the model takes at most {tokenizer.context} of these {len(cut)} tokens")
    shown = _shown(model, cut, session.consoles.out.width)
    deliver_records(session, [token_to_dict(token) for token in cut], shown, chosen, output)


def _shown(model: str, cut: Sequence[Token], width: int) -> Iterator[RenderableType]:
    words = f"{len(cut)} token" + "s" * (len(cut) != 1)
    yield Text(f"{words}, model {model}", style="dim")
    yield Text()
    rows = [(str(t.index), str(t.id), fenced(t.label), _characters(t)) for t in cut]
    yield from listing(COLUMNS, rows, width)


def _characters(token: Token) -> str:
    """The slice of the source, as Python writes it: the end is not included."""
    return f"{token.start}:{token.end}" if token.start < token.end else ""
