"""One head's calculation, written out number by number: seven steps, from tokens to prediction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from attnviz.data.capture import FloatArray
from attnviz.data.tokens import readable
from attnviz.data.trace import HeadTrace, OtherRow, Projection
from attnviz.renderers.labels import distinct_labels
from attnviz.renderers.page import FORMULAS, MOST_KEYS, Page, shape, strongest_keys

STEPS = range(1, 8)
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Explained:
    """A trace on a page, with the labels of its tokens, which tell repeated ones apart."""

    trace: HeadTrace
    page: Page
    labels: tuple[str, ...]
    other: OtherRow | None = None

    @property
    def query(self) -> str:
        return self.labels[self.trace.query]

    @property
    def seen(self) -> list[int]:
        """The keys that the query may look at; of very many, the strongest ones."""
        return strongest_keys(self.trace.scores[self.trace.query])

    @property
    def head(self) -> str:
        return f"L{self.trace.layer}H{self.trace.head}"

    def vectors(self, name: str, array: FloatArray, of: Sequence[int]) -> Iterator[Text]:
        """`k(fluffy) [...]` for each of these tokens."""
        yield from self.page.vectors([(f"{name}({self.labels[i]})", array[i]) for i in of])


def render(
    trace: HeadTrace,
    page: Page,
    *,
    about: str,
    only: Sequence[int] = STEPS,
    other: OtherRow | None = None,
) -> Iterator[Text]:
    """The lines of the explanation: a heading, then the steps that are asked for."""
    explained = Explained(trace, page, distinct_labels(trace.tokens), other)
    model = f"{readable(trace.model.name)}, {len(trace.tokens)} tokens"
    title = f"How {explained.head} computes what “{explained.query}” takes from the tokens"
    yield from page.title(title, f"{about} · {model}" if about else model)
    for number in only:
        yield from _STEPS[number](explained)


def _tokens(e: Explained) -> Iterator[Text]:
    t, page = e.trace, e.page
    if t.embedding is not None:
        yield from page.heading(1, "Tokens become vectors, and what attention reads of them")
        yield from _listed(e)
        yield from _embedded(e)
    elif t.layer == 0:
        yield from page.heading(1, "Tokens become vectors, and what attention reads of them")
        yield from _listed(e)
        yield from page.formula(f"x = what the embedding layer gives {shape(t.x)}: (n, d_model)")
        yield from page.say("Token and position embeddings, added up and scaled or normalised.")
        yield from e.vectors("x", t.x, [t.query])
    else:
        yield from page.heading(1, f"What arrives at layer {t.layer}")
        yield from _listed(e)
        yield from page.formula(f"x = the residual stream {shape(t.x)}: (n, d_model)")
        yield from page.say("Each token's vector, with all that the layers before have added.")
        yield from e.vectors("x", t.x, [t.query])
    if not t.kinds.norm:
        yield from page.say("This model normalises after attention: it reads x as it is.")
        return
    yield from page.formula(f"x̂ = {t.kinds.norm}(x) {shape(t.normed)}")
    yield from page.say(
        "Before attention each vector is brought to one scale; q, k and v are made of x̂."
    )
    yield from e.vectors("x̂", t.normed, [t.query])


def _listed(e: Explained) -> Iterator[Text]:
    numbered = " ".join(f"{i}:{label}" for i, label in enumerate(e.labels))
    yield from e.page.line(f"tokens: {numbered}")


def _embedded(e: Explained) -> Iterator[Text]:
    t, page = e.trace, e.page
    if t.embedding is None:
        return
    if t.position is None:
        yield from page.formula(f"x = token embedding {shape(t.x)}: (n, d_model)")
        yield from e.vectors("x", t.x, [t.query])
        return
    yield from page.formula(
        f"x = token embedding + position embedding {shape(t.x)}: (n, d_model)",
        f"E, one column for each token {shape(t.x.T)}",
    )
    yield from page.say("What the token is, and where it stands, added up.")
    yield from e.vectors("embedding", t.embedding, [t.query])
    yield from e.vectors("position", t.position, [t.query])
    yield from e.vectors("x", t.x, [t.query])


def _queries_and_keys(e: Explained) -> Iterator[Text]:
    t, page = e.trace, e.page
    yield from page.heading(2, "The query asks, the keys answer")
    plain = {"q": t.q_plain, "k": t.k_plain}
    for letter, projection, array in (("q", t.w_q, t.q), ("k", t.w_k, t.k)):
        before = plain[letter]
        yield from _projected(e, letter, projection, array)
        if before is not None:
            yield from page.say(
                f"{letter} before it is turned by its position (rotary), and after:"
            )
            of = [t.query] if letter == "q" else e.seen
            yield from e.vectors(f"{letter}₀", before, of)
        yield from e.vectors(letter, array, [t.query] if letter == "q" else e.seen)
    yield from _left_out(e)
    if t.kinds.group > 1:
        yield from page.say(
            f"{t.kinds.group} query heads share these keys, and the values below (grouped queries)."
        )


def _projected(
    e: Explained, letter: str, projection: Projection, array: FloatArray
) -> Iterator[Text]:
    big = letter.upper()
    biased = projection.bias is not None
    source = "x̂" if e.trace.kinds.norm else "x"
    n, d = e.trace.normed.shape
    sizes = f"({n}, {d})·{shape(projection.weight)} = {shape(array)}"
    rows = f"{letter} = {source}·W_{big}{f' + b_{big}' if biased else ''}   {sizes}"
    columns = f"W_{big}ᵀ·{source}ᵀ   {shape(projection.weight.T)}·({d}, {n}) = {shape(array.T)}"
    yield from e.page.formula(rows, columns)
    meaning = {
        "q": f"What “{e.query}” asks for.",
        "k": "What each token offers to be found by.",
        "v": "What each token hands over if it is looked at.",
    }
    yield from e.page.say(meaning[letter])


def _left_out(e: Explained) -> Iterator[Text]:
    allowed = int(np.isfinite(e.trace.scores[e.trace.query]).sum())
    if allowed > len(e.seen):
        more = allowed - len(e.seen)
        yield from e.page.say(f"… and {more} weaker keys; --format json has them all.")


def _scores(e: Explained) -> Iterator[Text]:
    t, page = e.trace, e.page
    yield from page.heading(3, "Scores, mask, softmax")
    d_k = t.q.shape[1]
    scaled = _scaling(t.scale, d_k)
    biased = " + bias" if t.bias is not None else ""
    n = len(t.tokens)
    yield from page.formula(
        f"scores = q·kᵀ{scaled}{biased}   ({n}, {d_k})·({d_k}, {n}) = ({n}, {n})",
        f"Kᵀ·Q{scaled}{biased}: one column for each query",
    )
    yield from page.say(
        "How well each key answers the query; −∞ where it may not look (the mask), which "
        "softmax turns into 0. The row then sums to 1."
    )
    hidden = [i for i in range(n) if not np.isfinite(t.scores[t.query, i])]
    shown = sorted([*e.seen, *hidden[:MOST_KEYS]])
    bias = [] if t.bias is None else ["bias"]
    header = ["key", "q·k", scaled.strip() or "as it is", *bias, "masked", "softmax"]
    rows = [(e.labels[i], _score_row(t, i)) for i in shown]
    yield from page.table(header, rows)
    yield from _left_out(e)
    if hidden[MOST_KEYS:]:
        yield from page.say(f"… and {len(hidden) - MOST_KEYS} more keys behind the mask.")
    total = float(t.pattern[t.query].sum(dtype=np.float64))
    yield from page.say(f"The row's sum: {page.number(total)}.")
    yield from _disagreement(e)
    if e.other:
        yield from _compared(e, e.other)


def _scaling(scale: float, d_k: int) -> str:
    if np.isclose(scale, 1.0):
        return ""
    return f" / √{d_k}" if np.isclose(scale, d_k**-0.5) else f" · {scale:.6g}"


def _score_row(t: HeadTrace, key: int) -> list[float]:
    product = float(t.products[t.query, key])
    bias = [] if t.bias is None else [float(t.bias[t.query, key])]
    masked, weight = float(t.scores[t.query, key]), float(t.pattern[t.query, key])
    return [product, product * t.scale, *bias, masked, weight]


def _compared(e: Explained, other: OtherRow) -> Iterator[Text]:
    """The row by another similarity beside the model's own."""
    t, page = e.trace, e.page
    yield from page.formula(f"the same vectors by {other.kind}: softmax({FORMULAS[other.kind]})")
    own = t.pattern[t.query]
    rows = [
        (e.labels[i], [float(other.scores[i]), float(own[i]), float(other.weights[i])])
        for i in e.seen
    ]
    yield from page.table(["key", "score", "the model", other.kind], rows)
    away = float(np.abs(own - other.weights).max())
    if away > TOLERANCE:
        yield from page.say(
            f"The last column is not what the model computes (largest difference {away:.2g})."
        )
    else:
        yield from page.say("The same as the model's own row: this is what it computes.")


def _disagreement(e: Explained) -> Iterator[Text]:
    """Where the model does more than the formula (a soft cap, a sink), that is said."""
    row = e.trace.scores[e.trace.query].astype(np.float64)
    exponentials = np.exp(row - row.max())
    away = np.abs(exponentials / exponentials.sum() - e.trace.pattern[e.trace.query]).max()
    if away > TOLERANCE:
        yield from e.page.say(
            f"The model's own row differs from this softmax by up to {away:.2g}: it does more "
            "than the formula here (a soft cap, or a sink beside the keys)."
        )


def _values(e: Explained) -> Iterator[Text]:
    t, page = e.trace, e.page
    yield from page.heading(4, "Values, weighted and added up")
    yield from _projected(e, "v", t.w_v, t.v)
    yield from e.vectors("v", t.v, e.seen)
    weights = t.pattern[t.query]
    yield from page.formula(f"z = Σ weight·v   {shape(t.z[t.query])}: (d_v)")
    yield from page.say("Each value counts as much as its key's weight.")
    yield from page.vectors(
        [(page.times(weights[i], f"v({e.labels[i]})"), weights[i] * t.v[i]) for i in e.seen]
    )
    yield from _left_out(e)
    terms = [(float(weights[i]), f"v({e.labels[i]})") for i in e.seen]
    yield from page.line(f"z({e.query}) = {page.sum(terms)}")
    yield from e.vectors("z", t.z, [t.query])


def _value_up(e: Explained) -> Iterator[Text]:
    t, page = e.trace, e.page
    yield from page.heading(5, "What the head adds to the stream")
    yield from page.formula(
        f"ΔE = z·W_O   {shape(t.z[t.query])}·{shape(t.w_o.weight)} = {shape(t.added)}",
        f"W_Oᵀ·z   {shape(t.w_o.weight.T)}·{shape(t.z[t.query])}",
    )
    yield from page.say(
        "This head's slice of W_O is the “value up” half of its value map W_V·W_O, "
        f"{t.normed.shape[1]} to {t.v.shape[1]} and back to {t.added.shape[0]} numbers; what "
        "each key gives to the sum:"
    )
    given = t.contributions
    rows = [(f"from {e.labels[i]}", given[i]) for i in e.seen]
    yield from page.vectors([*rows, ("ΔE, their sum", t.added)])
    yield from _left_out(e)
    length, stream = float(np.linalg.norm(t.added)), float(np.linalg.norm(t.x[t.query]))
    yield from page.line(
        f"Its length is {page.number(length)}, that of the x it is added to {page.number(stream)}."
    )
    near = ", ".join(f"{p.label} {p.score:.2f}" for p in t.nearest)
    yield from page.line(f"Closest tokens of the vocabulary, by cosine: {near}")


def _merged(e: Explained) -> Iterator[Text]:
    t, page = e.trace, e.page
    heads, d = t.head_outputs.shape
    n, d_v = t.z.shape
    yield from page.heading(6, "Split and merge: all heads of the layer")
    yield from page.formula(f"split   (n, d_model) → ({heads}, {n}, {t.q.shape[1]}): (h, n, d_k)")
    yield from page.formula(f"attend  every head for itself → ({heads}, {n}, {d_v})")
    b_o = " + b_O" if t.w_o.bias is not None else ""
    yield from page.formula(
        f"merge   ({heads}, {n}, {d_v}) → ({n}, {heads * d_v}), then ·W_O{b_o} "
        f"({heads * d_v}, {d}) = ({n}, {d})"
    )
    yield from page.say("Concatenated heads times W_O is the sum of each head times its slice:")
    labels = [f"L{t.layer}H{head}" for head in range(heads)]
    lengths = [float(np.linalg.norm(row)) for row in t.head_outputs]
    named = [(f"ΔE of {label}", row) for label, row in zip(labels, t.head_outputs, strict=True)]
    if t.w_o.bias is not None:
        named.append(("b_O", t.w_o.bias))
    yield from page.vectors([*named, ("layer's output", t.attention_out)])
    said = ", ".join(f"{a} {page.number(b)}" for a, b in zip(labels, lengths, strict=True))
    yield from page.line(f"lengths: {said}")
    away = merge_error(t)
    same = away <= TOLERANCE
    verdict = f"equals the layer's output to {TOLERANCE:g}" if same else "is not the layer's output"
    yield from page.say(
        f"Checked: the sum over the heads{b_o} {verdict} (largest difference {away:.1g})."
    )


def merge_error(t: HeadTrace) -> float:
    """The largest difference between the sum of the heads with b_O and the layer's output."""
    total = t.head_outputs.sum(axis=0, dtype=np.float64)
    if t.w_o.bias is not None:
        total = total + t.w_o.bias
    return float(np.abs(total - t.attention_out).max())


def _rest(e: Explained) -> Iterator[Text]:
    t, page = e.trace, e.page
    n, d = t.x.shape
    yield from page.heading(7, "The way on: residual, MLP, next layer, prediction")
    wide = f"({n}, {d}) → ({n}, {t.kinds.mlp}) → ({n}, {d})" if t.kinds.mlp else f"({n}, {d})"
    if t.kinds.pre_norm:
        yield from page.formula(f"residual  x + attention(x̂) ({n}, {d})")
        yield from page.formula(f"MLP       x + MLP({t.kinds.norm}(x)) {wide}")
        added = "+ MLP"
    else:
        yield from page.formula(f"residual  x + attention, with norms behind it ({n}, {d})")
        yield from page.formula(f"MLP       x + MLP, with norms behind it {wide}")
        added = "+ MLP and norms"
    yield from page.vectors(
        [
            (f"x({e.query})", t.x[t.query]),
            ("+ attention", t.attention_out),
            (added, t.mlp_out),
            ("= x, next", t.x_after),
        ]
    )
    yield from _prediction(e)


def _prediction(e: Explained) -> Iterator[Text]:
    t, page = e.trace, e.page
    left = t.model.n_layer - 1 - t.layer
    ahead = (
        "This is the last layer."
        if not left
        else f"{left} more layer{'s do' if left > 1 else ' does'} the same."
    )
    if not t.next_tokens:
        yield from page.say(f"{ahead} This model has no output layer.")
        return
    gives = "the next token after" if t.kinds.causal else "the token in the place of"
    yield from page.say(
        f"{ahead} Then the last token's vector, times each token's output vector, gives {gives} "
        f"“{e.labels[-1]}”, with probability:"
    )
    yield from page.weights([(p.label, p.score) for p in t.next_tokens])


_STEPS: Mapping[int, Callable[[Explained], Iterator[Text]]] = {
    1: _tokens,
    2: _queries_and_keys,
    3: _scores,
    4: _values,
    5: _value_up,
    6: _merged,
    7: _rest,
}
