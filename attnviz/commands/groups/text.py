"""Options: the text, how it becomes tokens, and what is measured after it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from attnviz.commands import completion
from attnviz.commands.groups.panels import of_text
from attnviz.runs.options import TextOptions, Truncation

if TYPE_CHECKING:
    from attnviz.commands.groups.model import ModelRun


@dataclass(frozen=True)
class TextIn:
    """The one text of a command, or the saved capture in its place."""

    text: str | None = field(
        default=None,
        metadata={
            "typer": typer.Argument(
                metavar="TEXT",
                autocompletion=completion.captures,
                help="The text, - for standard input, or the name of a saved capture (.npz).",
                show_default=False,
            )
        },
    )
    file: Path | None = of_text(None, "--file", metavar="FILE", help="Read the text from a file.")


@dataclass(frozen=True)
class Tokens:
    """How a text becomes tokens."""

    truncate: Truncation | None = of_text(
        None, "--truncate", help="Cut a text that is too long for the model, on this side."
    )
    bos: bool | None = of_text(
        None,
        "--bos/--no-bos",
        help="Put a beginning token (BOS) before the text. Default: as the model was trained.",
        show_default=False,
    )
    special: bool = of_text(
        False, "--special", help="Read <|endoftext|> in the text as the special token."
    )

    def options(self, run: "ModelRun | None" = None, target: str | None = None) -> TextOptions:
        """The record that runs take."""
        max_memory = run.placement.max_memory if run else None
        return TextOptions(self.bos, self.special, self.truncate, target, max_memory)


@dataclass(frozen=True)
class Measured:
    """What is measured after a text."""

    answer: str | None = of_text(
        None,
        "--answer",
        metavar="TOKEN",
        help="Measure the log-probability of this token after the text.",
    )
    versus: str | None = of_text(
        None,
        "--versus",
        metavar="TOKEN",
        help="With --answer, measure by how much its logit exceeds this token's.",
    )
