"""The one error type that users see, and its exit codes."""

import importlib.util
import re
import shlex
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher
from enum import IntEnum
from typing import TypeAlias


class ExitStatus(IntEnum):
    """Exit codes of the process, each with its meaning."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> "ExitStatus":
        status = int.__new__(cls, code)
        status._value_, status.meaning = code, meaning
        return status

    OK = 0, "success; also when the reader of a pipe closes it"
    BUG = 1, "a bug (--debug shows the traceback), or a capture that --verify finds inexact"
    USAGE = 2, "wrong usage: no such option, head or token, or a wrong configuration file"
    INPUT = 3, "unusable input: no text, not UTF-8, too long, no such file, a line that failed"
    MODEL = 4, "the model cannot be found or loaded, or its run would not fit into memory"
    OUTPUT = 5, "the output cannot be written"
    BELOW = 6, "report with --fail-under, --fail-drop or --max-failed: the answers are worse"
    INTERRUPTED = 130, "interrupted"


Speller: TypeAlias = Callable[[str, str | None], str]
"""A function that writes a parameter, and perhaps its value, as a reader would type it."""


def option(name: str, value: object = None) -> str:
    """A parameter in a message, which is spelled when the message is shown.

    The command line writes `option("top", 5)` as `--top 5`, Python as `top=5`.

    `value`: the given or the proposed value; None for only the parameter.
    """
    return f"{_BEGIN}{name}{_END}" if value is None else f"{_BEGIN}{name}={value}{_END}"


def spelled(message: str, speller: Speller) -> str:
    """A message with its parameters as the reader types them."""
    return _OPTION.sub(lambda found: speller(found[1], found[2]), message)


ARGUMENTS = {"queries": "query", "keys": "key", "drop_keys": "drop_key"}
"""Parameters whose Python name is singular."""


def argument(name: str) -> str:
    """The name of a parameter in Python."""
    return ARGUMENTS.get(name, name)


def as_argument(name: str, value: str | None) -> str:
    """A parameter as Python writes it: `top=5`, `heads='all'`."""
    name = argument(name)
    if value is None:
        return name
    number = re.fullmatch(r"-?\d+(\.\d+)?|None|True|False|['\"].*", value, re.DOTALL)
    return f"{name}={value if number else repr(value)}"


# Control characters, which texts for users do not contain.
_BEGIN, _END = "\x02", "\x03"
_OPTION = re.compile(f"{_BEGIN}(\\w+)(?:=([^{_END}]*))?{_END}")


class AttnvizError(Exception):
    """An error that a user can mend: its fault and its remedy.

    Raise one of the subclasses below, each with its exit code. As a string,
    parameters are spelled as Python arguments; `spelled` gives another reader's spelling.

    Args:
        wrong: the fault and its place; a clause without a final full stop.
        hint: the remedy; a clause without a final full stop.
    """

    status = ExitStatus.BUG

    def __init__(self, wrong: str, hint: str) -> None:
        self.wrong, self.hint = wrong, hint
        found = _OPTION.search(wrong)
        self.about = found[1] if found else None
        """The parameter at fault, if any."""
        super().__init__(str(self))

    def __reduce__(self) -> tuple[type["AttnvizError"], tuple[str, str]]:
        """The pickled form, for another process."""
        return type(self), (self.wrong, self.hint)

    def __str__(self) -> str:
        return self.spelled(as_argument)

    def spelled(self, speller: Speller) -> str:
        """The whole sentence, with parameters as the reader types them."""
        return spelled(f"{self.wrong}; {ended(self.hint)}", speller)


def ended(sentence: str) -> str:
    """A sentence with its full stop, unless it is a question."""
    return sentence if sentence.endswith("?") else f"{sentence}."


def series(words: Sequence[str], last: str = "and") -> str:
    """Words as a sentence lists them: `a, b and c`; `last` stands before the last of several."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def nearest(name: str, names: Iterable[str], alike: float = 0.61) -> str:
    """A hint of the names most similar to an unknown one; "" if none is similar enough."""
    name = name[:100]  # to compare a megabyte takes minutes
    ratios = {each: SequenceMatcher(a=each, b=name.lower()).ratio() for each in names}
    most = max(alike, *ratios.values(), 0.0)
    close = sorted(each for each in ratios if ratios[each] == most)
    return f"did you mean {series(close, 'or')}?" if close and name not in ratios else ""


class UsageError(AttnvizError):
    """The options do not fit together, or one has a value it cannot have."""

    status = ExitStatus.USAGE

    def __init__(self, wrong: str, hint: str = "leave it out") -> None:
        super().__init__(wrong, hint)


class IdleOption(UsageError):
    """An option without effect among the others that were given.

    A default of the user's own is then left out; what was typed is an error.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters in the message, first the one that should rather be left out."""
        return tuple(found[1] for found in _OPTION.finditer(f"{self.wrong} {self.hint}"))


class InputError(AttnvizError):
    """The text, or the file it comes from, cannot be used."""

    status = ExitStatus.INPUT


class ModelError(AttnvizError):
    """The model cannot be found, loaded or run."""

    status = ExitStatus.MODEL


class RefusedChat(ModelError):
    """The model's template refuses this chat; it may accept another one."""


class InexactError(AttnvizError):
    """A verification found that the capture differs from the model's own computation."""


class OutputError(AttnvizError):
    """The result cannot be written."""

    status = ExitStatus.OUTPUT


# Text from outside, made harmless: escape codes and direction marks are escaped.

LAYOUT = "\n\u200e"
_ODD = re.compile("[^ -~]")
# a quotation begins after a space or a bracket, unlike an apostrophe
_LONG = re.compile(r"(?<=[\s(=]')[^'\n]{81,}(?=')|(?<!\S)/\S{300,}|(?<!\S)[^/\s]\S{80,}")
COMMAND = " with: pip install "
"""The beginning of a command to type; it ends a message and is never shortened."""


def readable(text: str) -> str:
    """A text without its outer spaces, and with every control character escaped.

    A text of only spaces becomes `␣`, so that no label is empty. Format characters (category
    Cf: direction marks, joiners) are escaped too, as they would reorder or hide the characters
    beside them.
    """
    bare = text.strip(" ") or "␣" * len(text)
    return "".join(_escaped(character) for character in bare)


def in_quotes(text: str) -> str:
    """The text in quotes, spaces and all, with every control character escaped."""
    inner = "".join(_escaped(character) for character in text)
    return '"' + inner.replace('"', '\\"') + '"'


def harmless(text: str, layout: str = LAYOUT) -> str:
    """A laid-out text in which every character that is not part of a layout is escaped.

    Line breaks stay, and left-to-right marks, which renderers put around words that are written
    from right to left. This is the last filter before a terminal, a picture or a page; text from
    outside is made `readable` before it is laid out.
    """
    if text.isprintable():
        return text
    return _ODD.sub(lambda odd: odd[0] if odd[0] in layout else _escaped(odd[0]), text)


def shortened(message: str) -> str:
    """Shorten quotations and single words of a message to 80 characters.

    The beginning and the end of a longer one stay, as the end of a path is its name. A full path
    that is not quoted is part of a command to type, and may have 300; text from `COMMAND` on stays.
    """
    said, *command = message.partition(COMMAND)
    return _LONG.sub(lambda found: f"{found[0][:40]}…{found[0][-39:]}", said) + "".join(command)


def _escaped(character: str) -> str:
    if unicodedata.category(character)[0] != "C" and character not in "\u2028\u2029":
        return character
    return character.encode("unicode_escape").decode()


# The installation of extras.

NAME = "attnviz"


def missing(what: str, extra: str) -> UsageError:
    """The error for a missing extra; its hint is the command that installs it.

    `what`: the need for a package: "a Ray cluster needs ray".
    """
    command = command_to_install(requirements_of(extra) or [f"{NAME}[{extra}]"])
    return UsageError(f"{what}, which is not installed", f"install it: {command}")


@contextmanager
def needing(what: str, extra: str, *packages: str) -> Iterator[None]:
    """Turn an import that fails, as an extra's package is missing or broken, into that error."""
    try:
        yield
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError)
        if absent and (error.name or "").partition(".")[0] not in packages:
            raise
        raise missing(what, extra) from None


def requirements_of(extra: str) -> list[str]:
    """The packages of an extra, with their versions; none if the metadata has none."""
    import importlib.metadata  # takes a moment

    from packaging.requirements import Requirement  # takes a moment

    found = []
    with suppress(importlib.metadata.PackageNotFoundError):
        for each in map(Requirement, importlib.metadata.requires(NAME) or ()):
            marker, each.marker = each.marker, None
            if marker and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
                found.append(str(each))
    return found


def command_to_install(requirements: Sequence[str], python: str = sys.executable) -> str:
    """The command that installs packages, such as `textual<9,>=8`, beside attnviz."""
    pip = importlib.util.find_spec("pip") is not None  # environments of uv lack it
    installer = [python, "-m", "pip", "install"] if pip else ["uv", "pip", "install"]
    words = [*installer, *([] if pip else ["--python", python]), *requirements]
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """A word quoted for any shell, in double quotes if possible, as Windows needs them."""
    quoted = shlex.quote(word)
    return quoted if quoted == word or set(word) & set('"$`!\\') else f'"{word}"'
