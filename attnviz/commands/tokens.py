"""`attnviz tokens`: how a model cuts a text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import RenderableType
from rich.text import Text

from attnviz.draw.labels import fenced
from attnviz.draw.terminal.cells import Column, listing
from attnviz.draw.titles import amount
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import text_alone
from attnviz.kit.option import command
from attnviz.kit.prepare import encode, fit
from attnviz.kit.result import Form, Result
from attnviz.kit.session import Session
from attnviz.models.catalog import identity_of, tokenizer_of
from attnviz.records.capture import Capture
from attnviz.records.rows import TOKEN, JsonOutput
from attnviz.records.tokens import Token, current_call


def render(model: str, cut: Sequence[Token], width: int) -> Iterator[RenderableType]:
    """How many tokens there are, and each of them, with its slice of the text as Python's."""
    yield Text(f"{amount(len(cut), 'token')}, model {model}", style="dim")
    yield Text()
    columns = [
        Column("index", right=True),
        Column("id", right=True),
        Column("token", wraps=True),
        Column("characters", right=True),
    ]
    places = [f"{t.start}:{t.end}" if t.start < t.end else "" for t in cut]
    rows = [
        (str(t.index), str(t.id), fenced(t.quoted), place)
        for t, place in zip(cut, places, strict=True)
    ]
    yield from listing(columns, rows, width)


JSON = JsonOutput((TOKEN,))
EXAMPLES = """
attnviz tokens "a fluffy blue creature"
attnviz tokens --file sample_texts/chuliuxiang.txt -f jsonl | jq -r .label
"""
SHORT_HELP = "file model format output quiet"


@command
def tokens(
    session: Session,
    *,
    text: g.TextIn,
    tokens: g.Tokens,
    model: g.WhichModel,
    output: g.RecordOutput,
) -> None:
    """Show how a model splits a text: each token's index, id, text and characters."""
    to = destination_of(session, output)
    refusal = "this command takes a text, not a capture"
    words = text_alone(session, text, refusal, "attnviz show shows a capture")
    source = g.source_of(session, model)
    tokenizer = tokenizer_of(source)
    if tokenizer.differs:
        session.note(tokenizer.differs)
    cut = encode(tokenizer, words, tokens.options())
    if tokens.truncate is not None:
        cut = fit(cut, tokenizer.context, tokens.truncate)[0]
    elif len(cut) > tokenizer.context:
        session.note(
            f"the text has {len(cut)} tokens, but the model takes at most {tokenizer.context}"
        )
    form = Form[Sequence[Token]](
        "tokens",
        TOKEN,
        lambda cut, top, line: cut,
        lambda cut: model.model,
        lambda cut, display: render(model.model, cut, display.width),
    )
    result = Result(form, cut)
    if to.format.name == "json":
        bos = cut[0].special
        run = Capture(words, cut, cut, (), identity_of(source), bos, asked=current_call())
        result = replace(result, captures=[run])
    deliver_result(session, to, result)
