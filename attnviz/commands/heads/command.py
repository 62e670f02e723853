"""`attnviz heads`: each head in numbers, and the role that follows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from attnviz.commands.heads import measured
from attnviz.commands.heads.labels import LabelRun
from attnviz.commands.heads.rows import of_report
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import note_texts, text_or_capture
from attnviz.kit.option import command, option_field, panel_option
from attnviz.kit.prepare import TextOptions
from attnviz.kit.scores import Probe, narrow, score_capture, score_probe, score_text
from attnviz.kit.session import Session
from attnviz.models.catalog import Source
from attnviz.records.capture import Capture
from attnviz.records.metrics import HeadReport, MetricName, RoleName
from attnviz.records.transforms import Transforms

EPILOG = """
Examples

attnviz heads

attnviz heads "a fluffy blue creature roamed the verdant forest" --sort distance --top 5

attnviz heads --probe --model gpt2 --role induction -f jsonl | jq -c '[.layer, .head]'

attnviz heads -o heads.png
"""
COMMON = "file probe labels model heads sort top role format output quiet".split()
"""The options that the short help lists."""

Convention: TypeAlias = Literal["second", "whole"]
PROBE = "The probe"


@dataclass(frozen=True)
class HowProbed:
    """How the probe is made."""

    convention: Convention = option_field(
        PROBE,
        "second",
        "--convention",
        help="second: means over the rows of the second copy. whole: means over whole diagonals, "
        "as in TransformerLens.",
    )
    length: int = option_field(
        PROBE,
        Probe.length,
        "--length",
        metavar="N",
        min=2,
        help="The number of tokens in the sequence.",
    )
    samples: int = option_field(
        PROBE,
        Probe.samples,
        "--samples",
        metavar="N",
        min=1,
        max=10_000,
        help="The number of sequences.",
    )
    seed: int = option_field(
        PROBE,
        Probe.seed,
        "--seed",
        metavar="N",
        min=0,
        max=g.LARGEST_SEED,
        help="The random seed.",
    )

    @property
    def record(self) -> Probe:
        """The record that runs take."""
        return Probe(self.length, self.samples, self.seed, whole=self.convention == "whole")


@dataclass(frozen=True)
class Rows:
    """Which heads are listed, and in which order."""

    sort: MetricName | None = option_field(
        g.LOOK,
        None,
        "--sort",
        help="Sort by this metric, largest first. Default: by layer and head.",
    )
    top: int | None = option_field(
        g.LOOK, None, "--top", metavar="K", min=1, help="Show only the first K heads."
    )
    role: RoleName | None = option_field(
        g.LOOK, None, "--role", help="Show only heads with this role."
    )


@command
def heads(
    session: Session,
    *,
    text: g.TextIn,
    probe: Annotated[
        bool,
        panel_option(
            PROBE,
            "--probe",
            help="Measure on a random sequence, repeated. This is the default without a text.",
        ),
    ] = False,
    retrieval: Annotated[
        bool,
        panel_option(
            PROBE,
            "--retrieval",
            help="Measure which heads copy from a long text (a needle in a haystack of random "
            "tokens), and remember them for attnviz generate.",
        ),
    ] = False,
    circuits: Annotated[
        bool,
        panel_option(
            PROBE,
            "--circuits",
            help="From the weights alone: which heads copy (OV circuit), and which compose.",
        ),
    ] = False,
    labels: Annotated[
        Path | None,
        panel_option(
            g.TEXT,
            "--labels",
            metavar="FILE",
            help="Score the heads on labelled links: JSON lines with a text and the keys that its "
            "queries are to attend to.",
        ),
    ] = None,
    probed: HowProbed,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    target: g.Target,
    kind: g.Kind,
    heads: g.WhichHeads,
    transforms: g.HeadTransforms,
    rows: Rows,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.ReportOutput,
    noise: g.Noise,
) -> None:
    """Score every head on a text or on the standard probe, and name its role.

    The metrics are entropy, distance, and the weight on the previous token, the first token,
    the token itself, its earlier occurrences (duplicate) and the tokens that followed them
    (induction).
    """
    to = destination_of(session, output)
    if retrieval:
        measured.check_retrieval(session, HowProbed)
        source = g.source_of(session, model, run)
        measured.retrieve(session, to, source, tokens.options(run), rows.top)
        return
    if circuits:
        measured.check_circuits(session, HowProbed)
        source = g.source_of(session, model, run, kind)
        measured.read_circuits(session, to, source, rows.top, canvas)
        return
    if labels is not None:
        measured.check_labels(session, HowProbed)
        with_labels = LabelRun(
            session.load(g.source_of(session, model, run, kind)),
            tokens.options(run, target.target),
            heads.options,
        )
        measured.score_labels(session, to, labels, with_labels, rows.top, canvas)
        return
    on_probe = probe or (text.text is None and text.file is None)
    _check(session, text, on_probe=on_probe)
    source = g.source_of(session, model, run, kind)
    options = tokens.options(run, target.target)
    if on_probe:
        report = score_probe(session.load(source), probed.record, options, heads.options)
    else:
        report = _over_text(session, text, source, options, heads, transforms.transforms())
    narrowed = narrow(report, rows.sort, rows.role, rows.top)
    deliver_result(session, to, of_report(narrowed), canvas)


def _check(session: Session, text: g.TextIn, *, on_probe: bool) -> None:
    """Only options that mean something here."""
    if on_probe and text.text is not None:
        raise UsageError("the probe has its own text", f"leave {option('probe')} or the text out")
    if on_probe:
        wrong = "does nothing for the probe"
        session.refuse("file", "special", "truncate", g.Target, g.HeadTransforms, wrong=wrong)
    else:
        hint = "leave it out, or leave the text out"
        session.refuse(HowProbed, wrong="is for the probe", hint=hint)


def _over_text(
    session: Session,
    given: g.TextIn,
    source: Source,
    options: TextOptions,
    heads: g.WhichHeads,
    transforms: Transforms,
) -> HeadReport:
    text = text_or_capture(session, given)
    if isinstance(text, Capture):
        return score_capture(text, heads.options, transforms)
    report = score_text(session.load(source), text, options, heads.options, transforms)
    note_texts(session, [report.capture])
    return report
