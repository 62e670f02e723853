"""Is this the circuit? A text, run with everything outside of it replaced.

text (and source) ─► tokens, aligned ─► a run for each set of replaced parts ─► F of each ─► report
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from attnviz.commands.circuit.record import (
    CircuitReport,
    CircuitSearch,
    CircuitTask,
    Ends,
    Found,
    OutsideBy,
    in_order,
    left_of,
    mean_task,
    runs_of_search,
    subsets_of,
    without_of,
)
from attnviz.draw.titles import amount
from attnviz.errors import InputError, UsageError, option
from attnviz.kit.intervene import (
    SAME,
    candidate,
    check_memory,
    counted_as_one,
    intervene,
    named_parts,
    question_of,
    site_of,
    source_of,
    told_apart,
)
from attnviz.kit.others import MeanBy, OtherTexts, Vectors
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.records.heads import every_head
from attnviz.records.interventions import Edit, SourceRun
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Part
from attnviz.records.predict import Question, outcome_of

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

NONE = "none"


@dataclass(frozen=True)
class Circuiting:
    """The circuit, as users name its parts; what replaces the others; and what is measured.

    `mlps`: the layers whose MLPs belong to it, or `none`; None: MLPs are not parts, and run as
    is. `align`: words that correspond, as in `blue=red`. `answer`, `versus`: words; by default the
    likeliest token after the text, rather than that after the source. `texts`: those that a mean
    is over, or None for the text itself. `subsets`: the number of random ones; `seed` draws them.
    """

    heads: HeadOptions = field(default_factory=HeadOptions)
    mlps: str | None = None
    replacement: OutsideBy = "source"
    answer: str | None = None
    versus: str | None = None
    align: Sequence[str] = ()
    texts: OtherTexts | None = None
    mean_by: MeanBy = "all"
    subsets: int = 10
    seed: int = 0


@dataclass(frozen=True, eq=False)
class CircuitText:
    """A text in which parts can be replaced.

    `source`: the run that gives vectors, where one does; `positions`: where they are replaced;
    None: everywhere. `given`: the vectors that replace others, where they are means of other texts.
    """

    prepared: Prepared
    source: SourceRun | None
    positions: tuple[int, ...] | None
    given: Vectors | None
    task: CircuitTask

    def measured(self, replaced: Sequence[Collection[Part]]) -> list[float]:
        """F with each of these sets of parts replaced."""
        by = "given" if self.given is not None else self.task.replacement
        ids = self.task.question.ids
        edits = {part: Edit(site_of(part), by, self.positions) for part in self.task.parts}
        return intervene(
            self.prepared,
            [tuple(edits[part] for part in parts) for parts in replaced],
            lambda run: outcome_of(run.last, ids).measured,
            source=self.source,
            given=self.given,
        )


def text_of(
    model: "LoadedModel", text: str, source: str | None, options: TextOptions, how: Circuiting
) -> CircuitText:
    """The text, what is measured after it, and the vectors that replace others."""
    model.require("predict")
    circuit_named(model, how)  # what the model lacks is wrong, whatever is measured
    ours = prepare(model, text, options)
    theirs, run, positions = None, None, None
    if how.replacement == "source":
        if source is None:
            raise UsageError(
                "there is no source to take vectors from",
                f"give {option('source', 'TEXT')}, or {option('replacement', 'mean')}",
            )
        theirs, run, places = source_of(ours, source, how.align)
        positions = tuple(i for i, place in enumerate(places) if place is not None)
    parts = all_parts(model, how)
    sites = [site_of(part) for part in parts]
    check_memory(theirs or ours, sites)
    given = None if how.texts is None else how.texts.means_for(ours, sites, how.mean_by)
    captures = (ours.empty,) if theirs is None else (ours.empty, theirs.empty)
    asked = question_of(ours, how.answer, how.versus)
    if asked is None:  # the likeliest token, rather than that after the source
        likeliest = [
            intervene(each, [()], lambda run: int(run.last.argmax()))[0]
            for each in ([ours] if theirs is None else [ours, theirs])
        ]
        alone = Question(candidate(ours, likeliest[0]))
        asked = alone if theirs is None else told_apart(ours, likeliest[0], likeliest[1])
    unaligned = 0 if positions is None else len(ours.ids) - len(positions)
    task = CircuitTask(
        captures=captures,
        replacement=how.replacement,
        parts=parts,
        question=asked,
        other_texts=len(how.texts.texts) if how.texts else None,
        file_name=how.texts.name if how.texts else "",
        by_position=how.mean_by == "position",
        unaligned=(unaligned, unaligned),
    )
    return CircuitText(ours, run, positions, given, task)


def all_parts(model: "LoadedModel", how: Circuiting) -> tuple[Part, ...]:
    """All heads; all MLPs, too, where some are named or none of them is to be kept."""
    heads_per_layer = model.identity.heads_per_layer
    parts = [Part("head", head.layer, head.head) for head in every_head(heads_per_layer)]
    if how.mlps is not None:
        parts += [Part("mlp", layer) for layer in range(len(heads_per_layer))]
    return tuple(sorted(parts, key=in_order))


def circuit_named(model: "LoadedModel", how: Circuiting) -> tuple[Part, ...]:
    """The parts of the circuit that is named."""
    mlps = None if how.mlps == NONE else how.mlps
    return tuple(sorted(named_parts(model, how.heads, mlps), key=in_order))


def measure_circuit(own: CircuitText, how: Circuiting) -> CircuitReport:
    """Measure the circuit on one text."""
    circuit = circuit_named(own.prepared.model, how)
    subsets = subsets_of(circuit, how.subsets, how.seed)
    outside = left_of(own.task.parts, circuit)
    circuits = [(*outside, *subset.removed) for subset in subsets]
    models = [subset.removed for subset in subsets]
    values = own.measured([own.task.parts, *circuits, *models])
    nothing, n = values[0], len(subsets)
    whole, alone = values[1 + n], values[1]
    _check_apart(whole, nothing)
    without = [
        without_of(subset, circuit=[c], model=[m], alone=[alone], ends=Ends([whole], [nothing]))
        for subset, c, m in zip(subsets, values[1 : 1 + n], values[1 + n :], strict=True)
    ]
    return CircuitReport(own.task, circuit, Estimate(whole), Estimate(nothing), without)


def _check_apart(whole: float, nothing: float) -> None:
    if not abs(whole - nothing) >= SAME:
        raise InputError(
            "the model predicts the answer equally with everything replaced",
            f"choose another {option('answer')}, or another {option('replacement')}",
        )


def parts_left(model: "LoadedModel", how: Circuiting, find: int) -> list[Part]:
    """The parts outside of the circuit, of which a search adds some."""
    left = left_of(all_parts(model, how), circuit_named(model, how))
    if find > len(left):
        raise UsageError(
            f"{option('find', find)} is more than the {amount(len(left), 'part')} outside of the "
            "circuit",
            "give a smaller number",
        )
    return left


def find_circuit(texts: Sequence[CircuitText], how: Circuiting, find: int) -> CircuitSearch:
    """Add the part that raises faithfulness most, `find` times.

    Parts are chosen on the first text, the third, the fifth and so on, and measured on the others;
    both on the one text where there is no other.
    """
    model = texts[0].prepared.model
    start, left = circuit_named(model, how), parts_left(model, how, find)
    chosen_on, others = texts[::2], texts[1::2]
    runs = runs_of_search(len(texts), len(left), find)
    with counted_as_one(runs):
        ends = _ends(chosen_on)
        added = _greedy(chosen_on, ends, start, find)
        own = _ends(others) if others else ends
        outside = [left_of(left, [part for part, _ in added[:n]]) for n in range(find + 1)]
        values = [each.measured(outside) for each in others or texts]
        circuits = [*zip(*values, strict=True)]
    return CircuitSearch(
        task=mean_task([each.task for each in texts]) if others else texts[0].task,
        start=start,
        steps=[
            Found(
                part,
                chosen=chosen,
                faithfulness=own.share(circuit, own.nothing),
                circuit=Estimate.of(circuit),
                gain=own.share(circuit, before),
            )
            for (part, chosen), (before, circuit) in zip(added, pairwise(circuits), strict=True)
        ],
        whole=Estimate.of(own.whole),
        nothing=Estimate.of(own.nothing),
        chosen_on=len(chosen_on),
        measured_on=len(others),
        runs=runs,
    )


def _ends(texts: Sequence[CircuitText]) -> Ends:
    """F(M) and F(∅) of each text."""
    values = [each.measured([(), each.task.parts]) for each in texts]
    whole, nothing = zip(*values, strict=True)
    _check_apart(fmean(whole), fmean(nothing))
    return Ends(whole, nothing)


def _greedy(
    texts: Sequence[CircuitText], ends: Ends, start: Sequence[Part], find: int
) -> list[tuple[Part, Estimate]]:
    """The parts in the order in which they are added, with the faithfulness of the circuit then."""
    added, outside = list[tuple[Part, Estimate]](), left_of(texts[0].task.parts, start)
    for _ in range(find):
        replaced = [left_of(outside, [part]) for part in outside]
        values = [each.measured(replaced) for each in texts]
        shares = [ends.share(own, ends.nothing) for own in zip(*values, strict=True)]
        best = max(range(len(outside)), key=lambda i: shares[i].mean)
        added.append((outside[best], shares[best]))
        outside = replaced[best]
    return added
