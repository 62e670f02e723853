"""One head's calculation, written out number by number: seven steps, from tokens to prediction."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from rich.text import Text

from attnviz.commands.explain import others
from attnviz.commands.explain.sheet import (
    FORMULAS,
    MOST_KEYS,
    TOLERANCE,
    HeadSheet,
    Sheet,
    left_out,
    shape,
)
from attnviz.draw.labels import distinct_labels, name_of
from attnviz.draw.titles import amount
from attnviz.records.capture import FloatArray
from attnviz.records.trace import HeadTrace, OtherRow, Projection

SINK = 1e-3  # a row that sums to less than 1 by this leaves something to a sink


def scores(e: HeadSheet) -> Iterator[Text]:
    """Step 3: how the keys compare with the query, and the weights that follow."""
    t, sheet = e.trace, e.sheet
    yield from sheet.heading(3, f"Scores, {'mask' if t.masks else 'no mask'}, softmax")
    d_k = t.q.shape[1]
    scaled = f" / √{d_k}" if np.isclose(t.scale, d_k**-0.5) else f" · {t.scale:.6g}"
    scaled = "" if np.isclose(t.scale, 1.0) else scaled
    biased = " + bias" if t.bias is not None else ""
    n, m = e.n_queries, e.n_keys
    yield from sheet.formula(
        f"scores = q·kᵀ{scaled}{biased}   ({n}, {d_k})·({d_k}, {m}) = ({n}, {m})",
        f"scoresᵀ = k·qᵀ{scaled}{biased}   ({m}, {d_k})·({d_k}, {n}) = ({m}, {n})",
    )
    whom = "every token of the text that is read" if e.cross else "every token, before and after"
    mask = f"There is no mask: a query attends to {whom}."
    if t.masks:
        mask = "The mask sets later keys to −∞, which softmax turns into 0."
    yield from sheet.say(f"How well each key matches the query. {mask}")
    yield from sheet.say_columns(f"the row of “{e.query}” below is a column there.")
    hidden = [i for i in range(m) if not np.isfinite(t.scores[t.query, i])]
    shown = sorted([*e.seen, *hidden[:MOST_KEYS]])
    columns = {
        "q·k": t.products,
        scaled.strip() or "unscaled": t.scaled,
        **({} if t.bias is None else {"bias": t.bias}),
        **({"masked": t.scores} if t.masks else {}),
        "softmax": t.pattern,
    }
    rows = [(e.key_labels[i], [float(of[t.query, i]) for of in columns.values()]) for i in shown]
    yield from sheet.table(["key", *columns], rows)
    yield from left_out(e)
    if hidden[MOST_KEYS:]:
        yield from sheet.say(f"… and {len(hidden) - MOST_KEYS} more masked keys.")
    yield from _sum(e)
    if e.other:
        yield from _compared(e, e.other)


def _compared(e: HeadSheet, other: OtherRow) -> Iterator[Text]:
    """The row by another similarity beside the model's own."""
    t, sheet = e.trace, e.sheet
    formula = FORMULAS[other.kind]
    if other.kind == "general":  # what the projections read
        formula = f"{e.queried}·(W_Q·W_Kᵀ)·{e.read}ᵀ"
    yield from sheet.formula(f"the same vectors by {other.kind}: softmax({formula})")
    if other.kind == "general":
        yield from sheet.say("This leaves out the model's biases and scaling, if it has them.")
    own = t.pattern[t.query]
    rows = [
        (e.key_labels[i], [float(other.scores[i]), float(own[i]), float(other.weights[i])])
        for i in e.seen
    ]
    yield from sheet.table(["key", "score", "the model", other.kind], rows)
    away, verdict = float(np.abs(own - other.weights).max()), "equals the model's own row"
    if away > TOLERANCE:
        verdict = f"is not what the model computes (largest difference {away:.2g})"
    yield from sheet.say(f"The last column {verdict}.")


def _sum(e: HeadSheet) -> Iterator[Text]:
    """The sum of the row, and whether the model computes more than the formula."""
    pattern = e.trace.pattern[e.trace.query].astype(np.float64)
    total = float(pattern.sum())
    yield from e.sheet.say(f"Sum of the row: {e.sheet.number(total)}.")
    if total < 1 - SINK:
        yield from e.sheet.say(
            f"The other {e.sheet.number(1 - total)} goes to a sink: an additional score in this "
            "model's softmax that has no value vector."
        )
    row = e.trace.scores[e.trace.query].astype(np.float64)
    exponentials = np.exp(row - row.max())
    expected = exponentials / exponentials.sum() * total
    away = np.abs(expected - pattern).max()
    if away > TOLERANCE:
        yield from e.sheet.say(
            f"The model's own row differs from this softmax by up to {away:.2g}: it computes more "
            "than the formula above, such as a soft cap."
        )


STEPS = range(1, 8)


def render(
    trace: HeadTrace,
    sheet: Sheet,
    *,
    about: str,
    only: Sequence[int] = STEPS,
    other: OtherRow | None = None,
) -> Iterator[Text]:
    """The lines of the explanation: a heading, then the steps in `only`."""
    labels, key_labels = distinct_labels(trace.query_tokens), distinct_labels(trace.key_tokens)
    explained = HeadSheet(trace, sheet, labels, key_labels, other)
    yield from sheet.title(others.title(explained), about, others.written(trace))
    for number in only:
        yield from _STEPS[number](explained)


def _tokens(e: HeadSheet) -> Iterator[Text]:
    t, sheet = e.trace, e.sheet
    if e.cross:
        yield from others.two_texts(e)
    elif t.embedding is not None:
        yield from sheet.heading(1, "From tokens to the vectors that attention reads")
        yield from others.listed(e)
        yield from _embedded(e)
    elif t.layer == 0:
        yield from sheet.heading(1, "From tokens to the vectors that attention reads")
        yield from others.listed(e)
        yield from sheet.formula(f"x = output of the embedding layer {shape(t.x)}: (n, d_model)")
        yield from sheet.say("The sum of token and position embeddings, scaled or normalised.")
        yield from e.vectors("x", t.x, [t.query])
    else:
        yield from sheet.heading(1, f"The input of layer {t.layer}")
        yield from others.listed(e)
        yield from sheet.formula(f"x = the residual stream {shape(t.x)}: (n, d_model)")
        yield from sheet.say("Each token's vector, with everything that earlier layers added.")
        yield from e.vectors("x", t.x, [t.query])
    if not t.kinds.norm:
        yield from sheet.say("This model has no norm before attention: it reads x as it is.")
        return
    yield from sheet.formula(f"x̂ = {t.kinds.norm}(x) {shape(t.normed)}")
    computed = "q is" if e.cross else "q, k and v are"
    yield from sheet.say(
        "Before attention, each vector is normalised and scaled by the norm's learned weights; "
        f"{computed} computed from x̂."
    )
    yield from e.vectors("x̂", t.normed, [t.query])


def _embedded(e: HeadSheet) -> Iterator[Text]:
    t, sheet = e.trace, e.sheet
    if t.embedding is None:
        return
    if t.position is None:
        yield from sheet.formula(f"x = token embedding {shape(t.x)}: (n, d_model)")
        yield from e.vectors("x", t.x, [t.query])
        return
    yield from sheet.formula(
        f"x = token embedding + position embedding {shape(t.x)}: (n, d_model)",
        f"E = xᵀ {shape(t.x.T)}: one column for each token",
    )
    yield from sheet.say("What the token is, plus where it stands.")
    read = e.key_labels[t.query]  # in a decoder, the word before
    yield from sheet.vectors([(f"embedding({read})", t.embedding[t.query])])
    yield from sheet.vectors([(f"position({read})", t.position[t.query])])
    yield from e.vectors("x", t.x, [t.query])


def _queries_and_keys(e: HeadSheet) -> Iterator[Text]:
    t, sheet = e.trace, e.sheet
    yield from sheet.heading(2, "The query asks, the keys answer")
    for letter, projection, array, before in (
        ("q", t.w_q, t.q, t.q_plain),
        ("k", t.w_k, t.k, t.k_plain),
    ):
        yield from _projected(e, letter, projection, array)
        if before is not None:
            yield from sheet.say(f"{letter} before and after it is {t.kinds.changed}:")
            yield from _of_letter(e, f"{letter}₀", before)
        yield from _of_letter(e, letter, array)
    yield from left_out(e)
    if t.kinds.group > 1:
        yield from sheet.say(
            f"{t.kinds.group} query heads share these keys, and the values below (grouped queries)."
        )


def _of_letter(e: HeadSheet, letter: str, array: FloatArray) -> Iterator[Text]:
    """The query's vector, or those of the keys."""
    if letter.startswith("q"):
        return e.vectors(letter, array, [e.trace.query])
    return e.key_vectors(letter, array)


def _projected(
    e: HeadSheet, letter: str, projection: Projection, array: FloatArray
) -> Iterator[Text]:
    big = letter.upper()
    biased = projection.bias is not None
    source = e.queried if letter == "q" else e.read
    n, d = (e.trace.normed if letter == "q" else e.trace.read).shape
    sizes = f"({n}, {d})·{shape(projection.weight)} = {shape(array)}"
    rows = f"{letter} = {source}·W_{big}{f' + b_{big}' if biased else ''}   {sizes}"
    turned = f"{letter}ᵀ = W_{big}ᵀ·{source}ᵀ{f' + b_{big}ᵀ' if biased else ''}"
    columns = f"{turned}   {shape(projection.weight.T)}·({d}, {n}) = {shape(array.T)}"
    yield from e.sheet.formula(rows, columns)
    meaning = {
        "q": f"What “{e.query}” looks for in other tokens.",
        "k": "What each token offers to be matched by.",
        "v": "What each token passes on when it is attended to.",
    }
    yield from e.sheet.say(meaning[letter])


def _values(e: HeadSheet) -> Iterator[Text]:
    t, sheet = e.trace, e.sheet
    yield from sheet.heading(4, "The weighted sum of the values")
    yield from _projected(e, "v", t.w_v, t.v)
    yield from e.key_vectors("v", t.v)
    weights = t.pattern[t.query]
    n, d_v = t.v.shape
    yield from sheet.formula(
        f"z = Σ weight·v   {shape(t.z[t.query])}: (d_v)",
        f"zᵀ = vᵀ·weightsᵀ   ({d_v}, {n})·({n}, 1) = ({d_v}, 1)",
    )
    yield from sheet.say("Each value is multiplied by the weight of its key.")
    yield from sheet.vectors(
        [(sheet.times(weights[i], f"v({e.key_labels[i]})"), t.weighted[i]) for i in e.seen]
    )
    yield from left_out(e)
    terms = [(float(weights[i]), f"v({e.key_labels[i]})") for i in e.seen]
    yield from sheet.line(f"z({e.query}) = {sheet.sum(terms)}")
    yield from e.vectors("z", t.z, [t.query])


def _value_up(e: HeadSheet) -> Iterator[Text]:
    t, sheet = e.trace, e.sheet
    yield from sheet.heading(5, "What the head adds to the residual stream")
    d_v, d = t.w_o.weight.shape
    factor = _times(t.factor)
    yield from sheet.formula(
        f"ΔE = {factor}z·W_O   {shape(t.z[t.query])}·{shape(t.w_o.weight)} = {shape(t.added)}",
        f"ΔEᵀ = {factor}W_Oᵀ·zᵀ   ({d}, {d_v})·({d_v}, 1) = ({d}, 1)",
    )
    if factor:
        yield from sheet.say(f"This model multiplies the output of attention by {t.factor:.4g}.")
    if t.kinds.residual != "plain":
        yield from sheet.say("A norm follows, so the stream receives a normalised sum: see step 7.")
    yield from sheet.say(
        "This head's slice of W_O is the “value up” half of its value map W_V·W_O, "
        f"{t.read.shape[1]} to {t.v.shape[1]} and back to {t.added.shape[0]} numbers. Each "
        "key contributes to the sum:"
    )
    contributions = t.contributions
    rows = [(f"from {e.key_labels[i]}", contributions[i]) for i in e.seen]
    yield from sheet.vectors([*rows, ("ΔE, their sum", t.added)])
    yield from left_out(e)
    length, stream = float(np.linalg.norm(t.added)), float(np.linalg.norm(t.x[t.query]))
    yield from sheet.line(
        f"Its norm is {sheet.number(length)}; the norm of the x that it is added to is "
        f"{sheet.number(stream)}."
    )
    if not t.nearest:
        why = "whose vectors have another width" if length else "as it is 0"
        yield from sheet.say(f"It cannot be compared with the tokens of the vocabulary, {why}.")
        return
    near = ", ".join(f"{name_of(p.label)} {p.score:.2f}" for p in t.nearest)
    yield from sheet.line(f"Closest tokens of the vocabulary, by cosine: {near}")


def _merged(e: HeadSheet) -> Iterator[Text]:
    t, sheet = e.trace, e.sheet
    heads, d = t.head_outputs.shape
    n, d_v = t.z.shape
    yield from sheet.heading(6, "Split and merge: all heads of the layer")
    width = t.q.shape[1]
    queries, keys = f"({heads}, {e.n_queries}, {width})", f"({heads}, {e.n_keys}, {width})"
    if e.cross:
        yield from sheet.formula(f"split   queries (n_q, d_model) → {queries}: (h, n_q, d_k)")
        yield from sheet.formula(f"split   keys    (n_k, d_model) → {keys}: (h, n_k, d_k)")
    else:
        yield from sheet.formula(f"split   (n, d_model) → {queries}: (h, n, d_k)")
    yield from sheet.formula(f"attend  each head separately → ({heads}, {n}, {d_v})")
    b_o = " + b_O" if t.w_o.bias is not None else ""
    b_o_turned = b_o and f"{b_o}ᵀ"
    yield from sheet.formula(
        f"merge   ({heads}, {n}, {d_v}) → ({n}, {heads * d_v}), then ·W_O{b_o} "
        f"({heads * d_v}, {d}) = ({n}, {d})",
        f"W_Oᵀ·mergedᵀ{b_o_turned}   ({d}, {heads * d_v})·({heads * d_v}, {n}) = ({d}, {n})",
    )
    if t.factor != 1:
        yield from sheet.say(f"All of it is multiplied by {t.factor:.4g} in this model:")
    yield from sheet.say(
        "Multiplying the concatenated heads by W_O gives the sum of each head times its slice:"
    )
    outputs = [(f"L{t.layer}H{head}", row) for head, row in enumerate(t.head_outputs)]
    rows = [(f"ΔE of {label}", row) for label, row in outputs]
    if t.output_bias is not None:
        rows.append(("b_O", t.output_bias))
    yield from sheet.vectors([*rows, ("layer's output", t.attention_out)])
    norms = (f"{label} {sheet.number(float(np.linalg.norm(row)))}" for label, row in outputs)
    yield from sheet.line(f"norms: {', '.join(norms)}")
    # float32 carries some seven digits of the largest number that goes in
    largest = max(float(np.abs(array).max()) for array in (t.x[t.query], t.attention_out))
    away, limit = t.merge_error, max(TOLERANCE, largest * 1e-6)
    equals = f"equals the layer's output to {limit:.1g}"
    verdict = equals if away <= limit else "is not the layer's output"
    yield from sheet.say(
        f"Checked: the sum over the heads{b_o} {verdict} (largest difference {away:.1g})."
    )


def _rest(e: HeadSheet) -> Iterator[Text]:
    t, sheet = e.trace, e.sheet
    n, d = t.x.shape
    yield from sheet.heading(7, "What follows: residual, MLP, next layer, prediction")
    wide = f"({n}, {d}) → ({n}, {t.kinds.mlp}) → ({n}, {d})" if t.kinds.mlp else f"({n}, {d})"
    norm, (one, two) = t.kinds.norm, (_times(factor) for factor in t.kinds.factors)
    before = f"{norm}(x)" if norm else "x"
    added = "+ MLP"
    crossed = t.kind == "decoder"  # cross-attention stands between self-attention and MLP
    own = f"cross-attention({e.queried}, m)" if e.cross else f"attention({e.queried})"
    if t.kinds.residual == "plain":
        yield from sheet.formula(f"residual  x + {one}{own} ({n}, {d})")
        if crossed:
            yield from sheet.formula(f"cross     x + cross-attention({before}, m) ({n}, {d})")
        yield from sheet.formula(f"MLP       x + {two}MLP({before}) {wide}")
    elif t.kinds.residual == "normed":
        yield from sheet.formula(f"residual  x + {one}norm(attention) ({n}, {d})")
        if crossed:
            yield from sheet.formula(f"cross     x + norm(cross-attention) ({n}, {d})")
        yield from sheet.formula(f"MLP       x + {two}norm(MLP) {wide}")
        yield from sheet.say("Each is normalised before it is added; the rows show what is added:")
    else:
        yield from sheet.formula(f"residual  x + attention, then a norm ({n}, {d})")
        if crossed:
            yield from sheet.formula(f"cross     x + cross-attention, then a norm ({n}, {d})")
        yield from sheet.formula(f"MLP       x + MLP, then a norm {wide}")
        yield from sheet.say("The norms act on the sums, whose parts cannot be separated:")
        added = "+ rest of layer"
    yield from sheet.vectors(
        [
            (f"x({e.query})", t.x[t.query]),
            ("+ attention", t.attention_added),
            *([] if t.cross_added is None else [("+ cross", t.cross_added)]),
            (added, t.mlp_out),
            ("= x, next", t.x_after),
        ]
    )
    yield from _prediction(e)


def _times(factor: float) -> str:
    """`0.22·`; nothing where it is 1."""
    return "" if factor == 1 else f"{factor:.4g}·"


def _prediction(e: HeadSheet) -> Iterator[Text]:
    t, sheet = e.trace, e.sheet
    left = t.model.n_layer - 1 - t.layer
    ahead = f"{amount(left, 'more layer')} follow{'' if left > 1 else 's'}."
    ahead = ahead if left else "This is the last layer."
    yield from sheet.say(f"{ahead} {others.ending(e)}")
    if t.next_tokens:
        yield from sheet.weights([(name_of(p.label), p.score) for p in t.next_tokens])


_STEPS: Mapping[int, Callable[[HeadSheet], Iterator[Text]]] = {
    1: _tokens,
    2: _queries_and_keys,
    3: scores,
    4: _values,
    5: _value_up,
    6: _merged,
    7: _rest,
}
