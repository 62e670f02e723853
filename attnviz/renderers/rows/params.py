"""A model's parameters, as rows: a matrix each, or one row of all."""

from collections.abc import Iterable
from typing import Annotated, TypedDict

from attnviz.models.folder.params import Matrix, ParameterCount, Part, Per


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
