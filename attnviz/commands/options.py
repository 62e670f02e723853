"""Options that commands share: one spelling, one meaning, one definition."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from attnviz.commands.session import Session
from attnviz.data.exhibit import ColorScale, Orient
from attnviz.errors import UsageError
from attnviz.models.memory import size_of
from attnviz.models.placement import Device, DType, Engine, Placement
from attnviz.runs.options import Truncation
from attnviz.transforms.apply import ShowOptions
from attnviz.transforms.reduce import How, Over

LINE = "{line}"
"""What stands for the number of the line in the name of a file that each line gets."""

View: TypeAlias = Literal["table", "heatmap", "grid", "text", "links"]


def _set_debug(context: typer.Context, value: bool) -> bool:
    if isinstance(context.obj, Session):
        context.obj.debug = value
    return value


def _set_quiet(context: typer.Context, value: bool) -> bool:
    if isinstance(context.obj, Session):
        context.obj.quiet = value
    return value


PairKind: TypeAlias = Literal["cross", "encoder", "decoder"]

RUN = (
    *("model", "revision", "offline", "engine", "device", "dtype", "max_memory", "verify"),
    *("target", "kind", "causal", "bos", "special", "truncate"),
)
"""Options that concern the run of a model."""


def placement_of(device: Device, dtype: DType, max_memory: str | None) -> Placement:
    """Where and how a model runs, from the options.

    Raises:
        UsageError: the size cannot be read.
    """
    try:
        size = None if max_memory is None else size_of(max_memory)
        if size == 0:
            raise ValueError
    except ValueError:
        raise UsageError(
            f"--max-memory {max_memory!r} is no size", "give one such as 4GB or 500MB"
        ) from None
    return Placement(device, dtype, size)


def given(context: typer.Context, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the options that stood on the command line, as they are spelled."""
    sources = ((name, context.get_parameter_source(name)) for name in names)
    spelled = ((name.replace("_", "-"), source) for name, source in sources)
    return tuple(f"--{name}" for name, source in spelled if source and source.name == "COMMANDLINE")


def refuse_run_options(names: Sequence[str]) -> None:
    """A saved capture was run already.

    Raises:
        UsageError: options that concern the run of a model were given.
    """
    if names:
        raise UsageError("a saved capture was run already", f"leave {', '.join(names)} out")


def transforms(
    words: bool, chars: bool, weighted: bool, drop_sink: bool, drop_key: Sequence[str] | None
) -> ShowOptions:
    """The transforms that leave heads apart, from the options of a command that compares heads.

    Raises:
        UsageError: both ways to merge tokens.
    """
    if words and chars:
        raise UsageError("--words merges what --chars does, and more", "give one of them")
    return ShowOptions(
        weighted=weighted,
        merge="words" if words else "chars" if chars else None,
        drop_sink=drop_sink,
        drop_keys=tuple(drop_key or ()),
    )


TEXT = "The text"
MODEL = "The model"
HEADS = "Which heads"
TOKENS = "Which tokens"
LOOK = "How it is shown"
OUTPUT = "Where it goes"

TextArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        help="The text; - reads standard input; a name that ends in .npz is a saved capture.",
        show_default=False,
    ),
]
FileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="Read the text from a file.",
        rich_help_panel=TEXT,
        show_default=False,
    ),
]
LinesOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--lines",
        help="Each line of the input is a text of its own, answered as soon as it is done.",
        rich_help_panel=TEXT,
    ),
]
TruncateOption: TypeAlias = Annotated[
    Truncation | None,
    typer.Option(
        "--truncate",
        help="Cut a text that is longer than the model's context, from this side.",
        rich_help_panel=TEXT,
        show_default=False,
    ),
]
BosOption: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--bos/--no-bos",
        help="Put a beginning token in front. Default: as the model was trained.",
        rich_help_panel=TEXT,
        show_default=False,
    ),
]
SpecialOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--special",
        help="Read <|endoftext|> in the text as the special token, not as text.",
        rich_help_panel=TEXT,
    ),
]
ModelOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        envvar="ATTNVIZ_MODEL",
        help="builtin, translator, embeddings, a hub id such as gpt2, or a model's folder.",
        rich_help_panel=MODEL,
    ),
]
RevisionOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--revision",
        metavar="REV",
        help="A branch, tag or commit of a hub model.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]
OfflineOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--offline",
        help="Never use the network; a hub model must be in the cache.",
        rich_help_panel=MODEL,
    ),
]
EngineOption: TypeAlias = Annotated[
    Engine,
    typer.Option(
        "--engine",
        help="What runs a GPT-2: the from-scratch model (native), or transformers as for all "
        "others. auto: native where it can.",
        rich_help_panel=MODEL,
    ),
]
DeviceOption: TypeAlias = Annotated[
    Device,
    typer.Option(
        "--device",
        help="Where it runs. auto: a graphics processor where there is one.",
        rich_help_panel=MODEL,
    ),
]
DTypeOption: TypeAlias = Annotated[
    DType,
    typer.Option(
        "--dtype",
        help="The type of number it runs in. auto: float32. What is shown is always float32.",
        rich_help_panel=MODEL,
    ),
]
MaxMemoryOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="SIZE",
        help="Stop before more than this is used: 4GB, 1.5GiB. Default: 80% of what is free.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]
VerifyOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Compare the model's output with and without capture, and the weights with "
        "transformers' own eager attention; in float32 a difference above 1e-5 ends with 1.",
        rich_help_panel=MODEL,
    ),
]
TargetOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TEXT",
        help="What an encoder-decoder is to have written. Default: what it writes itself.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]
KindOption: TypeAlias = Annotated[
    PairKind | None,
    typer.Option(
        "--kind",
        help="Which attention of an encoder-decoder: what it writes on what it reads (cross), "
        "or either by itself. Default: cross.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]
CausalOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--causal",
        help="Mask what comes later, where that is open: --model embeddings, examples.",
        rich_help_panel=MODEL,
    ),
]
LayerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--layer",
        "-l",
        metavar="LAYERS",
        help="Layers, from 0: 1, 0-3, 0,2 or all. Alone: all their heads.",
        rich_help_panel=HEADS,
        show_default=False,
    ),
]
HeadOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--head",
        "-H",
        metavar="HEADS",
        help="Heads, from 0: L1H2 or 1.2; 2 is head 2 of every chosen layer; 0-3, 0,2 or all.",
        rich_help_panel=HEADS,
        show_default=False,
    ),
]
ReduceOption: TypeAlias = Annotated[
    How | None,
    typer.Option(
        "--reduce",
        help="Show the mean or the maximum of the chosen heads (all, if none is chosen).",
        rich_help_panel=HEADS,
        show_default=False,
    ),
]
OverOption: TypeAlias = Annotated[
    Over | None,
    typer.Option(
        "--over",
        help="Reduce over the heads of each layer, over layers, or over all. Default: all.",
        rich_help_panel=HEADS,
        show_default=False,
    ),
]
CharsOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--chars",
        help="Merge the tokens that are parts of one character.",
        rich_help_panel=TOKENS,
    ),
]
WordsOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--words",
        help="Merge the pieces of each word; a Chinese character is a word.",
        rich_help_panel=TOKENS,
    ),
]
DropSinkOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--drop-sink",
        help="Leave the first token (BOS, where there is one) out as a key; the rest sums to 1.",
        rich_help_panel=TOKENS,
    ),
]
DropKeyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--drop-key",
        metavar="TOKEN",
        help="Leave these keys out in the same way; as --query.",
        rich_help_panel=TOKENS,
        show_default=False,
    ),
]
RolloutOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--rollout",
        help="Attention through all layers, multiplied; --layer: to these instead of the last.",
        rich_help_panel=HEADS,
    ),
]
WeightedOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--weighted",
        help="Norm-based attention: each weight times the length of what its key adds.",
        rich_help_panel=HEADS,
    ),
]
ScoresOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--scores",
        help="Not the weights, but what they are made of: queries times keys, scaled, before mask "
        "and softmax.",
        rich_help_panel=HEADS,
    ),
]
QueryOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--query",
        metavar="TOKEN",
        help="Only these queries (rows): a token, creature#2 for the second one, an index, or a "
        "/regular expression/. May be given several times.",
        rich_help_panel=TOKENS,
        show_default=False,
    ),
]
KeyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="TOKEN",
        help="Only these keys (columns); as --query.",
        rich_help_panel=TOKENS,
        show_default=False,
    ),
]
TopOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--top",
        metavar="K",
        min=1,
        help="Only the K strongest keys of each query.",
        rich_help_panel=TOKENS,
        show_default=False,
    ),
]
MinOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--min",
        metavar="W",
        min=0.0,
        max=1.0,
        help="Only links of at least this weight.",
        rich_help_panel=TOKENS,
        show_default=False,
    ),
]
NoSelfOption: TypeAlias = Annotated[
    bool,
    typer.Option("--no-self", help="No links from a token to itself.", rich_help_panel=TOKENS),
]
NoPreviousOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--no-previous", help="No links to the token just before.", rich_help_panel=TOKENS
    ),
]
ViewOption: TypeAlias = Annotated[
    View | None,
    typer.Option(
        "--view",
        help="table: each query's strongest keys. heatmap: coloured cells. grid: every head in "
        "miniature. text: the words, shaded by how much one query attends to them. links: the "
        "strongest links of all heads.",
        rich_help_panel=LOOK,
        show_default=False,
    ),
]
OrientOption: TypeAlias = Annotated[
    Orient | None,
    typer.Option(
        "--orient",
        help="key-rows draws keys as rows, as some lessons do (columns then sum to 1).",
        rich_help_panel=LOOK,
        show_default="query-rows",
    ),
]
CmapOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cmap",
        metavar="NAME",
        help="Matplotlib's colour map for pictures.",
        rich_help_panel=LOOK,
        show_default="viridis",
    ),
]
ColorScaleOption: TypeAlias = Annotated[
    ColorScale | None,
    typer.Option(
        "--color-scale",
        help="Colours of pictures: linear, log (small weights show), or each row by itself.",
        rich_help_panel=LOOK,
        show_default="linear",
    ),
]
DpiOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--dpi",
        metavar="N",
        help="Dots per inch of a picture.",
        rich_help_panel=LOOK,
        show_default="150",
    ),
]
TitleOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--title",
        metavar="TITLE",
        help="The title of a picture.",
        rich_help_panel=LOOK,
        show_default="model and head",
    ),
]
WidthOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--width",
        metavar="N",
        help="Columns of terminal output, 40 or more.",
        rich_help_panel=LOOK,
        show_default="the terminal's",
    ),
]
NoColorOption: TypeAlias = Annotated[
    bool, typer.Option("--no-color", help="No colours (also: NO_COLOR=1).", rich_help_panel=LOOK)
]
FormatOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="txt (what the terminal shows), json, jsonl, csv, tsv, npz, html, png, svg or pdf.",
        rich_help_panel=OUTPUT,
        show_default="txt",
    ),
]
RecordFormatOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="txt (what the terminal shows), json, jsonl, csv or tsv.",
        rich_help_panel=OUTPUT,
        show_default="txt",
    ),
]
ReportFormatOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="txt (what the terminal shows), json, jsonl, csv, tsv, png, svg or pdf.",
        rich_help_panel=OUTPUT,
        show_default="txt",
    ),
]
OutputOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to a file; its suffix decides the format.",
        rich_help_panel=OUTPUT,
        show_default=False,
    ),
]
QuietOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="No notes or progress on stderr.",
        callback=_set_quiet,
        rich_help_panel=OUTPUT,
    ),
]
DebugOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show the traceback of an error.",
        callback=_set_debug,
        is_eager=True,
        rich_help_panel=OUTPUT,
    ),
]
