"""See which tokens attend to which.

    import attnviz

    capture = attnviz.capture("a fluffy blue creature", heads="L1H2")
    capture.pattern(1, 2)       # (n_queries, n_keys), float32
    capture.links(top=3)
    capture.save("creature.npz")
    attnviz.generate("the creature was").shares()
    attnviz.heads(sort="induction", top=5).to_columns()
    attnviz.why("a fluffy blue creature", query="creature").record.pairs

Importing the package loads no torch; the first `capture` or `load_model` does.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnviz.api import Model as Model
    from attnviz.api import load_model as load_model
    from attnviz.commands.ablate.command import ablate as ablate
    from attnviz.commands.ablate.curve import LossCurve as LossCurve
    from attnviz.commands.ablate.record import AblationReport as AblationReport
    from attnviz.commands.ablate.record import BeforeAfter as BeforeAfter
    from attnviz.commands.ablate.record import TokenEffects as TokenEffects
    from attnviz.commands.align import align as align
    from attnviz.commands.atlas.command import atlas as atlas
    from attnviz.commands.atlas.views import Development as Development
    from attnviz.commands.atlas.views import Scatter as Scatter
    from attnviz.commands.circuit.command import circuit as circuit
    from attnviz.commands.circuit.record import CircuitReport as CircuitReport
    from attnviz.commands.circuit.record import CircuitSearch as CircuitSearch
    from attnviz.commands.compare.command import compare as compare
    from attnviz.commands.compare.record import ModelComparison as ModelComparison
    from attnviz.commands.compare.record import StreamDifference as StreamDifference
    from attnviz.commands.compare.record import TextComparison as TextComparison
    from attnviz.commands.explain.command import explain as explain
    from attnviz.commands.generate.answered import AttentionAnswer as AttentionAnswer
    from attnviz.commands.generate.command import generate as generate
    from attnviz.commands.generate.square import Square as Square
    from attnviz.commands.heads.alignment import AlignmentScores as AlignmentScores
    from attnviz.commands.heads.boxes import BoxReport as BoxReport
    from attnviz.commands.heads.command import heads as heads
    from attnviz.commands.heads.labels import LabelReport as LabelReport
    from attnviz.commands.heads.receiver import Receivers as Receivers
    from attnviz.commands.heads.retrieval import Retrieval as Retrieval
    from attnviz.commands.patch.command import patch as patch
    from attnviz.commands.patch.record import PatchedTogether as PatchedTogether
    from attnviz.commands.patch.record import PatchReport as PatchReport
    from attnviz.commands.predict.command import predict as predict
    from attnviz.commands.report.command import report as report
    from attnviz.commands.report.record import ResultsReport as ResultsReport
    from attnviz.commands.report.rows import Evaluation as Evaluation
    from attnviz.commands.scan.command import estimate_scan as estimate_scan
    from attnviz.commands.scan.command import scan as scan
    from attnviz.commands.serve.command import live as live
    from attnviz.commands.show.capture import AttentionCapture as AttentionCapture
    from attnviz.commands.show.capture import Link as Link
    from attnviz.commands.show.capture import capture as capture
    from attnviz.commands.show.capture import from_attention as from_attention
    from attnviz.commands.show.capture import load as load
    from attnviz.commands.show.capture import verify as verify
    from attnviz.commands.show.command import ShowOptions as ShowOptions
    from attnviz.commands.show.command import show as show
    from attnviz.commands.show.run import Shown as Shown
    from attnviz.commands.tokens import tokens as tokens
    from attnviz.commands.why.command import why as why
    from attnviz.commands.why.command import writes as writes
    from attnviz.corpus.result import ScanAtlas as ScanAtlas
    from attnviz.corpus.tables import Atlas as Atlas
    from attnviz.corpus.tables import HeadAtlas as HeadAtlas
    from attnviz.errors import AttnvizError as AttnvizError
    from attnviz.kit.panels import Panels as Panels
    from attnviz.kit.panels import panels as panels
    from attnviz.kit.result import Calculation as Calculation
    from attnviz.kit.result import Result as Result
    from attnviz.records.grounding import Check as Check
    from attnviz.records.metrics import HeadReport as HeadReport
    from attnviz.records.parts import Circuits as Circuits
    from attnviz.records.predict import Prediction as Prediction
    from attnviz.records.predict import PredictionMean as PredictionMean
    from attnviz.records.speech import Alignment as Alignment
    from attnviz.records.tokens import Token as Token
    from attnviz.records.trace import Verified as Verified
    from attnviz.records.why import Why as Why
    from attnviz.records.why import WhyMean as WhyMean
    from attnviz.records.why import Write as Write

_HOME = {
    "attnviz.commands.ablate.curve": "LossCurve",
    "attnviz.commands.ablate.record": "AblationReport BeforeAfter TokenEffects",
    "attnviz.corpus.tables": "Atlas HeadAtlas",
    "attnviz.commands.atlas.views": "Development Scatter",
    "attnviz.commands.circuit.record": "CircuitReport CircuitSearch",
    "attnviz.commands.compare.record": "ModelComparison StreamDifference TextComparison",
    "attnviz.commands.generate.square": "Square",
    "attnviz.commands.heads.alignment": "AlignmentScores",
    "attnviz.commands.heads.boxes": "BoxReport",
    "attnviz.commands.heads.labels": "LabelReport",
    "attnviz.commands.heads.receiver": "Receivers",
    "attnviz.commands.heads.retrieval": "Retrieval",
    "attnviz.commands.patch.record": "PatchReport PatchedTogether",
    "attnviz.commands.report.record": "ResultsReport",
    "attnviz.records.grounding": "Check",
    "attnviz.records.metrics": "HeadReport",
    "attnviz.records.parts": "Circuits",
    "attnviz.records.why": "Why WhyMean Write",
    "attnviz.records.predict": "Prediction PredictionMean",
    "attnviz.commands.ablate.command": "ablate",
    "attnviz.commands.serve.command": "live",
    "attnviz.commands.show.capture": "AttentionCapture Link capture from_attention load verify",
    "attnviz.commands.circuit.command": "circuit",
    "attnviz.commands.compare.command": "compare",
    "attnviz.commands.explain.command": "explain",
    "attnviz.commands.generate.command": "generate",
    "attnviz.commands.generate.answered": "AttentionAnswer",
    "attnviz.commands.heads.command": "heads",
    "attnviz.api": "Model load_model",
    "attnviz.commands.patch.command": "patch",
    "attnviz.kit.panels": "Panels panels",
    "attnviz.commands.predict.command": "predict",
    "attnviz.commands.report.command": "report",
    "attnviz.commands.report.rows": "Evaluation",
    "attnviz.commands.scan.command": "estimate_scan scan",
    "attnviz.corpus.result": "ScanAtlas",
    "attnviz.commands.atlas.command": "atlas",
    "attnviz.commands.show.command": "ShowOptions show",
    "attnviz.commands.show.run": "Shown",
    "attnviz.commands.tokens": "tokens",
    "attnviz.commands.align": "align",
    "attnviz.records.speech": "Alignment",
    "attnviz.commands.why.command": "why writes",
    "attnviz.records.tokens": "Token",
    "attnviz.records.trace": "Verified",
    "attnviz.errors": "AttnvizError",
    "attnviz.kit.result": "Calculation Result",
}
"""The public names by their module, which is imported when one is needed."""
__all__ = sorted(["__version__", *" ".join(_HOME.values()).split()])


def __getattr__(name: str) -> Any:
    import importlib
    import importlib.metadata

    if name == "__version__":
        return importlib.metadata.version("attnviz")
    for home, names in _HOME.items():
        if name in names.split():
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'attnviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
