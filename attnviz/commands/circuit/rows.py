"""How faithful, complete and minimal a circuit is, and how a search found one, as rows."""

from dataclasses import dataclass
from typing import Any, Literal

from attnviz.commands.circuit.record import (
    CircuitReport,
    CircuitSearch,
    CircuitTask,
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
class SubsetRow:
    """A circuit without a subset of it; `line`: None for a mean."""

    line: int | None
    report: CircuitReport
    without: WithoutSubset

    @property
    def task(self) -> CircuitTask:
        return self.report.task


@dataclass(frozen=True)
class SearchRow:
    """A step of a search, and the circuit with the part that it added."""

    line: int | None
    search: CircuitSearch
    step: int
    found: Found

    @property
    def task(self) -> CircuitTask:
        return self.search.task


RUN: tuple[Field[Any], ...] = (LINE_OR_MEAN, model_name(at("task.captures.0.model.name")))
ASKED = fields_at(
    "task",
    Field("replacement", OutsideBy, "What replaces the outputs of parts outside of the circuit."),
    Field(
        "other_texts",
        int | None,
        "Over how many texts a mean is taken; null: over the text's own positions, or none.",
    ),
    Field("with_mlps", bool, "Whether MLPs are parts; else they run as they are, on what arrives."),
    *MEASURED_TOKENS,
    unit(at("measure")),
)
TOKENS = fields_at("task", *EXACT_TOKENS)
CIRCUIT = Fields[SubsetRow](
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
            at("without.subset.kind"),
        ),
        Field("removed", list_of(PART), "The parts of K.", at("without.subset.removed")),
        *ASKED,
        Field("texts", int, "Of how many texts it is the mean.", at("task.lines", 1)),
        Field("whole", float, "F(M): what is measured.", at("report.whole.mean")),
        Field(
            "nothing", float, "F(∅): the same with every part replaced.", at("report.nothing.mean")
        ),
        *fields_at(
            "without",
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
SEARCH = Fields[SearchRow](
    "SearchRow",
    "A part that a search added, and the faithfulness of the circuit with it.",
    (
        *RUN,
        Field("step", int, "Counted from 1."),
        *fields_at(
            "found.part",
            Field("kind", Literal["head", "mlp"]),
            Field("layer", int, "", at("layer", 0)),
            Field("head", int | None),
        ),
        *ASKED,
        Field(
            "chosen_on",
            int,
            "The number of texts on which parts are chosen.",
            at("search.chosen_on"),
        ),
        *fields_at(
            "found.chosen",
            Field(
                "chosen_faithfulness", float, "(F(C) - F(∅)) / (F(M) - F(∅)) on these.", at("mean")
            ),
            Field("chosen_error", float | None, ERROR, at("error")),
        ),
        Field(
            "measured_on",
            int,
            "The number of the other texts; 0: there was one for both.",
            at("search.measured_on"),
        ),
        *fields_at(
            "found",
            *estimate_fields("faithfulness", "The same on the other texts.", type=float),
            *estimate_fields("gain", "What the part adds to it.", type=float),
            Field("with_circuit", float, "F(C), measured on these.", at("circuit.mean")),
        ),
        Field("whole", float, "F(M): of the whole model.", at("search.whole.mean")),
        Field("nothing", float, "F(∅): with every part replaced.", at("search.nothing.mean")),
        *TOKENS,
    ),
)
JSON = JsonOutput((CIRCUIT, SEARCH))


def ran_on(task: CircuitTask) -> str:
    return ran(task.captures[0], task.lines, task.noun, facts)


MEASURED = Form[CircuitReport](
    "circuit",
    CIRCUIT,
    lambda report, top, line: (SubsetRow(line, report, each) for each in report.without),
    lambda report: ran_on(report.task),
    terminal="attnviz.commands.circuit.shown:render",
    picture="attnviz.commands.circuit.shown:draw",
    mean=mean_of,
)
FOUND = Form[CircuitSearch](
    "circuit",
    SEARCH,
    lambda search, top, line: (
        SearchRow(line, search, step, found) for step, found in enumerate(search.steps, start=1)
    ),
    lambda search: ran_on(search.task),
    terminal="attnviz.commands.circuit.shown:render_search",
    picture="attnviz.commands.circuit.shown:draw_search",
)
