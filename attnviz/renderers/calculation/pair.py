"""The parts of a calculation that an encoder-decoder alone has: two texts, and who reads which."""

from collections.abc import Iterator

from rich.text import Text

from attnviz.errors import readable
from attnviz.records.tokens import SPECIAL_LABEL
from attnviz.records.trace import HeadTrace
from attnviz.renderers.calculation.explained import Explained
from attnviz.renderers.calculation.sheet import shape

WHERE = {
    "encoder": " of the encoder",
    "decoder": " of the decoder",
    "cross": " of the cross-attention",
}
FROM = {
    "decoder": "what was written before it",
    "cross": "the text that is read",
}


def title(e: Explained) -> str:
    """`How L1H2 of the cross-attention computes what “chat” takes from the text that is read`."""
    kind = e.trace.kind
    where, source = WHERE.get(kind, ""), FROM.get(kind, "the tokens")
    return f"How {e.head}{where} computes what “{e.query}” takes from {source}"


def written(trace: HeadTrace) -> str:
    """What an encoder-decoder wrote, and what a query is named by; empty for one sequence."""
    if trace.kind not in FROM:
        return ""
    named = "a query is named by the word that its position writes; its input is the word before"
    return f"written: “{readable(trace.target)}” ({named})"


def two_texts(e: Explained) -> Iterator[Text]:
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


def numbered(e: Explained, name: str, labels: tuple[str, ...]) -> Iterator[Text]:
    """`read: 0:BOS 1:the 2:cat`."""
    listed = " ".join(f"{i}:{label}" for i, label in enumerate(labels))
    yield from e.sheet.line(f"{name}: {listed}")


def listed(e: Explained) -> Iterator[Text]:
    """The tokens of one sequence; in a decoder, what each position reads and writes."""
    if e.trace.kind != "decoder":
        yield from numbered(e, "tokens", e.labels)
        return
    yield from numbered(e, "inputs", e.key_labels)
    yield from numbered(e, "written", e.labels)
    yield from e.sheet.say(f"{_input(e)}.")


def _input(e: Explained) -> str:
    """Which token stands at the position that writes the query."""
    query = e.trace.query
    before = e.labels[query - 1] if query else SPECIAL_LABEL
    return f"The position that writes “{e.query}” has “{before}” as its input"


def ending(e: Explained) -> str:
    """What the vector behind the last layer is for."""
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
