"""One head's calculation, written out number by number: seven steps, from tokens to prediction."""

from collections.abc import Iterable, Sequence

import numpy as np
from rich.text import Text

from attnviz.commands.explain.meaning import tell_meaning
from attnviz.commands.explain.sheet import FORMULAS, MOST_KEYS, HeadSheet, Sheet, shape
from attnviz.draw.labels import name_of
from attnviz.draw.titles import amount, elided
from attnviz.errors import readable
from attnviz.records.meaning import Meaning
from attnviz.records.merging import WHOLE, groups_of
from attnviz.records.tokens import SPECIAL_LABEL
from attnviz.records.trace import HeadTrace, OtherRow, Projection

SINK = 1e-3  # a row that sums to less than 1 by this leaves something to a sink
TOLERANCE = 1e-5
NO_MEANING = Meaning()
WHERE = {
    "encoder": " of the encoder",
    "decoder": " of the decoder",
    "cross": " of the cross-attention",
}
"""The attention of an encoder-decoder that a head belongs to."""
KEY_SIDE = "read", "inputs"
"""The lists of tokens that are only keys."""
MOST_WORDS = 3
"""The most words whose pieces a list of tokens names."""
FROM = {"decoder": "what was written before it", "cross": "the text that is read"}
"""The keys to which queries attend that stand for words to be written."""


def render(
    trace: HeadTrace,
    sheet: Sheet,
    *,
    about: str,
    only: Sequence[int] = (),
    other: OtherRow | None = None,
    meaning: Meaning = NO_MEANING,
) -> Iterable[Text]:
    """Render the lines of the explanation: a heading, then the steps in `only`, or all of them."""
    paper = HeadSheet(**vars(sheet), trace=trace, other=other, meaning=meaning)
    kind, target = trace.capture.kind, trace.capture.target
    where, source = WHERE.get(kind, ""), FROM.get(kind, "the tokens")
    naming = "a query is named by the word that its position writes; its input is the word before"
    paper.title(
        f"How {paper.head}{where} computes what “{paper.query}” takes from {source}",
        about,
        f"written: “{readable(elided(target))}” ({naming})" if kind in FROM else "",
    )
    for number in only or range(1, len(STEPS) + 1):
        STEPS[number - 1](paper)
    return paper.lines


def _tokens(sheet: HeadSheet) -> None:
    t = sheet.trace
    if sheet.cross:
        _two_texts(sheet)
    else:
        first = t.layer == 0 or t.embedding is not None
        reads = "From tokens to the vectors that attention reads"
        sheet.heading(1, reads if first else f"The input of layer {t.layer}")
        if sheet.trace.capture.kind == "decoder":
            _numbered(sheet, "inputs", sheet.key_labels)
            _numbered(sheet, "written", sheet.labels)
            sheet.say(f"{_input(sheet)}.")
        else:
            _numbered(sheet, "tokens", sheet.labels)
        _stream(sheet)
        sheet.query_vector("x", t.x)
    if not t.kinds.norm:
        sheet.say("This model has no norm before attention: it reads x as it is.")
        return
    sheet.formula(f"x̂ = {t.kinds.norm}(x) {shape(t.normed)}")
    computed = "q is" if sheet.cross else "q, k and v are"
    sheet.say(
        "Before attention, each vector is normalised and scaled by the norm's learned weights; "
        f"{computed} computed from x̂."
    )
    sheet.query_vector("x̂", t.normed)


def _two_texts(sheet: HeadSheet) -> None:
    """The stream that asks, and the encoder's output that answers, of cross-attention."""
    t = sheet.trace
    sheet.heading(1, "Two texts: one is written and asks, one is read and answers")
    _numbered(sheet, "written", sheet.labels)
    _numbered(sheet, "read", sheet.key_labels)
    assert t.source is not None
    sheet.formula(f"m = the encoder's output {shape(t.source)}: (n_k, d_model)")
    sheet.say("One vector for each token that is read; k and v are made of m.")
    sheet.key_vectors("m", t.source)
    sheet.formula(f"x = the decoder's residual stream {shape(t.x)}: (n_q, d_model)")
    sheet.say(
        f"As it leaves the self-attention of layer {t.layer}. {_input(sheet)}; q is made of x."
    )
    sheet.query_vector("x", t.x)


def _numbered(sheet: HeadSheet, name: str, labels: tuple[str, ...]) -> None:
    """`read: 0:BOS 1-64:image 65:the 66:cat`."""
    side = name in KEY_SIDE
    capture = sheet.trace.capture
    text, tokens = capture.texts[side], (capture.query_tokens, capture.key_tokens)[side]
    listed = []
    for part in groups_of(capture, WHOLE)[side]:
        whole = f"{part[0]}-{part[-1]}:{capture.inset_name(tokens[part[0]].image)}"
        listed.append(whole if len(part) > 1 else f"{part[0]}:{labels[part[0]]}")
    sheet.line(f"{name}: {' '.join(listed)}")
    for word in [word for word in groups_of(capture, "words")[side] if len(word) > 1][:MOST_WORDS]:
        whole = readable(text[tokens[word[0]].start : tokens[word[-1]].end].strip())
        pieces = " ".join(labels[i] for i in word)
        if "'" not in whole:  # as in n't or l'homme, which are two words
            sheet.say(f"“{whole}” is not a token of the vocabulary; it falls into {pieces}.")


def _input(sheet: HeadSheet) -> str:
    """The token at the position that writes the query."""
    query = sheet.trace.query
    before = sheet.labels[query - 1] if query else SPECIAL_LABEL
    return f"The position that writes “{sheet.query}” has “{before}” as its input"


def _stream(sheet: HeadSheet) -> None:
    """The residual stream, and what it is the sum of."""
    t = sheet.trace
    sizes = f"{shape(t.x)}: (n, d_model)"
    if t.embedding is None and t.layer == 0:
        sheet.formula(f"x = output of the embedding layer {sizes}")
        sheet.say("The sum of token and position embeddings, scaled or normalised.")
    elif t.embedding is None:
        sheet.formula(f"x = the residual stream {sizes}")
        sheet.say("Each token's vector, with everything that earlier layers added.")
    elif t.position is None:
        sheet.formula(f"x = token embedding {sizes}")
    else:
        sheet.formula(
            f"x = token embedding + position embedding {sizes}",
            f"E = xᵀ {shape(t.x.T)}: one column for each token",
        )
        sheet.say("What the token is, plus where it stands.")
        read = sheet.key_labels[t.query]  # in a decoder, the word before
        sheet.vectors([(f"embedding({read})", t.embedding[t.query])])
        sheet.vectors([(f"position({read})", t.position[t.query])])


def _queries_and_keys(sheet: HeadSheet) -> None:
    t = sheet.trace
    sheet.heading(2, "The query asks, the keys answer")
    for letter, projection, array, before, write in (
        ("q", t.w_q, t.q, t.q_plain, sheet.query_vector),
        ("k", t.w_k, t.k, t.k_plain, sheet.key_vectors),
    ):
        _project(sheet, letter, projection)
        if before is not None:
            sheet.say(f"{letter} before and after it is {t.kinds.changed}:")
            write(f"{letter}₀", before)
        write(letter, array)
    sheet.note_left_out()
    if t.kinds.group > 1:
        sheet.say(
            f"{t.kinds.group} query heads share these keys, and the values below (grouped queries)."
        )


def _project(sheet: HeadSheet, letter: str, projection: Projection) -> None:
    """The formula of queries, keys or values, and what they are for."""
    t, big = sheet.trace, letter.upper()
    sheet.product(
        letter,
        (sheet.queried, t.normed) if letter == "q" else (sheet.read, t.read),
        (f"W_{big}", projection.weight),
        bias="" if projection.bias is None else f"b_{big}",
    )
    meaning = {
        "q": f"What “{sheet.query}” looks for in other tokens.",
        "k": "What each token offers to be matched by.",
        "v": "What each token passes on when it is attended to.",
    }
    sheet.say(meaning[letter])


def _scores(sheet: HeadSheet) -> None:
    t = sheet.trace
    sheet.heading(3, f"Scores, {'mask' if t.masks else 'no mask'}, softmax")
    d_k = t.q.shape[1]
    scaled = f" / √{d_k}" if np.isclose(t.scale, d_k**-0.5) else f" · {t.scale:.6g}"
    scaled = "" if np.isclose(t.scale, 1.0) else scaled
    biased = " + bias" if t.bias is not None else ""
    sheet.product("scores", ("q", t.q), ("kᵀ", t.k.T), then=f"{scaled}{biased}")
    whom = (
        "every token of the text that is read" if sheet.cross else "every token, before and after"
    )
    mask = f"There is no mask: a query attends to {whom}."
    if t.masks:
        mask = "The mask sets later keys to −∞, which softmax turns into 0."
    sheet.say(f"How well each key matches the query. {mask}")
    sheet.say_columns(f"the row of “{sheet.query}” below is a column there.")
    hidden = np.flatnonzero(~np.isfinite(t.scores[t.query])).tolist()
    columns = {
        "q·k": t.products,
        scaled.strip() or "unscaled": t.scaled,
        **({} if t.bias is None else {"bias": t.bias}),
        **({"masked": t.scores} if t.masks else {}),
        "softmax": t.pattern,
    }
    rows = [
        (sheet.key_labels[i], [float(of[t.query, i]) for of in columns.values()])
        for i in sorted([*sheet.seen, *hidden[:MOST_KEYS]])
    ]
    sheet.table(["key", *columns], rows)
    sheet.note_left_out()
    if hidden[MOST_KEYS:]:
        sheet.say(f"… and {amount(len(hidden) - MOST_KEYS, 'more masked key')}.")
    _check_row(sheet)
    if sheet.other:
        _compare(sheet, sheet.other)


def _check_row(sheet: HeadSheet) -> None:
    """Check the sum of the row, and whether the model computes more than the formula."""
    t = sheet.trace
    pattern = t.pattern[t.query].astype(np.float64)
    total = float(pattern.sum())
    sheet.say(f"Sum of the row: {sheet.number(total)}.")
    if total < 1 - SINK:
        sheet.say(
            f"The other {sheet.number(1 - total)} goes to a sink: an additional score in this "
            "model's softmax that has no value vector."
        )
    row = t.scores[t.query].astype(np.float64)
    exponentials = np.exp(row - row.max())
    away = np.abs(exponentials / exponentials.sum() * total - pattern).max()
    if away > TOLERANCE:
        sheet.say(
            f"The model's own row differs from this softmax by up to {away:.2g}: it computes more "
            "than the formula above, such as a soft cap."
        )


def _compare(sheet: HeadSheet, other: OtherRow) -> None:
    """The row by another similarity beside the model's own."""
    formula = FORMULAS[other.kind]
    if other.kind == "general":  # what the projections read
        formula = f"{sheet.queried}·(W_Q·W_Kᵀ)·{sheet.read}ᵀ"
    sheet.formula(f"the same vectors by {other.kind}: softmax({formula})")
    if other.kind == "general":
        sheet.say("This leaves out the model's biases and scaling, if it has them.")
    own = sheet.trace.pattern[sheet.trace.query]
    rows = [
        (sheet.key_labels[i], [float(each[i]) for each in (other.scores, own, other.weights)])
        for i in sheet.seen
    ]
    sheet.table(["key", "score", "the model", other.kind], rows)
    away, verdict = float(np.abs(own - other.weights).max()), "equals the model's own row"
    if away > TOLERANCE:
        verdict = f"is not what the model computes (largest difference {away:.2g})"
    sheet.say(f"The last column {verdict}.")


def _values(sheet: HeadSheet) -> None:
    t = sheet.trace
    sheet.heading(4, "The weighted sum of the values")
    _project(sheet, "v", t.w_v)
    sheet.key_vectors("v", t.v)
    n, d_v = t.v.shape
    sheet.formula(
        f"z = Σ weight·v   {shape(t.z[t.query])}: (d_v)",
        f"zᵀ = vᵀ·weightsᵀ   ({d_v}, {n})·({n}, 1) = ({d_v}, 1)",
    )
    sheet.say("Each value is multiplied by the weight of its key.")
    weights = t.pattern[t.query]
    sheet.vectors(
        [(sheet.times(weights[i], f"v({sheet.key_labels[i]})"), t.weighted[i]) for i in sheet.seen]
    )
    sheet.note_left_out()
    sheet.line(sheet.weighted_sum())
    sheet.query_vector("z", t.z)


def _value_up(sheet: HeadSheet) -> None:
    t = sheet.trace
    sheet.heading(5, "What the head adds to the residual stream")
    factor = _times(t.kinds.factor)
    sheet.product("ΔE", ("z", t.z[t.query]), ("W_O", t.w_o.weight), factor=factor)
    if factor:
        sheet.say(f"This model multiplies the output of attention by {t.kinds.factor:.4g}.")
    if t.kinds.residual != "plain":
        sheet.say("A norm follows, so the stream receives a normalised sum: see step 7.")
    sheet.say(
        "This head's slice of W_O is the “value up” half of its value map W_V·W_O, "
        f"{t.read.shape[1]} to {t.v.shape[1]} and back to {t.added.shape[0]} numbers. Each "
        "key contributes to the sum:"
    )
    contributions = t.contributions
    rows = [(f"from {sheet.key_labels[i]}", contributions[i]) for i in sheet.seen]
    sheet.vectors([*rows, ("ΔE, their sum", t.added)])
    sheet.note_left_out()
    length, stream = float(np.linalg.norm(t.added)), float(np.linalg.norm(t.x[t.query]))
    sheet.line(
        f"Its norm is {sheet.number(length)}; the norm of the x that it is added to is "
        f"{sheet.number(stream)}."
    )
    tell_meaning(sheet, nothing=not length)


def _merged(sheet: HeadSheet) -> None:
    t = sheet.trace
    (heads, d), (n, d_v), width = t.head_outputs.shape, t.z.shape, t.q.shape[1]
    sheet.heading(6, "Split and merge: all heads of the layer")
    queries, keys = f"({heads}, {len(t.q)}, {width})", f"({heads}, {len(t.k)}, {width})"
    if sheet.cross:
        sheet.formula(f"split   queries (n_q, d_model) → {queries}: (h, n_q, d_k)")
        sheet.formula(f"split   keys    (n_k, d_model) → {keys}: (h, n_k, d_k)")
    else:
        sheet.formula(f"split   (n, d_model) → {queries}: (h, n, d_k)")
    sheet.formula(f"attend  each head separately → ({heads}, {n}, {d_v})")
    b_o = " + b_O" if t.w_o.bias is not None else ""
    sheet.formula(
        f"merge   ({heads}, {n}, {d_v}) → ({n}, {heads * d_v}), then ·W_O{b_o} "
        f"({heads * d_v}, {d}) = ({n}, {d})",
        f"W_Oᵀ·mergedᵀ{b_o and ' + b_Oᵀ'}   ({d}, {heads * d_v})·({heads * d_v}, {n}) = ({d}, {n})",
    )
    if t.kinds.factor != 1:
        sheet.say(f"All of it is multiplied by {t.kinds.factor:.4g} in this model:")
    sheet.say(
        "Multiplying the concatenated heads by W_O gives the sum of each head times its slice:"
    )
    outputs = [(f"L{t.layer}H{head}", row) for head, row in enumerate(t.head_outputs)]
    rows = [(f"ΔE of {label}", row) for label, row in outputs]
    if t.output_bias is not None:
        rows.append(("b_O", t.output_bias))
    sheet.vectors([*rows, ("layer's output", t.attention_out)])
    norms = (f"{label} {sheet.number(float(np.linalg.norm(row)))}" for label, row in outputs)
    sheet.line(f"norms: {', '.join(norms)}")
    # float32 carries some seven digits of the largest number that goes in
    largest = max(float(np.abs(array).max()) for array in (t.x[t.query], t.attention_out))
    away, limit = t.merge_error, max(TOLERANCE, largest * 1e-6)
    equals = f"equals the layer's output to {limit:.1g}"
    verdict = equals if away <= limit else "is not the layer's output"
    sheet.say(f"Checked: the sum over the heads{b_o} {verdict} (largest difference {away:.1g}).")


def _rest(sheet: HeadSheet) -> None:
    t = sheet.trace
    sheet.heading(7, "What follows: residual, MLP, next layer, prediction")
    n, d = t.x.shape
    wide = f"({n}, {d}) → ({n}, {t.kinds.mlp}) → ({n}, {d})" if t.kinds.mlp else f"({n}, {d})"
    formulas, remark = _residual(sheet)
    for name, formula in formulas.items():
        if name != "cross" or t.capture.kind == "decoder":
            sizes = wide if name == "MLP" else f"({n}, {d})"
            sheet.formula(f"{name:<10}{formula} {sizes}")
    if remark:
        sheet.say(remark)
    sheet.vectors(
        [
            (f"x({sheet.query})", t.x[t.query]),
            ("+ attention", t.attention_added),
            *([] if t.cross_added is None else [("+ cross", t.cross_added)]),
            ("+ rest of layer" if t.kinds.residual == "mixed" else "+ MLP", t.mlp_out),
            ("= x, next", t.x_after),
        ]
    )
    left = t.model.n_layer - 1 - t.layer
    ahead = f"{amount(left, 'more layer')} follow{'' if left > 1 else 's'}."
    sheet.say(f"{ahead if left else 'This is the last layer.'} {_ending(sheet)}")
    if t.next_tokens:
        sheet.table(("", ""), [(name_of(p.label), [p.score]) for p in t.next_tokens])


def _residual(sheet: HeadSheet) -> tuple[dict[str, str], str]:
    """The additions of attention, cross-attention and the MLP, in this order, and a remark."""
    kinds = sheet.trace.kinds
    if kinds.residual == "normed":
        one, two = map(_times, kinds.factors)
        return {
            "residual": f"x + {one}norm(attention)",
            "cross": "x + norm(cross-attention)",
            "MLP": f"x + {two}norm(MLP)",
        }, "Each is normalised before it is added; the rows show what is added:"
    if kinds.residual == "mixed":
        return {
            "residual": "x + attention, then a norm",
            "cross": "x + cross-attention, then a norm",
            "MLP": "x + MLP, then a norm",
        }, "The norms act on the sums, whose parts cannot be separated:"
    one, two = map(_times, kinds.factors)
    read = f"{kinds.norm}(x)" if kinds.norm else "x"
    own = f"cross-attention({sheet.queried}, m)" if sheet.cross else f"attention({sheet.queried})"
    return {
        "residual": f"x + {one}{own}",
        "cross": f"x + cross-attention({read}, m)",
        "MLP": f"x + {two}MLP({read})",
    }, ""


def _times(factor: float) -> str:
    """`0.22·`; nothing where it is 1."""
    return "" if factor == 1 else f"{factor:.4g}·"


def _ending(sheet: HeadSheet) -> str:
    """The use of the vector after the last layer."""
    t = sheet.trace
    if t.capture.kind == "encoder":
        return "The encoder's output is what the decoder's cross-attention reads."
    if not t.next_tokens:
        return "This model has no output layer."
    if t.capture.kind in FROM:
        return (
            "The vector of this position, times each token's output vector, then predicts the word "
            "that it writes, with probability:"
        )
    predicts = "the token after" if t.kinds.causal else "the token in place of"
    return (
        f"The last token's vector, times each token's output vector, then predicts {predicts} "
        f"“{sheet.labels[-1]}”, with probability:"
    )


STEPS = (_tokens, _queries_and_keys, _scores, _values, _value_up, _merged, _rest)


def render_lookup(trace: HeadTrace, sheet: Sheet, *, about: str) -> Iterable[Text]:
    """Render a row as a soft look-up beside an exact one: query, keys, values, and the result."""
    paper = HeadSheet(**vars(sheet), trace=trace)
    row, scores = trace.pattern[trace.query], trace.scores[trace.query]
    paper.title(f"{paper.head} as a look-up: “{paper.query}” asks", about)
    paper.heading(1, "The query")
    paper.query_vector("q", trace.q)
    paper.heading(2, "The keys: each is compared with the query and gets a weight")
    rows = [(paper.key_labels[i], [float(scores[i]), float(row[i])]) for i in paper.seen]
    paper.table(["key", "similarity", "weight"], rows)
    if paper.left_out:
        paper.say(f"… and {amount(paper.left_out, 'weaker key')}.")
    paper.heading(3, "The values behind the keys")
    paper.key_vectors("v", trace.v)
    paper.heading(4, "An exact look-up, as in a dictionary")
    keys = np.flatnonzero(np.isfinite(scores)).tolist()
    equal = [i for i in keys if np.array_equal(trace.q[trace.query], trace.k[i])]
    nearest = equal[0] if equal else max(keys, key=lambda i: float(row[i]))
    name = paper.key_labels[nearest]
    if equal:
        paper.line(f"The key of “{name}” equals the query:")
    else:
        paper.line("No key equals the query: a dictionary returns nothing.")
        paper.line(f"The nearest key alone, “{name}”, would return:")
    paper.vectors([(f"v({name})", trace.v[nearest])])
    paper.heading(5, "The soft look-up: the weighted sum of all values")
    paper.line(f"{paper.weighted_sum()}   {shape(trace.z[0])}")
    paper.query_vector("z", trace.z)
    return paper.lines
