"""Calculations without a model's head: token embeddings, examples, or a user's own matrices."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias

import numpy as np
from rich.text import Text

from attnviz.commands.explain.sheet import FORMULAS, TURNED, Sheet, shape, strongest_keys
from attnviz.draw.labels import distinct_labels
from attnviz.errors import InputError, readable
from attnviz.inputs.text import opened, read_limited
from attnviz.kit.values import FilePath, path_of
from attnviz.records.trace import DoubleArray, EmbeddingTrace, Initialisation, Matrices, Way, Worked

ExampleName: TypeAlias = Literal["three-inputs", "multi-head"]

CHARACTERS = ("楚", "留", "香")
WIDTH, HEADS = 6, 3  # of the multi-head example: three heads of two numbers each


def three_inputs() -> Matrices:
    """Self-attention by hand, with whole numbers: three inputs of four numbers.

    Karim 2019, "Illustrated: Self-Attention".
    """
    return Matrices(
        x=np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], float),
        w_key=np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], float),
        w_query=np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], float),
        w_value=np.array([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], float),
        labels=("x1", "x2", "x3"),
    )


def small_matrices(
    example: ExampleName | None, matrices: FilePath | None, init: Initialisation, seed: int
) -> tuple[Matrices, str]:
    """The matrices of an example, or of a user's file; and a title."""
    if matrices is not None:
        path = path_of("matrices", matrices)
        return read_matrices(Path(path)), f"Attention on {readable(path)}"
    if example == "three-inputs":
        return three_inputs(), "Self-attention by hand: three inputs of four numbers"
    from attnviz.models.scratch.lessons import random_matrices

    title = "楚留香 through three heads: three characters, random embeddings and weights"
    return random_matrices(CHARACTERS, WIDTH, HEADS, init, seed), title


def work(matrices: Matrices, way: Way) -> Worked:
    """Attention on these matrices, worked out; no model is loaded.

    Raises:
        InputError: they are so large that a product or a softmax is not finite.
    """
    from attnviz.models.scratch.lessons import work_out

    worked = work_out(matrices, way)
    if not all(np.isfinite(array).all() for array in (worked.pattern, worked.output)):
        raise InputError("the numbers of these matrices are too large", "scale them down")
    return worked


# A user's matrices from a JSON file.


NEEDED = ("x", "w_query", "w_key", "w_value")
KEYS = (*NEEDED, "w_output", "heads", "labels")
LARGEST_SIDE, LONGEST_LABEL = 1_000, 100
"""Limits of matrices that a person can follow, and of the names of their rows."""
EXPECTED = '{"x": [[...]], "w_query": [[...]], "w_key": [[...]], "w_value": [[...]]}'


def read_matrices(path: Path) -> Matrices:
    """Read the matrices of a file, with shapes that fit each other.

    Raises:
        InputError: the file cannot be read, is not such an object, has an unknown key, a number
            that is not finite, or a shape that does not fit (the message gives the expected and the
            actual one).
    """
    with opened(path) as stream:
        data = read_limited(stream, path)
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"is no JSON ({error})") from None
    if not isinstance(raw, dict):
        raise _wrong(path, "is no JSON object")
    missing = [name for name in NEEDED if name not in raw]
    if missing:
        raise _wrong(path, f"lacks {', '.join(missing)}")
    unknown = [name for name in raw if name not in KEYS]
    if unknown:
        raise InputError(
            f"{str(path)!r} has {', '.join(map(repr, unknown))}, which is not a known key",
            f"the keys are {', '.join(KEYS)}",
        )
    heads = raw.get("heads", 1)
    if isinstance(heads, bool) or not isinstance(heads, int) or not 0 < heads <= LARGEST_SIDE:
        raise _wrong(
            path, f"has {heads!r} heads, but needs a whole number from 1 to {LARGEST_SIDE:,}"
        )
    named = [*NEEDED, *(["w_output"] if raw.get("w_output") is not None else [])]
    arrays = {name: _matrix(path, name, raw[name]) for name in named}
    n = len(arrays["x"])
    labels = raw.get("labels", [f"x{i}" for i in range(1, n + 1)])
    if not isinstance(labels, list) or len(labels) != n:
        raise _wrong(path, f"needs {n} labels, one for each row of x")
    labels = list(map(str, labels))
    if max(map(len, labels)) > LONGEST_LABEL:
        raise _wrong(path, f"has a label of more than {LONGEST_LABEL} characters")
    _check(path, arrays, heads)
    labels = tuple(map(readable, labels))  # they reach the terminal
    return Matrices(**arrays, heads=heads, labels=labels)


def _matrix(path: Path, name: str, value: Any) -> DoubleArray:
    try:
        # null is NaN, which is reported by its place
        numbers = all(type(each) in (int, float, NoneType) for row in value for each in row)
        array = np.array(value if numbers else [], dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0)
    if array.ndim != 2 or not array.size:
        raise _wrong(path, f"is wrong: {name} is not a matrix: numbers in rows of one length")
    if max(array.shape) > LARGEST_SIDE:
        raise _wrong(
            path,
            f"is too large: {name} has the shape {array.shape}, over the "
            f"limit of {LARGEST_SIDE:,} rows and columns",
        )
    if not np.isfinite(array).all():
        at = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        raise _wrong(path, f"is wrong: {name} has NaN, Infinity or null at {at}")
    return array


def _check(path: Path, arrays: Mapping[str, DoubleArray], heads: int) -> None:
    """Check that every product exists, and that the heads divide the widths evenly."""

    def check(name: str, fits: bool, expected: str) -> None:
        if not fits:
            raise InputError(
                f"in {str(path)!r} {name} has the shape {arrays[name].shape}, but must have "
                f"{expected}",
                "correct the matrix",
            )

    shapes = {name: array.shape for name, array in arrays.items()}
    d, wide = shapes["x"][1], shapes["w_value"][1]
    for name in ("w_query", "w_key", "w_value"):
        rows, columns = shapes[name]
        check(name, rows == d, f"({d}, …), as x is {shapes['x']}")
        check(name, columns % heads == 0, f"({d}, a multiple of {heads}), for {heads} heads")
    same = shapes["w_key"] == shapes["w_query"]
    check("w_key", same, f"{shapes['w_query']}, as w_query is")
    if "w_output" in shapes:
        fits = shapes["w_output"][0] == wide
        check("w_output", fits, f"({wide}, …), as w_value is {shapes['w_value']}")


def _wrong(path: Path, what: str) -> InputError:
    return InputError(f"{str(path)!r} {what}", f"write {EXPECTED}")


# Small matrices, written out step by step.


def render_worked(
    worked: Worked, sheet: Sheet, *, title: str, only: Sequence[int] = ()
) -> Iterable[Text]:
    """Render the lines of the calculation: a heading, then the steps in `only`, or all of them."""
    sheet.title(title)
    for number in only or range(1, len(WORKED_STEPS) + 1):
        WORKED_STEPS[number - 1](worked, sheet)
    return sheet.lines


def _inputs(w: Worked, sheet: Sheet) -> None:
    also = " (as columns: one column)" if sheet.columns else ""
    sheet.heading(1, f"Inputs: one row{also} for each token")
    sheet.matrix("x", w.given.x, w.given.labels)
    sheet.say_columns("lessons call xᵀ E or X; every product is turned: (x·W)ᵀ = Wᵀ·xᵀ.")


def _projections(w: Worked, sheet: Sheet) -> None:
    sheet.heading(2, "Queries, keys and values")
    labels, x = w.given.labels, w.given.x
    for letter, name, weight, whole in (
        ("k", "keys", w.given.w_key, w.all_keys),
        ("q", "queries", w.given.w_query, w.all_queries),
        ("v", "values", w.given.w_value, w.all_values),
    ):
        projection = f"W_{letter.upper()}"
        turned = sheet.product(letter, ("x", x), (projection, weight))
        sheet.matrix(projection, weight)
        sheet.matrix(name, whole, labels, turned=turned)
    h, n, d_k = w.queries.shape
    if h == 1:
        return
    sheet.formula(f"split    ({n}, {h * d_k}) → ({n}, {h}, {d_k}): (n, h, d_k)")
    sheet.formula(f"swap     ({n}, {h}, {d_k}) → ({h}, {n}, {d_k}): (h, n, d_k)")
    sheet.say("Each head gets its own columns of q, k and v, and attends separately:")
    for head in range(h):
        for letter, split in (("q", w.queries), ("k", w.keys), ("v", w.values)):
            turned = f"{letter}ᵀ of head {head}"
            sheet.matrix(f"{letter} of head {head}", split[head], labels, turned=turned)


def _scores(w: Worked, sheet: Sheet) -> None:
    sheet.heading(3, "Scores: how well each key matches each query")
    (_, n, d_k), d, similarity = w.queries.shape, w.given.x.shape[1], w.way.similarity
    sizes = f"({n}, {d_k})·({d_k}, {n}) = ({n}, {n})"
    if similarity == "general":
        sizes = f"({n}, {d})·({d}, {d})·({d}, {n}) = ({n}, {n})"
    sheet.formula(
        f"scores = {FORMULAS[similarity]}   {sizes}", f"scoresᵀ = {TURNED[similarity]}   {sizes}"
    )
    mask = "a causal mask: −∞ on later keys" if w.way.causal else "no mask"
    scaling = "no scaling, " if similarity in ("dot", "general") else ""
    sheet.say(f"One row for each query; {scaling}{mask}.")
    sheet.say_columns("one column for each query, one row for each key.")
    _each_head(w, sheet, "scores", w.scores)


def _softmax(w: Worked, sheet: Sheet) -> None:
    also = " (as columns: each column)" if sheet.columns else ""
    sheet.heading(4, f"Softmax: each row{also} becomes weights that sum to 1")
    rounded = ", rounded to one decimal as on paper" if w.way.rounded else ""
    sheet.formula(
        f"weights = softmax(scores){rounded}",
        f"weightsᵀ = softmax of each column of scoresᵀ{rounded}",
    )
    _each_head(w, sheet, "weights", w.pattern)


def _each_head(w: Worked, sheet: Sheet, name: str, arrays: DoubleArray) -> None:
    labels = w.given.labels
    for head, array in enumerate(arrays):
        of = f" of head {head}" if w.given.heads > 1 else ""
        sheet.matrix(f"{name}{of}", array, labels, labels, turned=f"{name}ᵀ{of}")


def _weighted(w: Worked, sheet: Sheet) -> None:
    sheet.heading(5, "The weighted sums of the values")
    labels, h = w.given.labels, len(w.z)
    sheet.product("z", ("weights", w.pattern[0]), ("v", w.values[0]))
    for head in range(h):
        if h > 1:
            sheet.line(f"head {head}", "bold")
        for query, label in enumerate(labels):
            weights = w.pattern[head, query].tolist()
            terms = [(weight, f"v({key})") for weight, key in zip(weights, labels, strict=True)]
            sheet.line(f"z({label}) = {sheet.sum(terms, ordered=False)}")
            weighted = zip(labels, w.weighted[head, query], strict=True)
            rows = [(f"weight·v({key})", vector) for key, vector in weighted]
            sheet.vectors([*rows, (f"z({label})", w.z[head, query])])


def _output(w: Worked, sheet: Sheet) -> None:
    (h, n, d_v), w_output = w.z.shape, w.given.w_output
    sheet.heading(6, "Merge the heads and compute the output" if h > 1 else "The outputs")
    if h > 1:
        sheet.formula(f"swap     ({h}, {n}, {d_v}) → ({n}, {h}, {d_v}): (n, h, d_v)")
        sheet.formula(f"merge    ({n}, {h}, {d_v}) → ({n}, {h * d_v}): (n, h·d_v)")
        sheet.matrix("merged", w.merged, w.given.labels)
    if w_output is not None:
        sheet.product("outputs", ("merged", w.merged), ("W_O", w_output))
        sheet.matrix("W_O", w_output)
    sheet.matrix("outputs", w.output, w.given.labels)
    if h > 1:
        d, wide = w.given.w_query.shape
        sheet.say(
            f"{h} heads have as many parameters as one: W_Q of a head is {d}×{wide // h}, and {h} "
            f"such matrices side by side are the {d}×{wide} matrix of a single head. The same "
            f"holds for W_K and W_V{' and W_O' if w_output is not None else ''}."
        )


WORKED_STEPS = (_inputs, _projections, _scores, _softmax, _weighted, _output)


# Token embeddings compared with each other, written out step by step.


def render_embeddings(
    trace: EmbeddingTrace, sheet: Sheet, *, only: Sequence[int] = ()
) -> Iterable[Text]:
    """Render the lines of the calculation: a heading, then the steps in `only`, or all of them."""
    labels = distinct_labels(trace.tokens)
    sheet.title(
        f"What “{labels[trace.query]}” takes from the tokens, without queries, keys and values",
        f"the built-in model's token embeddings, {len(labels)} tokens, no positions",
    )
    for number in only or range(1, len(EMBEDDING_STEPS) + 1):
        EMBEDDING_STEPS[number - 1](trace, sheet, labels)
    return sheet.lines


def _embedded(t: EmbeddingTrace, sheet: Sheet, labels: Sequence[str]) -> None:
    sheet.heading(1, "Token embeddings: what each token is, without its position")
    sheet.formula(
        f"x {shape(t.x)}: (n, d_model)", f"E = xᵀ {shape(t.x.T)}: one column for each token"
    )
    sheet.vectors([(f"x({labels[i]})", t.x[i]) for i in strongest_keys(t.products[t.query])])


def _embedding_weights(t: EmbeddingTrace, sheet: Sheet, labels: Sequence[str]) -> None:
    n, d = t.x.shape
    sheet.heading(2, "Dot products with each other, and their softmax")
    sizes = f"({n}, {d})·({d}, {n}) = ({n}, {n})"
    sheet.formula(f"W = softmax(x·xᵀ)   {sizes}", f"Wᵀ = softmax of each column of Eᵀ·E   {sizes}")
    mask = "later keys are masked" if t.capture.causal else "no mask: every token attends to all"
    sheet.say(f"The row of “{labels[t.query]}”; {mask}.")
    products, pattern, row = t.products[t.query], t.pattern[t.query], t.query + 1
    keys = strongest_keys(products)
    rows = [(labels[i], [float(products[i]), float(pattern[i])]) for i in keys]
    sheet.table(["key", "x·x", "softmax"], rows)
    weights = pattern[np.isfinite(products)]
    lowest, highest = (sheet.number(float(weight)) for weight in (weights.min(), weights.max()))
    sheet.say(
        f"W{row},1 … W{row},{n}: the weights lie between {lowest} and "
        f"{highest}. Such rows are nearly flat, because embeddings were not trained "
        "to be compared with each other: the model's own W_Q and W_K read them and pick out "
        "what matters. Heatmaps therefore give each row its own colour scale."
    )


def _new_vector(t: EmbeddingTrace, sheet: Sheet, labels: Sequence[str]) -> None:
    sheet.heading(3, "The new vector: the weighted sum of all embeddings")
    sheet.formula(f"y = W·x   {shape(t.output)}", f"yᵀ = E·Wᵀ   {shape(t.output.T)}")
    query, weights = labels[t.query], t.pattern[t.query]
    keys = strongest_keys(t.products[t.query])
    terms = [(float(weights[i]), f"x({labels[i]})") for i in keys]
    sheet.line(f"y({query}) = {sheet.sum(terms)}")
    sheet.vectors([(f"x({query})", t.x[t.query]), (f"y({query})", t.output[t.query])])


EMBEDDING_STEPS = (_embedded, _embedding_weights, _new_vector)
