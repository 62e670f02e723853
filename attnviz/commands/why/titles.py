"""Findings in a sentence: for the terminal, and for the title of a picture."""

from collections.abc import Sequence

import numpy as np

from attnviz.draw.effects import part_name
from attnviz.draw.labels import fenced
from attnviz.draw.titles import amount, beginning, with_error
from attnviz.errors import readable
from attnviz.records.parts import Part
from attnviz.records.why import Lead, Why, WhyMean, Write


def asked_why(why: Why, names: Sequence[str]) -> str:
    """`L3H2: why “creature” attends to “blue” (0.50) rather than to “fluffy” (0.31)`."""
    average = " more than to the keys of its row on average"
    rather = average if why.versus is None and why.full >= 0 else _rather(why, names)
    return f"{why.head}: why {_attends(why, names)}{rather}"


def _attends(why: Why, names: Sequence[str]) -> str:
    """`“creature” attends to “blue” (0.50)`."""
    return f"{in_marks(names[why.query])} attends to {_weighed(why, why.key, names)}"


def _weighed(why: Why, key: int, names: Sequence[str]) -> str:
    return f"{in_marks(names[key])} ({why.row.weights[key]:.2f})"


def _rather(why: Why, names: Sequence[str]) -> str:
    """The other side of the contrast; nothing for a key that is above the mean of its row."""
    if why.versus is not None:
        more = "less than" if why.full < 0 else "rather than"
        return f" {more} to {_weighed(why, why.versus, names)}"
    return " less than to the keys of its row on average" if why.full < 0 else ""


def found_in_mean(mean: WhyMean) -> str:
    """`L3H2: the query attends to “blue” (0.50 ± 0.02) · builtin, mean of 20 texts`."""
    query = in_marks(mean.query) if mean.query else "the query"
    key = in_marks(mean.key) if mean.key else "its key"
    attends = f"{query} attends to {key} ({with_error(mean.weight, '.2f')})"
    of = f"{readable(mean.capture.model.name)}, mean of {amount(mean.texts, 'text')}"
    return f"{mean.head}: {attends} · {of}"


def chosen_in_mean(mean: WhyMean) -> str:
    """`query: the last word of each text; key: the strongest of each`: which these are."""
    default = (
        "the last word" if mean.last_words else "the first one that show names, or the last word,"
    )
    query, key = (
        f"{fenced(names[0])} of each text" if len(names) == 1 else "of its own for each text"
        for names in (mean.query_names, mean.key_names)
    )
    query = query if mean.query_names else f"{default} of each text"
    return f"query: {query}; key: {key if mean.key_names else 'the strongest of each'}"


def summed_in_mean(mean: WhyMean) -> str:
    """The mean contrast that the parts of each side add up to."""
    other = in_marks(mean.versus) if mean.versus else "the other key"
    than = "the weighted mean of its row" if mean.expected else f"that of {other}"
    beside = f", beside {with_error(mean.added)} that no part has" if mean.added.mean else ""
    contrast = with_error(mean.contrast)
    return f"the key's score less {than}: {contrast}, which each side adds up to{beside}"


MOSTLY, FIRST = 0.5, 0.2
"""The share of all parts of a sign from which one is most of it, or is named first."""
MOST_OF_ROW = 0.9
"""The weight of a key from which the mean of its row is nearly its own score."""


def found_why(why: Why, names: Sequence[str]) -> str:
    """Two sentences of the finding: the scores, and the part that adds most on each side."""
    query, key = in_marks(names[why.query]), in_marks(names[why.key])
    others = "the other keys" if why.versus is None else in_marks(names[why.versus])
    at_keys = _made(why.key_lead.part, names, f"{key} and {others}", "the keys")
    at_query = _made(why.query_lead.part, names, query, query)
    above = "above" if why.full >= 0 else "below"
    mean = "the weighted mean of its row" if why.versus is None else f"that of {others}"
    told = (
        f"{why.head}: {_attends(why, names)}{_rather(why, names)}, as the score of {key} is "
        f"{abs(why.full):.2f} {above} {mean}. This comes at the keys "
        f"{_led(why.key_lead, why, at_keys)}, and at the query "
        f"{_led(why.query_lead, why, at_query)}"
    )
    return f"{told} · {readable(why.model.name)}, {amount(len(why.tokens), 'token')}"


def _led(lead: Lead, why: Why, made: str) -> str:
    """`mostly from what L3H1 took from “Peter” (+0.27, the rest +0.12)`."""
    first = "first of all from" if lead.share >= FIRST else "from many parts, the largest of them"
    degree = "mostly from" if lead.share >= MOSTLY else first
    return f"{degree} {made} ({lead.value:+.2f}, the rest {why.contrast - lead.value:+z.2f})"


def _made(part: Part, names: Sequence[str], of: str, to: str) -> str:
    """The description of a part: an MLP's output at `of` tokens, or a head's at `to` tokens."""
    match part.kind:
        case "mlp":
            return f"what the MLP of layer {part.layer} made of {of}"
        case "head" if part.source is None:
            return f"what L{part.layer}H{part.head} brought to {to}"
        case "head":
            token = in_marks(names[part.source or 0])
            return f"what L{part.layer}H{part.head} took from {token}"
        case "feature" | "unexplained":
            return part_name(part._replace(source=None), ())
        case "biases":
            return "the biases, whatever the token"
    return f"the {part.kind} of {of}"


def in_marks(name: str) -> str:
    """A token's name within a sentence; one that has quotes needs no others."""
    return name if name[:1] in "\"'" else f"“{name}”"


def difference(why: Why, names: Sequence[str]) -> str:
    """The contrast as the difference of two numbers, which the parts add up to."""
    row, key = why.row, why.key
    terms = {
        "position bias": row.added.any(),
        "soft cap": (np.abs(row.scores - row.added - row.raw) > 1e-6).any(),
        "sink": row.sink is not None,
    }
    added = ", ".join(name for name, there in terms.items() if there)
    beside = f" {why.added:+.3f} ({added})" if abs(why.added) >= 5e-4 else ""
    if why.versus is None:
        expected = float(row.scores[key]) - why.full
        most = ", most of it this key's own: --versus contrasts it with another"
        return (
            f"score {row.scores[key]:.3f} - {expected:.3f} = {why.contrast:+.3f}{beside}, where "
            f"{expected:.3f} is the mean of the row's scores, each counted by its weight"
            f"{most if row.weights[key] >= MOST_OF_ROW else ''}; the parts on each side add up to "
            f"{why.contrast:+.3f}"
        )
    return (
        f"scores {row.scores[key]:.3f} - {row.scores[why.versus]:.3f} = {why.contrast:+.3f}"
        f"{beside}; the parts on each side add up to {why.contrast:+.3f}"
    )


def identity(why: Why) -> str:
    """A sentence on the difference by the weights, which checks it."""
    row = why.row
    if why.versus is None:
        log = float(np.log(row.weights[why.key]))
        return (
            f"the weights say the same as the scores: ln A + H = {log:.3f} + {row.entropy:.3f} = "
            f"{log + row.entropy:+.3f}, with the key's weight A and the row's entropy H, as a "
            "score less the mean of its row is the logarithm of its weight plus the entropy"
        )
    ratio = float(np.log(row.weights[why.key] / row.weights[why.versus]))
    return f"the weights say the same as the scores: the logarithm of their ratio is {ratio:+.3f}"


def about_write(write: Write, names: Sequence[str]) -> str:
    """`L3H1 writes at “was”, and most of it comes from “Ann” (weight 0.62). …`."""
    size, source = amount(len(write.tokens), "token"), int(write.lengths.argmax())
    told = (
        f"{write.head} writes at {in_marks(names[write.query])}, and most of it comes from "
        f"{in_marks(names[source])} (weight {write.weights[source]:.2f})."
    )
    if write.moved:
        label, most = max(write.moved, key=lambda moved: abs(moved[1].effect))
        does = "raises" if most.effect > 0 else "lowers"
        moved = f"{does} {in_marks(readable(label))} most ({most.effect:+.2f})"
        told += f" Of the next tokens, it {moved}"
    return f"{told} · {readable(write.model.name)}, {size}: “{beginning(write.text)}”"
