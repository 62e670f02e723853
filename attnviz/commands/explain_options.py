"""The options that only `attnviz explain` has."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from attnviz.commands import options as o
from attnviz.data.worked import Initialisation, Similarity
from attnviz.inputs.examples import Example

STEPS = "The steps"
EXAMPLES = "Examples without a model"

HeadOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--head",
        "-H",
        metavar="HEAD",
        help="The head to explain: L1H2 or 1.2. Default: the one that show picks.",
        rich_help_panel=o.HEADS,
        show_default=False,
    ),
]
OneQueryOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--query",
        metavar="TOKEN",
        help="The query to follow: a token, creature#2, or an index. Default: the last word.",
        rich_help_panel=o.TOKENS,
        show_default=False,
    ),
]
OnlyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="STEPS",
        help="Only these steps: 3, 2,3 or 2-4.",
        rich_help_panel=STEPS,
        show_default=False,
    ),
]
DigitsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--digits",
        metavar="N",
        min=0,
        max=9,
        help="Decimals to show; nothing is rounded in the calculation.",
        rich_help_panel=STEPS,
        show_default="4",
    ),
]
ColumnsOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--columns",
        help="Tell it with tokens as columns too (Wᵀ·xᵀ), as some lessons do.",
        rich_help_panel=STEPS,
    ),
]
SimilarityOption: TypeAlias = Annotated[
    Similarity | None,
    typer.Option(
        "--similarity",
        help="How query and key are compared: q·k, q·k/√d_k, x·(W_Q·W_Kᵀ)·xᵀ (of a model: x̂, "
        "behind its norm, and neither biases nor scaling), or a kernel of their distance.",
        rich_help_panel=STEPS,
        show_default=False,
    ),
]
AsLookupOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--as-lookup",
        help="Tell the row as a look-up in a database: query, keys, values.",
        rich_help_panel=STEPS,
    ),
]
ExampleOption: TypeAlias = Annotated[
    Example | None,
    typer.Option(
        "--example",
        help="three-inputs: attention by hand, in whole numbers. multi-head: 楚留香 through "
        "three heads of random weights.",
        rich_help_panel=EXAMPLES,
        show_default=False,
    ),
]
MatricesOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--matrices",
        metavar="FILE.json",
        help="Your own x, w_query, w_key and w_value, perhaps w_output, heads and labels "
        "(docs/lessons.md has an example).",
        rich_help_panel=EXAMPLES,
        show_default=False,
    ),
]
RoundedOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--rounded",
        help="Round the softmax to one decimal, as on paper.",
        rich_help_panel=EXAMPLES,
    ),
]
InitOption: TypeAlias = Annotated[
    Initialisation,
    typer.Option("--init", help="How multi-head draws its weights.", rich_help_panel=EXAMPLES),
]
SeedOption: TypeAlias = Annotated[
    int,
    typer.Option("--seed", help="Of the numbers that multi-head draws.", rich_help_panel=EXAMPLES),
]
FormatOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="txt (what the terminal shows), json or npz (every number, in full).",
        rich_help_panel=o.OUTPUT,
        show_default="txt",
    ),
]
