"""Ablations, shown: sentences, views of parts and of tokens, and a page."""

from collections.abc import Sequence
from html import escape
from math import exp, nan
from typing import Any

import numpy as np

from attnviz.commands.ablate.record import (
    EVERY,
    SEGMENT,
    AblationReport,
    BeforeAfter,
    TokenEffects,
    heads_of,
    is_segment,
)
from attnviz.draw.effects import (
    LEGEND,
    OTHER_PARTS,
    by_part,
    difference,
    named,
    numbers,
    own_columns,
    part_name,
    tested,
    unit_of,
)
from attnviz.draw.labels import distinct_labels, fenced, name_of
from attnviz.draw.matrix import digits_of, largest
from attnviz.draw.page.maps import map_page, map_rows
from attnviz.draw.terminal.cells import Column, TableColumns, words
from attnviz.draw.titles import amount, probability, with_error
from attnviz.draw.view import Pane, ResultView, Table
from attnviz.errors import readable, series
from attnviz.records.heads import listed
from attnviz.records.interventions import Effect
from attnviz.records.parts import Part
from attnviz.records.rows import at


def _part(report: AblationReport) -> str:
    """`head`, `MLP`, `layer`; `part` where there are several kinds."""
    kinds = {part.kind for effect in report.effects for part in effect.parts}
    return {"head": "head", **OTHER_PARTS}[kinds.pop()] if len(kinds) == 1 else "part"


def replaced(report: AblationReport) -> str:
    """The replacement of a part, or the fate of a link."""
    cut = report.cut
    if cut is not None:
        where = series([_cut(names, segments=bool(cut.segments)) for names in cut.names])
        links = "link" if cut.number < 2 else f"{cut.number} links"
        rescaled = ", the softmax taken again over the rest of its row" if cut.renormalise else ""
        if rescaled and any(query == EVERY or is_segment(query) for query, _ in cut.names):
            rescaled += " (a row that would have no other keeps its links)"
        return f"a head's {links} {where} removed{rescaled}"
    part = _part(report)
    article = "an" if part == "MLP" else "a"
    output = "what a layer adds" if part == "layer" else f"{article} {part}'s output"
    if any(len(effect.parts) > 1 for effect in report.effects):
        output = "what the layers add" if part == "layer" else f"the {part}s' outputs"
    if report.direction is not None:
        output = "the stream at a layer's input" if part == "stream" else output
        return f"the direction of {readable(report.direction)} projected out of {output}"
    return f"{output} replaced by {_replacement(report)}"


def _cut(names: tuple[str, str], *, segments: bool) -> str:
    """`from creature to blue`, `from every token to 0`, `within each segment`."""

    def named_as(name: str) -> str:
        if segments and is_segment(name):
            return f"segment {fenced(name[1:])}" if name != SEGMENT else "each segment"
        return "every token" if name == EVERY else fenced(name)

    query, key = map(named_as, names)
    within = segments and query == key and is_segment(names[0])
    return f"within {query}" if within else f"from {query} to {key}"


def _replacement(report: AblationReport) -> str:
    """`0`, `its mean over 200 texts of colors.jsonl`, `… mean of 10 drawn from …`, and so on."""
    others = report.others
    if others is None:
        return "0" if report.replacement == "zero" else "its mean over the positions"
    of_file = f" of {fenced(others.name)}" if others.name else ""
    texts = amount(others.texts, "text") + of_file
    if not others.draws:
        where = " at the same position" if others.by_position else ""
        return f"its mean{where} over {texts}"
    draws, long = (
        " to ".join(f"{number:,}" for number in sorted({min(each), max(each)}))
        for each in (others.draws, others.long_enough)
    )
    whole = {*others.long_enough} == {others.texts}
    texts = texts if whole else f"{long} of {texts} that are long enough"
    drawn = f"{draws} drawn from {'' if whole else 'the '}{texts} (seed {others.seed})"
    drawn = f"all {texts}" if others.draws == others.long_enough else drawn
    return f"what it is at the same position of another text: mean of {drawn}"


def _measured(report: AblationReport) -> str:
    """The measurement, and its value without ablation."""
    answer, mean = report.answer, report.lines is not None
    if report.measure == "difference":
        sentence = f"{difference(answer, report.versus)} = {report.baseline:+z.3f}"
        return f"mean of {sentence}" if mean else sentence
    if answer is not None and report.first is not None and not mean:
        sentence = f"P({named(answer)}) = {probability(answer.probability)}, rank {report.rank:,}"
        if report.rank != 1:
            sentence += f"; top: {named(report.first)}, {probability(report.first.probability)}"
        return sentence
    if answer is not None:
        tokens = named(answer)
    elif report.own_answers:
        tokens = "each text's answer"
    else:
        tokens = "the tokens" if mean else f"the {amount(report.tokens, 'token')}"
        tokens += " that followed"
    return f"mean log-probability of {tokens}: {report.baseline:.3f} nats"


def _change_of(report: AblationReport) -> str:
    """The unit of a change, and the meaning of its sign."""
    measured = "this difference" if report.measure == "difference" else "log-probability"
    part = "link" if report.cut else "direction" if report.direction else _part(report)
    several = not report.direction and any(len(effect.parts) > 1 for effect in report.effects)
    helps = f"{part}s help" if several else f"{part} helps"
    return f"change in {measured} ({unit_of(report.measure)}); negative = the {helps}"


def _view(report: AblationReport, **more: Any) -> ResultView:
    """A view of what replaces a part and what is measured, with the finding."""
    about = _measured(report), _change_of(report)
    return ResultView(replaced(report), report.capture, report.lines, "text", about, **more)


def view(report: AblationReport, top: int | None = None, *, unicode: bool = True) -> ResultView:
    """A map of all parts, and a table of the `top` strongest effects."""
    values, names = by_part((each.parts[0], each.change.mean) for each in report.effects)
    errors = [nan if each.change.error is None else each.change.error for each in report.effects]
    own = zip((each.parts[0] for each in report.effects), errors, strict=True)
    pane = Pane(
        f"change ({unit_of(report.measure)})",
        values,
        digits=digits_of(values),
        columns=None if set(names).isdisjoint(OTHER_PARTS.values()) else names,
        errors=None if report.lines is None else by_part(own)[0],
    )
    effects = report.strongest[:top]
    with_errors = any(effect.change.error is not None for effect in effects)
    with_own = report.measure == "difference"
    part = "part" if any(not heads_of(effect) for effect in effects) else "head"
    columns = [
        words(part, lambda effect: part_name(effect.parts[0], ())),
        numbers("change", at("change"), errors=with_errors),
        *([own_columns(report)] if with_own else []),
    ]
    if any(map(report.known_for, effects)):
        columns.append(words("known for", lambda e: readable(", ".join(report.known_for(e)))))
    notes = [LEGEND] if with_own else []
    if with_errors:
        over = "texts" if report.lines else "tokens" if report.tokens > 1 else "draws"
        chance = tested([each.p_holm for each in report.effects], _part(report), report.lines or 1)
        chance = chance or "a change below two of them may be chance"
        notes.append(f"± s.e.: standard error over these {over}; {chance}")
    table = Table(effects, columns)
    return _view(report, maps=[pane], most=largest(values), table=table, notes=notes)


def view_together(both: BeforeAfter, *, unicode: bool = True) -> ResultView:
    """The next tokens with the parts and without them, side by side."""
    shown = both if both.report.lines is None else None
    return _view(both.report, found=_effect_together(both.report), next_tokens=shown)


def _effect_together(report: AblationReport) -> str:
    """The effect in a sentence."""
    (effect,) = report.effects
    names = listed((part_name(part, ()) for part in effect.parts), _part(report))
    if report.cut is not None and len(effect.parts) == sum(report.capture.model.heads_per_layer):
        names = "every head"
    links = "the link" if report.cut and report.cut.number == 1 else "these links"
    without = f"without {links} of {names}" if report.cut else f"without {names}"
    if report.direction is not None:
        every = {part.kind for part in effect.parts} == {"residual"}
        every = every and len(effect.parts) == report.capture.model.n_layer > 1
        without = f"without the direction in {'the stream of every layer' if every else names}"
    change, after = effect.change, report.baseline + effect.change.mean
    if report.measure == "difference":
        return (
            f"{without}: {difference(report.answer, report.versus)} {report.baseline:+z.3f} → "
            f"{after:+z.3f} ({with_error(change)})"
        )
    if report.answer and report.lines is None and report.replacement != "resample":
        shift = " → ".join(probability(exp(log)) for log in (report.baseline, after))
        return f"{without}: P({named(report.answer)}) {shift} ({change.mean:+z.3f} nats)"
    return f"{without}: {with_error(change)} nats on average, from {report.baseline:.3f}"


# The change at each token without each part.

NAMED = 3
"""Tokens that are named for each part, and parts that are named of a set."""


def token_labels(effects: TokenEffects, *, unicode: bool = True) -> list[str]:
    """The names of the measured tokens; `-1 was` where they are counted from the end."""
    labels = distinct_labels(effects.tokens, unicode=unicode)[1:]
    if effects.first == 1:
        return list(labels)
    return [f"{position} {label}" for position, label in enumerate(labels, effects.first)]


def name_of_set(report: AblationReport, effect: Effect[Part] | None = None) -> str:
    """`L1H2`; of a set `L1H2, L3H0`, or `12 heads`; of links `the links of 12 heads`.

    `effect`: the only one by default. `the direction` where it is all that is projected out.
    """
    parts = (effect or report.effects[0]).parts
    if report.direction is not None and (effect is None or len(parts) > 1):
        return "the direction"
    names = ", ".join(part_name(part, ()) for part in parts)
    names = names if len(parts) <= NAMED else amount(len(parts), _part(report))
    return f"the links of {names}" if report.cut else names


def view_tokens(
    effects: TokenEffects, top: int | None = None, *, unicode: bool = True
) -> ResultView:
    """All parts down and tokens across, and a table of the tokens that each part changes most."""
    report, chosen = effects.report, effects.strongest[:top]
    labels = token_labels(effects, unicode=unicode)
    parts = [name_of_set(report, effect) for effect in report.effects]
    several = any(len(effect.parts) > 1 for effect in report.effects)

    def told(i: int, k: int) -> str:
        error = "" if effects.errors is None else f" ± {effects.errors[i, k]:.4f}"
        return f"{parts[i]} at {fenced(labels[k])}: {effects.changes[i, k]:+.4f}{error} nats"

    pane = Pane(
        f"change at each token ({unit_of('tokens')})",
        effects.changes,
        digits=digits_of(effects.changes),
        columns=labels,
        rows=parts,
        turned=True,
        order=chosen,
        quoted=True,
        told=told,
    )
    return _view(
        report,
        maps=[pane],
        most=largest(effects.changes),
        table=Table(chosen, _columns(effects, chosen, labels, parts)),
        notes=_about_tokens(effects, labels),
        found=_effect_together(report) if several else "",
    )


def _columns(
    effects: TokenEffects, chosen: Sequence[int], labels: Sequence[str], parts: Sequence[str]
) -> Sequence[TableColumns]:
    """Of each part its mean change, and the tokens that change most."""
    report = effects.report

    def most_changed(i: int) -> Sequence[str]:
        changes = effects.changes[i]
        most = np.argsort(-np.abs(changes), kind="stable")[:NAMED].tolist()
        return [", ".join(f"{fenced(name_of(labels[t]))} {changes[t]:+z.3f}" for t in most)]

    behaviours = {i: readable(", ".join(report.known_for(report.effects[i]))) for i in chosen}
    columns: list[TableColumns] = [
        words("part", parts.__getitem__),
        words("mean", lambda i: f"{report.effects[i].change.mean:+z.3f}", right=True),
        ([Column("tokens that change most", wraps=True)], most_changed),
    ]
    if any(behaviours.values()):
        columns.append(words("known for", behaviours.__getitem__))
    return columns


def _about_tokens(effects: TokenEffects, labels: Sequence[str]) -> Sequence[str]:
    notes = list[str]()
    if len(effects.report.effects) > 1:
        notes.append("the part with the largest change of a single token comes first")
    if effects.first < 0:
        notes.append(
            "the texts have several lengths: tokens are counted from the end, as far as all texts "
            "have them; a part's mean is over all tokens"
        )
    if varied := sorted(effects.varied - {0}):
        notes.append(f"{fenced(labels[varied[0] - 1])}: the texts differ at this position")
    return notes


def page(effects: TokenEffects) -> list[str]:
    """A page of all parts and tokens; it has no script: titles of cells hold their numbers."""
    shown = view_tokens(effects)
    return map_page(
        "commands/ablate/page/tokens.html",
        title=escape(f"{shown.title}: the change at each token"),
        about=escape(shown.caption),
        below=escape("; ".join(shown.about)),
        rows="\n".join(map_rows(shown.maps[0], shown.scale, 2)),
    )
