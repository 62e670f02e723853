"""`attnviz params`: how many parameters a model has, matrix by matrix."""

from collections import Counter
from collections.abc import Iterator

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from attnviz.commands import options as o
from attnviz.commands.models import NameArgument
from attnviz.commands.records import deliver_records, record_format
from attnviz.commands.session import session_of
from attnviz.console import make_consoles
from attnviz.data.parameters import Matrix, ParameterCount
from attnviz.models.catalog import Source, parameters_of
from attnviz.models.known import BUILTIN

ROOMY = 64
EPILOG = """
[bold]Examples[/]

attnviz params

attnviz params gpt3

attnviz params ./my-model -f json | jq '.[0].total'
"""


def params(
    context: typer.Context,
    name: NameArgument = None,
    revision: o.RevisionOption = None,
    offline: o.OfflineOption = False,
    width: o.WidthOption = None,
    no_color: o.NoColorOption = False,
    form: o.RecordFormatOption = None,
    output: o.OutputOption = None,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> None:
    """Count a model's parameters: each matrix, one head, one layer's heads, all of them."""
    session = session_of(context)
    session.consoles = make_consoles(session.environment, width=width, no_color=no_color)
    chosen = record_format(session, output, form)
    counted = parameters_of(Source(name or BUILTIN, revision, offline, quiet))
    records = [_record(counted)] if chosen == "json" else [_row(m) for m in counted.matrices]
    shown = _shown(counted, session.consoles.out.width)
    deliver_records(session, records, shown, chosen, output)


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


def _record(counted: ParameterCount) -> dict[str, object]:
    return {
        "name": counted.name,
        "layers": counted.n_layer,
        "heads_per_layer": counted.heads,
        "kv_heads_per_layer": counted.kv_heads,
        "d_model": counted.d_model,
        "d_head": counted.d_head,
        "total": counted.total,
        "attention": counted.attention,
        "attention_share": counted.attention / _whole(counted),
        "sums": [{"name": name, "parameters": n} for name, n, _ in _sums(counted)],
        "matrices": [_row(matrix) for matrix in counted.matrices],
        "apart": [{"source": a.source, "count": a.count, "why": a.why} for a in counted.apart],
    }


def _whole(counted: ParameterCount) -> int:
    """What a share is a share of: the size that the model goes by, else its total."""
    return counted.known_as or counted.total


def _sums(counted: ParameterCount) -> Iterator[tuple[str, int, str]]:
    """The projections of one head, one layer, all layers: (what, parameters, remark)."""
    of_each = {matrix.name: matrix for matrix in counted.one_of_each}
    d, n_layer, heads, kv_heads = (
        counted.d_model,
        counted.n_layer,
        counted.heads,
        counted.kv_heads,
    )
    if of_each and d and n_layer and heads and kv_heads:
        yield "a full value map", d * d, f"{d}×{d}; a head has, instead:"
        yield "value down (W_V)", of_each["W_V"].each, _times(of_each["W_V"])
        yield "value up (W_O)", of_each["W_O"].each, _times(of_each["W_O"])
        queries = of_each["W_Q"].each + of_each["W_O"].each
        keys = of_each["W_K"].each + of_each["W_V"].each
        if kv_heads == heads:
            yield "one head", queries + keys, "W_Q, W_K, W_V, W_O"
        else:
            yield "one query head", queries, "W_Q, W_O"
            shared = f"W_K, W_V, shared by {heads // kv_heads} query heads"
            yield "one key/value head", keys, shared
        layer = queries * heads + keys * kv_heads
        also = "" if kv_heads == heads else f", {kv_heads} key/value heads"
        yield "one layer", layer, f"{heads} heads{also}"
    share = f"{100 * counted.attention / _whole(counted):.1f}% of {_size(counted)}"
    yield "all layers", counted.attention, share


def _size(counted: ParameterCount) -> str:
    known = counted.known_as
    return f"{known // 10**9} billion" if known else "all parameters"


def _shown(counted: ParameterCount, width: int) -> Iterator[RenderableType]:
    facts = [
        f"{number:,} {what}"
        for number, what in (
            (counted.n_layer, "layers"),
            (counted.heads, "heads a layer"),
            (counted.kv_heads if counted.kv_heads != counted.heads else None, "key/value heads"),
        )
        if number
    ]
    widths = [
        f"{name} {number:,}"
        for name, number in (("d_model", counted.d_model), ("d_head", counted.d_head))
        if number
    ]
    yield Text(f"{counted.name}: {counted.total:,} parameters", style="bold")
    yield Text(", ".join(facts + widths), style="dim")
    yield Text()
    yield _table(counted, width)
    if counted.projections:
        yield Text()
        yield Text("The attention weights, without biases", style="bold")
        yield _sums_table(counted)
    for apart in counted.apart:
        yield Text(f"not counted: {apart.source} ({apart.count:,} numbers, {apart.why})", "dim")


def _table(counted: ParameterCount, width: int) -> Table:
    """All matrices; on a narrow terminal without the two columns that follow from the others."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True)
    table.add_column("matrix", overflow="fold", footer="total")
    table.add_column("shape", justify="right", no_wrap=True)
    if width >= ROOMY:
        table.add_column("each", justify="right", no_wrap=True)
        table.add_column("how many", justify="right", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True, footer=f"{counted.total:,}")
    names = Counter(matrix.name for matrix in counted.matrices)
    for matrix in counted.matrices:
        # encoder, decoder and cross-attention have matrices of the same name
        label = matrix.name if names[matrix.name] == 1 else f"{matrix.name} of {_of(matrix)}"
        copies = "" if matrix.copies == 1 else f"{matrix.copies:,}"
        details = (f"{matrix.each:,}", copies) if width >= ROOMY else ()
        table.add_row(label, _times(matrix), *details, f"{matrix.total:,}")
    return table


def _sums_table(counted: ParameterCount) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for name, number, remark in _sums(counted):
        table.add_row(name, f"{number:,}", Text(remark, style="dim"))
    return table


def _of(matrix: Matrix) -> str:
    """The module that a matrix belongs to: `decoder.block.*.layer.1.EncDecAttention`."""
    return matrix.source.rsplit(".", 2)[0]


def _times(matrix: Matrix) -> str:
    return "×".join(map(str, matrix.shape))
