"""A file of prompts, each with an answer of its own."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, TypeAlias, TypeVar

from attnviz.commands import groups as g
from attnviz.commands.deliver import Destination
from attnviz.commands.grouping import panel_option
from attnviz.commands.lines import OF_A_TEXT, Answered, captured, check_one_file, each_line
from attnviz.commands.session import Session
from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.prompts import PromptLine, read_prompt
from attnviz.records.interventions import Measure


class Measuring(Protocol):
    """How a command measures something after a text: a record, as `replace` takes one."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def answer(self) -> str | None:
        """The word whose prediction is measured; None: as the command does without one."""

    @property
    def versus(self) -> str | None:
        """The word that it is told from, if any."""

    @property
    def measure(self) -> Measure:
        """The unit of effects."""


How = TypeVar("How", bound=Measuring)

Pairs: TypeAlias = Annotated[
    Path | None,
    panel_option(
        g.TEXT,
        "--pairs",
        metavar="FILE",
        help="Run many prompts: JSON lines with text, answer, versus, and source for patch. The "
        "terminal shows the mean; as rows, it comes last.",
    ),
]


def check_pairs(session: Session, to: Destination, *, lines: bool = False) -> None:
    """Only options that mean something for a file of prompts.

    Raises:
        UsageError: a text is given beside them, or a file for each of them.
    """
    if lines or session.given("text", "file"):
        raise UsageError(f"the texts are those of {option('pairs')}", "leave the other text out")
    check_one_file(to, lines=True)


def each_pair(
    session: Session, file: Path, how: How, found: Callable[[PromptLine, How, int], Answered]
) -> Iterator[Answered]:
    """What is found of each prompt; a bad line is reported on stderr and left out.

    Args:
        session: the session.
        file: of JSON lines.
        how: what is measured, where a line does not say it.
        found: runs a prompt, with what is measured after it and the number of its line.

    Raises:
        InputError: at the end, where no line was good.
    """
    measures = set[Measure]()

    def run(line: str, number: int) -> Answered:
        prompt = read_prompt(line)
        answer, versus = prompt.asked(how.answer, how.versus)
        own = replace(how, answer=answer, versus=versus)
        if measures - {own.measure}:
            raise InputError(
                "this line asks for another measurement than the lines before it",
                "give an answer and a versus on every line, or on none",
            )
        answered = found(prompt, own, number)
        measures.add(own.measure)
        return answered

    return each_line(session, g.TextIn(None, file), run, captured, OF_A_TEXT)
