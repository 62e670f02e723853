"""`attnviz params`: how many parameters a model has, matrix by matrix."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from rich.console import RenderableType
from rich.text import Text

from attnviz.draw.terminal.cells import Column, folded, listing
from attnviz.draw.titles import amount
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.option import command, positional
from attnviz.kit.result import Form, Result
from attnviz.kit.session import Session
from attnviz.models.catalog import Source, identity_of, parameters_of
from attnviz.models.folder.params import CROSS, Apart, Matrix, ModelPart, ParameterCount, Per
from attnviz.models.placement import BUILTIN, COUNTED
from attnviz.records.rows import Field, Fields, JsonOutput, at, list_of

# A model's parameters, as rows: a matrix each, or one row of all.


MATRIX = Fields[Matrix](
    "MatrixRow",
    "One kind of matrix or vector.",
    (
        Field("name", str),
        Field("part", ModelPart),
        Field("shape", list[int], "The shape of one copy: (d_in, d_out) for attention matrices."),
        Field("per", Per, "The unit with one copy of it."),
        Field("each", int, "The parameters of one copy."),
        Field("copies", int, "How many copies the model has."),
        Field("total", int, "The parameters of all copies."),
        Field("source", str, "Its name in the weights, with * for the number of the layer."),
    ),
)
SUM = Fields[tuple[str, int, str]](
    "SumRow",
    "The parameters of one head, one layer, all layers.",
    (Field("name", str, "", lambda sum: sum[0]), Field("parameters", int, "", lambda sum: sum[1])),
)
APART = Fields[Apart](
    "ApartRow",
    "Numbers in a file that are not parameters of their own.",
    (Field("source", str), Field("count", int), Field("why", str, "The reason, for a person.")),
)
COUNT = Fields[ParameterCount](
    "CountRow",
    "All parameters of a model; null where a number has no meaning for it.",
    (
        Field("name", str),
        Field("layers", int | None, "", at("n_layer")),
        Field("encoder_layers", int | None, "", lambda count: (count.stacks or [None])[0]),
        Field("decoder_layers", int | None, "", lambda count: (count.stacks or [None])[-1]),
        Field("heads_per_layer", int | None, "", at("heads")),
        Field("kv_heads_per_layer", int | None, "", at("kv_heads")),
        Field("d_model", int | None),
        Field("d_head", int | None),
        Field("total", int, "Tied weights count once."),
        Field("attention", int, "W_Q, W_K, W_V and W_O of all heads."),
        Field("attention_share", float, "", lambda count: count.attention / count.total),
        Field("lesson_total", int | None, "As lessons count."),
        Field(
            "lesson_attention_share",
            float | None,
            "",
            lambda count: count.lesson_total and count.attention / count.lesson_total,
        ),
        Field("sums", list_of(SUM), "", lambda count: listed_sums(count)),
        Field("matrices", list_of(MATRIX)),
        Field("apart", list_of(APART)),
    ),
)
JSON = JsonOutput((MATRIX, COUNT))


# A model's parameters as tables: every matrix, and the sums of its attention weights.


def listed_sums(count: ParameterCount) -> Iterator[tuple[str, int, str]]:
    """The projections of one head, one layer, all layers: (what, parameters, remark)."""
    d, heads, kv_heads = count.d_model, count.heads, count.kv_heads
    attentions = count.attentions
    if attentions and d and heads and kv_heads:
        w_q, w_k, w_v, w_o = next(iter(attentions.values()))
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
        for name, (w_q, w_k, w_v, w_o) in attentions.items():
            queries, keys = w_q.each + w_o.each, w_k.each + w_v.each
            also = "" if kv_heads == heads else f", {amount(kv_heads, 'key/value head')}"
            kind = " of cross-attention" if name == CROSS else f" of the {name}" if name else ""
            layer = queries * heads + keys * kv_heads
            yield f"one layer{kind}", layer, f"{amount(heads, 'head')}{also}"
            if name:
                layers = amount(w_q.copies // heads, "layer")
                yield f"all layers{kind}", sum(m.total for m in attentions[name]), layers
    totals = [(count.total, "all parameters")]
    if count.lesson_total is not None:
        totals = [(total, f"{total:,}") for total in (count.total, count.lesson_total)]
    shares = (f"{100 * count.attention / total:.1f}% of {name}" for total, name in totals)
    every = "all layers" if len(attentions) < 2 else "all attention"
    yield every, count.attention, " and ".join(shares)


SUMS = Column(""), Column("", right=True), Column("", wraps=True, style="dim")


def render(count: ParameterCount, width: int) -> Iterator[RenderableType]:
    """Render the matrices with their total, and the sums of the attention weights."""
    yield from folded(Text(f"{count.name}: {count.total:,} parameters", "bold"), width)
    yield from folded(Text(", ".join(_facts(count)), "dim"), width)
    yield Text()
    yield from _table(count, width)
    if count.projections:
        yield Text()
        yield Text("The attention weights, without biases", style="bold")
        sums = [(name, f"{number:,}", remark) for name, number, remark in listed_sums(count)]
        yield from listing(SUMS, sums, width, header=False)
    if count.lesson_total is not None:
        yield Text()
        yield Text("Two totals", style="bold")
        own = f"{count.unembedding.total:,}" if count.unembedding else ""
        one = "all of the above; the unembedding is tied to wte.weight and not counted again"
        other = f"with an untied unembedding ({own}); without positions, biases and norms"
        totals = [
            ("as built", f"{count.total:,}", one),
            ("as lessons count", f"{count.lesson_total:,}", other),
        ]
        yield from listing(SUMS, totals, width, header=False)
    for apart in count.apart:
        note = f"not counted: {apart.source} ({amount(apart.count, 'number')}, {apart.why})"
        yield from folded(Text(note, "dim"), width)


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
        label = matrix.name
        if names[label] > 1:  # as those of encoder, decoder and cross-attention
            label += f" of {matrix.source.rsplit('.', 2)[0]}"
        copies = "" if matrix.copies == 1 else f"{matrix.copies:,}"
        rows.append((label, _times(matrix), f"{matrix.each:,}", copies, f"{matrix.total:,}"))
    rows.append(("total", "", "", "", f"{count.total:,}"))
    numbers = [Column(name, right=True) for name in ("shape", "each", "how many", "all")]
    yield from listing((Column("matrix"), *numbers), rows, width)


def _times(matrix: Matrix) -> str:
    return "×".join(map(str, matrix.shape))


MATRICES = Form[ParameterCount](
    "params",
    MATRIX,
    lambda count, top, line: count.matrices,
    lambda count: count.name,
    lambda count, display: render(count, display.width),
)
WHOLE = replace(MATRICES, fields=COUNT, each=lambda count, top, line: [count])
"""With `-f json`: everything in one row."""
EXAMPLES = """
attnviz params
attnviz params gpt3
attnviz params ./my-model -f json | jq '.rows[0].total'
"""
SHORT_HELP = "format output quiet"


@command
def params(
    session: Session,
    *,
    name: Annotated[
        str | None,
        positional(
            "NAME",
            f"{', '.join(COUNTED)}, a hub id, or a model's folder.",
            autocompletion=completion.models,
        ),
    ] = None,
    revision: g.Revision = None,
    offline: g.Offline = False,
    output: g.RecordOutput,
) -> None:
    """Count a model's parameters: per matrix, per head, per layer and in total."""
    to = destination_of(session, output)
    source = Source(name or BUILTIN, revision, offline, session.quiet)
    count = parameters_of(source)
    result = Result(MATRICES, count)
    if to.format.name == "json":
        result = Result(WHOLE, count, models=[identity_of(source, count.total)])
    deliver_result(session, to, result)
