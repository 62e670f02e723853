"""What a user gives in Python, checked as the command line's own parser checks it there."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar, get_args

from attnviz.data.asked import asking
from attnviz.data.head import Head
from attnviz.data.transforms import Transforms
from attnviz.errors import UsageError, option
from attnviz.runs.options import HeadOptions

P = ParamSpec("P")
T = TypeVar("T")
Names: TypeAlias = str | int | Sequence[str | int]
"""One token or several: `"creature"`, `"creature#2"`, `4`, `-1`, `"/^c/"`."""
HeadName: TypeAlias = str | tuple[int, int]
"""One head: `"L1H2"`, `"1.2"`, `(1, 2)`."""
HeadNames: TypeAlias = str | int | tuple[int, int] | Sequence[str | int | tuple[int, int]]
"""Heads: `"L1H2,L2H0"`, `"0-3"`, `"all"`, `2`, `(1, 2)`, or a list of these; layers likewise."""

LayerNames: TypeAlias = str | int | Sequence[str | int]
"""Layers: `"0-3"`, `"all"`, `2`, or a list of these."""


def recorded(function: Callable[P, T]) -> Callable[P, T]:
    """The same function; its results carry the options that it was given."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run(*args: P.args, **named: P.kwargs) -> T:
        bound = signature.bind(*args, **named)
        given = {**bound.arguments, **bound.arguments.get("options", {})}
        given.pop("options", None)
        bound.apply_defaults()
        with asking(given, bound.arguments.get("seed")):
            return function(*args, **named)

    return run


def check_text(text: object) -> None:
    """Check that a text is one.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(text, str):
        several = isinstance(text, list | tuple)
        hint = "give the texts one by one" if several else "give a str"
        raise UsageError(f"a {type(text).__name__} is not a text", hint)


def texts_of(text: str | Sequence[str]) -> list[str]:
    """One text or several.

    Raises:
        UsageError: there is none, or something that is no text.
    """
    texts = [text] if isinstance(text, str) or not isinstance(text, Sequence) else list(text)
    for each in texts:
        check_text(each)
    if not texts:
        raise UsageError("there is no text", "give one or more")
    return texts


def words_of(name: str, given: str | Sequence[str] | None, texts: int) -> list[str | None]:
    """A word for each text, from one for all or from one for each.

    Raises:
        UsageError: there is another number of them, or something that is no word.
    """
    if given is None or isinstance(given, str):
        return [given] * texts
    words = list(given) if isinstance(given, Sequence) else [given]
    if len(words) != texts or not all(isinstance(word, str) for word in words):
        raise UsageError(
            f"{option(name)} is not one text, or one for each of {texts}",
            "give one, or a list of as many as there are texts",
        )
    return list(words)


def check_word(name: str, value: object) -> None:
    """Check a text that an option takes; None, for none, passes.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(value, str | None):
        raise UsageError(f"{option(name)} is of type {type(value).__name__}", "give a str")


def words(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """One text or several that an option takes.

    Raises:
        UsageError: it is something else.
    """
    several: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    for each in several:
        check_word(name, each)
    return tuple(several)


def check_one_of(name: str, value: object, choices: Any) -> None:
    """Check a value that is one of several words.

    Raises:
        UsageError: the value is none of these literals.
    """
    if value not in get_args(choices):
        known = ", ".join(map(repr, get_args(choices)))
        raise UsageError(f"{option(name, repr(value))} is not known", f"give one of {known}")


def check_choices(**given: tuple[object, Any]) -> None:
    """Check values that are each one of several words: each with its literals; None passes.

    Raises:
        UsageError: naming the first that is none of them.
    """
    for name, (value, choices) in given.items():
        if value is not None:
            check_one_of(name, value, choices)


def check_count(name: str, value: object, least: float = 1) -> None:
    """Check a whole number; None, for all, passes.

    Raises:
        UsageError: it is none, or under `least`.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (whole and value >= least):  # type: ignore[operator]
        raise UsageError(
            f"{option(name, repr(value))} is not a valid number", f"give {least} or more"
        )


def token_names(name: str, given: Names | None) -> tuple[str, ...]:
    """The names of tokens that an option takes; None: of none.

    Raises:
        UsageError: it is something else.
    """
    several = given if isinstance(given, list | tuple) else () if given is None else [given]
    wrong = [type(each).__name__ for each in several if not isinstance(each, str | int)]
    if wrong:
        raise UsageError(f"{option(name)} is of type {wrong[0]}", "give tokens or positions")
    return tuple(map(str, several))


def names(given: Names) -> tuple[str, ...]:
    """The names of tokens; a number is a position."""
    return (str(given),) if isinstance(given, str | int) else tuple(map(str, given))


def one_name(given: str | int | None) -> str | None:
    """The name of a token; a number is a position."""
    return None if given is None else str(given)


def transforms(
    *, weighted: bool, chars: bool | None, words: bool, drop_sink: bool, drop_key: Names
) -> Transforms:
    """The transforms that keep heads apart."""
    return Transforms(
        weighted=weighted,
        chars=chars,
        words=words,
        drop_sink=drop_sink,
        drop_keys=names(drop_key),
    )


def head_names(given: HeadNames | None) -> str | None:
    """The names of heads, or of layers, as the command line has them.

    Raises:
        UsageError: it is nothing of that kind.
    """
    if given is None or isinstance(given, str):
        return given
    several = given if isinstance(given, Sequence) and not _is_head(given) else [given]
    return ",".join(_head_name(each) for each in several)


def layer_names(name: str, given: LayerNames | None) -> str | None:
    """The names of layers, as the command line has them.

    Raises:
        UsageError: it is nothing of that kind.
    """
    if given is None or isinstance(given, str):
        return given
    several = given if isinstance(given, list | tuple) else [given]
    if not several or not all(type(each) in (int, str) for each in several):
        raise UsageError(f"{option(name)} names no layers", 'give a number, a list, or "all"')
    return ",".join(map(str, several))


def which_heads(
    layers: HeadNames | None, heads: HeadNames | None, *, everything: bool = False
) -> HeadOptions:
    """The record that runs take; raises what `head_names` raises."""
    return HeadOptions(head_names(layers), head_names(heads), everything)


def _head_name(given: object) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if _is_head(given):
        return str(Head(*given))  # type: ignore[misc]
    raise UsageError(f"{given!r} names no head", 'give one as "L1H2" or (1, 2)')


def _is_head(given: object) -> bool:
    two = isinstance(given, tuple) and len(given) == 2
    return two and all(isinstance(each, int) for each in given)  # type: ignore[attr-defined]
