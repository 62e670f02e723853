"""Sentences about an ablation: what was replaced, and what is measured."""

from attnviz.commands.ablate.record import AblationReport
from attnviz.draw.labels import fenced
from attnviz.draw.outcome import difference, mean_of, named
from attnviz.draw.titles import amount, facts, probability

NOUNS = {"head": "head", "mlp": "MLP", "layer": "layer"}


def ablate_heading(report: AblationReport) -> tuple[str, ...]:
    """What was run, and what replaces a part; what is measured; what its changes say."""
    ran = mean_of_texts(report) if report.lines else facts(report.capture)
    return f"{ran}; {replaced(report)}", measured(report), change_of(report)


def mean_of_texts(report: AblationReport) -> str:
    """`builtin, mean of 3 texts`."""
    return mean_of(report.capture, report.lines or 1, "text")


def _part(report: AblationReport) -> str:
    """`head`, `MLP`, `layer`; `part` where there are several kinds."""
    kinds = {part.kind for effect in report.effects for part in effect.parts}
    return NOUNS[kinds.pop()] if len(kinds) == 1 else "part"


def replaced(report: AblationReport) -> str:
    """What replaces a part, or what becomes of a link."""
    if report.cut is not None:
        cut = report.cut
        links = "link" if cut.number < 2 else f"{cut.number} links"
        said = f"a head's {links} from {fenced(cut.query)} to {fenced(cut.key)} removed"
        return said + (
            ", the other weights of its row rescaled to sum to 1" if cut.renormalise else ""
        )
    what = _part(report)
    article = "an" if what == "MLP" else "a"
    by = "0" if report.replacement == "zero" else "its mean over the positions"
    replaces = "what a layer adds" if what == "layer" else f"{article} {what}'s output"
    return f"{replaces} replaced by {by}"


def change_of(report: AblationReport) -> str:
    """What a change is of, and what its sign says."""
    helps = f"negative = the {'link' if report.cut else _part(report)} helps"
    if report.differences:
        return f"change in this difference (logits); {helps}"
    return f"change in log-probability (nats); {helps}"


def measured(report: AblationReport) -> str:
    """What is measured, and what it is without ablation."""
    if report.differences:
        mean = "mean of " if report.lines else ""
        return f"{mean}{difference(report.answer, report.versus)} = {report.baseline:+.3f}"
    if report.lines is not None:
        said = "each text's answer" if report.own_answers else "the tokens that followed"
        if report.answer is not None:
            said = named(report.answer)
        return f"mean log-probability of {said}: {report.baseline:.3f} nats"
    if report.answer is not None and report.first is not None:
        likely = probability(report.answer.probability)
        said = f"P({named(report.answer)}) = {likely}, rank {report.rank:,}"
        if report.rank != 1:
            best = report.first
            said += f"; top: {named(best)}, {probability(best.probability)}"
        return said
    followed = f"the {amount(report.tokens, 'token')} that followed"
    return f"mean log-probability of {followed}: {report.baseline:.3f} nats"
