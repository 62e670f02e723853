"""Sentences about interventions: what was changed, and what is measured."""

from attnviz.data.ablate import AblationReport
from attnviz.data.outcome import Candidate, Question
from attnviz.data.patch import PatchReport
from attnviz.harmless import readable
from attnviz.renderers.direction import fenced
from attnviz.renderers.labels import name_of
from attnviz.renderers.numbers import probability
from attnviz.renderers.titles import amount, beginning, facts

NOUNS = {"head": "head", "mlp": "MLP", "layer": "layer"}


def ablate_heading(report: AblationReport) -> tuple[str, ...]:
    """What was run, and what replaces a part; what is measured; what its changes say."""
    return f"{_ran(report)}; {replaced(report)}", measured(report), change_of(report)


def _ran(report: AblationReport | PatchReport) -> str:
    return mean_of_texts(report) if report.lines else facts(report.capture)


def mean_of_texts(report: AblationReport | PatchReport) -> str:
    """`builtin, mean of 3 texts`."""
    of = "text" if isinstance(report, AblationReport) else "pair"
    return f"{readable(report.capture.model.name)}, mean of {amount(report.lines or 1, of)}"


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


def named(token: Candidate) -> str:
    """A token in a sentence; of a word of several tokens it says that it is the first."""
    said = fenced(name_of(token.label))
    return f"{said}, the first token of {fenced(beginning(token.begins))}" if token.begins else said


def difference(answer: Candidate | None, versus: Candidate | None) -> str:
    """`logit(blue) - logit(red)`; without names where each text has an answer of its own."""
    if answer is None or versus is None:
        return "logit(answer) - logit(versus)"
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


SHARE = "share: 0 is the text, 1 the source"
OVER_PAIRS = "±: standard error over these pairs; what is below two of them may be chance"


def patch_heading(report: PatchReport) -> tuple[str, ...]:
    """What was run, and what is taken from the source; both ends; what a share is of."""
    return f"{_ran(report)}; {patching(report)}", patch_ends(report), shares_of(report)


def shares_of(report: PatchReport) -> str:
    """What a share is of, and whether that is enough to speak of shares."""
    apart = abs(report.ends.measured - report.before.measured)
    if apart >= APART:
        return SHARE
    return f"{SHARE}; the two are only {apart:.3f} apart, so that shares say little"


APART = 0.5
"""Ends that are nearer to each other than so many logits make any change a large share."""


def patching(report: PatchReport) -> str:
    """What is taken from the source, and where."""
    said = f"{SITES[report.kind]} taken from the source"
    if report.kind == "head":
        every = len(report.positions) == len(report.places)
        where = "all positions" if every else amount(len(report.positions), "position")
        return f"{said} at {where}"
    return f"{said} at one position"


def patch_ends(report: PatchReport) -> str:
    """What is measured, and what it is after the text and after the source."""
    question, mean = report.question, "mean of " if report.lines else ""
    if not report.own_answers:
        asked = what_is_measured(question)
    elif question.versus is None:
        asked = "log-probability of each text's answer"
    else:
        asked = difference(None, None)
    before, ends = report.before.measured, report.ends.measured
    return f"{mean}{asked}: {before:+.3f} after the text, {ends:+.3f} after the source"


def unit_of(report: PatchReport) -> str:
    """The unit of what is measured."""
    return "nats" if report.question.versus is None else "logits"
