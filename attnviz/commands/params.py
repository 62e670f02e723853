"""`attnviz params`: how many parameters a model has, matrix by matrix."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands import options as o
from attnviz.commands.models import amount
from attnviz.commands.records import deliver_records, record_format
from attnviz.commands.session import session_of
from attnviz.console import make_consoles
from attnviz.data.params import CROSS, Matrix, ParameterCount
from attnviz.models.catalog import Source, parameters_of
from attnviz.models.known import BUILTIN, COUNTED
from attnviz.renderers.terminal.listing import Column, listing
from attnviz.renderers.terminal.prose import folded

EPILOG = """
[bold]Examples[/]

attnviz params

attnviz params gpt3

attnviz params ./my-model -f json | jq '.[0].total'
"""

CountedArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help=f"{', '.join(COUNTED)}, a hub id, or a model's folder.",
        show_default=False,
    ),
]


def params(
    context: typer.Context,
    name: CountedArgument = None,
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
        "encoder_layers": counted.stacks[0] if counted.stacks else None,
        "decoder_layers": counted.stacks[1] if counted.stacks else None,
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
    d, heads, kv_heads = counted.d_model, counted.heads, counted.kv_heads
    attentions = counted.attentions
    if attentions and d and heads and kv_heads:
        yield from _head_sums(next(iter(attentions.values())), d, heads, kv_heads)
        for name, (w_q, w_k, w_v, w_o) in attentions.items():
            queries, keys = w_q.each + w_o.each, w_k.each + w_v.each
            also = "" if kv_heads == heads else f", {kv_heads} key/value heads"
            kind = " of cross-attention" if name == CROSS else f" of the {name}" if name else ""
            layer = queries * heads + keys * kv_heads
            yield f"one layer{kind}", layer, f"{amount(heads, 'head')}{also}"
            if name:
                layers = amount(w_q.copies // heads, "layer")
                yield f"all layers{kind}", sum(m.total for m in attentions[name]), layers
    share = f"{100 * counted.attention / _whole(counted):.1f}% of {_size(counted)}"
    every = "all layers" if len(attentions) < 2 else "all attention"
    yield every, counted.attention, share


def _head_sums(
    four: Sequence[Matrix], d: int, heads: int, kv_heads: int
) -> Iterator[tuple[str, int, str]]:
    """One head's share of W_Q, W_K, W_V and W_O, beside a value map of full rank."""
    w_q, w_k, w_v, w_o = four
    queries, keys = w_q.each + w_o.each, w_k.each + w_v.each
    yield "a full value map", d * d, f"{d}×{d}; a head has, instead:"
    yield "value down (W_V)", w_v.each, _times(w_v)
    yield "value up (W_O)", w_o.each, _times(w_o)
    if kv_heads == heads:
        yield "one head", queries + keys, "W_Q, W_K, W_V, W_O"
    else:
        yield "one query head", queries, "W_Q, W_O"
        shared = f"W_K, W_V, shared by {heads // kv_heads} query heads"
        yield "one key/value head", keys, shared


def _size(counted: ParameterCount) -> str:
    known = counted.known_as
    return f"{known // 10**9} billion" if known else "all parameters"


def _shown(counted: ParameterCount, width: int) -> Iterator[RenderableType]:
    yield from folded(Text(f"{counted.name}: {counted.total:,} parameters", "bold"), width)
    yield from folded(Text(", ".join(_facts(counted)), "dim"), width)
    yield Text()
    yield from _table(counted, width)
    if counted.projections:
        yield Text()
        yield Text("The attention weights, without biases", style="bold")
        columns = (Column(""), Column("", right=True), Column("", wraps=True, style="dim"))
        rows = [(name, f"{number:,}", remark) for name, number, remark in _sums(counted)]
        yield from listing(columns, rows, width, header=False)
    for apart in counted.apart:
        said = f"not counted: {apart.source} ({apart.count:,} numbers, {apart.why})"
        yield from folded(Text(said, "dim"), width)


def _facts(counted: ParameterCount) -> Iterator[str]:
    if counted.stacks:
        encoder, decoder = counted.stacks
        yield f"{encoder:,} encoder and {amount(decoder, 'decoder layer')}"
    elif counted.n_layer:
        yield amount(counted.n_layer, "layer")
    if counted.heads:
        yield f"{amount(counted.heads, 'head')} a layer"
    if counted.kv_heads and counted.kv_heads != counted.heads:
        yield amount(counted.kv_heads, "key/value head")
    for name, number in (("d_model", counted.d_model), ("d_head", counted.d_head)):
        if number:
            yield f"{name} {number:,}"


def _table(counted: ParameterCount, width: int) -> Iterator[Text]:
    """All matrices, and their total."""
    names = Counter(matrix.name for matrix in counted.matrices)
    rows = []
    for matrix in counted.matrices:
        # encoder, decoder and cross-attention have matrices of the same name
        label = matrix.name if names[matrix.name] == 1 else f"{matrix.name} of {_of(matrix)}"
        copies = "" if matrix.copies == 1 else f"{matrix.copies:,}"
        rows.append((label, _times(matrix), f"{matrix.each:,}", copies, f"{matrix.total:,}"))
    rows.append(("total", "", "", "", f"{counted.total:,}"))
    numbers = [Column(name, right=True) for name in ("shape", "each", "how many", "all")]
    yield from listing((Column("matrix"), *numbers), rows, width)


def _of(matrix: Matrix) -> str:
    """The module that a matrix belongs to: `decoder.block.*.layer.1.EncDecAttention`."""
    return matrix.source.rsplit(".", 2)[0]


def _times(matrix: Matrix) -> str:
    return "×".join(map(str, matrix.shape))
