"""`attnviz ablate`: does a part matter? The model's predictions without it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeAlias

from attnviz.commands.ablate.record import AblationReport, BeforeAfter, link_named
from attnviz.commands.ablate.rows import BOTH, ONE_BY_ONE, SHOWN
from attnviz.commands.ablate.run import Ablating, ablate_each, ablate_together
from attnviz.errors import option
from attnviz.kit import options as g
from attnviz.kit.deliver import destination_of
from attnviz.kit.lines import Lines, Pairs, run_texts
from attnviz.kit.option import Call, Cli, command_of, feature, only
from attnviz.kit.result import Result, mean_result, refuse_picture
from attnviz.kit.session import Session
from attnviz.kit.values import AnyModel, layer_names, loaded, model_of, questions_of, which_heads
from attnviz.records.predict import Replacement

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
        "--with", help="What replaces an output: zero, or its mean over the text's positions."
    ),
]
Cut: TypeAlias = Annotated[
    str | None,
    g.heads_option(
        "--cut",
        metavar="QUERY:KEY",
        help="Remove the heads' links between these tokens, in place of their outputs. Tokens are "
        "given as for show --query.",
    ),
]
Renormalise: TypeAlias = Annotated[
    bool,
    g.heads_option(
        "--renormalise", help="With --cut, rescale the other weights of the row to sum to 1."
    ),
]
Together: TypeAlias = Annotated[
    bool,
    g.heads_option(
        "--together",
        help="Ablate the chosen parts at once, and show the next tokens before and after.",
    ),
]
TopParts: TypeAlias = Annotated[
    int | None,
    Cli(int, default=SHOWN),
    g.look_option(
        "--top",
        metavar="K",
        min=1,
        help="Show the K parts that matter most; with --together, K candidates.",
    ),
]


@feature(
    only(
        "together",
        lambda call: call.any_of("heads layers mlps whole_layers cut"),
        "needs heads or other parts",
        f"name them, as in {option('heads', 'L1H2,L3H0')} or {option('mlps', 'all')}",
    ),
    only(
        "renormalise",
        lambda call: call["cut"] is not None,
        f"is for {option('cut')}",
        f"add {option('cut', 'QUERY:KEY')}",
    ),
    only(
        "replacement", lambda call: call["cut"] is None, "does nothing for a link, which is removed"
    ),
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
    cut: Cut = None,
    renormalise: Renormalise = False,
    together: Together = False,
    top: TopParts = None,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
) -> Result[AblationReport] | Result[BeforeAfter]:
    """Ablate parts of a model one at a time, or several at once, and measure the effect.

    >>> text = "a fluffy blue creature roamed the forest . the creature was"
    >>> attnviz.ablate(text, answer="fluffy", top=1).rows[0]["head"]
    0

    Of several texts, each is measured, and then their mean; the answer and the versus are one for
    all of them, or one for each.

    Args:
        text: a text, or several.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is an `AblationReport`; with `together` a `BeforeAfter`.
    """
    questions = questions_of(text, answer, versus)
    ablating = Ablating(
        heads=which_heads(layers, heads),
        mlps=layer_names("mlps", mlps),
        layers=layer_names("whole_layers", whole_layers),
        replacement=replacement,
        cut=None if cut is None else link_named(cut, renormalise=renormalise),
    )
    model = loaded(model)
    options = model._text_options(bos, special, truncate)
    results = list[Result[Any]]()
    for line, (one, word, other) in enumerate(questions, start=1):
        how = replace(ablating, answer=word, versus=other)
        form, record = (
            (BOTH, ablate_together(model._loaded, one, options, how, top or SHOWN))
            if together
            else (ONE_BY_ONE, ablate_each(model._loaded, one, options, how))
        )
        results.append(Result(form, record, (record.capture,), _top=top, _line=line))
    return results[0] if isinstance(text, str) else mean_result(results)


EXAMPLES = r"""
attnviz ablate "a fluffy blue creature roamed the verdant forest"
attnviz ablate "a fluffy blue creature roamed . the creature was" --answer blue --versus red
attnviz ablate "Bark is very cute and he is a" --head L3H2,L4H0 --together
attnviz ablate "a blue creature slept . the creature was" --cut creature#2:blue --answer blue
attnviz ablate "Bark is very cute and he is a dog" --mlp all --head all -o ablation.png
attnviz ablate --pairs sample_texts/colors.jsonl --layer 2 -f jsonl | jq 'select(.line == null)'
"""
SHORT_HELP = "file pairs answer versus model heads mlps cut together top format output quiet"


@command_of(
    ablate,
    "text lines pairs truncate bos special model run layers heads mlps whole_layers answer versus "
    "replacement cut renormalise together top",
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
    output: g.ReportOutput,
) -> None:
    """Ablate heads, MLPs or layers and measure the effect on predictions.

    The effect is the change in log-probability, in nats, of the tokens that followed or of an
    --answer; with --versus, the change of the difference of both logits. A negative change means
    that the part helps.
    """
    to = destination_of(session, output)
    if to.format.picture:
        session.refuse("top", wrong="does nothing for a picture, which shows every part")
        if call.options.get("together"):
            refuse_picture()
    run_texts(
        session,
        call,
        to,
        text,
        partial(model_of, session, model, run),
        doing="ablating",
        lines=lines,
        pairs=pairs,
    )
