"""`attnviz heads`: each head in numbers, and the role that follows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from attnviz.commands.heads.alignment import OF_ALIGNMENT, AlignmentScores, alignment_scores
from attnviz.commands.heads.boxes import OF_BOXES, BoxReport, BoxTask, score_boxes
from attnviz.commands.heads.labels import OF_LABELS, LabelReport, run_labelled, score_labels
from attnviz.commands.heads.qk_ov import OF_CIRCUITS, circuits_of
from attnviz.commands.heads.receiver import OF_RECEIVERS, Receivers, receivers
from attnviz.commands.heads.retrieval import (
    OF_RETRIEVAL,
    Needles,
    Retrieval,
    RetrievalScore,
    keep,
    known,
    measure_retrieval,
)
from attnviz.commands.heads.rows import of_report
from attnviz.errors import IdleOption, UsageError, option
from attnviz.inputs.beside import folder_of
from attnviz.inputs.text import read_lines
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import each_line, note_texts, text_or_capture
from attnviz.kit.option import Arguments, Call, Cli, R, command_of, feature, only, panel_option
from attnviz.kit.prepare import prepare
from attnviz.kit.result import Form, Result
from attnviz.kit.scores import Probe, narrow, score_capture, score_probe, score_text
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    FilePath,
    Loaded,
    loaded,
    model_of,
    texts_of,
    transforms,
    which_heads,
)
from attnviz.records.capture import Capture
from attnviz.records.metrics import HeadReport, MetricName, RoleName
from attnviz.records.parts import Circuits

if TYPE_CHECKING:
    from attnviz.commands.show.capture import AttentionCapture

probe_option = partial(panel_option, "The probe")
OnProbe: TypeAlias = Annotated[
    bool,
    probe_option(
        "--probe",
        help="Measure on a random sequence, repeated. This is the default without a text.",
    ),
]
OfRetrieval: TypeAlias = Annotated[
    bool,
    probe_option(
        "--retrieval",
        help="Measure which heads copy from a long text (a needle in a haystack of random "
        "tokens), and remember them for attnviz generate.",
    ),
]
ScoredBy: TypeAlias = Annotated[
    RetrievalScore,
    probe_option(
        "--retrieval-score",
        help="attention: the head attends to the copied token. writes: it adds to this token's "
        "logit from its place (LOCOS).",
    ),
]
OfReceivers: TypeAlias = Annotated[
    bool,
    probe_option(
        "--receiver",
        help="Find the heads whose later sentences attend to few earlier ones, in a text such as "
        "a chain of thought.",
    ),
]
OfCircuits: TypeAlias = Annotated[
    bool,
    probe_option(
        "--circuits",
        help="From the weights alone: which heads copy (OV circuit), and which compose.",
    ),
]
OfAlignment: TypeAlias = Annotated[
    bool,
    g.text_option(
        "--alignment",
        help="Score how the heads' attention to a sound follows it: the share of their weight "
        "along a monotone path.",
    ),
]
Labels: TypeAlias = Annotated[
    FilePath | Iterable[Mapping[str, Any]] | None,
    Cli(Path | None),
    g.text_option(
        "--labels",
        metavar="FILE",
        help="Score the heads on labelled links: JSON lines with a text and the keys that its "
        "queries are to attend to.",
    ),
]
Boxes: TypeAlias = Annotated[
    FilePath | Iterable[Mapping[str, Any]] | None,
    Cli(Path | None),
    g.text_option(
        "--boxes",
        metavar="FILE",
        help="Score the heads on boxes in images: JSON lines with a query and the box that it is "
        "about, in pixels or in shares of the image.",
    ),
]
ProbeConvention: TypeAlias = Annotated[
    Literal["second", "whole"],
    probe_option(
        "--convention",
        help="second: previous, duplicate and induction are means over the rows of the second "
        "copy. whole: over whole diagonals, as in TransformerLens.",
    ),
]
ProbeLength: TypeAlias = Annotated[
    int, probe_option("--length", metavar="N", min=2, help="The number of tokens in the sequence.")
]
Samples: TypeAlias = Annotated[
    int, probe_option("--samples", metavar="N", min=1, max=10_000, help="The number of sequences.")
]
ProbeSeed: TypeAlias = Annotated[int, g.seed_option(probe_option, "The random seed.")]
SortBy: TypeAlias = Annotated[
    MetricName | None,
    g.look_option(
        "--sort", help="Sort by this metric or column, largest first. Default: by layer and head."
    ),
]
TopHeads: TypeAlias = Annotated[int | None, g.top_option("Show only the first K heads.")]
OfRole: TypeAlias = Annotated[
    RoleName | None, g.look_option("--role", help="Show only heads with this role.")
]

DRAWN = "convention length samples seed"
TRANSFORMS = "weighted chars words drop_sink drop_key"


def _measured_alone(call: Arguments) -> None:
    """Refuse options that do nothing for retrieval, circuits or labelled links."""
    useless = f"file text_pair probe sort role {DRAWN} {TRANSFORMS}"
    if call["receiver"]:
        useless = f"probe retrieval circuits labels sort role {DRAWN} {TRANSFORMS} target layers"
        call.refuse(f"{useless} heads kind cmap dpi", f"does nothing for {option('receiver')}")
        if call["text"] is None and "file" not in call.chosen:
            raise UsageError(f"{option('receiver')} is of a text", "give one")
        return
    if call["alignment"]:
        call.refuse(
            f"{useless} labels boxes retrieval circuits bos special truncate cmap dpi",
            f"does nothing for {option('alignment')}",
        )
        return
    if call["boxes"] is not None:
        call.refuse(f"{useless} labels retrieval circuits target", "does nothing for boxes")
        return
    if call["retrieval"]:
        wrong = "does nothing for the measurement of retrieval"
        useless += " circuits labels special truncate target kind layers heads cmap dpi"
    elif call["circuits"]:
        wrong = "does nothing for circuits, which are read off the weights"
        useless += " labels target layers heads truncate bos special"
    elif call["labels"] is not None:
        wrong = "does nothing for labelled links"
    else:
        return
    if call["text"] is not None:
        raise UsageError("this is measured without a text of yours", "leave the text out")
    call.refuse(useless, wrong)


def _probe_or_text(call: Arguments) -> None:
    """Refuse options that do nothing for the probe, or for a text."""
    measured = call["labels"] is not None or call["boxes"] is not None
    if measured or call.any_of("receiver retrieval circuits alignment"):
        return
    given = call["text"] is not None or bool({"file", "image"} & call.chosen)
    given = given or call["audio"] is not None
    if not call["probe"] and given:
        call.refuse(DRAWN, "is for the probe", "leave it out, or leave the text out")
        return
    if call["text"] is not None or call["image"]:
        wrong, what = "the probe has its own text", "image" if call["image"] else "text"
        raise IdleOption(wrong, f"leave {option('probe')} or the {what} out")
    useless = f"file text_pair special truncate target {TRANSFORMS}"
    call.refuse(useless, "does nothing for the probe")


@feature(
    only("retrieval_score", lambda call: call["retrieval"], f"is for {option('retrieval')}"),
    _measured_alone,
    _probe_or_text,
    g.check_capture,
)
def heads(
    text: "str | Sequence[str] | AttentionCapture | None" = None,
    model: AnyModel = "builtin",
    *,
    probe: OnProbe = False,
    retrieval: OfRetrieval = False,
    retrieval_score: ScoredBy = "attention",
    receiver: OfReceivers = False,
    circuits: OfCircuits = False,
    alignment: OfAlignment = False,
    labels: Labels = None,
    boxes: Boxes = None,
    convention: ProbeConvention = "second",
    length: ProbeLength = Probe.length,
    samples: Samples = Probe.samples,
    seed: ProbeSeed = Probe.seed,
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    weighted: g.Weighted = False,
    chars: g.Chars = None,
    words: g.Words = False,
    drop_sink: g.DropSink = False,
    drop_key: g.DropKey = (),
    sort: SortBy = None,
    role: OfRole = None,
    top: TopHeads = None,
    image: g.Images = (),
    audio: g.Sound = None,
    start: g.StartSecond = 0.0,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPair = None,
    target: g.TargetText = None,
) -> (
    Result[HeadReport]
    | Result[Retrieval]
    | Result[Receivers]
    | Result[Circuits]
    | Result[LabelReport]
    | Result[BoxReport]
    | Result[AlignmentScores]
):
    """Score every head on a text or on the standard probe, and name its role.

    >>> attnviz.heads(sort="induction", top=1).rows[0]["role"]
    'induction'
    >>> links = [{"text": "a fluffy blue creature", "links": [["creature", ["fluffy", "blue"]]]}]
    >>> best = attnviz.heads(labels=links, heads="L3H2,L0H0").rows[0]
    >>> best["layer"], best["head"], round(best["mass"], 2)
    (3, 2, 0.98)

    `labels` takes objects with a `text` and its `links`, `[[query, [keys]], …]`, too; `boxes` those
    with a `query`, its `box` and perhaps its own `text` and `image`.

    Args:
        text: a text, a capture or an image's file; or several texts, over which the mean is taken;
            None measures on `image`, else on the probe.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is a `HeadReport`, `Retrieval`, `Receivers`, `Circuits`,
        `LabelReport`, `BoxReport` or `AlignmentScores`.
    """
    captured: Any = getattr(text, "record", text)
    done = transforms(
        weighted=weighted, chars=chars, words=words, drop_sink=drop_sink, drop_key=drop_key
    )
    if receiver and isinstance(captured, Capture):
        raise UsageError(f"{option('receiver')} runs a text", "give the text, not its capture")
    if isinstance(captured, Capture):
        which = which_heads(None, layers, heads)
        if alignment:
            aligned = alignment_scores(captured, which)
            return Result(OF_ALIGNMENT, aligned, [aligned.capture], _top=top)
        return of_report(narrow(score_capture(captured, which, done), sort, role, top))
    model = loaded(model)
    which = which_heads(model, layers, heads)
    options = model._text_options(bos, special, truncate, target, image, audio, start, text_pair)
    said, *more = texts = texts_of(captured or "")
    if more and (alignment or receiver or boxes is not None):
        raise UsageError("this is measured on one text", "give one")
    if alignment:
        aligned = alignment_scores(prepare(model._loaded, said, options), which)
        return Result(OF_ALIGNMENT, aligned, [aligned.capture], _top=top)
    if receiver:
        found = receivers(model._loaded, said, options)
        return Result(OF_RECEIVERS, found, [found.capture], _top=top)
    if retrieval:
        scored = measure_retrieval(model._loaded, Needles(), options, retrieval_score)
        keep(model._loaded, scored)
        return Result(OF_RETRIEVAL, scored, models=[scored.model], _top=top)
    if circuits:
        taken = circuits_of(model._loaded)
        return Result(OF_CIRCUITS, taken, models=[taken.model], _top=top)
    if labels is not None:
        return _of_lines(OF_LABELS, score_labels(model._loaded, labels, options, which), top)
    if boxes is not None:
        task = BoxTask(model._loaded, options, which, None if text is None else said)
        return _of_lines(OF_BOXES, score_boxes(task, boxes), top)
    if text is None and not options.given:
        drawn = Probe(length, samples, seed, whole=convention == "whole")
        return of_report(narrow(score_probe(model._loaded, drawn, options, which), sort, role, top))
    report = score_text(model._loaded, texts, options, which, done)
    return of_report(narrow(report, sort, role, top))


def _of_lines(form: Form[Any], report: LabelReport | BoxReport, top: int | None) -> Result[Any]:
    """The scores over lines that were run."""
    return Result(form, report, [run.capture for run in report.runs], _top=top)


EXAMPLES = """
attnviz heads
attnviz heads "a fluffy blue creature roamed the verdant forest" --sort distance --top 5
attnviz heads --probe --model gpt2 --role induction -f jsonl | jq -c '[.layer, .head]'
attnviz heads -o heads.png
"""
SHORT_HELP = "file probe labels model heads sort top role format output quiet"


@command_of(
    heads,
    "text text_pair probe retrieval retrieval_score receiver circuits alignment labels boxes "
    "convention length samples seed image audio start truncate bos special model run target kind "
    "layers heads weighted chars words drop_sink drop_key sort top role",
)
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    text: g.TextIn,
    model: g.WhichModel,
    run: g.ModelRun,
    kind: g.WhichKind = None,
    output: g.ReportOutput,
) -> None:
    """Score every head on a text or on the standard probe, and name its role.

    The metrics are entropy, distance, and the weight on the previous token, the first token,
    the token itself, its earlier occurrences (duplicate) and the tokens that followed them
    (induction).
    """
    to = destination_of(session, output)
    texts = text.text is not None or text.file is not None
    words = text_or_capture(session, text) if texts else None
    if isinstance(words, Capture):
        deliver_result(session, to, call(text=words))
        return
    ready = model_of(session, model, run, kind)
    given = call["labels"] is not None or call["boxes"] is not None
    result = _score_lines(session, call, ready, words) if given else call(text=words, model=ready)
    if call["retrieval"] and known(ready._loaded) != result.record:
        session.note("the scores are not remembered, as the cache folder cannot be written")
    if (texts or call["image"]) and call["boxes"] is None:
        note_texts(session, result.captures)
    deliver_result(session, to, result)


def _score_lines(
    session: Session, call: Call[Result[Any]], model: Loaded, text: str | None
) -> Result[Any]:
    """The scores on the labelled texts, or on the boxes, of a file; a bad line is left out."""
    options = model._text_options(
        call["bos"], call["special"], call["truncate"], None, call["image"]
    )
    which, inner = which_heads(model, call["layers"], call["heads"]), model._loaded

    def scored(file: Path, what: str, run: Callable[[str], R], none: str) -> list[R]:
        lines = session.progress(read_lines(None, file, session.stdin), what)
        return [one for _, one in each_line(session, lines, lambda each, _: run(each), none=none)]

    if call["boxes"] is None:
        folder = folder_of(call["labels"])
        labelled = partial(run_labelled, inner, options=options, heads=which, folder=folder)
        texts = scored(call["labels"], "text", labelled, "no labelled text could be run")
        return _of_lines(OF_LABELS, LabelReport(inner.identity, texts), call["top"])
    task = BoxTask(inner, options, which, text, folder_of(call["boxes"]))
    boxes = scored(call["boxes"], "box", task.run, "no box could be measured")
    return _of_lines(OF_BOXES, BoxReport(inner.identity, boxes), call["top"])
