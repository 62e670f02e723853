"""`attnviz patch`: which parts carry the difference between two texts?"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from attnviz.commands.patch.record import PatchedTogether, PatchReport, check_positions
from attnviz.commands.patch.rows import BOTH, FORM, SHOWN
from attnviz.commands.patch.run import Patching, patch_text, patch_together
from attnviz.errors import UsageError, option
from attnviz.inputs.given import given_of
from attnviz.kit import options as g
from attnviz.kit.deliver import destination_of
from attnviz.kit.lines import Pairs, run_texts
from attnviz.kit.option import Arguments, Call, Cli, command_of, feature, needs, only, without
from attnviz.kit.prepare import TextOptions
from attnviz.kit.result import Result, of_texts, refuse_picture
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    Loaded,
    asked_of_each,
    layer_names,
    loaded,
    model_of,
    sources_of,
    token_names,
    which_heads,
    words,
)
from attnviz.records.interventions import SiteKind
from attnviz.records.paths import MlpsOnPaths

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

PatchedPart: TypeAlias = Annotated[
    SiteKind,
    g.heads_option(
        "--part",
        help="The vectors to take from the source. head: each head's output, at all positions. "
        "attention, mlp: what a layer's adds, residual: the stream that arrives at it; each at one "
        "position after the other (with --to, at all).",
    ),
]
PatchedAt: TypeAlias = Annotated[
    g.Names,
    Cli(list[str] | None),
    g.tokens_option(
        "--query",
        metavar="TOKEN",
        help="Patch at these positions of the text only. Given as for show --query. Repeatable.",
    ),
]
OtherImages: TypeAlias = Annotated[
    g.ImageFile | Sequence[g.ImageFile],
    Cli(list[Path] | None, default=None),
    g.text_option(
        "--from-image",
        metavar="FILE",
        help="Take vectors from a run that reads this image in place of --image. Without "
        "--from, of the same text. Repeatable.",
    ),
]
TogetherMlps: TypeAlias = Annotated[
    g.LayerNames | None,
    Cli(str | None),
    g.heads_option(
        "--mlp",
        metavar="LAYERS",
        help="With --together, take the outputs of these layers' MLPs, too: 1, 0-3, 0,2 or all. "
        "Heads only if they are named.",
    ),
]
AllAtOnce: TypeAlias = Annotated[
    bool,
    g.heads_option(
        "--together",
        help="Patch the chosen heads and MLPs at once, and show the next tokens before and after.",
    ),
]
PathEnds: TypeAlias = Annotated[
    str | Sequence[str],
    Cli(list[str] | None),
    g.heads_option(
        "--to",
        metavar="PART",
        help="Path patching: only what reaches this part changes, all other heads are held at the "
        "text's own outputs. logits, a head's q, k or v (L4H0.q; L4H0: all three), or an MLP "
        "(L3.mlp). Repeatable.",
    ),
]
PathMlps: TypeAlias = Annotated[
    MlpsOnPaths,
    g.heads_option(
        "--path-mlps",
        help="With --to, MLPs between sender and receiver: computed anew, or held fixed, too.",
    ),
]
ToFirstOrder: TypeAlias = Annotated[
    bool,
    g.heads_option(
        "--fast",
        help="Estimate all effects at once, to first order, by one gradient (attribution "
        "patching); with --to, by two for each receiver.",
    ),
]
AgainstExact: TypeAlias = Annotated[
    bool,
    g.heads_option(
        "--check", help="With --fast, patch each part as well, and compare both by their ranks."
    ),
]
TopSites: TypeAlias = Annotated[
    int | None,
    Cli(int, default=10),
    g.top_option("Show the K parts that change most; with --together, K candidates."),
]


def _from_source(call: Arguments) -> None:
    """See that there is a text to take vectors from."""
    if not call.any_of("source from_image pairs"):
        raise UsageError(
            "there is no text to take vectors from", f"add {option('source', 'SOURCE')}"
        )


@feature(
    needs("heads", "part", "head", hint=f"choose layers with {option('layers')}"),
    only(
        "together",
        lambda call: call.any_of("heads layers mlps"),
        "needs heads or MLPs",
        f"name them, as in {option('heads', 'L1H2,L3H0')} or {option('mlps', 'all')}",
    ),
    without("part", "together", "does nothing for parts together, which are heads and MLPs"),
    needs("mlps", "together", hint=f"patch MLPs one at a time with {option('part', 'mlp')}"),
    only(
        "to",
        lambda call: call["part"] in ("head", "mlp"),
        f"is for what a head or an MLP writes, not for {option('part', 'residual')}",
        f"choose {option('part', 'head')} or {option('part', 'mlp')}",
    ),
    needs("path_mlps", "to", hint="name the end of a path"),
    without("fast", "together", f"does nothing for parts {option('together')}, which are one run"),
    without("to", "together", f"does not go with {option('together')}"),
    only(
        "from_image",
        lambda call: call.any_of("image"),
        f"replaces an {option('image')}",
        f"give one with {option('image')}",
    ),
    only(
        "from_image",
        lambda call: not (call["to"] or call["fast"]),
        f"does not go with {option('to')} or {option('fast')}, whose runs see one image",
    ),
    only("check", lambda call: call["fast"], f"compares what {option('fast')} estimates"),
    _from_source,
)
def patch(
    text: str | Sequence[str],
    source: g.MaybeSource = None,
    model: AnyModel = "builtin",
    *,
    answer: g.AnswerWords = None,
    versus: g.VersusWords = None,
    part: PatchedPart = "head",
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    mlps: TogetherMlps = None,
    together: AllAtOnce = False,
    to: PathEnds = (),
    path_mlps: PathMlps = "recompute",
    fast: ToFirstOrder = False,
    check: AgainstExact = False,
    query: PatchedAt = (),
    align: g.AlignedWords = (),
    top: TopSites = None,
    image: g.Images = (),
    from_image: OtherImages = (),
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
) -> Result[PatchReport] | Result[PatchedTogether]:
    """Replace activations of a run with those from another text (activation patching).

    >>> blue, red = (f"a {color} creature slept . the creature was" for color in ("blue", "red"))
    >>> found = attnviz.patch(blue, red, answer="red", versus="blue")
    >>> found.rows[0]["kind"], found.record.before.measured < 0 < found.record.ends.measured
    ('head', True)

    Each of several texts is patched, and their mean comes last; the source, the answer and the
    versus are one for all of them, or one for each. By default, the likeliest token after the
    source is measured against that after the text.

    Args:
        text: a text, or several.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is a `PatchReport`; with `together` a `PatchedTogether`.
    """
    model = loaded(model)
    patching = Patching(
        part,
        which_heads(model, layers, heads),
        layer_names("mlps", mlps),
        queries=token_names("queries", query),
        align=words("align", align),
        given=given_of(from_image),
        to=_named(model, words("to", to)),
        path_mlps=path_mlps,
        fast=fast,
        check=check,
    )
    asked = asked_of_each(patching, text, answer, versus)
    options = model._text_options(bos, special, truncate, image=image)
    return of_texts(text, _each(model._loaded, asked, source, options, top, together=together))


def _named(model: Loaded, to: Sequence[str]) -> tuple[str, ...]:
    """The names of receivers, with those of its heads in the place of a set: `top2:induction.q`."""
    names = list[str]()
    for each in (part.strip() for name in to for part in name.split(",")):
        of_set = re.fullmatch(r"(?i)(.*:.*?)(\.[qkv])?", each)
        if of_set is None:
            names.append(each)
        else:
            heads = str(which_heads(model, None, of_set[1]).heads).split(",")
            names += [f"{head}{of_set[2] or ''}" for head in heads]
    return tuple(names)


def _each(
    model: "LoadedModel",
    asked: Sequence[tuple[str, Patching]],
    source: str | Sequence[str] | None,
    options: TextOptions,
    top: int | None,
    *,
    together: bool,
) -> Iterator[Result[Any]]:
    """The result of each text and its source; this is the text itself where it has other images."""
    sources = sources_of([text for text, _ in asked] if source is None else source, len(asked))
    first = None
    for (text, how), other in zip(asked, sources, strict=True):
        if together:
            both = patch_together(model, text, other, options, how, top or SHOWN)
            yield Result(BOTH, both, both.runs, _top=top)
            continue
        report = patch_text(model, text, other, options, how)
        first = first or report
        check_positions([first, report])  # before others are run
        yield Result(FORM, report, report.runs, _top=top)


EXAMPLES = r"""
attnviz patch "a blue bird slept . the bird was" --from "a red bird slept . the bird was"
attnviz patch "a blue bird slept . the bird was" --from "a red bird slept . the bird was" --part residual
attnviz patch "a blue bird slept . the bird was" --from "a red bird slept . the bird was" --head L3H1,L4H0 --mlp 4 --together
attnviz patch "a blue bird slept . the bird was" --from "a red bird slept . the bird was" --to L4H0.q --to logits
attnviz patch "a blue bird slept . the bird was" --from "a red bird slept . the bird was" --fast --check
attnviz patch --pairs sample:colors -o heads.png
"""  # noqa: E501 an example is one line
SHORT_HELP = "source pairs answer versus part to model format output"


@command_of(
    patch,
    "text source pairs image from_image truncate bos special model run layers heads mlps answer "
    "versus part together to path_mlps fast check query align top",
)
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    text: g.TextIn,
    pairs: Pairs = None,
    model: g.WhichModel,
    run: g.ModelRun,
    output: g.PageOutput,
) -> None:
    """Replace activations of a run with those from another text (activation patching).

    The effect is a share of the distance between the two texts: 0 is the text, 1 the source. By
    default, the likeliest token after the source is measured against that after the text.
    """
    to = destination_of(session, output)
    if to.format.picture or to.format.name == "html":
        session.refuse("top", wrong="does nothing here, as every part is shown")
        if call.options.get("together"):
            refuse_picture()
    load, fields = partial(model_of, session, model, run), ("text", "answer", "versus", "source")
    run_texts(session, call, to, text, load, doing="patching", pairs=pairs, fields=fields)
