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
    from attnviz.api import Model, load_model
    from attnviz.commands.ablate.command import ablate
    from attnviz.commands.ablate.curve import LossCurve
    from attnviz.commands.ablate.record import AblationReport, BeforeAfter, TokenEffects
    from attnviz.commands.align import align
    from attnviz.commands.atlas.command import atlas
    from attnviz.commands.atlas.views import Development, Scatter
    from attnviz.commands.circuit.command import circuit
    from attnviz.commands.circuit.record import CircuitReport, CircuitSearch
    from attnviz.commands.compare.command import compare
    from attnviz.commands.compare.record import (
        ModelComparison,
        StreamDifference,
        TextComparison,
    )
    from attnviz.commands.explain.command import explain
    from attnviz.commands.generate.answered import AttentionAnswer
    from attnviz.commands.generate.command import generate
    from attnviz.commands.generate.square import Square
    from attnviz.commands.heads.alignment import AlignmentScores
    from attnviz.commands.heads.boxes import BoxReport
    from attnviz.commands.heads.command import heads
    from attnviz.commands.heads.labels import LabelReport
    from attnviz.commands.heads.receiver import Receivers
    from attnviz.commands.heads.retrieval import Retrieval
    from attnviz.commands.patch.command import patch
    from attnviz.commands.patch.record import PatchedTogether, PatchReport
    from attnviz.commands.predict.command import predict
    from attnviz.commands.report.command import report
    from attnviz.commands.report.record import ResultsReport
    from attnviz.commands.report.rows import Evaluation
    from attnviz.commands.scan.command import estimate_scan, scan
    from attnviz.commands.serve.command import live
    from attnviz.commands.show.capture import (
        AttentionCapture,
        Link,
        capture,
        from_attention,
        load,
        verify,
    )
    from attnviz.commands.show.command import ShowOptions, show
    from attnviz.commands.show.run import Shown
    from attnviz.commands.tokens import tokens
    from attnviz.commands.why.command import why, writes
    from attnviz.corpus.result import ScanAtlas
    from attnviz.corpus.tables import Atlas, HeadAtlas
    from attnviz.errors import AttnvizError
    from attnviz.kit.panels import Panels, panels
    from attnviz.kit.result import Calculation, Result
    from attnviz.records.grounding import Check
    from attnviz.records.metrics import HeadReport
    from attnviz.records.parts import Circuits
    from attnviz.records.predict import Prediction, PredictionMean
    from attnviz.records.speech import Alignment
    from attnviz.records.tokens import Token
    from attnviz.records.trace import Verified
    from attnviz.records.why import Why, WhyMean, Write

__all__ = [
    "AblationReport",
    "Alignment",
    "AlignmentScores",
    "Atlas",
    "AttentionAnswer",
    "AttentionCapture",
    "AttnvizError",
    "BeforeAfter",
    "BoxReport",
    "Calculation",
    "Check",
    "CircuitReport",
    "CircuitSearch",
    "Circuits",
    "Development",
    "Evaluation",
    "HeadAtlas",
    "HeadReport",
    "LabelReport",
    "Link",
    "LossCurve",
    "Model",
    "ModelComparison",
    "Panels",
    "PatchReport",
    "PatchedTogether",
    "Prediction",
    "PredictionMean",
    "Receivers",
    "Result",
    "ResultsReport",
    "Retrieval",
    "ScanAtlas",
    "Scatter",
    "ShowOptions",
    "Shown",
    "Square",
    "StreamDifference",
    "TextComparison",
    "Token",
    "TokenEffects",
    "Verified",
    "Why",
    "WhyMean",
    "Write",
    "__version__",
    "ablate",
    "align",
    "atlas",
    "capture",
    "circuit",
    "compare",
    "estimate_scan",
    "explain",
    "from_attention",
    "generate",
    "heads",
    "live",
    "load",
    "load_model",
    "panels",
    "patch",
    "predict",
    "report",
    "scan",
    "show",
    "tokens",
    "verify",
    "why",
    "writes",
]

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
"""The module of each name, which is imported when it is needed."""


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
    return sorted(__all__)
