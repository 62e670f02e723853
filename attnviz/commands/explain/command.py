"""`attnviz explain`: one head's calculation, number by number.

The file is long because it has three subjects (a head, bare embeddings, an example), and the
options of each.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attnviz.commands.explain.examples import ExampleName, read_matrices
from attnviz.commands.explain.run import (
    RandomInit,
    Subject,
    Telling,
    explain_embeddings,
    of_embeddings,
    of_example,
    of_head,
    of_matrices,
    work_example,
    work_matrices,
)
from attnviz.commands.explain.run import explain as trace_head
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver, destination_of
from attnviz.kit.lines import note_texts, text_alone
from attnviz.kit.option import command, option_field
from attnviz.kit.result import Calculation
from attnviz.kit.session import Session, as_flag
from attnviz.models.placement import EMBEDDINGS
from attnviz.records.trace import HeadTrace, Initialisation, Similarity, Way, Worked

if TYPE_CHECKING:
    from attnviz.models.scratch.tracing import EmbeddingModel

EPILOG = """
Examples

attnviz explain "a fluffy blue creature"

attnviz explain "Bark is very cute and he is a dog" --head L3H2 --query he --only 3,5

attnviz explain --example three-inputs --rounded

attnviz explain "a fluffy blue creature" -f json | jq '.arrays.pattern[-1]'
"""
COMMON = "file model head query only digits example matrices format output quiet".split()
"""The options that the short help lists."""


STEPS, EXAMPLES = "The steps", "Examples without a model"


@dataclass(frozen=True)
class HowTold:
    """What of a calculation is told, and how, to a person."""

    only: str | None = option_field(
        STEPS, None, "--only", metavar="STEPS", help="Show only these steps: 3, 2,3 or 2-4."
    )
    digits: int | None = option_field(
        STEPS,
        None,
        "--digits",
        metavar="N",
        min=0,
        max=9,
        help="Decimals to show. The calculation itself is not rounded.",
        show_default="4",
    )
    columns: bool = option_field(
        STEPS,
        False,
        "--columns",
        help="Also show tokens as columns (Wᵀ·xᵀ), as some lessons do.",
    )
    as_lookup: bool = option_field(
        STEPS,
        False,
        "--as-lookup",
        help="Show the row as a look-up in a database: query, keys, values.",
    )

    @property
    def record(self) -> Telling:
        """The record that runs take."""
        return Telling(**vars(self))


@dataclass(frozen=True)
class Likeness:
    """How query and key are compared."""

    similarity: Similarity | None = option_field(
        STEPS,
        None,
        "--similarity",
        help="How query and key are compared: q·k, q·k/√d_k, x·(W_Q·W_Kᵀ)·xᵀ, or a kernel of "
        "their distance. For a model, x is taken after its norm, without biases or scaling.",
    )


@dataclass(frozen=True)
class WhichExample:
    """A calculation that needs no model."""

    example: ExampleName | None = option_field(
        EXAMPLES,
        None,
        "--example",
        help="three-inputs: attention by hand, in whole numbers. multi-head: 楚留香 through "
        "three heads with random weights.",
    )
    matrices: Path | None = option_field(
        EXAMPLES,
        None,
        "--matrices",
        metavar="FILE.json",
        help="Your own x, w_query, w_key and w_value; optionally w_output, heads and labels "
        "(docs/lessons.md has an example).",
    )


@dataclass(frozen=True)
class RandomWeights:
    """How the multi-head example draws its numbers."""

    init: Initialisation = option_field(
        EXAMPLES, "normal", "--init", help="The distribution of multi-head's random weights."
    )
    seed: int = option_field(
        EXAMPLES,
        0,
        "--seed",
        metavar="N",
        min=0,
        max=g.LARGEST_SEED,
        help="The seed of multi-head's random numbers.",
    )


@dataclass(frozen=True)
class Rounding:
    """Whether the example rounds as one does on paper."""

    rounded: bool = option_field(
        EXAMPLES, False, "--rounded", help="Round the softmax to one decimal, as one does on paper."
    )


@command
def explain(
    session: Session,
    *,
    text: g.TextIn,
    tokens: g.Tokens,
    model: g.WhichModel,
    target: g.Target,
    kind: g.Kind,
    causal: g.Causal,
    followed: g.OneRow,
    reading: HowTold,
    likeness: Likeness,
    which: WhichExample,
    rounding: Rounding,
    drawn: RandomWeights,
    screen: g.Screen,
    output: g.CalculationOutput,
    noise: g.Noise,
) -> None:
    """Write out one head's calculation for one query, step by step, in numbers.

    The steps lead from the tokens to queries, keys and values, scores, mask and softmax, the
    weighted sum, the head's output and the prediction. --example and --matrices need no model.
    """
    to = destination_of(session, output)
    if to.format.name != "txt":
        hint = f"leave it out: {to.format.name} holds all numbers of every step"
        session.refuse(HowTold, wrong="applies only to text output", hint=hint)
    if which.example is not None or which.matrices is not None:
        _check_without_a_model(session, text, which)
        plain: Similarity = "dot" if which.example == "three-inputs" else "scaled-dot"
        way = Way(likeness.similarity or plain, causal.causal, rounding.rounded)
        calculation: Calculation[Any] = _worked(which, way, drawn, reading.record)
    else:
        _check_with_a_model(session, model, reading)
        refusal = "a saved capture holds no queries, keys and values"
        given = text_alone(session, text, refusal)
        # on the processor: here every intermediate number is looked at
        source = g.source_of(session, model, g.ModelRun(device="cpu"), kind, causal)
        loaded = session.load(source)
        if model.model == EMBEDDINGS:
            embeddings = cast("EmbeddingModel", loaded)
            options = tokens.options(target=target.target)
            trace, run = explain_embeddings(embeddings, given, followed.query, options)
            note_texts(session, [run])
            calculation = of_embeddings(trace, run, reading.record)
        else:
            subject = Subject(followed.head, followed.query, likeness.similarity)
            traced = trace_head(loaded, given, subject, tokens.options(target=target.target))
            note_texts(session, [traced.capture])
            _note_a_piece(session, traced.trace)
            calculation = of_head(traced, reading.record)
    deliver(session, to, [(None, calculation.pieces(to.format.name, to.display(session)))])


def _note_a_piece(session: Session, trace: HeadTrace) -> None:
    """One line where the query is a part of a character only."""
    token = trace.query_tokens[trace.query]
    if token.part is not None:
        session.note(
            f"“{token.label}” is a part of the character {token.text.strip()}, and explain follows "
            f"one token; attnviz show {as_flag('chars')} merges the parts"
        )


def _worked(
    which: WhichExample, way: Way, drawn: RandomWeights, telling: Telling
) -> Calculation[Worked]:
    """One of the examples, or a user's own matrices."""
    if which.example is not None:
        random = RandomInit(drawn.init, drawn.seed)
        return of_example(work_example(which.example, way, random), which.example, telling)
    assert which.matrices is not None
    worked = work_matrices(read_matrices(which.matrices), way)
    return of_matrices(worked, str(which.matrices), telling)


def _check_with_a_model(session: Session, model: g.WhichModel, reading: HowTold) -> None:
    hint = f"add {option('example')} or {option('matrices')}"
    session.refuse(Rounding, RandomWeights, wrong="is for the examples", hint=hint)
    if model.model == EMBEDDINGS:
        wrong = f"does nothing for {option('model', EMBEDDINGS)}"
        session.refuse("head", Likeness, "as_lookup", wrong=wrong)
    if reading.as_lookup:
        wrong = f"does nothing with {option('as_lookup')}"
        session.refuse("only", Likeness, "columns", wrong=wrong)


def _check_without_a_model(session: Session, text: g.TextIn, which: WhichExample) -> None:
    """No text and no model, and only options that mean something here."""
    what = option("matrices" if which.example is None else "example")
    if which.example is not None and which.matrices is not None:
        both = f"{option('example')} and {option('matrices')} are two calculations"
        raise UsageError(both, "give one of them")
    if text.text is not None:
        raise UsageError(f"{what} needs no text", "leave the text out")
    wrong = f"does nothing for {what}"
    session.refuse(
        "file", g.OneRow, "as_lookup", g.WhichModel, g.Target, g.Kind, g.Tokens, wrong=wrong
    )
    if which.example != "multi-head":
        hint = f"it is for {option('example', 'multi-head')}"
        session.refuse(RandomWeights, wrong="does nothing here", hint=hint)
