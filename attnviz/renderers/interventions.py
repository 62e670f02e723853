"""Sentences about interventions: what was changed, and what is measured."""

from attnviz.data.ablate import AblationReport
from attnviz.data.outcome import Candidate, Question
from attnviz.data.patch import PatchReport
from attnviz.harmless import readable
from attnviz.renderers.direction import fenced
from attnviz.renderers.labels import name_of
from attnviz.renderers.numbers import probability
from attnviz.renderers.titles import amount, facts

NOUNS = {"head": "head", "mlp": "MLP", "layer": "layer"}


def ablate_title(report: AblationReport) -> str:
    """What was run, what is measured, and what replaces a part."""
    ran = mean_of_texts(report) if report.lines else facts(report.capture)
    return f"{ran}; {ablation(report)}"


def mean_of_texts(report: AblationReport | PatchReport) -> str:
    """`builtin, mean of 3 texts`."""
    of = "text" if isinstance(report, AblationReport) else "pair"
    return f"{readable(report.capture.model.name)}, mean of {amount(report.lines or 1, of)}"


def ablation(report: AblationReport) -> str:
    """What is measured, and what replaces a part."""
    return f"{_replaced(report)}; {_measured(report)}; {change_of(report)}"


def _part(report: AblationReport) -> str:
    """`head`, `MLP`, `layer`; `part` where there are several kinds."""
    kinds = {part.kind for effect in report.effects for part in effect.parts}
    return NOUNS[kinds.pop()] if len(kinds) == 1 else "part"


def _replaced(report: AblationReport) -> str:
    if report.cut is not None:
        cut = report.cut
        said = f"a head's link from {fenced(cut.query)} to {fenced(cut.key)} removed"
        return said + (", its other weights rescaled to sum to 1" if cut.renormalise else "")
    what = _part(report)
    article = "an" if what == "MLP" else "a"
    by = "0" if report.replacement == "zero" else "its mean over the positions"
    return f"{article} {what}'s output replaced by {by}"


def change_of(report: AblationReport) -> str:
    """What a change is of, and what its sign says."""
    helps = f"negative = the {'link' if report.cut else _part(report)} helps"
    if report.differences:
        return f"change in this difference (logits); {helps}"
    return f"change in log-probability (nats); {helps}"


def _measured(report: AblationReport) -> str:
    if report.differences:
        mean = "mean " if report.lines else ""
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


def named(token: Candidate) -> str:
    """A token in a sentence; of a word of several tokens it says that it is the first."""
    said = fenced(name_of(token.label))
    return f"{said}, the first token of {fenced(readable(token.begins))}" if token.begins else said


def difference(answer: Candidate | None, versus: Candidate | None) -> str:
    """`logit(blue) - logit(red)`; of texts with answers of their own, in words."""
    if answer is None or versus is None:
        return "logit of each text's answer - that of its other token"
    return f"logit({named(answer)}) - logit({named(versus)})"


def what_is_measured(question: Question) -> str:
    """`logit(blue) - logit(red)`, or `log-probability of blue`."""
    if question.versus is None:
        return f"log-probability of {named(question.answer)}"
    return difference(question.answer, question.versus)


SITES = {
    "head": "heads' outputs",
    "attention": "outputs of attention",
    "mlp": "outputs of MLPs",
    "residual": "the residual stream",
}


def patch_title(report: PatchReport) -> str:
    """What was run, what is taken from the source, and where."""
    ran = mean_of_texts(report) if report.lines else facts(report.capture)
    return f"{ran}; {patching(report)}"


def patching(report: PatchReport) -> str:
    """What is taken from the source, and where."""
    said = f"{SITES[report.kind]} taken from the source"
    if report.kind == "head":
        every = len(report.positions) == len(report.places)
        where = "all positions" if every else amount(len(report.positions), "position")
        return f"{said} at {where}"
    return f"{said} at one position"


def patch_ends(report: PatchReport) -> str:
    """Both ends of the scale, and what they are of."""
    own = report.own_answers
    measured = difference(None, None) if own else what_is_measured(report.question)
    ends = f"0 is the text ({report.before.measured:+.3f}), 1 the source"
    return f"{measured}: {ends} ({report.ends.measured:+.3f})"
