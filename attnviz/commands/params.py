"""`attnviz params`: how many parameters a model has, matrix by matrix."""

from typing import Annotated

import typer

from attnviz.commands import completion
from attnviz.commands import groups as g
from attnviz.commands.deliver import deliver_report, destination_of
from attnviz.commands.grouping import command
from attnviz.commands.session import Session
from attnviz.data.params import Matrix, ParameterCount
from attnviz.models.catalog import Source, parameters_of
from attnviz.models.known import BUILTIN, COUNTED
from attnviz.renderers.terminal import params as table

EPILOG = """
[bold]Examples[/]

attnviz params

attnviz params gpt3

attnviz params ./my-model -f json | jq '.[0].total'
"""
COMMON = "format output quiet".split()
"""The options that the short help lists."""


@command
def params(
    session: Session,
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help=f"{', '.join(COUNTED)}, a hub id, or a model's folder.",
            show_default=False,
            autocompletion=completion.models,
        ),
    ] = None,
    fetched: g.Fetched,
    screen: g.Screen,
    output: g.RecordOutput,
    noise: g.Noise,
) -> None:
    """Count a model's parameters: per matrix, per head, per layer and in total."""
    to = destination_of(session, output)
    source = Source(name or BUILTIN, fetched.revision, fetched.offline, session.quiet)
    count = parameters_of(source)
    whole = to.format.name == "json"
    deliver_report(
        session,
        to,
        lambda: [_record(count)] if whole else [_row(matrix) for matrix in count.matrices],
        lambda: table.render(count, to.display(session).width),
    )


def _row(matrix: Matrix) -> dict[str, object]:
    return {
        "name": matrix.name,
        "part": matrix.part,
        "shape": list(matrix.shape),
        "per": matrix.per,
        "each": matrix.each,
        "copies": matrix.copies,
        "total": matrix.total,
        "source": matrix.source,
    }


def _record(count: ParameterCount) -> dict[str, object]:
    return {
        "name": count.name,
        "layers": count.n_layer,
        "encoder_layers": count.stacks[0] if count.stacks else None,
        "decoder_layers": count.stacks[1] if count.stacks else None,
        "heads_per_layer": count.heads,
        "kv_heads_per_layer": count.kv_heads,
        "d_model": count.d_model,
        "d_head": count.d_head,
        "total": count.total,
        "attention": count.attention,
        "attention_share": count.attention / count.total,
        "lesson_total": count.lesson_total,
        "lesson_attention_share": (
            None if count.lesson_total is None else count.attention / count.lesson_total
        ),
        "sums": [{"name": name, "parameters": n} for name, n, _ in table.sums(count)],
        "matrices": [_row(matrix) for matrix in count.matrices],
        "apart": [{"source": a.source, "count": a.count, "why": a.why} for a in count.apart],
    }
