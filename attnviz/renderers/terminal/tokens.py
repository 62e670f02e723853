"""The tokens of a text as a table."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from attnviz.draw.labels import fenced
from attnviz.draw.terminal.listing import Column, listing
from attnviz.draw.titles import amount
from attnviz.records.tokens import Token

COLUMNS = (
    Column("index", right=True),
    Column("id", right=True),
    Column("token", wraps=True),
    Column("characters", right=True),
)


def render(model: str, cut: Sequence[Token], width: int) -> Iterator[RenderableType]:
    """How many tokens there are, and each of them."""
    yield Text(f"{amount(len(cut), 'token')}, model {model}", style="dim")
    yield Text()
    rows = [(str(t.index), str(t.id), fenced(t.quoted), _characters(t)) for t in cut]
    yield from listing(COLUMNS, rows, width)


def _characters(token: Token) -> str:
    """The slice of the source, as Python writes it: the end is not included."""
    return f"{token.start}:{token.end}" if token.start < token.end else ""
