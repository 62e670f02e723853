"""The one error type that users see, and the exit codes it becomes."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """What the process says when it ends; documented in the README."""

    OK = 0
    BUG = 1
    USAGE = 2
    INPUT = 3
    MODEL = 4
    OUTPUT = 5
    INTERRUPTED = 130


class AttnvizError(Exception):
    """Something a user can mend: what is wrong, and what to do instead.

    Raise one of the subclasses below, each of which stands for an exit code.

    Args:
        wrong: what is wrong, and where; a clause without a final full stop.
        hint: what to do instead; a clause without a final full stop.
    """

    status = ExitStatus.BUG

    def __init__(self, wrong: str, hint: str) -> None:
        super().__init__(wrong, hint)
        self.wrong = wrong
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.wrong}; {self.hint}."


class UsageError(AttnvizError):
    """The options do not fit together, or one has a value it cannot have."""

    status = ExitStatus.USAGE


class InputError(AttnvizError):
    """The text, or the file it comes from, cannot be used."""

    status = ExitStatus.INPUT


class ModelError(AttnvizError):
    """The model cannot be found, loaded or run."""

    status = ExitStatus.MODEL


class InexactError(AttnvizError):
    """A verification found that what is captured is not what the model computes."""


class OutputError(AttnvizError):
    """The result cannot be written."""

    status = ExitStatus.OUTPUT
