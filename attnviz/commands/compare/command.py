"""`attnviz compare`: one word in several texts, or one text in two models."""

from dataclasses import dataclass, replace
from typing import Annotated

import typer

from attnviz.commands.compare.record import Pairing
from attnviz.commands.compare.rows import SHOWN, of_models, of_texts
from attnviz.commands.compare.run import compare_models, compare_texts
from attnviz.errors import UsageError, option
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver_result, destination_of
from attnviz.kit.lines import note_strange, note_texts, text_alone
from attnviz.kit.option import command, option_field
from attnviz.kit.session import Session

EPILOG = """
Examples

attnviz compare "American shrew mole" "one mole of carbon dioxide" --query mole

attnviz compare "the cat sat on the mat" "the dog sat on the mat"

attnviz compare "the cat sat on the mat" --model gpt2 --against distilgpt2

attnviz compare "a shrew mole" "a mole biopsy" --query mole -f jsonl | jq -c '[.layer, .head]'

attnviz compare "the cat sat" "the dog sat" --head L3H2 -o beside.png
"""
COMMON = "query against pair model heads top words drop_sink format output quiet".split()
"""The options that the short help lists."""


@dataclass(frozen=True)
class WhatCompared:
    """What is compared."""

    query: str | None = option_field(
        g.TOKENS,
        None,
        "--query",
        metavar="TOKEN",
        help="The word to compare; mole#2 is its second occurrence in each text.",
    )
    against: str | None = option_field(
        g.MODEL,
        None,
        "--against",
        metavar="NAME",
        help="Another model to run on the same text, given as for --model.",
        autocompletion=completion.models,
    )
    pair: Pairing = option_field(
        g.HEADS,
        "best",
        "--pair",
        help="With --against, compare each head with the head of the same name, the largest change "
        "first; or with the most similar one.",
    )
    top: int | None = option_field(
        g.LOOK,
        None,
        "--top",
        metavar="K",
        min=1,
        help="Show the K heads that differ most, or are most alike.",
        show_default=f"{SHOWN}; all as rows",
    )


@command
def compare(
    session: Session,
    *,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT",
            help="Two or more texts; one with --against. - reads standard input.",
            show_default=False,
        ),
    ] = None,
    compared: WhatCompared,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    kind: g.Kind,
    heads: g.WhichHeads,
    transforms: g.HeadTransforms,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.ComparisonOutput,
    noise: g.Noise,
) -> None:
    """Compare what a word attends to in several texts, or two models on one text.

    For texts, the head that differs most comes first; for two models, the most similar pair, or
    with --pair same the largest change. With one --head the patterns are shown side by side; the
    picture of two models is the similarity of all their heads, as -f npz has it.
    """
    to = destination_of(session, output)
    if to.format.binary or to.format.picture:
        session.refuse("top", wrong=f"does nothing for {to.format.name}")
    refusal = "saved captures are not compared"
    hint = "give the texts again"
    given = [
        text_alone(session, g.TextIn(text), refusal, hint, alone=False) for text in texts or ()
    ]
    source = g.source_of(session, model, run, kind)
    how = tokens.options(run), heads.options, transforms.transforms()
    if compared.against is None:
        _check_texts(session, to)
        try:
            by_text = compare_texts(session.load(source), given, compared.query, *how)
        except UsageError as error:
            if any(len(text.split()) > 1 for text in given):
                raise
            raise UsageError(error.wrong, f"put each text in quotes; {error.hint}") from None
        note_texts(session, by_text.captures)
        deliver_result(session, to, of_texts(by_text, compared.top), canvas)
        return
    if len(given) != 1 or compared.query is not None:
        raise UsageError(
            f"{option('against')} compares two models over one text, row by row",
            f"give one text, and no {option('query')}",
        )
    other = replace(source, name=compared.against, revision=None)
    first, second = session.load(source), session.load(other)
    by_model = compare_models(first, second, given[0], *how, compared.pair)
    note_strange(session, [any(captured.strange for captured in by_model.captures)], "text")
    deliver_result(session, to, of_models(by_model, compared.top), canvas)


def _check_texts(session: Session, to: Destination) -> None:
    """Only what means something for several texts."""
    session.refuse("pair", wrong="is for two models", hint=f"add {option('against')}")
    if to.format.name == "npz":
        raise UsageError("several texts have no matrix of heads", "write another format")
