"""The faithfulness, completeness and minimality of a circuit, and its search, as rows."""

from dataclasses import dataclass
from typing import Any, Literal

from attnviz.commands.circuit.record import (
    CircuitReport,
    CircuitSearch,
    Found,
    OutsideBy,
    SubsetKind,
    WithoutSubset,
    mean_of,
)
from attnviz.draw.effects import EXACT_TOKENS, MEASURED_TOKENS, PART, ran, unit
from attnviz.draw.titles import facts
from attnviz.kit.result import Form
from attnviz.records.rows import (
    ERROR,
    LINE_OR_MEAN,
    Field,
    Fields,
    JsonOutput,
    at,
    estimate_fields,
    fields_at,
    list_of,
    model_name,
)


@dataclass(frozen=True)
class MeasuredCircuit:
    """A circuit without a subset, or with a part that a search added; `line`: None for a mean."""

    line: int | None
    report: CircuitReport | CircuitSearch
    each: WithoutSubset | Found
    step: int = 0


RUN: tuple[Field[Any], ...] = (LINE_OR_MEAN, model_name(at("report.task.captures.0.model.name")))
ASKED = fields_at(
    "report.task",
    Field("replacement", OutsideBy, "The replacement of outputs outside of the circuit."),
    Field(
        "other_texts",
        int | None,
        "Over how many texts a mean is taken; null: over the text's own positions, or none.",
    ),
    Field("with_mlps", bool, "Whether MLPs are parts; else they run as they are, on what arrives."),
    *MEASURED_TOKENS,
    unit(at("measure")),
)
TOKENS = fields_at("report.task", *EXACT_TOKENS)
CIRCUIT = Fields[MeasuredCircuit](
    "SubsetRow",
    "A circuit C, and the model M, without a subset K of the circuit.",
    (
        *RUN,
        Field("circuit", list_of(PART), "The parts of C.", at("report.circuit")),
        Field(
            "subset",
            SubsetKind,
            "none: K is empty, so that the row is of C itself; part: K is one part; circuit: all "
            "of C; random: drawn.",
            at("each.subset.kind"),
        ),
        Field("removed", list_of(PART), "The parts of K.", at("each.subset.removed")),
        *ASKED,
        Field("texts", int, "Of how many texts it is the mean.", at("report.task.lines", 1)),
        Field("whole", float, "F(M): the measured value.", at("report.whole.mean")),
        Field(
            "nothing", float, "F(∅): the same with every part replaced.", at("report.nothing.mean")
        ),
        *fields_at(
            "each",
            Field("circuit_without", float, "F(C∖K).", at("circuit.mean")),
            Field("model_without", float, "F(M∖K).", at("model.mean")),
            *estimate_fields("gap", "F(M∖K) - F(C∖K).", type=float),
            *estimate_fields("faithfulness", "(F(C∖K) - F(∅)) / (F(M) - F(∅)).", type=float),
            *estimate_fields(
                "loss",
                "(F(C) - F(C∖K)) / (F(M) - F(∅)): the faithfulness that C loses.",
                type=float,
            ),
        ),
        *TOKENS,
    ),
)
SEARCH = Fields[MeasuredCircuit](
    "SearchRow",
    "A part that a search added, and the faithfulness of the circuit with it.",
    (
        *RUN,
        Field("step", int, "Counted from 1."),
        *fields_at(
            "each.part",
            Field("kind", Literal["head", "mlp"]),
            Field("layer", int, "", at("layer", 0)),
            Field("head", int | None),
        ),
        *ASKED,
        *fields_at(
            "report", Field("chosen_on", int, "The number of texts on which parts are chosen.")
        ),
        *fields_at(
            "each.chosen",
            Field(
                "chosen_faithfulness", float, "(F(C) - F(∅)) / (F(M) - F(∅)) on these.", at("mean")
            ),
            Field("chosen_error", float | None, ERROR, at("error")),
        ),
        Field(
            "measured_on",
            int,
            "The number of the other texts, or 0 if one text was for both.",
            at("report.measured_on"),
        ),
        *fields_at(
            "each",
            *estimate_fields("faithfulness", "The same on the other texts.", type=float),
            *estimate_fields("gain", "The part's addition to it.", type=float),
            Field("with_circuit", float, "F(C), measured on these.", at("circuit.mean")),
        ),
        Field("whole", float, "F(M): of the whole model.", at("report.whole.mean")),
        Field("nothing", float, "F(∅): with every part replaced.", at("report.nothing.mean")),
        *TOKENS,
    ),
)
JSON = JsonOutput((CIRCUIT, SEARCH))


MEASURED = Form[CircuitReport](
    "circuit",
    CIRCUIT,
    lambda report, top, line: (MeasuredCircuit(line, report, each) for each in report.without),
    lambda report: ran(report.task.captures[0], report.task.lines, report.task.noun, facts),
    view="attnviz.commands.circuit.shown:view",
    picture="attnviz.commands.circuit.shown:draw",
    mean=mean_of,
)
FOUND = Form[CircuitSearch](
    "circuit",
    SEARCH,
    lambda search, top, line: (
        MeasuredCircuit(line, search, found, step)
        for step, found in enumerate(search.steps, start=1)
    ),
    lambda search: ran(search.task.captures[0], search.task.lines, search.task.noun, facts),
    view="attnviz.commands.circuit.shown:view_search",
    picture="attnviz.commands.circuit.shown:draw_search",
)
