"""The one error type that users see, and the exit codes it becomes."""

import re
from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias


class ExitStatus(IntEnum):
    """What the process says when it ends; documented in the README."""

    OK = 0
    BUG = 1
    USAGE = 2
    INPUT = 3
    MODEL = 4
    OUTPUT = 5
    INTERRUPTED = 130


Speller: TypeAlias = Callable[[str, str | None], str]
"""Writes a parameter, and perhaps its value, as a reader would type it."""


def option(name: str, value: object = None) -> str:
    """A parameter in the text of a message, to be spelled where the message is shown.

    The command line writes `option("top", 5)` as `--top 5`, Python as `top=5`.

    Args:
        name: the parameter, as Python spells it.
        value: what is, or should be, given for it; None for the parameter alone.
    """
    return f"{_BEGIN}{name}{_END}" if value is None else f"{_BEGIN}{name}={value}{_END}"


def spelled(message: str, speller: Speller) -> str:
    """A message with its parameters as the reader types them."""
    return _OPTION.sub(lambda found: speller(found[1], found[2]), message)


ARGUMENTS = {"queries": "query", "keys": "key", "drop_keys": "drop_key"}
"""Parameters that Python names for one of several values."""


def as_argument(name: str, value: str | None) -> str:
    """A parameter as Python writes it: `top=5`, `heads='all'`."""
    name = ARGUMENTS.get(name, name)
    if value is None:
        return name
    number = re.fullmatch(r"-?\d+(\.\d+)?|None|True|False|['\"].*", value, re.DOTALL)
    return f"{name}={value if number else repr(value)}"


# Control characters, which no text that is shown to a user has in it.
_BEGIN, _END = "\x02", "\x03"
_OPTION = re.compile(f"{_BEGIN}(\\w+)(?:=([^{_END}]*))?{_END}")


class AttnvizError(Exception):
    """Something a user can mend: what is wrong, and what to do instead.

    Raise one of the subclasses below, each of which stands for an exit code. As a string,
    parameters are spelled as Python arguments; `spelled` gives another reader's spelling.

    Args:
        wrong: what is wrong, and where; a clause without a final full stop.
        hint: what to do instead; a clause without a final full stop.
    """

    status = ExitStatus.BUG

    def __init__(self, wrong: str, hint: str) -> None:
        self.wrong, self.hint = wrong, hint
        found = _OPTION.search(wrong)
        self.about = found[1] if found else None
        """The parameter that is wrong, where there is one."""
        super().__init__(str(self))

    def __reduce__(self) -> tuple[type["AttnvizError"], tuple[str, str]]:
        """As another process gets it."""
        return type(self), (self.wrong, self.hint)

    def __str__(self) -> str:
        return self.spelled(as_argument)

    def spelled(self, speller: Speller) -> str:
        """The whole sentence, with parameters as the reader types them."""
        return spelled(f"{self.wrong}; {ended(self.hint)}", speller)


def ended(sentence: str) -> str:
    """A sentence with its full stop, if it is no question."""
    return sentence if sentence.endswith("?") else f"{sentence}."


class UsageError(AttnvizError):
    """The options do not fit together, or one has a value it cannot have."""

    status = ExitStatus.USAGE


class IdleOption(UsageError):
    """An option that has no meaning beside the others that were given.

    A default of the user's own is then left out; what was typed is an error.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that the message names, first the one that is rather to be left out."""
        return tuple(found[1] for found in _OPTION.finditer(f"{self.wrong} {self.hint}"))


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
