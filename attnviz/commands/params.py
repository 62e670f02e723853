"""`attnviz params`: how many parameters a model has, matrix by matrix."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, TypedDict

import typer
from rich.console import RenderableType
from rich.text import Text

from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing
from attnviz.draw.titles import amount
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.option import command
from attnviz.kit.result import result_of
from attnviz.kit.session import Session
from attnviz.models.catalog import Source, identity_of, parameters_of
from attnviz.models.folder.params import CROSS, Matrix, ParameterCount, Part, Per
from attnviz.models.placement import BUILTIN, COUNTED
from attnviz.records.rows import JsonOutput, declared

# A model's parameters, as rows: a matrix each, or one row of all.


class MatrixRow(TypedDict):
    """One kind of matrix or vector."""

    name: str
    part: Part
    shape: Annotated[list[int], "Of one copy: (d_in, d_out) for the matrices of attention."]
    per: Annotated[Per, "What each has one copy of it."]
    each: Annotated[int, "The parameters of one copy."]
    copies: Annotated[int, "How many copies the model has."]
    total: Annotated[int, "The parameters of all copies."]
    source: Annotated[str, "Its name in the weights, with * for the number of the layer."]


class SumRow(TypedDict):
    """The parameters of one head, one layer, all layers."""

    name: str
    parameters: int


class ApartRow(TypedDict):
    """Numbers in a file that are no parameters of their own."""

    source: str
    count: int
    why: Annotated[str, "The reason, for a person."]


class CountRow(TypedDict):
    """All parameters of a model; null where a number has no meaning for it."""

    name: str
    layers: int | None
    encoder_layers: int | None
    decoder_layers: int | None
    heads_per_layer: int | None
    kv_heads_per_layer: int | None
    d_model: int | None
    d_head: int | None
    total: Annotated[int, "Tied weights count once."]
    attention: Annotated[int, "W_Q, W_K, W_V and W_O of all heads."]
    attention_share: float
    lesson_total: Annotated[int | None, "As lessons count."]
    lesson_attention_share: float | None
    sums: list[SumRow]
    matrices: list[MatrixRow]
    apart: list[ApartRow]


def matrix_rows(count: ParameterCount) -> list[MatrixRow]:
    """A row for each kind of matrix."""
    return [_matrix(matrix) for matrix in count.matrices]


def _matrix(matrix: Matrix) -> MatrixRow:
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


def count_row(count: ParameterCount, sums: Iterable[tuple[str, int]]) -> CountRow:
    """Everything in one row; `sums`: what is summed up, and its parameters."""
    lesson = count.lesson_total
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
        "lesson_total": lesson,
        "lesson_attention_share": None if lesson is None else count.attention / lesson,
        "sums": [{"name": name, "parameters": n} for name, n in sums],
        "matrices": matrix_rows(count),
        "apart": [{"source": a.source, "count": a.count, "why": a.why} for a in count.apart],
    }


# A model's parameters as tables: every matrix, and the sums of its attention weights.


def listed_sums(count: ParameterCount) -> Iterator[tuple[str, int, str]]:
    """The projections of one head, one layer, all layers: (what, parameters, remark)."""
    d, heads, kv_heads = count.d_model, count.heads, count.kv_heads
    attentions = count.attentions
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
    share = f"{_share(count, count.total)} of all parameters"
    if count.lesson_total is not None:
        share = " and ".join(f"{_share(count, n)} of {n:,}" for n in totals_of(count))
    every = "all layers" if len(attentions) < 2 else "all attention"
    yield every, count.attention, share


def _head_sums(
    four: Sequence[Matrix], d: int, heads: int, kv_heads: int
) -> Iterator[tuple[str, int, str]]:
    """One head's share of W_Q, W_K, W_V and W_O, beside a value map of full rank."""
    w_q, w_k, w_v, w_o = four
    queries, keys = w_q.each + w_o.each, w_k.each + w_v.each
    yield "a full value map", d * d, f"{d}×{d}; instead, a head has:"
    yield "value down (W_V)", w_v.each, _times(w_v)
    yield "value up (W_O)", w_o.each, _times(w_o)
    if kv_heads == heads:
        yield "one head", queries + keys, "W_Q, W_K, W_V, W_O"
    else:
        yield "one query head", queries, "W_Q, W_O"
        shared = f"W_K, W_V, shared by {heads // kv_heads} query heads"
        yield "one key/value head", keys, shared


def _share(count: ParameterCount, total: int) -> str:
    return f"{100 * count.attention / total:.1f}%"


def totals_of(count: ParameterCount) -> tuple[int, ...]:
    """The total of the model as it is built, and that of lessons where they count it."""
    return (count.total,) if count.lesson_total is None else (count.total, count.lesson_total)


def render(count: ParameterCount, width: int) -> Iterator[RenderableType]:
    """The matrices with their total, and the sums of the attention weights."""
    yield from folded(Text(f"{count.name}: {count.total:,} parameters", "bold"), width)
    yield from folded(Text(", ".join(_facts(count)), "dim"), width)
    yield Text()
    yield from _table(count, width)
    if count.projections:
        yield Text()
        yield Text("The attention weights, without biases", style="bold")
        columns = (Column(""), Column("", right=True), Column("", wraps=True, style="dim"))
        rows = [(name, f"{number:,}", remark) for name, number, remark in listed_sums(count)]
        yield from listing(columns, rows, width, header=False)
    if count.lesson_total is not None:
        yield Text()
        yield from _two_totals(count, width)
    for apart in count.apart:
        said = f"not counted: {apart.source} ({apart.count:,} numbers, {apart.why})"
        yield from folded(Text(said, "dim"), width)


def _two_totals(count: ParameterCount, width: int) -> Iterator[Text]:
    """Both totals, and what each of them counts."""
    yield Text("Two totals", style="bold")
    columns = (Column(""), Column("", right=True), Column("", wraps=True, style="dim"))
    one = "all of the above; the unembedding is tied to wte.weight and not counted again"
    own = f"{count.unembedding.total:,}" if count.unembedding else ""
    other = f"with an untied unembedding ({own}); without positions, biases and norms"
    rows = (("as built", one), ("as lessons count", other))
    written = [
        (name, f"{n:,}", what) for (name, what), n in zip(rows, totals_of(count), strict=True)
    ]
    yield from listing(columns, written, width, header=False)


def _facts(count: ParameterCount) -> Iterator[str]:
    if count.stacks:
        encoder, decoder = count.stacks
        yield f"{encoder:,} encoder and {amount(decoder, 'decoder layer')}"
    elif count.n_layer:
        yield amount(count.n_layer, "layer")
    if count.heads:
        yield f"{amount(count.heads, 'head')} a layer"
    if count.kv_heads and count.kv_heads != count.heads:
        yield amount(count.kv_heads, "key/value head")
    for name, number in (("d_model", count.d_model), ("d_head", count.d_head)):
        if number:
            yield f"{name} {number:,}"


def _table(count: ParameterCount, width: int) -> Iterator[Text]:
    """All matrices, and their total."""
    names = Counter(matrix.name for matrix in count.matrices)
    rows = []
    for matrix in count.matrices:
        # encoder, decoder and cross-attention have matrices of the same name
        label = matrix.name if names[matrix.name] == 1 else f"{matrix.name} of {_of(matrix)}"
        copies = "" if matrix.copies == 1 else f"{matrix.copies:,}"
        rows.append((label, _times(matrix), f"{matrix.each:,}", copies, f"{matrix.total:,}"))
    rows.append(("total", "", "", "", f"{count.total:,}"))
    numbers = [Column(name, right=True) for name in ("shape", "each", "how many", "all")]
    yield from listing((Column("matrix"), *numbers), rows, width)


def _of(matrix: Matrix) -> str:
    """The module that a matrix belongs to: `decoder.block.*.layer.1.EncDecAttention`."""
    return matrix.source.rsplit(".", 2)[0]


def _times(matrix: Matrix) -> str:
    return "×".join(map(str, matrix.shape))


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
    sums = [(name, n) for name, n, _ in listed_sums(count)]
    result = result_of(
        "params",
        count,
        count.name,
        (MatrixRow, CountRow),
        lambda: [count_row(count, sums)] if whole else matrix_rows(count),
        lambda display: render(count, display.width),
        models=[identity_of(source, count.total)] if whole else (),
    )
    deliver_result(session, to, result)


JSON = JsonOutput(
    (
        declared(MatrixRow),
        declared(CountRow),
    ),
    (),
)
