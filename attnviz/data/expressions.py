"""A user's regular expression between slashes, compiled and searched for within limits."""

import re
from math import prod
from typing import Any

from attnviz.errors import UsageError, option

LONGEST, MOST_REPEATS = 500, 1_000
"""The most characters of an expression, and the most repetitions that all its counts `{m,n}` ask
for together; compiling takes memory for each."""
SECONDS = 1.0
"""How long an expression may be searched for in one text."""
_CALL = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<call>\(\?(?:[R0-9&]|[+-][0-9]|P[>&]))", re.DOTALL
)
"""A call to a group, `(?R)`, which is no escaped character and in no set."""
_COUNT = re.compile(r"\{\s*(\d*)\s*(?:,\s*(\d*)\s*)?\}")


def is_expression(name: str) -> bool:
    """Whether a name is a regular expression between slashes."""
    return len(name) > 2 and name[0] == name[-1] == "/"


def compiled(name: str, parameter: str) -> Any:
    """The expression of the package `regex`, whose search has a limit of time.

    Args:
        name: the expression between slashes.
        parameter: the Python name of the parameter that holds it, for messages.

    Raises:
        UsageError: it cannot be compiled, or is too large.
    """
    import regex  # type: ignore[import-untyped]  # takes a moment

    if len(name) > LONGEST:
        raise UsageError(
            f"the regular expression in {option(parameter)} has {len(name):,} characters",
            f"give {LONGEST:,} at most",
        )
    if any(found["call"] for found in _CALL.finditer(name)):
        raise UsageError(
            f"{option(parameter, name)} calls a group from within, whose memory has no limit",
            "write the group out",
        )
    counts = (int((found[2] or found[1] or "0")[:9]) for found in _COUNT.finditer(name))
    if prod(max(1, count) for count in counts) > MOST_REPEATS:
        raise UsageError(
            f"{option(parameter, name)} repeats something more than {MOST_REPEATS:,} times",
            "give smaller numbers",
        )
    try:
        return regex.compile(name[1:-1])
    except (regex.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"{option(parameter, name)} is not a regular expression ({error})",
            "correct it" if parameter == "segments" else "correct it, or leave the slashes out",
        ) from None
