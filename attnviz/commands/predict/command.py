"""`attnviz predict`: which token comes next, and what the model attended to for it."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, TypeAlias

from attnviz.commands.predict.rows import form_of
from attnviz.commands.predict.run import Reading, predict_text
from attnviz.errors import IdleOption, option
from attnviz.kit import options as g
from attnviz.kit.deliver import destination_of
from attnviz.kit.lines import Lines, Pairs, run_texts
from attnviz.kit.option import Arguments, Call, command_of, feature, needs, only
from attnviz.kit.result import Result, of_texts
from attnviz.kit.roles import ONE_OF_ROLES, Roles
from attnviz.kit.session import Session
from attnviz.kit.values import AnyModel, asked_of_each, loaded, model_of, paired, path_of, words
from attnviz.records.predict import Prediction, PredictionMean

EachPosition: TypeAlias = Annotated[
    bool,
    g.look_option(
        "--each",
        help="For every position, also show the token that followed, its probability and rank.",
    ),
]
Lens: TypeAlias = Annotated[
    bool,
    g.look_option(
        "--lens",
        help="Show the prediction after each layer, as if the model ended there (the logit lens).",
    ),
]
Attribute: TypeAlias = Annotated[
    bool,
    g.look_option(
        "--attribute",
        help="Also show the logit of the --answer (by default the likeliest token) as a sum over "
        "embeddings, heads and MLPs; as rows, only these.",
    ),
]
TopCandidates: TypeAlias = Annotated[int, g.top_option("Number of candidates.")]


def _one_reading(call: Arguments) -> None:
    if call["attribute"] and (call["each"] or call["lens"]):
        other = option("each" if call["each"] else "lens")
        raise IdleOption(f"{option('attribute')} and {other} are two readings", "leave one out")


@feature(
    needs("features roles segments", "attribute"),
    ONE_OF_ROLES,
    only(
        "versus",
        lambda call: call["attribute"] or call["answer"] is not None,
        f"is for an {option('answer')} or {option('attribute')}",
        f"add {option('answer', 'TOKEN')}",
    ),
    _one_reading,
)
def predict(
    text: str | Sequence[str],
    model: AnyModel = "builtin",
    *,
    top: TopCandidates = Reading.top,
    each: EachPosition = False,
    lens: Lens = False,
    answer: g.AnswerWords = None,
    versus: g.VersusWords = None,
    attribute: Attribute = False,
    roles: Roles = None,
    segments: g.NamedParts = (),
    features: g.FeaturesIn = None,
    image: g.Images = (),
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPairs = None,
) -> Result[Prediction] | Result[PredictionMean]:
    """Predict the next tokens, with their probabilities.

    >>> found = attnviz.predict("Bark is very cute and he is a", top=3)
    >>> found.rows[0]["token"]
    'Bark'

    Args:
        text: a text; or several, each of which is read, and then their mean.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is a `Prediction`; of several texts a `PredictionMean`.
    """
    reading = Reading(
        top,
        each,
        lens,
        attribute,
        roles=roles,
        segments=words("segments", segments),
        features=None if features is None else path_of("features", features),
    )
    asked = asked_of_each(reading, text, answer, versus)
    model = loaded(model)
    how = paired(model._text_options(bos, special, truncate, image=image), text_pair, asked)
    found = (
        predict_text(model._loaded, one, own, reading)
        for (one, reading), own in zip(asked, how, strict=True)
    )
    return of_texts(text, (Result(form_of(one), one, (one.capture,), _top=top) for one in found))


EXAMPLES = """
attnviz predict "a fluffy blue creature roamed the verdant forest . the creature was"
attnviz predict "a blue bird slept . the bird was" --answer blue --versus red
attnviz predict "Bark is very cute and he is a" --lens
attnviz predict --lines --file sample:moles --each --top 1
attnviz predict --pairs sample:colors --attribute --roles word
attnviz predict "Harry Potter went to" --model gpt2 --top 3 -f jsonl | jq -r .token
"""
SHORT_HELP = "file lines pairs answer versus each lens attribute top model format output quiet"


@command_of(
    predict,
    "text text_pair lines pairs answer versus each lens attribute features roles segments top "
    "image truncate bos special model run",
)
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    text: g.TextIn,
    lines: Lines = False,
    pairs: Pairs = None,
    model: g.WhichModel,
    run: g.ModelRun,
    output: g.RecordOutput,
) -> None:
    """Show the most likely next tokens, with their probabilities.

    Below them are the strongest links of the last position, in up to eight layers.
    """
    to, load = destination_of(session, output), partial(model_of, session, model, run)
    refusal = "a saved capture holds no predictions"
    run_texts(session, call, to, text, load, refusal=refusal, lines=lines, pairs=pairs)
