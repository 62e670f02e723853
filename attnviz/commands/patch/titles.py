"""Sentences about patching: what was taken from the source, and what is measured."""

from attnviz.commands.patch.record import PatchReport
from attnviz.draw.outcome import difference, mean_of, what_is_measured
from attnviz.draw.titles import amount, facts

SITES = {
    "head": "heads' outputs",
    "attention": "outputs of attention",
    "mlp": "outputs of MLPs",
    "residual": "the residual stream",
}
SHARE = "share: 0 is the text, 1 the source"
OVER_PAIRS = "±: standard error over these pairs; what is below two of them may be chance"
APART = 0.5
"""Ends that are nearer to each other than so many logits make any change a large share."""


def patch_heading(report: PatchReport) -> tuple[str, ...]:
    """What was run, and what is taken from the source; both ends; what a share is of."""
    return f"{ran(report)}; {patching(report)}", patch_ends(report), shares_of(report)


def ran(report: PatchReport) -> str:
    """What was run, on how much."""
    return mean_of_pairs(report) if report.lines else facts(report.capture)


def mean_of_pairs(report: PatchReport) -> str:
    """`builtin, mean of 3 pairs`."""
    return mean_of(report.capture, report.lines or 1, "pair")


def shares_of(report: PatchReport) -> str:
    """What a share is of, and whether that is enough to speak of shares."""
    apart = abs(report.ends.measured - report.before.measured)
    if apart >= APART:
        return SHARE
    return f"{SHARE}; the two are only {apart:.3f} apart, so that shares say little"


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
