"""Effects of parts of a model: their measures, fields, columns and sentences."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal

import numpy as np

from attnviz.draw.labels import fenced, name_of
from attnviz.draw.matrix import head_name
from attnviz.draw.terminal.cells import Column, TableColumns, TextLines, footnotes, table, words
from attnviz.draw.titles import amount, beginning, with_error
from attnviz.errors import readable
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import listed
from attnviz.records.interventions import BothRuns, Effect, Site
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Explained, Part, Shares
from attnviz.records.predict import Candidate, Measure, OfQuestion, Outcome
from attnviz.records.rows import Field, Fields, at, measured
from attnviz.records.significance import FEWEST, LEVEL

# Fields that rows of interventions share: of a record with the candidates `answer` and `versus`,
# and of an outcome, or None: the change of the prediction of each.


def unit_of(measure: Measure) -> Literal["nats", "logits"]:
    """The unit of the measure."""
    return "logits" if measure == "difference" else "nats"


def unit(of: Callable[[Any], Measure]) -> Field[Any]:
    """The field of the measure's unit."""
    about = "nats for a mean log-probability; logits for the difference of two logits."
    return Field("unit", Literal["nats", "logits"], about, lambda row: unit_of(of(row)))


def _own_change(name: str) -> Field[Outcome | None]:
    """The change of a number; null without one."""
    about = "In nats." if name.endswith("log_probability") else ""
    return Field(
        f"{name}_change", float | None, about, lambda own: measured(getattr(own, name, None))
    )


PART = Fields[Any](
    "PartName",
    "A part of a model; `head` is null except for a head; residual: the stream before the layer.",
    (
        Field("kind", Literal["head", "mlp", "layer", "residual"]),
        Field("layer", int, "", at("layer", 0)),
        Field("head", int | None),
    ),
)


@dataclass(frozen=True)
class EffectRow:
    """An effect in its report, and a candidate for the next token; `line`: None for a mean."""

    line: int | None
    report: Any
    effect: Any
    when: str | None = None
    rank: int | None = None
    candidate: Candidate | None = None


def rows_together(both: BothRuns[Any], top: int | None, line: int | None) -> Iterator[EffectRow]:
    """Each candidate before and after; for the mean over lines, which has none, only the effect."""
    report, (effect,) = both.report, both.report.effects
    if line is None:
        yield EffectRow(line, report, effect)
        return
    for when, next_tokens in (("before", both.before), ("after", both.after)):
        for rank, candidate in enumerate(next_tokens.candidates, start=1):
            yield EffectRow(line, report, effect, when, rank, candidate)


NEXT_TOKEN: tuple[Field[Any], ...] = (
    Field("when", Literal["before", "after"] | None, "Whether before or after the change."),
    Field("rank", int | None, "The rank, counted from 1, the likeliest."),
    Field("id", int | None, "", at("candidate.id")),
    Field("token", str | None, "", at("candidate.label")),
    Field("probability", float | None, "", at("candidate.probability")),
    Field("exact", str | None, "", at("candidate.exact")),
)
BEGUN = "The word that was asked for, if this is the first of its several tokens."
TEXT = "The token's own text with its leading space."
MEASURED_TOKENS: tuple[Field[Any], ...] = (
    Field(
        "answer",
        str | None,
        "The token that is measured; null for all tokens, or each text's own answer.",
        at("answer.label"),
    ),
    Field(
        "versus",
        str | None,
        "The token whose logit is subtracted; null for none, or each text's own.",
        at("versus.label"),
    ),
)
OWN_CHANGES = tuple(map(_own_change, Outcome._fields))
EXACT_TOKENS: tuple[Field[Any], ...] = (
    Field("answer_exact", str | None, TEXT, at("answer.exact")),
    Field("versus_exact", str | None, TEXT, at("versus.exact")),
    Field("answer_begins", str | None, BEGUN, at("answer.begins", None)),
    Field("versus_begins", str | None, BEGUN, at("versus.begins", None)),
)


def ran(first: Capture, texts: int | None, noun: str, name: Callable[[Capture], str]) -> str:
    """A run in words, with its half precision: `builtin, mean of 3 texts`, or by its `name`."""
    several = f"{readable(first.model.name)}, mean of {amount(texts or 0, noun)}"
    half = f", in {first.model.dtype}" if first.model.dtype.endswith("float16") else ""
    return (name(first) if texts is None else several) + half


def named(token: Candidate) -> str:
    """A token in a sentence, which says if it is the first of a word's or lacks the space."""
    name = fenced(name_of(token.label))
    if token.begins and token.begins == token.exact:
        return f"{name} without the space before it"
    return f"{name}, the first token of {fenced(beginning(token.begins))}" if token.begins else name


def difference(answer: Candidate | None, versus: Candidate | None) -> str:
    """`logit(blue) - logit(red)` in words; without names if texts have their own answers."""
    if answer is None or versus is None:
        return "logit(answer) - logit(versus)"
    return f"logit({named(answer)}) - logit({named(versus)})"


def what_is_measured(
    measure: Measure, answer: Candidate | None, versus: Candidate | None = None
) -> str:
    """The measure in words: `logit(blue) - logit(red)`, or `log-probability of blue`."""
    if measure == "difference":
        return difference(answer, versus)
    name = named(answer) if answer else "each text's answer"
    return f"log-probability of {name}"


CHANCE = "values below two of them may be chance"
APART = 0.5
"""If two ends are nearer than this (in logits), any change is a large share."""


def little_apart(one: float, other: float) -> str:
    """A warning if the two ends of shares hardly differ, else ""."""
    apart = abs(one - other)
    return "" if apart >= APART else f"only {apart:.3f} apart, so that shares are unreliable"


# The changes of both tokens of a question, as columns of a table.

LEGEND = "log p: change in each token's own log-probability (nats)"


def own_columns(report: OfQuestion) -> TableColumns:
    """Columns of the changes of both log-probabilities; unnamed if texts have their own answers."""
    names, asked = ["answer", "versus"], (report.answer, report.versus)
    if all(asked):
        names = [fenced(name_of(each.label)) for each in asked if each]

    def cells(effect: Effect[Any]) -> Sequence[str]:
        if (own := effect.own) is None:
            return "", ""
        return f"{own.answer_log_probability:+z.3f}", f"{own.versus_log_probability:+z.3f}"

    return [Column(f"log p {name}", right=True) for name in names], cells


def number_cells(number: Estimate, form: str = "+z.3f") -> Sequence[str]:
    """A number, and its standard error if it has one."""
    return with_error(number, form).split(" ± ")


def numbers(
    name: str, of: Callable[[Any], Estimate], *, errors: bool, form: str = "+z.3f"
) -> TableColumns:
    """A column of numbers, and one of their standard errors, where they have one."""
    columns = [Column(name, right=True), *([ERROR] if errors else [])]
    return columns, lambda item: [*number_cells(of(item), form), ""][: len(columns)]


P_HOLM = (
    "The p-value of a mean change over texts against 0, by Student's t, corrected for all parts "
    f"that were tested (Holm); null below {FEWEST} texts."
)


def tested(p_values: Sequence[float | None], part: str, texts: int) -> str:
    """The number of parts tested, and of those whose means differ from 0; "" for a single text."""
    if len(p_values) < 2 or texts < 2:
        return ""
    if texts < FEWEST:
        return (
            f"{len(p_values):,} {part}s are not tested on {texts} texts; below {FEWEST}, a "
            "standard error is itself too uncertain"
        )
    found = sum(p is not None and p < LEVEL for p in p_values)
    return (
        f"{len(p_values):,} {part}s were tested, and after Holm's correction for all of them the "
        f"mean change of {found or 'none'} differs from 0 (p < {LEVEL:g}, Student's t)"
    )


# Parts of a model: their names, their values by layer, and the strongest as bars.


def part_name(part: Part | None, names: Sequence[str]) -> str:
    """A part in words: `L1H2 from fluffy` (a token of these names), `L0 MLP at blue`, `biases`."""
    if part is None:
        return "all others"
    token = "" if part.source is None else names[part.source]
    match part.kind:
        case "head":
            return f"L{part.layer}H{part.head}" + (f" from {token}" if token else "")
        case "mlp":
            return f"L{part.layer} MLP" + (f" at {token}" if token else "")
        case "layer":
            return f"layer {part.layer}"
        case "residual":
            return f"L{part.layer} stream"
        case "embedding" | "position":
            return f"{part.kind} of {token}" if token else f"{part.kind}s"
        case "feature":
            return f"feature {part.feature}" + (f" at {token}" if token else "")
        case "unexplained":
            return "what no feature explains" + (f" at {token}" if token else "")
        case "token":
            return f"from {token}"
    return part.kind


def listed_parts(
    parts: Iterable[Part | Site], heads_per_layer: Sequence[int], *, brief: bool = False
) -> str:
    """Parts in words: `L1H2, L2 MLP`, `every head`, or `every MLP` if there are several.

    `brief`: `L0H0 to L2 MLP (16 parts)` if there are many.
    """
    every = list(parts)
    heads = [f"L{part.layer}H{part.head}" for part in every if part.head is not None]
    mlps = [f"L{part.layer} MLP" for part in every if part.head is None]
    if len(heads) == sum(heads_per_layer) > 1:
        heads = ["every head"]
    if len(mlps) == len(heads_per_layer) > 1:
        mlps = ["every MLP"]
    names = [*heads, *mlps]
    return listed(names, "part" if mlps else "head") if brief else ", ".join(names)


OTHER_PARTS = {"mlp": "MLP", "layer": "layer", "residual": "stream"}
"""The kinds of which a layer has a single part, and their names."""


def by_part(values: Iterable[tuple[Part, float]]) -> tuple[FloatArray, tuple[str, ...]]:
    """Values (layers, columns), NaN without one, and the columns' names: heads, MLP and layer."""
    pairs = list(values)
    heads = max((part.head + 1 for part, _ in pairs if part.head is not None), default=0)
    others = [kind for kind in OTHER_PARTS if any(part.kind == kind for part, _ in pairs)]
    column = {kind: heads + i for i, kind in enumerate(others)}
    layers = max(part.layer or 0 for part, _ in pairs) + 1
    matrix = np.full((layers, heads + len(others)), np.nan, np.float32)
    for part, value in pairs:
        across = column[part.kind] if part.head is None else part.head
        matrix[part.layer or 0, across] = value
    return matrix, (*map(head_name, range(heads)), *(OTHER_PARTS[kind] for kind in others))


def strongest_parts(shares: Shares, top: int, names: Sequence[str]) -> list[tuple[str, float]]:
    """The names and values of the strongest parts of the one sum, and of all others together.

    What no feature explains has a row of its own, however small.
    """
    values, kept = shares.values[0], shares.strongest(top)
    kept += [i for i, part in enumerate(shares.parts) if _is_left(part) and i not in kept]
    rows = [(part_name(shares.parts[i], names), float(values[i])) for i in kept]
    if len(shares.parts) > len(kept):
        rest = float(shares.total[0]) - sum(value for _, value in rows)
        rows.append((part_name(None, names), rest))
    return rows


def _is_left(part: Part) -> bool:
    return part.kind == "unexplained" and part.source is None


def said_of_features(explained: Explained) -> str:
    """The dictionary that named the features, and how far they explain what it is of."""
    how = f": they explain {explained.share:.0%} of its variance over the tokens of this text"
    if isnan(explained.share):  # of one token
        how = ""
    elif explained.share < 0:
        how = ": on this text, what they add up to is farther from it than its mean"
    named = readable(explained.dictionary)
    return f"features are of the dictionary {named}, of {explained.what}{how}"


ERROR = Column("± s.e.", right=True)


def mean_parts(shares: Shares, roles: Sequence[str], top: int, width: int) -> TextLines:
    """The strongest parts of a mean over texts, and all others together, with standard errors.

    If some texts lack a part, a column has the number with it.
    """
    texts = dict(zip(shares.parts, shares.sums, strict=True))
    chosen = shares.means[:top]
    named = [(part_name(part, roles), mean, f"{texts[part]:,}") for part, mean in chosen]
    if len(shares.parts) > top:
        kept = {part for part, _ in chosen}
        rest = [i for i, part in enumerate(shares.parts) if part not in kept]
        others = Estimate.of(shares.values[:, rest].sum(axis=1).tolist())
        named.append(("all others", others, ""))
    columns: list[TableColumns] = [
        words("part", lambda row: row[0]),
        words("mean", lambda row: f"{row[1].mean:+z.3f}", right=True),
        ([ERROR], lambda row: ["" if row[1].error is None else f"{row[1].error:.3f}"]),
    ]
    lacking = bool(roles) and any(texts[part] < len(shares.values) for part, _ in chosen)
    if lacking:
        columns.append(words("texts", lambda row: row[2], right=True))
    yield from table(named, columns, width)
    note = "texts: the number that have the part, which counts as 0 in the others"
    yield from footnotes([note] if lacking else [], width)
