"""`attnviz params`: how many parameters a model has, matrix by matrix."""

from typing import Annotated

import typer

from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.option import command
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.models.catalog import Source, identity_of, parameters_of
from attnviz.models.placement import BUILTIN, COUNTED
from attnviz.renderers.rows.params import CountRow, MatrixRow, count_row, matrix_rows
from attnviz.renderers.terminal import params as table

EPILOG = """
Examples

attnviz params

attnviz params gpt3

attnviz params ./my-model -f json | jq '.rows[0].total'
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
    sums = [(name, n) for name, n, _ in table.listed_sums(count)]
    result = Result(
        "params",
        count,
        count.name,
        (MatrixRow, CountRow),
        lambda: [count_row(count, sums)] if whole else matrix_rows(count),
        lambda display: table.render(count, display.width),
        models=[identity_of(source, count.total)] if whole else (),
    )
    deliver_result(session, to, result)
