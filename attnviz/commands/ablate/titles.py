"""Sentences about an ablation: what was replaced, and what is measured."""

from collections.abc import Callable

from attnviz.commands.ablate.record import AblationReport
from attnviz.draw.effects import difference, mean_of, named, unit_of
from attnviz.draw.labels import fenced
from attnviz.draw.titles import amount, facts, probability
from attnviz.records.capture import Capture

NOUNS = {"head": "head", "mlp": "MLP", "layer": "layer"}


def ablate_heading(report: AblationReport) -> tuple[str, ...]:
    """The run and what replaces a part; what is measured; what the sign of a change means."""
    return f"{ran(report, facts)}; {replaced(report)}", measured(report), change_of(report)


def ran(report: AblationReport, name: Callable[[Capture], str]) -> str:
    """`builtin, mean of 3 texts`; a single run by its `name`."""
    capture = report.capture
    return name(capture) if report.lines is None else mean_of(capture, report.lines, "text")


def _part(report: AblationReport) -> str:
    """`head`, `MLP`, `layer`; `part` where there are several kinds."""
    kinds = {part.kind for effect in report.effects for part in effect.parts}
    return NOUNS[kinds.pop()] if len(kinds) == 1 else "part"


def replaced(report: AblationReport) -> str:
    """What replaces a part, or what becomes of a link."""
    cut = report.cut
    if cut is not None:
        links = "link" if cut.number < 2 else f"{cut.number} links"
        rescaled = ", the other weights of its row rescaled to sum to 1" if cut.renormalise else ""
        return f"a head's {links} from {fenced(cut.query)} to {fenced(cut.key)} removed{rescaled}"
    part = _part(report)
    article = "an" if part == "MLP" else "a"
    by = "0" if report.replacement == "zero" else "its mean over the positions"
    output = "what a layer adds" if part == "layer" else f"{article} {part}'s output"
    return f"{output} replaced by {by}"


def change_of(report: AblationReport) -> str:
    """The unit of a change, and the meaning of its sign."""
    what = "this difference" if report.measure == "difference" else "log-probability"
    part = "link" if report.cut else _part(report)
    return f"change in {what} ({unit_of(report.measure)}); negative = the {part} helps"


def measured(report: AblationReport) -> str:
    """What is measured, and its value without ablation."""
    if report.measure == "difference":
        mean = "mean of " if report.lines else ""
        return f"{mean}{difference(report.answer, report.versus)} = {report.baseline:+.3f}"
    if report.answer is not None and report.first is not None and report.lines is None:
        likely = probability(report.answer.probability)
        sentence = f"P({named(report.answer)}) = {likely}, rank {report.rank:,}"
        if report.rank != 1:
            sentence += f"; top: {named(report.first)}, {probability(report.first.probability)}"
        return sentence
    tokens = f"the {amount(report.tokens, 'token')} that followed"
    if report.lines is not None:
        tokens = "each text's answer" if report.own_answers else "the tokens that followed"
        if report.answer is not None:
            tokens = named(report.answer)
    return f"mean log-probability of {tokens}: {report.baseline:.3f} nats"
