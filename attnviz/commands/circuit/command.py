"""`attnviz circuit`: are these parts the circuit, and which parts are?"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from attnviz.commands.circuit.record import CircuitReport, CircuitSearch, OutsideBy, runs_of_search
from attnviz.commands.circuit.rows import FOUND, MEASURED
from attnviz.commands.circuit.run import (
    NONE,
    Circuiting,
    CircuitText,
    find_circuit,
    measure_circuit,
    parts_left,
    text_of,
)
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import Pairs, check_prompts_alone, prompts_in, run_texts
from attnviz.kit.option import (
    Arguments,
    Call,
    Cli,
    command_of,
    feature,
    only,
    panel_option,
    without,
)
from attnviz.kit.others import OF_MEANS, MeanFrom, MeanTaken, other_texts, read_once
from attnviz.kit.result import Result, of_texts
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    Loaded,
    asked_of_each,
    layer_names,
    loaded,
    model_of,
    sources_of,
    which_heads,
    words,
)
from attnviz.records.predict import Measure

circuit_option = partial(panel_option, "The circuit")
CircuitMlps: TypeAlias = Annotated[
    g.LayerNames | None,
    Cli(str | None),
    g.heads_option(
        "--mlp",
        metavar="LAYERS",
        help="MLPs are parts, too, and those of these layers belong to the circuit: 1, 0-3, 0,2, "
        "all or none. Without this, MLPs run as they are, on what arrives.",
    ),
]
OutsideWith: TypeAlias = Annotated[
    OutsideBy,
    circuit_option(
        "--with",
        help="The replacement of outputs of parts outside of the circuit: their values in the "
        "source, their mean over the text's positions or over other texts (--mean-from), or zero.",
    ),
]
FindParts: TypeAlias = Annotated[
    int | None,
    circuit_option(
        "--find",
        metavar="K",
        min=1,
        help="Search: add the part that raises faithfulness most, K times. Parts are chosen on "
        "every second text, the first one included; the others measure.",
    ),
]
RandomSubsets: TypeAlias = Annotated[
    int,
    circuit_option(
        "--subsets",
        metavar="N",
        min=0,
        max=10_000,
        help="Random subsets of the circuit that completeness is measured on.",
    ),
]
SubsetSeed: TypeAlias = Annotated[
    int, g.seed_option(circuit_option, "The random seed of the subsets.")
]


def _named(arguments: Arguments) -> None:
    """See that there is a circuit, or a search for one."""
    named = arguments.any_of("heads layers") or arguments["mlps"] not in (None, NONE)
    if arguments["find"] is None and not named:
        raise UsageError(
            "no part of the circuit is named",
            f"name some, as in {option('heads', 'L1H2,L3H0')}, or search with {option('find', 5)}",
        )


@feature(
    _named,
    without(
        "subsets seed", "find", "does nothing for a search", f"leave it out, or {option('find')}"
    ),
    only(
        "source align",
        lambda call: call["replacement"] == "source",
        "does nothing where outputs are replaced by their mean or by 0",
        f"leave it out, or give {option('replacement', 'source')}",
    ),
    *OF_MEANS,
)
def circuit(
    text: str | Sequence[str],
    source: g.MaybeSource = None,
    model: AnyModel = "builtin",
    *,
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    mlps: CircuitMlps = None,
    answer: g.AnswerWords = None,
    versus: g.VersusWords = None,
    replacement: OutsideWith = "source",
    align: g.AlignedWords = (),
    mean_from: MeanFrom = None,
    mean_by: MeanTaken = "all",
    find: FindParts = None,
    subsets: RandomSubsets = 10,
    seed: SubsetSeed = 0,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
) -> Result[CircuitReport] | Result[CircuitSearch]:
    """Replace everything outside of a circuit: is it faithful, complete and minimal?

    >>> blue, red = (f"a {color} creature slept . the creature was" for color in ("blue", "red"))
    >>> found = attnviz.circuit(blue, red, heads="L4H0,L4H1,L3H1")
    >>> 0.8 < found.record.itself.faithfulness.mean < 1.1
    True

    The likeliest token after the text is measured, rather than that after the source, or what is
    asked for. Each of several texts is measured, and their mean comes last; the source, the
    answer and the versus are one for all of them, or one for each. A search is one for all.

    Args:
        text: a text, or several.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is a `CircuitReport`; with `find` a `CircuitSearch`.
    """
    model = loaded(model)
    how = Circuiting(
        heads=which_heads(model, layers, heads),
        mlps=layer_names("mlps", mlps),
        replacement=replacement,
        align=words("align", align),
        texts=other_texts(mean_from),
        mean_by=mean_by,
        subsets=subsets,
        seed=seed,
    )
    asked = asked_of_each(how, text, answer, versus)
    options = model._text_options(bos, special, truncate)
    sources = [None] * len(asked) if source is None else sources_of(source, len(asked))
    texts = (
        text_of(model._loaded, ours, theirs, options, own)
        for (ours, own), theirs in zip(asked, sources, strict=True)
    )
    return _result(text, texts, how, find)


def _result(
    text: str | Sequence[str], texts: Iterable[CircuitText], how: Circuiting, find: int | None
) -> Result[Any]:
    """The search over all texts; or the circuit on the one text, or their mean."""
    if find is None:
        reports = (measure_circuit(own, how) for own in texts)
        return of_texts(text, (Result(MEASURED, own, own.task.captures) for own in reports))
    every = [*texts]
    captures = [captured for own in every for captured in own.task.captures]
    line = 1 if isinstance(text, str) else None
    return Result(FOUND, find_circuit(every, how, find), captures, _line=line)


EXAMPLES = r"""
attnviz circuit --pairs sample:colors --head L4H0,L4H1,L4H3,L3H1,L3H2
attnviz circuit --pairs sample:colors --head L4H0,L3H2 --mlp 2-4 -o circuit.png
attnviz circuit --pairs sample:colors --find 5
attnviz circuit "a blue bird slept . the bird was" --from "a red bird slept . the bird was" -H L4H0
attnviz circuit "a blue bird slept . the bird was" --head L4H0,L2H0 --with mean --answer blue
"""
SHORT_HELP = "source pairs answer heads mlps replacement find model format output"


@command_of(
    circuit,
    "text source pairs truncate bos special model run layers heads mlps answer versus replacement "
    "mean_from mean_by align find subsets seed",
)
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    text: g.TextIn,
    pairs: Pairs = None,
    model: g.WhichModel,
    run: g.ModelRun,
    output: g.ReportOutput,
) -> None:
    """Replace everything outside of a circuit: is it faithful, complete and minimal?

    F is what is measured. Faithfulness is the share of the model's F that the circuit keeps; a
    complete circuit changes as the model does when parts of it are replaced; in a minimal one, each
    part adds to faithfulness. --find searches for such a circuit.
    """
    to = destination_of(session, output)
    from_source = call["replacement"] == "source"
    call = read_once(call)
    fields = ("text", "answer", "versus", *(["source"] if from_source else []))
    load = partial(model_of, session, model, run)
    if pairs is not None and call["find"] is not None:
        deliver_result(session, to, _search(session, call, load, pairs, fields))
        return
    doing = "measuring"
    if call["find"] is not None:
        doing, load = "searching", partial(_announce, session, call, load)
    run_texts(session, call, to, text, load, doing=doing, pairs=pairs, fields=fields)


def _how(call: Call[Result[Any]], model: Loaded) -> Circuiting:
    """The circuit that a search begins with, and what replaces the other parts."""
    return Circuiting(
        heads=which_heads(model, call["layers"], call["heads"]),
        mlps=layer_names("mlps", call["mlps"]),
        replacement=call["replacement"],
        align=words("align", call["align"]),
        texts=call["mean_from"],
        mean_by=call["mean_by"],
    )


def _announce(
    session: Session, call: Call[Result[Any]], load: Callable[[], Loaded], texts: int = 1
) -> Loaded:
    """The model, when stderr says how many runs a search of it takes, before it begins."""
    model = load()
    how = _how(call, model)
    left = parts_left(model._loaded, how, call["find"])
    runs = runs_of_search(texts, len(left), call["find"])
    found, noun = amount(len(left), "part"), "pair" if how.replacement == "source" else "text"
    session.logged(f"searching {found} on {amount(texts, noun)}: {amount(runs, 'run')}")
    return model


def _search(
    session: Session,
    call: Call[Result[Any]],
    load: Callable[[], Loaded],
    pairs: Path,
    fields: Sequence[str],
) -> Result[Any]:
    """The search over all prompts of a file."""
    check_prompts_alone(session)
    model = load()
    options = model._text_options(call["bos"], call["special"], call["truncate"])
    how = _how(call, model)

    def measure_of(
        text: str,
        source: str | None = None,
        answer: str | None = call["answer"],
        versus: str | None = call["versus"],
    ) -> Measure:
        own = replace(how, answer=answer, versus=versus)
        return text_of(model._loaded, text, source, options, own).task.measure

    prompts = prompts_in(session, pairs, measure_of, fields)
    _announce(session, call, lambda: model, len(prompts["text"]))
    with session.running("searching"):
        return call(**prompts, model=model)
