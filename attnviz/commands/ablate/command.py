"""`attnviz ablate`: does a part matter? The model's predictions without it."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from attnviz.commands.ablate.curve import LossCurve, ScorePositions, between_named, curve_of
from attnviz.commands.ablate.record import (
    SEGMENT,
    AblationReport,
    BeforeAfter,
    TokenEffects,
    links_named,
)
from attnviz.commands.ablate.rows import (
    AT_POSITIONS,
    AT_TOKENS,
    BOTH,
    ONE_BY_ONE,
    SHOWN,
    TOGETHER_AT_TOKENS,
)
from attnviz.commands.ablate.run import (
    DRAWS,
    Ablating,
    Replacing,
    ablate_each,
    ablate_together,
    ablate_tokens,
)
from attnviz.errors import UsageError, option
from attnviz.inputs.vectors import vector_of
from attnviz.kit import options as g
from attnviz.kit.deliver import destination_of
from attnviz.kit.lines import Lines, Pairs, run_texts
from attnviz.kit.option import Arguments, Call, Cli, command_of, feature, needs, only, without
from attnviz.kit.others import OF_MEANS, MeanFrom, MeanTaken, TextsIn, other_texts, read_once
from attnviz.kit.prepare import TextOptions
from attnviz.kit.result import Form, Result, of_texts, refuse_picture
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    asked_of_each,
    layer_names,
    loaded,
    model_of,
    paired,
    which_heads,
    words,
)
from attnviz.records.interventions import Replacement

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

Mlps: TypeAlias = Annotated[
    g.LayerNames | None,
    Cli(str | None),
    g.heads_option(
        "--mlp",
        metavar="LAYERS",
        help="Ablate the MLPs of these layers: 1, 0-3, 0,2 or all. Heads only if they are named, "
        "too.",
    ),
]
WholeLayers: TypeAlias = Annotated[
    g.LayerNames | None,
    Cli(str | None),
    g.heads_option(
        "--whole-layer",
        metavar="LAYERS",
        help="Ablate these layers, attention and MLP together. Given as for --mlp.",
    ),
]
ReplacedWith: TypeAlias = Annotated[
    Replacement,
    g.heads_option(
        "--with",
        help="The replacement of an output: zero; its mean over the text's positions, or over "
        "other texts (--mean-from); or its value on another text (--resample-from).",
    ),
]
ResampleFrom: TypeAlias = Annotated[
    TextsIn,
    Cli(Path | None),
    g.heads_option(
        "--resample-from",
        metavar="FILE",
        help="With --with resample, take outputs from these texts, at the same positions.",
    ),
]
Draws: TypeAlias = Annotated[
    int,
    g.heads_option(
        "--draws",
        metavar="N",
        min=1,
        help="With --with resample, how many texts are drawn; effects are means over them.",
    ),
]
DrawSeed: TypeAlias = Annotated[int, g.seed_option(g.heads_option, "The random seed of the draws.")]
Cut: TypeAlias = Annotated[
    str | Sequence[str] | None,
    Cli(list[str] | None),
    g.heads_option(
        "--cut",
        metavar="QUERY:KEY",
        help="Remove the heads' links between these tokens, not their outputs. Tokens as for show "
        "--query; * is every one, @NAME a --segment, @:@ within each. Repeatable.",
    ),
]
ProjectedOut: TypeAlias = Annotated[
    g.VectorFile | None,
    Cli(Path | None),
    g.heads_option(
        "--direction",
        metavar="FILE.npy",
        help="Project a vector out of the stream at the input of each layer, or of those of "
        "--layer; with --mlp or --whole-layer, out of what these add.",
    ),
]
Renormalise: TypeAlias = Annotated[
    bool,
    g.heads_option(
        "--renormalise", help="With --cut, take the softmax again over the rest of the row."
    ),
]
Together: TypeAlias = Annotated[
    bool,
    g.heads_option(
        "--together",
        help="Ablate all chosen parts at once, and show next tokens, --rows token or a --curve.",
    ),
]
EffectRows: TypeAlias = Annotated[
    Literal["part", "token"],
    g.look_option(
        "--rows",
        help="A row's unit: a part, with the mean over the tokens that followed; or a part (with "
        "--together, all parts) and a token, with the change of its log-probability.",
    ),
]
LossByPosition: TypeAlias = Annotated[
    bool,
    g.look_option(
        "--curve",
        help="With --together, the loss at each position, with all parts and without these, and "
        "the in-context score.",
    ),
]
ScoreBetween: TypeAlias = Annotated[
    str | None,
    g.look_option(
        "--between",
        metavar="EARLY:LATE",
        help="With --curve, the positions of the in-context score: the loss around the late one "
        "less that around the early one. Default: 50:500.",
    ),
]
TopParts: TypeAlias = Annotated[
    int | None,
    Cli(int, default=SHOWN),
    g.top_option("Show the K parts that matter most; with --together, K candidates."),
]


def _resampled(call: Arguments) -> None:
    """See that there are texts to take outputs from."""
    if call["replacement"] == "resample" and call["resample_from"] is None:
        raise UsageError(
            f"there are no texts for {option('replacement', 'resample')}",
            f"add {option('resample_from', 'FILE')}",
        )


@feature(
    only(
        "together",
        lambda call: call.any_of("heads layers mlps whole_layers cut direction"),
        "needs heads or other parts",
        f"name them, as in {option('heads', 'L1H2,L3H0')} or {option('mlps', 'all')}",
    ),
    needs("renormalise", "cut", add="QUERY:KEY"),
    only(
        "segments",
        lambda call: SEGMENT in "".join(words("cut", call["cut"])),
        f"is for {option('cut', '@NAME:@NAME')}",
        f"add {option('cut')}",
    ),
    needs("curve", "together"),
    needs("between", "curve"),
    without("rows top answer", "curve", "does nothing for a curve"),
    without("rows", "answer", "is for the tokens of the text", f"leave {option('answer')} out"),
    without("replacement", "cut", "does nothing for a link, which is removed"),
    only(
        "heads cut renormalise replacement mean_from mean_by resample_from draws seed",
        lambda call: call["direction"] is None,
        "does nothing for a direction of the stream, which is projected out",
    ),
    *OF_MEANS,
    needs("resample_from draws seed", "replacement", "resample"),
    _resampled,
)
def ablate(
    text: str | Sequence[str],
    model: AnyModel = "builtin",
    *,
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    mlps: Mlps = None,
    whole_layers: WholeLayers = None,
    answer: g.AnswerWords = None,
    versus: g.VersusWords = None,
    replacement: ReplacedWith = "zero",
    mean_from: MeanFrom = None,
    mean_by: MeanTaken = "all",
    resample_from: ResampleFrom = None,
    draws: Draws = DRAWS,
    seed: DrawSeed = 0,
    cut: Cut = None,
    segments: g.NamedParts = (),
    renormalise: Renormalise = False,
    direction: ProjectedOut = None,
    together: Together = False,
    rows: EffectRows = "part",
    curve: LossByPosition = False,
    between: ScoreBetween = None,
    top: TopParts = None,
    image: g.Images = (),
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPairs = None,
) -> Result[AblationReport] | Result[BeforeAfter] | Result[TokenEffects] | Result[LossCurve]:
    """Ablate parts of a model one at a time, or several at once, and measure the effect.

    >>> text = "a fluffy blue creature roamed the forest . the creature was"
    >>> attnviz.ablate(text, answer="fluffy", top=1).rows[0]["head"]
    0

    Each of several texts is measured, and then their mean; the answer and the versus are one for
    all of them, or one for each.

    Args:
        text: a text, or several.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is an `AblationReport`; with `together` a `BeforeAfter`; with rows of
        tokens `TokenEffects`; with `curve` a `LossCurve`.
    """
    model = loaded(model)
    others = other_texts(mean_from if resample_from is None else resample_from)
    ablating = Ablating(
        heads=which_heads(model, layers, heads),
        mlps=layer_names("mlps", mlps),
        layers=layer_names("whole_layers", whole_layers),
        replacing=Replacing(replacement, others, mean_by, draws, seed, vector_of(direction)),
        cut=links_named(words("cut", cut), words("segments", segments), renormalise=renormalise),
    )
    asked = asked_of_each(ablating, text, answer, versus)
    how = paired(model._text_options(bos, special, truncate, image=image), text_pair, asked)
    runs = [(model._loaded, one, own, ask) for (one, ask), own in zip(asked, how, strict=True)]
    scored = between_named(between, model._loaded.tokenizer.context) if curve else None
    return of_texts(text, _each(runs, scored or rows, top, together=together))


def _each(
    runs: Sequence[tuple["LoadedModel", str, TextOptions, Ablating]],
    rows: Literal["part", "token"] | ScorePositions,
    top: int | None,
    *,
    together: bool,
) -> Iterator[Result[Any]]:
    """The result of each text; `rows`: of a curve the positions of its score."""
    form: Form[Any]
    record: AblationReport | BeforeAfter | TokenEffects | LossCurve
    for model, text, options, how in runs:
        if rows == "part" and together:
            form, record = BOTH, ablate_together(model, text, options, how, top or SHOWN)
        elif rows == "part":
            form, record = ONE_BY_ONE, ablate_each(model, text, options, how)
        else:
            effects = ablate_tokens(model, text, options, how, together=together)
            form, record = TOGETHER_AT_TOKENS if together else AT_TOKENS, effects
            if isinstance(rows, ScorePositions):
                form, record = AT_POSITIONS, curve_of(effects, rows)
        yield Result(form, record, (record.capture,), _top=top)


EXAMPLES = r"""
attnviz ablate "a fluffy blue creature roamed the verdant forest"
attnviz ablate "a fluffy blue creature roamed . the creature was" --answer blue --versus red
attnviz ablate "Bark is very cute and he is a" --head L3H2,L4H0 --together
attnviz ablate "two cats saw two" --head L3H1,L4H0 --together --rows token
attnviz ablate "a blue creature slept . the creature was" --cut creature#2:blue --answer blue
attnviz ablate "Bark is very cute and he is a dog" --mlp all --head all -o ablation.png
attnviz ablate --pairs sample:colors --layer 2 -f jsonl | jq 'select(.line == null)'
"""
SHORT_HELP = "pairs answer versus model heads mlps cut together top format output"


@command_of(
    ablate,
    "text text_pair lines pairs segments image truncate bos special model run layers heads mlps "
    "whole_layers answer versus replacement mean_from mean_by resample_from draws seed cut "
    "renormalise direction together rows curve between top",
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
    output: g.PageOutput,
) -> None:
    """Ablate heads, MLPs or layers and measure the effect on predictions.

    The effect is the change in log-probability, in nats, of the tokens that followed or of an
    --answer; with --versus, the change of the difference of both logits. A negative change means
    that the part helps.
    """
    to = destination_of(session, output)
    call = read_once(call)
    if to.format.picture:
        session.refuse("top", wrong="does nothing for a picture, which shows every part")
        if call.options.get("together") and call["rows"] == "part" and not call["curve"]:
            refuse_picture()
    load = partial(model_of, session, model, run)
    alone = call["rows"] == "token" or call["curve"]
    fields = ("text", "text_pair", "answer", "versus")[: 2 if alone else 4]
    run_texts(
        session, call, to, text, load, doing="ablating", lines=lines, pairs=pairs, fields=fields
    )
