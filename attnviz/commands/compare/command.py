"""`attnviz compare`: one word in several texts, or one text in two models."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from attnviz.commands.compare.record import (
    ModelComparison,
    StreamDifference,
    TextComparison,
    stream_difference,
)
from attnviz.commands.compare.rows import OF_A_WORD, OF_IMAGES, OF_MODELS, OF_ROWS, OF_STREAM, SHOWN
from attnviz.commands.compare.run import compare_models, compare_texts, pairing_of
from attnviz.errors import UsageError, option
from attnviz.inputs.given import medium_of
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import note_strange, note_texts, texts_alone
from attnviz.kit.option import Call, Cli, command_of, feature, needs, only, without
from attnviz.kit.others import TextsIn, other_texts
from attnviz.kit.prepare import TextOptions
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    Loaded,
    head_names,
    loaded,
    model_of,
    one_name,
    transforms,
    which_heads,
)
from attnviz.records.heads import Pairing, choose_layers

ComparedTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT",
        help="Two or more texts; one with --against. - reads standard input.",
        show_default=False,
    ),
]
ComparedWord: TypeAlias = Annotated[
    g.OneToken | None,
    Cli(str | None),
    g.tokens_option(
        "--query",
        metavar="TOKEN",
        help="The word to compare; mole#2 is its second occurrence in each text.",
    ),
]
Against: TypeAlias = Annotated[
    AnyModel | None,
    Cli(str | None),
    g.model_option(
        "--against",
        metavar="NAME",
        help="Another model to run on the same text, given as for --model.",
        autocompletion=completion.models,
    ),
]
ComparedFiles: TypeAlias = Annotated[
    Sequence[TextsIn],
    Cli(list[Path] | None),
    g.text_option(
        "--file",
        metavar="FILE",
        help="With --difference, a set of texts: one per line, or JSON lines with text. Give two.",
    ),
]
OfStream: TypeAlias = Annotated[
    bool,
    g.heads_option(
        "--difference",
        help="Subtract the mean stream at the last tokens of the second set of texts from that of "
        "the first, at the input of each layer; for one --layer, -o FILE.npy writes the vector.",
    ),
]
PairedHeads: TypeAlias = Annotated[
    Pairing | None,
    g.heads_option(
        "--pair",
        help="With --against, compare each head with the head of the same name, the largest change "
        "first; or with the most similar one.",
        show_default="same, where both models have one architecture and the same heads; else best",
    ),
]
TopCompared: TypeAlias = Annotated[
    int | None,
    g.top_option(
        "Show the K heads that differ most, or are most alike.",
        show_default=f"{SHOWN}; all as rows",
    ),
]


def _difference(
    texts: Sequence[str],
    files: Sequence[TextsIn],
    model: Loaded,
    options: TextOptions,
    layers: g.LayersNamed,
) -> Result[StreamDifference]:
    """The difference of the stream between two sets of texts."""
    loaded, sets = model._loaded, [each for each in map(other_texts, files) if each]
    if len(sets) != 2 or texts:
        hint = f"give {option('files', 'FILE')} twice, and no other text"
        raise UsageError(f"{option('difference')} is that of two sets of texts", hint)
    n = loaded.identity.n_layer
    chosen = choose_layers(n, head_names(layers) or "all", "layers")
    first, second = (each.last_vectors(loaded, options, chosen) for each in sets)
    found = stream_difference(loaded.identity.name, chosen, first, second)
    return Result(OF_STREAM, found, models=(loaded.identity,))


@feature(
    only(
        "pair",
        lambda call: call["against"] is not None,
        "is for two models",
        f"add {option('against')}",
    ),
    needs("files", "difference"),
    without(
        "query against heads weighted chars words drop_sink drop_key image text_pair top",
        "difference",
        "is for patterns, not for the stream",
    ),
)
def compare(
    *texts: str,
    model: AnyModel = "builtin",
    against: Against = None,
    pair: PairedHeads = None,
    files: ComparedFiles = (),
    difference: OfStream = False,
    query: ComparedWord = None,
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    weighted: g.Weighted = False,
    chars: g.Chars = None,
    words: g.Words = False,
    drop_sink: g.DropSink = False,
    drop_key: g.DropKey = (),
    top: TopCompared = None,
    image: g.Images = (),
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPair = None,
) -> Result[TextComparison] | Result[ModelComparison] | Result[StreamDifference]:
    """Compare what a word attends to in several texts, or two models on one text.

    >>> moles = "American shrew mole", "one mole of carbon dioxide"
    >>> attnviz.compare(*moles, query="mole")
    <Result of compare: builtin, 2 texts>

    Args:
        texts: two or more; one with `against`.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is a `TextComparison`, or a `ModelComparison`; with `difference` a
        `StreamDifference`.
    """
    if against is not None:
        _check_one_text(texts, query)
    model = loaded(model)
    options = model._text_options(bos, special, truncate, image=image, text_pair=text_pair)
    which = which_heads(model, layers, heads)
    done = transforms(
        weighted=weighted, chars=chars, words=words, drop_sink=drop_sink, drop_key=drop_key
    )
    if difference:
        return _difference(texts, files, model, options, layers)
    if against is None:
        comparison = compare_texts(model._loaded, texts, one_name(query), options, which, done)
        form = OF_A_WORD if comparison.queries else OF_IMAGES if comparison.of_images else OF_ROWS
        return Result(form, comparison, comparison.captures, _top=top)
    other = loaded(against, "against")
    pair = pair or pairing_of(model._loaded, other._loaded)
    both = compare_models(model._loaded, other._loaded, texts[0], options, which, done, pair)
    return Result(OF_MODELS, both, both.captures, _top=top)


def _check_one_text(texts: Sequence[str], query: g.OneToken | None) -> None:
    if len(texts) != 1 or query is not None:
        raise UsageError(
            f"{option('against')} compares two models over one text, row by row",
            f"give one text, and no {option('query')}",
        )


EXAMPLES = """
attnviz compare "American shrew mole" "one mole of carbon dioxide" --query mole
attnviz compare "the cat sat on the mat" "the dog sat on the mat"
attnviz compare "the cat sat on the mat" --model gpt2 --against distilgpt2
attnviz compare "a shrew mole" "a mole biopsy" --query mole -f jsonl | jq -c '[.layer, .head]'
attnviz compare "the cat sat" "the dog sat" --head L3H2 -o beside.png
"""
SHORT_HELP = "query against pair model heads top words drop_sink format output quiet"


@command_of(
    compare,
    "texts files text_pair query against pair difference top image truncate bos special model run "
    "kind layers heads weighted chars words drop_sink drop_key",
)
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    texts: ComparedTexts = None,
    model: g.WhichModel,
    run: g.ModelRun,
    kind: g.WhichKind = None,
    output: g.ComparisonOutput,
) -> None:
    """Compare what a word attends to in several texts, or two models on one text.

    For texts, the head that differs most comes first; for two models with the same heads, as
    before and after a fine-tuning, the largest change; for others, the most similar pair. With
    one --head the patterns are shown side by side; the picture of two models is the similarity of
    all their heads, as -f npz has it.
    """
    to = destination_of(session, output)
    if to.format.binary or to.format.picture:
        session.refuse("top", wrong=f"does nothing for {to.format.name}")
    difference = call.options.get("difference")
    words = texts or [] if difference else texts_alone(session, texts or ())
    against = call.options.get("against")
    if against is not None:
        _check_one_text(words, call.options.get("query"))
    elif to.format.name == "npz":
        raise UsageError("several texts have no matrix of heads", "write another format")
    try:
        models = {"model": model_of(session, model, run, kind)}
        if against is not None:
            other = replace(model, model=against, revision=None)
            models["against"] = model_of(session, other, run, kind)
        result = call(*words, **models)
    except UsageError as error:
        if (
            against is not None
            or difference
            or any(len(t.split()) > 1 or medium_of(t) for t in words)
        ):
            raise
        raise UsageError(error.wrong, f"put each text in quotes; {error.hint}") from None
    if against is None:
        note_texts(session, result.captures)
    else:
        note_strange(session, [any(captured.strange for captured in result.captures)], "text")
    deliver_result(session, to, result)
