"""Sentences about patching: what was taken from the source, and what is measured."""

from collections.abc import Callable

from attnviz.commands.patch.record import PatchReport
from attnviz.draw.effects import difference, mean_of, what_is_measured
from attnviz.draw.titles import amount, facts
from attnviz.records.capture import Capture

SITES = {
    "head": "heads' outputs",
    "attention": "outputs of attention",
    "mlp": "outputs of MLPs",
    "residual": "the residual stream",
}
SHARE = "share: 0 is the text, 1 the source"
OVER_PAIRS = "±: standard error over these pairs; what is below two of them may be chance"
APART = 0.5
"""Where the two texts are nearer than this (in logits), any change is a large share."""


def patch_heading(report: PatchReport) -> tuple[str, ...]:
    """The run and what is taken from the source; both ends; the meaning of a share."""
    return f"{ran(report, facts)}; {patching(report)}", patch_ends(report), shares_of(report)


def ran(report: PatchReport, name: Callable[[Capture], str]) -> str:
    """`builtin, mean of 3 pairs`; a single run by its `name`."""
    capture = report.capture
    return name(capture) if report.lines is None else mean_of(capture, report.lines, "pair")


def shares_of(report: PatchReport) -> str:
    """The meaning of a share, with a warning where the two texts hardly differ."""
    apart = abs(report.ends.measured - report.before.measured)
    if apart >= APART:
        return SHARE
    return f"{SHARE}; the two are only {apart:.3f} apart, so that shares say little"


def patching(report: PatchReport) -> str:
    """What is taken from the source, and where."""
    where = "one position"
    if report.kind == "head":
        every = len(report.positions) == len(report.places)
        where = "all positions" if every else amount(len(report.positions), "position")
    return f"{SITES[report.kind]} taken from the source at {where}"


def patch_ends(report: PatchReport) -> str:
    """What is measured, and its value after the text and after the source."""
    question, mean = report.question, "mean of " if report.lines else ""
    if not report.own_answers:
        measured = what_is_measured(question)
    elif question.versus is None:
        measured = "log-probability of each text's answer"
    else:
        measured = difference(None, None)
    before, ends = report.before.measured, report.ends.measured
    return f"{mean}{measured}: {before:+.3f} after the text, {ends:+.3f} after the source"
