"""Calculations beside a head's own: of token embeddings, of cross-attention, of small matrices."""

from collections.abc import Iterator, Sequence

import numpy as np
from rich.text import Text

from attnviz.commands.explain.sheet import FORMULAS, TURNED, HeadSheet, Sheet, shape, strongest_keys
from attnviz.draw.labels import distinct_labels
from attnviz.errors import readable
from attnviz.records.tokens import SPECIAL_LABEL
from attnviz.records.trace import DoubleArray, EmbeddingTrace, HeadTrace, Worked

EMBEDDING_STEPS = range(1, 4)


def render_embeddings(
    trace: EmbeddingTrace, sheet: Sheet, *, only: Sequence[int] = EMBEDDING_STEPS
) -> Iterator[Text]:
    """The lines of the calculation: a heading, then the steps in `only`."""
    labels = distinct_labels(trace.tokens)
    yield from sheet.title(
        f"What “{labels[trace.query]}” takes from the tokens, without queries, keys and values",
        f"the built-in model's token embeddings, {len(labels)} tokens, no positions",
    )
    steps = {1: _embedded, 2: _embedding_weights, 3: _new_vector}
    for number in only:
        yield from steps[number](trace, sheet, labels)


def _embedded(t: EmbeddingTrace, sheet: Sheet, labels: Sequence[str]) -> Iterator[Text]:
    yield from sheet.heading(1, "Token embeddings: what each token is, without its position")
    yield from sheet.formula(
        f"x {shape(t.x)}: (n, d_model)", f"E = xᵀ {shape(t.x.T)}: one column for each token"
    )
    yield from sheet.vectors(
        [(f"x({labels[i]})", t.x[i]) for i in strongest_keys(t.products[t.query])]
    )


def _embedding_weights(t: EmbeddingTrace, sheet: Sheet, labels: Sequence[str]) -> Iterator[Text]:
    n, d = t.x.shape
    yield from sheet.heading(2, "Dot products with each other, and their softmax")
    sizes = f"({n}, {d})·({d}, {n}) = ({n}, {n})"
    yield from sheet.formula(
        f"W = softmax(x·xᵀ)   {sizes}", f"Wᵀ = softmax of each column of Eᵀ·E   {sizes}"
    )
    mask = "later keys are masked" if t.causal else "no mask: every token attends to all"
    yield from sheet.say(f"The row of “{labels[t.query]}”; {mask}.")
    row = t.query + 1
    yield from sheet.table(
        ["key", "x·x", "softmax"],
        [
            (labels[i], [float(t.products[t.query, i]), float(t.pattern[t.query, i])])
            for i in strongest_keys(t.products[t.query])
        ],
    )
    weights = t.pattern[t.query][np.isfinite(t.products[t.query])]
    lowest, highest = float(weights.min()), float(weights.max())
    yield from sheet.say(
        f"W{row},1 … W{row},{n}: the weights lie between {sheet.number(lowest)} and "
        f"{sheet.number(highest)}. Such rows are nearly flat, because embeddings were not trained "
        "to be compared with each other: the model's own W_Q and W_K read them and pick out "
        "what matters. Heatmaps therefore give each row its own colour scale."
    )


def _new_vector(t: EmbeddingTrace, sheet: Sheet, labels: Sequence[str]) -> Iterator[Text]:
    yield from sheet.heading(3, "The new vector: the weighted sum of all embeddings")
    yield from sheet.formula(f"y = W·x   {shape(t.output)}", f"yᵀ = E·Wᵀ   {shape(t.output.T)}")
    terms = [
        (float(t.pattern[t.query, i]), f"x({labels[i]})")
        for i in strongest_keys(t.products[t.query])
    ]
    yield from sheet.line(f"y({labels[t.query]}) = {sheet.sum(terms)}")
    yield from sheet.vectors(
        [(f"x({labels[t.query]})", t.x[t.query]), (f"y({labels[t.query]})", t.output[t.query])]
    )


# Encoder-decoders: two texts, and which one reads the other.

WHERE = {
    "encoder": " of the encoder",
    "decoder": " of the decoder",
    "cross": " of the cross-attention",
}
FROM = {"decoder": "what was written before it", "cross": "the text that is read"}


def title(e: HeadSheet) -> str:
    """`How L1H2 of the cross-attention computes what “chat” takes from the text that is read`."""
    kind = e.trace.kind
    where, source = WHERE.get(kind, ""), FROM.get(kind, "the tokens")
    return f"How {e.head}{where} computes what “{e.query}” takes from {source}"


def written(trace: HeadTrace) -> str:
    """The output of an encoder-decoder, and how queries are named; empty for one sequence."""
    if trace.kind not in FROM:
        return ""
    naming = "a query is named by the word that its position writes; its input is the word before"
    return f"written: “{readable(trace.target)}” ({naming})"


def two_texts(e: HeadSheet) -> Iterator[Text]:
    """Step 1 of cross-attention: the stream that asks, and the encoder's output that answers."""
    t, sheet = e.trace, e.sheet
    yield from sheet.heading(1, "Two texts: one is written and asks, one is read and answers")
    yield from numbered(e, "written", e.labels)
    yield from numbered(e, "read", e.key_labels)
    assert t.source is not None
    yield from sheet.formula(f"m = the encoder's output {shape(t.source)}: (n_k, d_model)")
    yield from sheet.say("One vector for each token that is read; k and v are made of m.")
    yield from e.key_vectors("m", t.source)
    yield from sheet.formula(f"x = the decoder's residual stream {shape(t.x)}: (n_q, d_model)")
    yield from sheet.say(
        f"As it leaves the self-attention of layer {t.layer}. {_input(e)}; q is made of x."
    )
    yield from e.vectors("x", t.x, [t.query])


def numbered(e: HeadSheet, name: str, labels: tuple[str, ...]) -> Iterator[Text]:
    """`read: 0:BOS 1:the 2:cat`."""
    listed = " ".join(f"{i}:{label}" for i, label in enumerate(labels))
    yield from e.sheet.line(f"{name}: {listed}")


def listed(e: HeadSheet) -> Iterator[Text]:
    """The tokens of one sequence; in a decoder, what each position reads and writes."""
    if e.trace.kind != "decoder":
        yield from numbered(e, "tokens", e.labels)
        return
    yield from numbered(e, "inputs", e.key_labels)
    yield from numbered(e, "written", e.labels)
    yield from e.sheet.say(f"{_input(e)}.")


def _input(e: HeadSheet) -> str:
    """The token at the position that writes the query."""
    query = e.trace.query
    before = e.labels[query - 1] if query else SPECIAL_LABEL
    return f"The position that writes “{e.query}” has “{before}” as its input"


def ending(e: HeadSheet) -> str:
    """The use of the vector after the last layer."""
    t = e.trace
    if t.kind == "encoder":
        return "The encoder's output is what the decoder's cross-attention reads."
    if not t.next_tokens:
        return "This model has no output layer."
    if t.kind in FROM:
        return (
            "The vector of this position, times each token's output vector, then predicts the word "
            "that it writes, with probability:"
        )
    predicts = "the token after" if t.kinds.causal else "the token in place of"
    return (
        f"The last token's vector, times each token's output vector, then predicts {predicts} "
        f"“{e.labels[-1]}”, with probability:"
    )


# Small matrices: the examples of lessons, or a user's own.

WORKED_STEPS = range(1, 7)


def render_worked(
    worked: Worked, sheet: Sheet, *, title: str, only: Sequence[int] = WORKED_STEPS
) -> Iterator[Text]:
    """The lines of the calculation: a heading, then the steps in `only`."""
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
    labels, x = w.given.labels, w.given.x
    for letter, name, weight, whole in (
        ("k", "keys", w.given.w_key, w.all_keys),
        ("q", "queries", w.given.w_query, w.all_queries),
        ("v", "values", w.given.w_value, w.all_values),
    ):
        turned = f"{letter}ᵀ = W_{letter.upper()}ᵀ·xᵀ"
        yield from sheet.formula(
            f"{letter} = x·W_{letter.upper()}   {shape(x)}·{shape(weight)} = {shape(whole)}",
            f"{turned}   {shape(weight.T)}·{shape(x.T)} = {shape(whole.T)}",
        )
        yield from sheet.matrix(f"W_{letter.upper()}", weight)
        yield from sheet.matrix(name, whole, labels, turned=turned)
    h, n, d_k = w.queries.shape
    if h == 1:
        return
    yield from sheet.formula(f"split    ({n}, {h * d_k}) → ({n}, {h}, {d_k}): (n, h, d_k)")
    yield from sheet.formula(f"swap     ({n}, {h}, {d_k}) → ({h}, {n}, {d_k}): (h, n, d_k)")
    yield from sheet.say("Each head gets its own columns of q, k and v, and attends separately:")
    for head in range(h):
        for name, split in (("q", w.queries), ("k", w.keys), ("v", w.values)):
            turned = f"{name}ᵀ of head {head}"
            yield from sheet.matrix(f"{name} of head {head}", split[head], labels, turned=turned)


def _scores(w: Worked, sheet: Sheet) -> Iterator[Text]:
    yield from sheet.heading(3, "Scores: how well each key matches each query")
    _, n, d_k = w.queries.shape
    d = w.given.x.shape[1]
    sizes = f"({n}, {d_k})·({d_k}, {n}) = ({n}, {n})"
    if w.way.similarity == "general":
        sizes = f"({n}, {d})·({d}, {d})·({d}, {n}) = ({n}, {n})"
    formula = FORMULAS[w.way.similarity]
    yield from sheet.formula(
        f"scores = {formula}   {sizes}", f"scoresᵀ = {TURNED[w.way.similarity]}   {sizes}"
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
    labels = w.given.labels
    for head in range(h):
        if h > 1:
            yield from sheet.line(f"head {head}", "bold")
        for query, label in enumerate(labels):
            weights = w.pattern[head, query].tolist()
            terms = [(weight, f"v({key})") for weight, key in zip(weights, labels, strict=True)]
            yield from sheet.line(f"z({label}) = {sheet.sum(terms, ordered=False)}")
            weighted = zip(labels, w.weighted[head, query], strict=True)
            rows = [(f"weight·v({key})", vector) for key, vector in weighted]
            yield from sheet.vectors([*rows, (f"z({label})", w.z[head, query])])


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
        d, wide = w.given.w_query.shape
        yield from sheet.say(
            f"{h} heads have as many parameters as one: W_Q of a head is {d}×{wide // h}, and {h} "
            f"such matrices side by side are the {d}×{wide} matrix of a single head. The same "
            f"holds for W_K and W_V{' and W_O' if w.given.w_output is not None else ''}."
        )


def _per_head(w: Worked, sheet: Sheet, name: str, arrays: DoubleArray) -> Iterator[Text]:
    for head, array in enumerate(arrays):
        of = f" of head {head}" if w.given.heads > 1 else ""
        labels = w.given.labels
        yield from sheet.matrix(f"{name}{of}", array, labels, labels, turned=f"{name}ᵀ{of}")
