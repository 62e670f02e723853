"""`attnviz explain`: one head's calculation, number by number."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from attnviz.commands.explain.examples import ExampleName, small_matrices, work
from attnviz.commands.explain.record import AS_TEXT, NO_IMAGE, Subject, Traced
from attnviz.commands.explain.rows import Telling, explain_embeddings, explain_head, of_worked
from attnviz.errors import IdleOption, UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import note_texts, text_alone
from attnviz.kit.option import Arguments, Call, Cli, command_of, feature, panel_option
from attnviz.kit.result import Calculation
from attnviz.kit.session import Session, as_flag
from attnviz.kit.values import AnyModel, FilePath, head_names, loaded, model_of, one_name, path_of
from attnviz.models.placement import EMBEDDINGS
from attnviz.records.trace import Initialisation, Similarity, Way

steps_option = partial(panel_option, "The steps")
example_option = partial(panel_option, "Examples without a model")
OnlySteps: TypeAlias = Annotated[
    str | None,
    steps_option("--only", metavar="STEPS", help="Show only these steps: 3, 2,3 or 2-4."),
]
Digits: TypeAlias = Annotated[
    int | None,
    steps_option(
        "--digits",
        metavar="N",
        min=0,
        max=9,
        help="Decimals to show. The calculation itself is not rounded.",
        show_default="4",
    ),
]
TokenColumns: TypeAlias = Annotated[
    bool, steps_option("--columns", help="Also show tokens as columns (Wᵀ·xᵀ), as some lessons do.")
]
AsLookup: TypeAlias = Annotated[
    bool,
    steps_option(
        "--as-lookup", help="Show the row as a look-up in a database: query, keys, values."
    ),
]
AmongTexts: TypeAlias = Annotated[
    FilePath | None,
    Cli(Path | None),
    steps_option(
        "--among",
        metavar="FILE",
        help="Also list the nearest words of these texts, one a line, before and after the head "
        "adds to the query (step 5).",
    ),
]
ComparedBy: TypeAlias = Annotated[
    Similarity | None,
    steps_option(
        "--similarity",
        help="How query and key are compared: q·k, q·k/√d_k, x·(W_Q·W_Kᵀ)·xᵀ, or a kernel of "
        "their distance. For a model, x is taken after its norm, without biases or scaling.",
    ),
]
WorkedExample: TypeAlias = Annotated[
    ExampleName | None,
    example_option(
        "--example",
        help="three-inputs: attention by hand, in whole numbers. multi-head: 楚留香 through "
        "three heads with random weights.",
    ),
]
OwnMatrices: TypeAlias = Annotated[
    FilePath | None,
    Cli(Path | None),
    example_option(
        "--matrices",
        metavar="FILE.json",
        help="Your own x, w_query, w_key and w_value; optionally w_output, heads and labels "
        "(docs/lessons.md has an example).",
    ),
]
Init: TypeAlias = Annotated[
    Initialisation,
    example_option("--init", help="The distribution of multi-head's random weights."),
]
Seed: TypeAlias = Annotated[
    int, g.seed_option(example_option, "The seed of multi-head's random numbers.")
]
Rounded: TypeAlias = Annotated[
    bool,
    example_option("--rounded", help="Round the softmax to one decimal, as one does on paper."),
]


def _idle(call: Arguments) -> None:
    """Refuse what does nothing for a text; or, without a model, for an example or matrices."""
    if call["example"] is None and call["matrices"] is None:
        hint = f"add {option('example')} or {option('matrices')}"
        call.refuse("rounded init seed", "is for the examples", hint)
        if str(getattr(call["model"], "name", call["model"])) == EMBEDDINGS:
            wrong = f"does nothing for {option('model', EMBEDDINGS)}"
            call.refuse("head similarity as_lookup among", wrong)
        if call["as_lookup"]:
            call.refuse("only similarity columns among", f"does nothing with {option('as_lookup')}")
        return
    if call["example"] is not None and call["matrices"] is not None:
        both = f"{option('example')} and {option('matrices')} are two calculations"
        raise IdleOption(both, "give one of them")
    what = option("matrices" if call["example"] is None else "example")
    if call["text"] is not None:
        raise IdleOption(f"{what} needs no text", "leave the text out")
    wrong = f"does nothing for {what}"
    call.refuse("file image head query as_lookup among target kind truncate", wrong)
    call.refuse("bos special text_pair", wrong)
    if call["example"] != "multi-head":
        hint = f"it is for {option('example', 'multi-head')}"
        call.refuse("init seed", "does nothing here", hint)
    call.refuse("model revision offline", wrong)


@feature(_idle)
def explain(
    text: str | None = None,
    model: AnyModel = "builtin",
    *,
    head: g.OneHead = None,
    query: g.OneQuery = None,
    similarity: ComparedBy = None,
    example: WorkedExample = None,
    matrices: OwnMatrices = None,
    causal: g.MaskLater = False,
    rounded: Rounded = False,
    init: Init = "normal",
    seed: Seed = 0,
    only: OnlySteps = None,
    digits: Digits = None,
    columns: TokenColumns = False,
    as_lookup: AsLookup = False,
    among: AmongTexts = None,
    image: g.Images = (),
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPair = None,
    target: g.TargetText = None,
) -> Calculation[Any]:
    """Follow one head's calculation for one query, step by step.

    >>> steps = attnviz.explain("a fluffy blue creature", head="L3H2", query="creature")
    >>> steps.arrays["pattern"].shape
    (5, 5)
    >>> print(attnviz.explain(example="three-inputs", only="1"))  # doctest: +ELLIPSIS
    Self-attention by hand: three inputs of four numbers
    ...

    Args:
        text: the text; None with `example` and `matrices`.
        model: a name as for `load_model`, or a loaded model; "embeddings" compares bare embeddings.

    Returns:
        a calculation whose record is a `Traced`, an `EmbeddingTrace` or a `Worked`.
    """
    telling = Telling(only, digits, columns, as_lookup)
    if example is not None or matrices is not None:
        small, title = small_matrices(example, matrices, init, seed)
        like = similarity or ("dot" if example == "three-inputs" else "scaled-dot")
        return of_worked(work(small, Way(like, causal, rounded)), title, telling)
    if text is None:
        raise UsageError("explain takes exactly one thing", "give a text, an example or matrices")
    model = loaded(model, causal=causal and model == EMBEDDINGS)
    if causal and model.name != EMBEDDINGS:
        raise UsageError(f"{option('causal')} is for embeddings and for examples")
    options = model._text_options(bos, special, truncate, target, image, text_pair=text_pair)
    texts = None if among is None else Path(path_of("among", among))
    subject = Subject(head_names(head), one_name(query), similarity, texts)
    explained = explain_embeddings if model.name == EMBEDDINGS else explain_head
    return explained(model._loaded, text, options, subject, telling)


EXAMPLES = """
attnviz explain "a fluffy blue creature"
attnviz explain "a fluffy blue creature roamed the verdant forest" -o lesson.html
attnviz explain "Bark is very cute and he is a dog" --head L3H2 --query he --only 3,5
attnviz explain "a soft green table" -o meaning.svg
attnviz explain --example three-inputs --rounded
attnviz explain "a fluffy blue creature" -f json | jq '.arrays.pattern[-1]'
"""
SHORT_HELP = "file model head query only digits example matrices format output quiet"


@command_of(
    explain,
    "text text_pair image truncate bos special model target kind causal head query only digits "
    "columns as_lookup similarity among example matrices rounded init seed",
)
def command_line(
    session: Session,
    call: Call[Calculation[Any]],
    *,
    text: g.TextIn,
    model: g.WhichModel,
    kind: g.WhichKind = None,
    output: g.CalculationOutput,
) -> None:
    """Write out one head's calculation for one query, step by step, in numbers.

    The steps lead from the tokens to queries, keys and values, scores, mask and softmax, the
    weighted sum, the head's output and the prediction. --example and --matrices need no model. A
    picture shows how the query's vector gets its meaning, where the model has read-outs for it.
    """
    to = destination_of(session, output)
    if to.format.name != "txt":
        holds = "the way of one vector" if to.format.picture else "all numbers of every step"
        hint = f"leave it out: {to.format.name} holds {holds}"
        told = "only", "digits", "columns", "as_lookup"
        session.refuse(*told, wrong="applies only to text output", hint=hint)
    if to.format.name == "html":
        session.refuse("image", wrong=NO_IMAGE, hint=AS_TEXT)
        session.refuse("similarity", "special", wrong="is not for a page", hint="leave it out")
    if call.options.get("example") or call.options.get("matrices"):
        calculation = call()
    else:
        words = text_alone(session, text, "a saved capture holds no queries, keys and values")
        # on the processor: here every intermediate number is shown
        on, causal = g.ModelRun(device="cpu"), bool(call.options.get("causal"))
        calculation = call(text=words, model=model_of(session, model, on, kind, causal=causal))
        note_texts(session, calculation.captures)
        if isinstance(calculation.record, Traced):
            trace = calculation.record.trace
            token = trace.capture.query_tokens[trace.query]
            if token.part is not None:
                session.note(
                    f"“{token.label}” is a part of the character {token.text.strip()}, but explain "
                    f"follows one token; attnviz show {as_flag('chars')} merges the parts"
                )
    deliver_result(session, to, calculation)
