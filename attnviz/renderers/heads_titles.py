"""Sentences about scores of heads: what they were measured on."""

from attnviz.data.circuits import Circuits
from attnviz.data.heads import HeadReport
from attnviz.data.labels import LabelReport
from attnviz.harmless import readable
from attnviz.renderers.titles import amount, facts


def heads_title(report: HeadReport) -> str:
    """What was measured on what."""
    if report.probe:
        return f"{readable(report.capture.model.name)}, probe: {report.probe}"
    return facts(report.capture)


def untold(report: HeadReport) -> str:
    """Which roles were measured over too few rows, and over how many."""
    few = (f"{role.name} ({rows} of {role.rows})" for role, rows in report.untold)
    return f"these roles need more rows: {', '.join(few)}"


def labels_title(report: LabelReport) -> str:
    """What labelled links were scored on how much."""
    size = f"{amount(report.texts, 'text')}, {amount(report.rows, 'row')}"
    return f"{readable(report.model.name)}, labelled links: {size}"


def circuits_title(circuits: Circuits) -> str:
    """What was read off the weights of which model."""
    return f"{readable(circuits.model.name)}, circuits from the weights alone"
