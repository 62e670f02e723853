"""Options that commands share, in groups: one spelling, one meaning, one definition.

`option.py` makes commands and functions take them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from attnviz.console import ColorMode
from attnviz.errors import IdleOption, UsageError, option, series
from attnviz.kit import completion
from attnviz.kit.option import (
    OUTPUT,
    Arguments,
    Cli,
    Everywhere,
    flags_of,
    info_of,
    panel_option,
    positional,
)
from attnviz.kit.prepare import TextOptions, Truncation
from attnviz.kit.session import NOT_HERE, Session, bare
from attnviz.kit.write import PICTURES, ROWS, VIEWS, View
from attnviz.models.catalog import Source
from attnviz.models.placement import BUILTIN, Device, DType, Engine, Placement, size_of
from attnviz.records.capture import PairKind, ShownKind
from attnviz.records.exhibit import ColorScale, Orient
from attnviz.records.places import Pixels
from attnviz.records.transforms import HowOver, Over

# The headings of help, and the function that declares an option under each.
TEXT, MODEL, HEADS, TOKENS = "The text", "The model", "Which heads", "Which tokens"
LOOK = "How it is shown"
text_option, model_option, heads_option, tokens_option, look_option, output_option = (
    partial(panel_option, panel) for panel in (TEXT, MODEL, HEADS, TOKENS, LOOK, OUTPUT)
)


def shared_keys() -> list[str]:
    """The options that commands share, by their names in the user's file of defaults."""
    shared = [Everywhere, *globals().values()]
    shared += [one.type for each in shared if is_dataclass(each) for one in fields(each)]
    keys = {bare(flags_of(info)[0]) for info in map(info_of, shared) if info}
    return sorted(keys.difference(NOT_HERE))


# The types that Python takes for texts of the command line.

Names: TypeAlias = str | int | Sequence[str | int]
"""One token or several: `"creature"`, `"creature#2"`, `4`, `-1`, `"/^c/"`."""
HeadName: TypeAlias = str | tuple[int, int]
"""One head: `"L1H2"`, `"1.2"`, `(1, 2)`."""
HeadNames: TypeAlias = str | int | tuple[int, int] | Sequence[str | int | tuple[int, int]]
"""Heads: `"L1H2,L2H0"`, `"0-3"`, `"all"`, `2`, `-1`, `(1, 2)`, or a list of these; layers too."""
LayerNames: TypeAlias = str | int | Sequence[str | int]
"""Layers: `"0-3"`, `"all"`, `2`, or a list of these."""

# Options that functions of Python take, too.

LAYER = heads_option(
    "--layer",
    "-l",
    metavar="LAYERS",
    help="Layers, counted from 0: 1, -1 (the last), 0-3, 0,2 or all. Without --head: every head of "
    "these layers.",
)
LayersNamed: TypeAlias = Annotated[HeadNames | None, Cli(str | None), LAYER]
HEAD = heads_option(
    "--head",
    "-H",
    metavar="HEADS",
    autocompletion=completion.heads,
    help="Heads, counted from 0: L1H2 or 1.2; 2 (head 2 of every chosen layer); 0-3; 0,2; all; "
    "top5:induction.",
)
HeadsNamed: TypeAlias = Annotated[HeadNames | None, Cli(str | None), HEAD]
Truncate: TypeAlias = Annotated[
    Truncation | None,
    text_option("--truncate", help="Cut a text that is too long for the model, on this side."),
]
Bos: TypeAlias = Annotated[
    bool | None,
    text_option(
        "--bos/--no-bos",
        help="Put a beginning token (BOS) before the text. Default: as the model was trained.",
        show_default=False,
    ),
]
Special: TypeAlias = Annotated[
    bool, text_option("--special", help="Read special tokens that the text spells as such.")
]
PAIR = text_option(
    "--text-pair",
    metavar="TEXT",
    help="The second text of a pair, for a model such as BERT; @A and @B name the tokens of each.",
)
TextPair: TypeAlias = Annotated[str | None, PAIR]
TextPairs: TypeAlias = Annotated[str | Sequence[str] | None, Cli(str | None), PAIR]
ImageFile: TypeAlias = str | PathLike[str] | Pixels | Any
"""An image: a file, an array (height, width, 3) of bytes, or an image of pillow."""
Images: TypeAlias = Annotated[
    ImageFile | Sequence[ImageFile],
    Cli(list[Path] | None, default=None),
    text_option(
        "--image",
        metavar="FILE",
        help="An image to read with the text, where it says <image>, or else before it. "
        "Repeatable.",
    ),
]
VectorFile: TypeAlias = str | PathLike[str] | Sequence[float] | Any
"""A vector of the stream: an .npy file, or an array (d)."""
SoundFile: TypeAlias = str | PathLike[str] | tuple[Any, int]
"""A sound: a file, or its samples (n) or (n, channels) and their number per second."""
Sound: TypeAlias = Annotated[
    SoundFile | None,
    Cli(Path | None, default=None),
    text_option(
        "--audio",
        metavar="FILE",
        help="A sound for a model that reads speech, in place of a text: WAV; other formats with "
        "the extra audio.",
    ),
]
StartSecond: TypeAlias = Annotated[
    float,
    text_option(
        "--start",
        metavar="SECONDS",
        min=0,
        help="The second of a sound at which the model begins to read.",
        show_default=False,
    ),
]
ANSWER = text_option(
    "--answer", metavar="TOKEN", help="Measure the log-probability of this token after the text."
)
AnswerWords: TypeAlias = Annotated[str | Sequence[str] | None, Cli(str | None), ANSWER]
VERSUS = text_option(
    "--versus",
    metavar="TOKEN",
    help="With --answer, measure by how much its logit exceeds this token's.",
)
VersusWords: TypeAlias = Annotated[str | Sequence[str] | None, Cli(str | None), VERSUS]
SOURCE = text_option("--from", metavar="SOURCE", help="The text that vectors are taken from.")
MaybeSource: TypeAlias = Annotated[str | Sequence[str] | None, Cli(str | None), SOURCE]
AlignedWords: TypeAlias = Annotated[
    str | Sequence[str],
    Cli(list[str] | None),
    tokens_option(
        "--align",
        metavar="WORD=WORD",
        help="A word of the text, and the word of the source that stands for it; for texts of "
        "different lengths. Repeatable.",
    ),
]

NamedParts: TypeAlias = Annotated[
    Sequence[str],
    Cli(list[str] | None),
    text_option(
        "--segment",
        metavar="NAME=WHERE",
        help="A named part of the text: NAME=/regular expression/ or NAME=START:END. Repeatable.",
    ),
]

FeaturesIn: TypeAlias = Annotated[
    "str | PathLike[str] | None",
    Cli(Path | None),
    panel_option(
        "What is asked",
        "--features",
        metavar="FOLDER",
        help="A sparse autoencoder or transcoder, in a folder of sae-lens: its features take the "
        "place of the parts that wrote the stream of its layer, or of its MLP.",
    ),
]

OneHead: TypeAlias = Annotated[
    HeadName | None,
    Cli(str | None),
    heads_option(
        "--head",
        "-H",
        metavar="HEAD",
        autocompletion=completion.heads,
        help="The head: L1H2 or 1.2. Default: the one that show picks.",
    ),
]
OneToken: TypeAlias = str | int
"""A token: `"creature"`, `"creature#2"`, `4`, `-1`."""
QUERY = tokens_option(
    "--query",
    metavar="TOKEN",
    autocompletion=completion.tokens,
    help="The query: a token, creature#2, or an index (-1 is the last one). Default: the first one "
    "that show names, or the last word.",
)
OneQuery: TypeAlias = Annotated[OneToken | None, Cli(str | None), QUERY]

Weighted: TypeAlias = Annotated[
    bool,
    heads_option(
        "--weighted",
        help="Norm-based attention: each weight times the norm of the vector that its key "
        "contributes.",
    ),
]
RelativeTo: TypeAlias = Annotated[
    str | None,
    heads_option(
        "--relative",
        metavar="PROMPT",
        help="Divide the weights on images by those of a neutral prompt, such as "
        "'describe the image', so that sinks no longer stand out.",
    ),
]
Contribution: TypeAlias = Annotated[
    bool,
    heads_option(
        "--contribution",
        help="Contribution weights: the share of the head's output that each key adds in its "
        "direction. They have a sign, and rows sum to 1.",
    ),
]
Chars: TypeAlias = Annotated[
    bool | None,
    tokens_option(
        "--chars/--no-chars",
        help="Merge tokens that are parts of one character. Default: only show merges them, in the "
        "terminal and in pictures.",
        show_default=False,
    ),
]
Words: TypeAlias = Annotated[
    bool,
    tokens_option(
        "--words", help="Merge the pieces of each word; a Chinese character counts as a word."
    ),
]
DropSink: TypeAlias = Annotated[
    bool,
    tokens_option(
        "--drop-sink",
        help="Remove the first token and the keys on which a head rests, and rescale each row "
        "that keeps 0.2 or more.",
    ),
]
DropKey: TypeAlias = Annotated[
    Names,
    Cli(list[str] | None),
    tokens_option(
        "--drop-key",
        metavar="TOKEN",
        help="Remove these keys in the same way. Given as for --query.",
    ),
]

TargetText: TypeAlias = Annotated[
    str | None,
    model_option(
        "--target",
        metavar="TEXT",
        help="The output to assume for an encoder-decoder. Default: the output it generates.",
    ),
]
MaskLater: TypeAlias = Annotated[
    bool,
    model_option(
        "--causal",
        help="Mask later tokens in --model embeddings and in examples, which otherwise have none.",
    ),
]
LARGEST_SEED = (1 << 32) - 1


def seed_option(in_panel: Callable[..., Any], help: str) -> Any:
    """The seed of what is drawn at random, in the panel of such an option."""
    return in_panel("--seed", metavar="N", min=0, max=LARGEST_SEED, help=help)


def top_option(help: str, **more: Any) -> Any:
    """The number of parts to show."""
    return look_option("--top", metavar="K", min=1, help=help, **more)


Reduce: TypeAlias = Annotated[
    HowOver | None,
    heads_option(
        "--reduce",
        help="Show the mean or the maximum of the chosen heads (default: all heads), or one over "
        "the heads of each layer, or over the layers.",
    ),
]
ReduceOver: TypeAlias = Annotated[
    Over | None, heads_option("--over", help="What --reduce says now.", hidden=True)
]
Rollout: TypeAlias = Annotated[
    bool,
    heads_option(
        "--rollout",
        help="Attention rollout: the product of the attention of all layers, or of all up to "
        "--layer.",
    ),
]
ShowScores: TypeAlias = Annotated[
    bool,
    heads_option(
        "--scores", help="Show scores instead of weights: scaled q·k, before mask and softmax."
    ),
]
Queries: TypeAlias = Annotated[
    Names,
    Cli(list[str] | None),
    tokens_option(
        "--query",
        metavar="TOKEN",
        autocompletion=completion.tokens,
        help="Show only these queries (rows): a token, creature#2 (its second occurrence), an "
        "index, or a /regular expression/. Repeatable.",
    ),
]
Keys: TypeAlias = Annotated[
    Names,
    Cli(list[str] | None),
    tokens_option(
        "--key",
        metavar="TOKEN",
        autocompletion=completion.tokens,
        help="Show only these keys (columns). Given as for --query.",
    ),
]
TopKeys: TypeAlias = Annotated[
    int | None,
    tokens_option(
        "--top", metavar="K", min=1, help="Show only the K strongest keys of each query."
    ),
]
LeastWeight: TypeAlias = Annotated[
    float,
    Cli(float, default=0.0),
    tokens_option(
        "--min",
        metavar="W",
        min=0.0,
        max=1.0,
        help="Show only links of at least this weight.",
        show_default=False,
    ),
]
Skip: TypeAlias = Annotated[
    Literal["self", "previous", "self,previous"] | None,
    tokens_option("--skip", help="Hide links to the token itself, to the previous one, or both."),
]
NoSelf: TypeAlias = Annotated[
    bool, tokens_option("--no-self", help="What --skip self says now.", hidden=True)
]
NoPrevious: TypeAlias = Annotated[
    bool, tokens_option("--no-previous", help="What --skip previous says now.", hidden=True)
]
NEAR = "self", "previous"
"""The tokens that --skip names, by their distance."""
RENAMED = {f"no_{name}": option("skip", name) for name in NEAR}
RENAMED["over"] = option("reduce", "mean:layers")
"""Options of the version before, and how they are spelled now."""


def notes_of_renamed(options: Mapping[str, Any]) -> list[str]:
    """A sentence for each option that goes with the next version."""
    used = ((name, new) for name, new in RENAMED.items() if options.get(name))
    return [f"{option(name)} goes with the next version; write {new}" for name, new in used]


def by_new_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of show, those of the version before among them as they are spelled now."""
    now, skip = options.get("reduce"), options.get("skip") or ""
    near = (name for name in NEAR if name in skip or options.get(f"no_{name}"))
    if over := options.get("over"):
        if now not in ("mean", "max"):
            hint = f"add {option('reduce', 'mean')} or {option('reduce', 'max')}"
            raise IdleOption(f"{option('over')} needs {option('reduce')}", hint)
        now = f"{now}:{over}"
    kept = {name: value for name, value in options.items() if name not in RENAMED}
    return {**kept, "reduce": now, "skip": ",".join(near)}


# Options: how things are shown.


ViewName: TypeAlias = Annotated[
    View | None,
    look_option(
        "--view",
        help=" ".join(f"{name}: {what}." for name, what in VIEWS.items()),
        autocompletion=completion.views,
    ),
]
Orientation: TypeAlias = Annotated[
    Orient | None,
    look_option(
        "--orient",
        help="key-rows draws keys as rows, as some lessons do; columns then sum to 1.",
        show_default="query-rows",
    ),
]
ColorMap: TypeAlias = Annotated[
    str | None,
    look_option(
        "--cmap",
        metavar="NAME",
        help="The Matplotlib colour map of a picture.",
        show_default="Blues; RdBu_r for values with a sign, viridis for layers",
        autocompletion=completion.cmaps,
    ),
]
Dpi: TypeAlias = Annotated[
    int | None,
    look_option(
        "--dpi",
        metavar="N",
        help="The resolution of a picture, in dots per inch.",
        show_default="150",
    ),
]
ScaleOfColors: TypeAlias = Annotated[
    ColorScale | None,
    look_option(
        "--color-scale",
        help="The colour scale of a picture: linear, log (which shows small weights), or each row "
        "on its own scale.",
        show_default="linear",
    ),
]
Title: TypeAlias = Annotated[
    str | None,
    look_option(
        "--title",
        metavar="TITLE",
        help="The title of a picture, above the line with its model, text and head; an empty one "
        "removes both.",
        show_default="the head",
    ),
]


@dataclass(frozen=True)
class Paper:
    """Whether a picture is for a paper."""

    paper: Annotated[
        float | None,
        look_option(
            "--paper",
            metavar="CM",
            min=2.0,
            max=200.0,
            help="Draw the picture for a paper, with this width in centimetres (a column is 8.5). "
            "Its title goes into the file's metadata, with the command, the seed and the versions.",
        ),
    ] = None


@dataclass(frozen=True)
class Canvas(Paper):
    """The look of a picture."""

    cmap: ColorMap = None
    dpi: Dpi = None

    @property
    def look(self) -> dict[str, Any]:
        """The values that the user chose, for a renderer with its own defaults."""
        look = {"cmap": self.cmap, "dpi": self.dpi}
        return {name: value for name, value in look.items() if value is not None}


@dataclass(frozen=True)
class Color:
    """Whether the terminal shows colours."""

    color: Annotated[
        ColorMode,
        look_option(
            "--color",
            help="Whether to use colours. auto: on a terminal, unless NO_COLOR is set. always: in "
            "a pipe, too.",
        ),
    ] = "auto"
    no_color: Annotated[bool, look_option("--no-color", help="The same as --color never.")] = False


# Options: the text, its tokens, and the measure after it.


@dataclass(frozen=True)
class TextIn:
    """The one text of a command, or the saved capture in its place."""

    text: Annotated[
        str | None,
        positional(
            "TEXT",
            "The text, - for standard input, or the name of a saved capture (.npz).",
            autocompletion=completion.captures,
        ),
    ] = None
    file: Annotated[
        Path | None,
        text_option(
            "--file", metavar="FILE", help="Read a file, or a sample such as sample:mystery."
        ),
    ] = None


@dataclass(frozen=True)
class Tokens:
    """The conversion of a text to tokens."""

    truncate: Truncate = None
    bos: Bos = None
    special: Special = False
    text_pair: TextPair = None

    def options(self, run: "ModelRun | None" = None, target: str | None = None) -> TextOptions:
        """The record that runs take."""
        max_memory = run.placement.max_memory if run else None
        return TextOptions(
            self.bos, self.special, self.truncate, target, max_memory, self.text_pair
        )


# Options: the model and its runs.


Revision: TypeAlias = Annotated[
    str | None,
    model_option("--revision", metavar="REV", help="A branch, tag or commit of a hub model."),
]
Offline: TypeAlias = Annotated[
    bool, model_option("--offline", help="Never use the network; a hub model must be in the cache.")
]


_named_model = partial(
    model_option,
    "--model",
    "-m",
    metavar="NAME",
    envvar="ATTNVIZ_MODEL",
    autocompletion=completion.models,
)


@dataclass(frozen=True)
class WhichModel:
    """The model, and its source."""

    model: Annotated[
        str,
        _named_model(
            help="builtin, translator, shapes, embeddings, a hub id (gpt2), a model's folder, or a "
            "GGUF file.",
        ),
    ] = "builtin"
    revision: Revision = None
    offline: Offline = False


SeveralModels: TypeAlias = Annotated[
    list[str] | None,
    _named_model(
        help="A model: a bundled one, a hub id or a folder. Repeatable; the first is the default.",
        show_default=BUILTIN,
    ),
]


@dataclass(frozen=True)
class ModelRun:
    """The device, precision and memory of a run."""

    engine: Annotated[
        Engine,
        model_option(
            "--engine",
            help="The code that runs a GPT-2 or a Llama-like model: from scratch (native), or "
            "transformers, which runs all models. auto: native where possible.",
        ),
    ] = "auto"
    device: Annotated[
        Device,
        model_option(
            "--device",
            metavar="DEVICE",
            autocompletion=completion.formats(("auto", "cpu", "cuda", "mps")),
            help="The device to run on: cpu, cuda, cuda:1, mps. auto: a GPU if there is one.",
        ),
    ] = "auto"
    dtype: Annotated[
        DType,
        model_option(
            "--dtype",
            help="The precision of the run. auto: float32. The weights shown are always float32.",
        ),
    ] = "auto"
    max_memory: Annotated[
        str | None,
        model_option(
            "--max-memory",
            metavar="SIZE",
            help="Refuse a run that needs more memory than this: 4GB, 1.5GiB. Default: 80% of the "
            "free memory.",
        ),
    ] = None

    @property
    def placement(self) -> Placement:
        """The device, precision and memory, as a record."""
        try:
            size = None if self.max_memory is None else size_of(self.max_memory)
            if size == 0:
                raise ValueError
        except ValueError:
            raise UsageError(
                f"{option('max_memory', repr(self.max_memory))} is not a size",
                "give one such as 4GB or 500MB",
            ) from None
        return Placement(self.device, self.dtype, size)


Verify: TypeAlias = Annotated[
    bool,
    model_option(
        "--verify",
        help="Compare the model's output with and without capture, and the weights with "
        "transformers' own eager attention. A difference that float32 rounding does not explain "
        "ends with exit code 1.",
    ),
]
WhichKind: TypeAlias = Annotated[
    PairKind | None,
    model_option(
        "--kind",
        help="The attention of an encoder-decoder to show: from its output to its input "
        "(cross), or within either of them. Default: cross.",
    ),
]
ShowsKind: TypeAlias = Annotated[
    ShownKind | None,
    model_option(
        "--kind",
        help="The attention to show. In an encoder-decoder: from its output to its input (cross), "
        "or within either of them (default: cross). In a model that reads images: to the image "
        "(cross, if it has cross-attention), or within the image (encoder). The implicit "
        "attention of Mamba-2 and Gated DeltaNet layers (implicit).",
    ),
]
RUN = (
    "model revision offline engine device dtype max_memory verify target kind causal truncate bos "
    "special audio start text_pair"
).split()
"""The options of a model's run, which do not apply to a saved capture."""


def check_capture(call: Arguments) -> None:
    """A rule: with a capture in place of the text, no option of a run."""
    if hasattr(call.values.get("text", call.values.get("given")), "record"):
        check_run_already([name for name in RUN if name in call.chosen])


def check_run_already(names: Iterable[str]) -> None:
    """Check that no option of a run is given with a saved capture."""
    refused = ", ".join(map(option, names))
    if refused:
        raise UsageError("a saved capture is not run again", f"leave {refused} out")


def source_of(
    session: Session,
    which: WhichModel,
    run: ModelRun | None = None,
    kind: ShownKind | None = None,
    *,
    causal: bool = False,
) -> Source:
    """The source of the model, and the settings of its run."""
    return Source(
        name=which.model,
        revision=which.revision,
        offline=which.offline,
        quiet=session.quiet,
        kind=kind,
        causal=causal,
        engine=run.engine if run else "auto",
        placement=(run or ModelRun()).placement,
    )


# Options: the output.


def _format(formats: tuple[str, ...], note: str = "") -> Any:
    return output_option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"{series(('txt (as in the terminal)', *formats[1:]), 'or')}{note}.",
        show_default="txt",
        autocompletion=completion.formats(formats),
    )


RECORDS = ("txt", "json", *ROWS)


@dataclass(frozen=True)
class OutputOptions(Color):
    """The target of a result, its format among those of the command, and its width."""

    formats: ClassVar[tuple[str, ...]] = (*RECORDS, "npz", "html", *PICTURES)
    width: Annotated[
        int | None,
        look_option(
            "--width",
            metavar="N",
            help="The width of terminal output in columns, 40 or more.",
            show_default="the terminal's",
        ),
    ] = None
    format: Annotated[str | None, _format(formats)] = None
    output: Annotated[
        Path | None,
        output_option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to a file; its suffix sets the format. -: to standard output.",
        ),
    ] = None


@dataclass(frozen=True)
class DrawnOutput(OutputOptions, Paper):
    """The target of a view, in every format."""


@dataclass(frozen=True)
class RecordOutput(OutputOptions):
    """The target of records."""

    formats = RECORDS
    format: Annotated[str | None, _format(formats)] = None


@dataclass(frozen=True)
class ReportOutput(OutputOptions, Canvas):
    """The target of records, or of a picture of them, and its look."""

    formats = (*RECORDS, *PICTURES)
    format: Annotated[str | None, _format(formats)] = None


@dataclass(frozen=True)
class ComparisonOutput(ReportOutput):
    """The target of records, of a picture of them, of a matrix, or of a vector."""

    formats = (*RECORDS, "npz", "npy", *PICTURES)
    format: Annotated[str | None, _format(formats)] = None


@dataclass(frozen=True)
class PageOutput(ReportOutput):
    """The target of records, of a picture of them, or of a page."""

    formats = (*RECORDS, "html", *PICTURES)
    format: Annotated[str | None, _format(formats)] = None


@dataclass(frozen=True)
class EvaluationOutput(OutputOptions):
    """The target of records, or of a page of them."""

    formats = (*RECORDS, "html")
    format: Annotated[str | None, _format(formats)] = None


@dataclass(frozen=True)
class CalculationOutput(OutputOptions, Canvas):
    """The target of a calculation, or of a picture of it."""

    formats = ("txt", "json", "html", "npz", *PICTURES)
    format: Annotated[str | None, _format(formats, note="; json and npz have every number")] = None


@dataclass(frozen=True)
class ObjectOutput(OutputOptions):
    """The target of one object."""

    formats = ("txt", "json")
    format: Annotated[str | None, _format(formats)] = None
