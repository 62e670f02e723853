"""Options that commands share, in groups: one spelling, one meaning, one definition.

`grouping.py` tells how a command takes them.
"""

from attnviz.commands.groups.heads import Filtering, HeadTransforms, Joining, OneRow, WhichHeads
from attnviz.commands.groups.looks import Canvas, Color, Looks, Screen, Views
from attnviz.commands.groups.model import (
    RUN,
    Causal,
    Fetched,
    Kind,
    ModelRun,
    Named,
    PairKind,
    Target,
    Verify,
    WhichModel,
    source_of,
)
from attnviz.commands.groups.output import (
    RECORDS,
    CalculationOutput,
    ComparisonOutput,
    Noise,
    ObjectOutput,
    OutputOptions,
    PageOutput,
    RecordOutput,
    ReportOutput,
)
from attnviz.commands.groups.panels import HEADS, LOOK, MODEL, OUTPUT, TEXT, TOKENS
from attnviz.commands.groups.text import Measured, TextIn, Tokens

LARGEST_SEED = (1 << 32) - 1

__all__ = [
    "HEADS",
    "LARGEST_SEED",
    "LOOK",
    "MODEL",
    "OUTPUT",
    "RECORDS",
    "RUN",
    "TEXT",
    "TOKENS",
    "CalculationOutput",
    "Canvas",
    "Causal",
    "Color",
    "ComparisonOutput",
    "Fetched",
    "Filtering",
    "HeadTransforms",
    "Joining",
    "Kind",
    "Looks",
    "Measured",
    "ModelRun",
    "Named",
    "Noise",
    "ObjectOutput",
    "OneRow",
    "OutputOptions",
    "PageOutput",
    "PairKind",
    "RecordOutput",
    "ReportOutput",
    "Screen",
    "Target",
    "TextIn",
    "Tokens",
    "Verify",
    "Views",
    "WhichHeads",
    "WhichModel",
    "source_of",
]
