"""Sentences that several media show: what records, choices and transforms are called."""

from collections.abc import Sequence

from attnviz.errors import readable
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Exhibit, Map
from attnviz.records.transforms import (
    Difference,
    KeysDropped,
    Merged,
    NormBased,
    Reduced,
    RolledOut,
    Scores,
    SpecialDropped,
    Transform,
)


def transform_title(transform: Transform) -> str:
    """What a transform did to the patterns."""
    match transform:
        case Scores():
            return "scores before mask and softmax: scaled dot products of queries and keys"
        case Difference():
            return "the first pattern minus the second"
        case NormBased():
            each = "each weight times the norm of the vector that its key contributes"
            return f"norm-based: {each}; rows do not sum to 1"
        case Merged("chars"):
            return "parts of characters merged"
        case Merged():
            return "pieces of words merged"
        case RolledOut():
            return (
                "attention rollout: the product of all layers, each half mean attention and half "
                "the token itself; in a causal model it drifts to the first token"
            )
        case KeysDropped(keys, share, empty):
            dropped = f"{share:.0%} of the weight was on {' and '.join(keys)}, which is left out"
            return f"{dropped}, {_silent(empty)}" if empty else dropped
        case SpecialDropped(share):
            return f"{share:.0%} of the weight was on special tokens or blanks, which are left out"
        case Reduced(how, over):
            return f"{how} over {'all of these' if over == 'all' else over}"


def _silent(queries: Sequence[str]) -> str:
    """The queries that attended to nothing but the keys left out."""
    if len(queries) > 4:
        return f"{len(queries)} queries attended to nothing else"
    return f"{' and '.join(queries)} attended to nothing else"


def left_out(exhibit: Exhibit) -> str:
    """What an empty cell of this exhibit stands for, in a few words; empty if it has none."""
    reasons = ["masked"] if exhibit.capture.causal else []
    if exhibit.top is not None:
        reasons.append(f"not among the {exhibit.top} strongest")
    if exhibit.least > 0:
        reasons.append(f"under {exhibit.least:g}")
    reasons += [NEAR[distance] for distance in exhibit.skip]
    return " or ".join(reasons)


NEAR = {0: "to itself", 1: "to the token before it"}
"""Links of a distance (query minus key) that may be left out."""


def facts(capture: Capture) -> str:
    """`builtin, 9 tokens with BOS`: what was run, on how much."""
    model = readable(capture.model.name)
    if capture.kind == "cross":
        size = f"{amount(len(capture.query_tokens), 'query token')} to "
        size += amount(len(capture.key_tokens), "key token")
    elif capture.kind == "answer":
        size = size_of_answer(capture)
    else:
        size = amount(len(capture.query_tokens), "token")
    around = dict.fromkeys(token.label for token in capture.key_tokens if token.special)
    special = f" {'with ' + ' and '.join(around) if around else 'without BOS'}"
    parts = [model, size if capture.kind == "answer" else size + special]
    before, after = capture.left_out
    if before or after:
        parts.append(f"the {'first' if before else 'last'} {before or after:,} left out")
    if capture.sinks:
        rest = "may sum to less than 1: any rest goes to a sink that is not a token"
        array = capture.model.engine == "array"
        parts.append(f"rows {'sum to less than 1' if array else rest}")
    parts += [readable(transform_title(transform)) for transform in capture.transforms]
    return ", ".join(parts)


def caption(capture: Capture) -> str:
    """`builtin, 9 tokens with BOS: “a fluffy …”`: what was run, on how much, and the text."""
    text = beginning(capture.text)
    return f"{facts(capture)}: “{text}”" if text else facts(capture)


def size_of_answer(capture: Capture) -> str:
    """`74 prompt tokens, 2 new`."""
    return f"{amount(prompt_size(capture), 'prompt token')}, {len(capture.query_tokens):,} new"


def prompt_size(capture: Capture) -> int:
    """How many of an answer's key tokens are those of the prompt; they come first."""
    answered = 0 if capture.kind == "cross" else len(capture.query_tokens) - 1
    return len(capture.key_tokens) - answered


def beginning(text: str) -> str:
    """The beginning of a text, on one line; it ends with a word, but for one of many letters."""
    line = readable(" ".join(text.split()))
    if len(line) <= BEGINNING:
        return line
    whole = line[:BEGINNING].rfind(" ")
    return line[: whole if whole > BEGINNING // 2 else BEGINNING - 1] + "…"


BEGINNING = 80  # letters


def written(capture: Capture, *, row: str = "row") -> str:
    """What an encoder-decoder wrote, and what its rows stand for (columns, where it is turned)."""
    if capture.model.engine == "array":  # nothing is known of how its rows were made
        return f"queries: “{readable(capture.target)}”"
    rows = f"each {row} is the word that a position predicts; its input is the previous word"
    return f"written: “{readable(capture.target)}” ({rows})"


def pane_titles(exhibit: Exhibit, head_map: Map, before: str = " ") -> tuple[str, ...]:
    """Titles for a small place, the fullest first: `L1H2 adjectives, induction` ... `L1H2`.

    `before` stands before the names.
    """
    names = [
        *dict.fromkeys(
            readable(named.behaviour)
            for named in exhibit.capture.named(head_map.layer, head_map.head)
        )
    ]
    known = (f"{head_map.label}{before}{', '.join(names[:n])}" for n in range(len(names), 0, -1))
    return *known, head_map.label


def amount(number: int, what: str) -> str:
    """`1 layer`, `2 layers`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """`40 seconds`, `12 minutes`, `7 hours`, `3 days`."""
    for unit, size, most in (("second", 1, 120), ("minute", 60, 120), ("hour", 3600, 48)):
        if seconds < most * size:
            return amount(max(1, round(seconds / size)), unit)
    return amount(round(seconds / 86400), "day")
