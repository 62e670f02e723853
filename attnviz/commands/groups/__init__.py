"""Options that commands share, in groups: one spelling, one meaning, one definition.

`grouping.py` tells how a command takes them.
"""

from dataclasses import fields, is_dataclass

from attnviz.commands.configuration import NOT_HERE, bare
from attnviz.commands.groups.heads import Filtering, HeadTransforms, Joining, OneRow, WhichHeads
from attnviz.commands.groups.looks import Canvas, Color, Looks, Screen, Views
from attnviz.commands.groups.model import (
    RUN,
    Causal,
    Fetched,
    Kind,
    ModelRun,
    Named,
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
    "shared_keys",
    "source_of",
]


def shared_keys() -> list[str]:
    """The options that commands share, by their names in the user's file of defaults."""
    records = (each for each in globals().values() if isinstance(each, type))
    found = (one for record in records if is_dataclass(record) for one in fields(record))
    options = (one.metadata["flags"] for one in found if "flags" in one.metadata)
    keys = {bare(max((each.partition("/")[0] for each in flags), key=len)) for flags in options}
    return sorted(keys.difference(NOT_HERE))
