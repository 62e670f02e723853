"""Attention on small matrices, written out: the examples of lessons, or a user's own."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from attnviz.records.trace import DoubleArray, Worked
from attnviz.renderers.calculation.sheet import FORMULAS, TURNED, Sheet, shape

WORKED_STEPS = range(1, 7)


def render_worked(
    worked: Worked, sheet: Sheet, *, title: str, only: Sequence[int] = WORKED_STEPS
) -> Iterator[Text]:
    """The lines of the calculation: a heading, then the steps that are asked for."""
    yield from sheet.title(title)
    steps = {1: _inputs, 2: _projections, 3: _scores, 4: _softmax, 5: _weighted, 6: _output}
    for number in only:
        yield from steps[number](worked, sheet)


def _inputs(w: Worked, sheet: Sheet) -> Iterator[Text]:
    also = " (as columns: one column)" if sheet.columns else ""
    yield from sheet.heading(1, f"Inputs: one row{also} for each token")
    yield from sheet.matrix("x", w.given.x, w.given.labels)
    yield from sheet.say_columns("lessons call xᵀ E or X; every product is turned: (x·W)ᵀ = Wᵀ·xᵀ.")


def _projections(w: Worked, sheet: Sheet) -> Iterator[Text]:
    yield from sheet.heading(2, "Queries, keys and values")
    given = w.given
    for letter, name, weight, whole in (
        ("k", "keys", given.w_key, w.all_keys),
        ("q", "queries", given.w_query, w.all_queries),
        ("v", "values", given.w_value, w.all_values),
    ):
        turned = f"{letter}ᵀ = W_{letter.upper()}ᵀ·xᵀ"
        yield from sheet.formula(
            f"{letter} = x·W_{letter.upper()}   {shape(given.x)}·{shape(weight)} = {shape(whole)}",
            f"{turned}   {shape(weight.T)}·{shape(given.x.T)} = {shape(whole.T)}",
        )
        yield from sheet.matrix(f"W_{letter.upper()}", weight)
        yield from sheet.matrix(name, whole, given.labels, turned=turned)
    if given.heads > 1:
        yield from _split(w, sheet)


def _split(w: Worked, sheet: Sheet) -> Iterator[Text]:
    h, n, d_k = w.queries.shape
    yield from sheet.formula(f"split    ({n}, {h * d_k}) → ({n}, {h}, {d_k}): (n, h, d_k)")
    yield from sheet.formula(f"swap     ({n}, {h}, {d_k}) → ({h}, {n}, {d_k}): (h, n, d_k)")
    yield from sheet.say("Each head gets its own columns of q, k and v, and attends separately:")
    for head in range(h):
        for name, made in (("q", w.queries), ("k", w.keys), ("v", w.values)):
            yield from sheet.matrix(
                f"{name} of head {head}",
                made[head],
                w.given.labels,
                turned=f"{name}ᵀ of head {head}",
            )


def _scores(w: Worked, sheet: Sheet) -> Iterator[Text]:
    yield from sheet.heading(3, "Scores: how well each key matches each query")
    _, n, d_k = w.queries.shape
    d = w.given.x.shape[1]
    sizes = f"({n}, {d_k})·({d_k}, {n}) = ({n}, {n})"
    if w.way.similarity == "general":
        sizes = f"({n}, {d})·({d}, {d})·({d}, {n}) = ({n}, {n})"
    formula = FORMULAS[w.way.similarity]
    yield from sheet.formula(
        f"scores = {formula}   {sizes}",
        f"scoresᵀ = {TURNED[w.way.similarity]}   {sizes}",
    )
    mask = "a causal mask: −∞ on later keys" if w.way.causal else "no mask"
    scaling = "no scaling, " if w.way.similarity in ("dot", "general") else ""
    yield from sheet.say(f"One row for each query; {scaling}{mask}.")
    yield from sheet.say_columns("one column for each query, one row for each key.")
    yield from _per_head(w, sheet, "scores", w.scores)


def _softmax(w: Worked, sheet: Sheet) -> Iterator[Text]:
    also = " (as columns: each column)" if sheet.columns else ""
    yield from sheet.heading(4, f"Softmax: each row{also} becomes weights that sum to 1")
    rounded = ", rounded to one decimal as on paper" if w.way.rounded else ""
    yield from sheet.formula(
        f"weights = softmax(scores){rounded}",
        f"weightsᵀ = softmax of each column of scoresᵀ{rounded}",
    )
    yield from _per_head(w, sheet, "weights", w.pattern)


def _weighted(w: Worked, sheet: Sheet) -> Iterator[Text]:
    yield from sheet.heading(5, "The weighted sums of the values")
    h, n, d_v = w.z.shape
    yield from sheet.formula(
        f"z = weights·v   ({n}, {n})·({n}, {d_v}) = ({n}, {d_v})",
        f"zᵀ = vᵀ·weightsᵀ   ({d_v}, {n})·({n}, {n}) = ({d_v}, {n})",
    )
    for head in range(h):
        if h > 1:
            yield from sheet.line(f"head {head}", "bold")
        for query, label in enumerate(w.given.labels):
            terms = [
                (float(w.pattern[head, query, key]), f"v({other})")
                for key, other in enumerate(w.given.labels)
            ]
            yield from sheet.line(f"z({label}) = {sheet.sum(terms, ordered=False)}")
            yield from sheet.vectors(
                [
                    *(
                        (f"weight·v({other})", w.weighted[head, query, key])
                        for key, other in enumerate(w.given.labels)
                    ),
                    (f"z({label})", w.z[head, query]),
                ]
            )


def _output(w: Worked, sheet: Sheet) -> Iterator[Text]:
    h, n, d_v = w.z.shape
    if h > 1:
        yield from sheet.heading(6, "Merge the heads and compute the output")
        yield from sheet.formula(f"swap     ({h}, {n}, {d_v}) → ({n}, {h}, {d_v}): (n, h, d_v)")
        yield from sheet.formula(f"merge    ({n}, {h}, {d_v}) → ({n}, {h * d_v}): (n, h·d_v)")
        yield from sheet.matrix("merged", w.merged, w.given.labels)
    else:
        yield from sheet.heading(6, "The outputs")
    if w.given.w_output is not None:
        sizes = f"{shape(w.merged)}·{shape(w.given.w_output)} = {shape(w.output)}"
        turned = f"{shape(w.given.w_output.T)}·{shape(w.merged.T)} = {shape(w.output.T)}"
        yield from sheet.formula(
            f"outputs = merged·W_O   {sizes}", f"outputsᵀ = W_Oᵀ·mergedᵀ   {turned}"
        )
        yield from sheet.matrix("W_O", w.given.w_output)
    yield from sheet.matrix("outputs", w.output, w.given.labels)
    if h > 1:
        yield from _parameters(w, sheet)


def _parameters(w: Worked, sheet: Sheet) -> Iterator[Text]:
    """Why several heads cost no more than one."""
    d, wide = w.given.w_query.shape
    h = w.given.heads
    yield from sheet.say(
        f"{h} heads have as many parameters as one: W_Q of a head is {d}×{wide // h}, and {h} such "
        f"matrices side by side are the {d}×{wide} matrix of a single head. The same holds for "
        f"W_K and W_V{' and W_O' if w.given.w_output is not None else ''}."
    )


def _per_head(w: Worked, sheet: Sheet, name: str, made: DoubleArray) -> Iterator[Text]:
    for head, array in enumerate(made):
        of = f" of head {head}" if w.given.heads > 1 else ""
        labels = w.given.labels
        yield from sheet.matrix(f"{name}{of}", array, labels, labels, turned=f"{name}ᵀ{of}")
