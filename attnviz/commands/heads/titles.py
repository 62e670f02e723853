"""Sentences about scores of heads: what they were measured on."""

from attnviz.draw.titles import facts
from attnviz.errors import readable
from attnviz.records.metrics import HeadReport
from attnviz.records.parts import Circuits


def heads_title(report: HeadReport) -> str:
    """What was measured on what."""
    if report.probe:
        return f"{readable(report.capture.model.name)}, probe: {report.probe}"
    return facts(report.capture)


def untold(report: HeadReport) -> str:
    """Which roles were measured over too few rows, and over how many."""
    few = (f"{role.name} ({rows} of {role.rows})" for role, rows in report.untold)
    return f"these roles need more rows: {', '.join(few)}"


def circuits_title(circuits: Circuits) -> str:
    """What was read off the weights of which model."""
    return f"{readable(circuits.model.name)}, circuits from the weights alone"
