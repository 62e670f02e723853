"""Token positions: the tokens of a text that a name such as `creature#2` stands for."""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.merging import word_groups
from attnviz.records.places import at_place, own_named, place_not_there, wholes_named, wholes_of
from attnviz.records.tokens import Token


def check_names(names: Sequence[str], parameter: str) -> None:
    """Check names for faults that do not depend on the text."""
    for name in filter(is_expression, names):
        compiled(name, parameter)


def find_positions(
    tokens: Sequence[Token], names: Sequence[str], parameter: str
) -> tuple[int, ...]:
    """All positions that the names match, in the order of the text, each once.

    A name is an index (`3`; `-1` is the last token), a word (`creature`; all of its tokens), a
    token as it is shown where no word reads so, one of several equal ones, from 1 (`creature#2`;
    `3#1` is the token "3"), `/an expression/` for tokens as shown, a text of a pair (`@A`), or the
    name of a place (`records/places.py`), some only where no word reads so.
    """
    matches = (match for name in names for match in find_matches(tokens, name, parameter))
    return tuple(sorted({position for match in matches for position in match}))


def one_position(tokens: Sequence[Token], name: str, parameter: str) -> int:
    """The one position that a name matches; for a word in several tokens, its last token."""
    matches = find_matches(tokens, name, parameter)
    if len(matches) > 1:
        places = ", ".join(str(match[-1]) for match in matches)
        raise UsageError(
            f"{option(parameter, repr(name))} is at {len(matches)} positions ({places})",
            f"choose one: {option(parameter, f'{name}#1')} is the first, "
            f"{option(parameter, matches[0][-1])} its index",
        )
    return matches[0][-1]


def one_key(
    tokens: Sequence[Token], name: str, parameter: str, weights: NDArray[np.float32]
) -> int:
    """The one key that a name matches; of tokens of insets, the one with the largest weight."""
    found = find_positions(tokens, [name], parameter)
    if all(tokens[key].inset for key in found):
        return max(found, key=lambda key: float(weights[key]))
    return one_position(tokens, name, parameter)


def last_word(tokens: Sequence[Token]) -> int:
    """The position of the last token that holds a letter or a digit, or of the last token."""
    for token in reversed(tokens):
        if not token.special and any(character.isalnum() for character in token.text):
            return token.index
    return len(tokens) - 1


def find_matches(
    tokens: Sequence[Token], name: str, parameter: str, text: str = "text"
) -> list[tuple[int, ...]]:
    """The occurrences of a name, each as the positions of its tokens; at least one.

    `text`: the word for the tokens' source, for messages.
    """
    if re.fullmatch(r"-?[0-9]{1,9}", name):
        if -len(tokens) <= int(name) < len(tokens):
            return [(int(name) % len(tokens),)]
        raise UsageError(
            f"{option(parameter, name)} is not a position in this {text}",
            f"its tokens are 0 to {len(tokens) - 1}, or -1 for the last one; {name}#1 would be the "
            f"token {name!r}",
        )
    if is_expression(name):
        return _matching(tokens, name, parameter, text)
    if (placed := at_place(tokens, name, parameter)) is not None:
        return placed
    if not name.strip():
        raise UsageError(f"{option(parameter)} names no token", "give a token of the text")
    if occurrences := _named(tokens, name):
        return occurrences
    numbered = re.fullmatch(r"(.+)#([0-9]{1,9})", name, flags=re.DOTALL)
    if numbered is None:
        raise _not_there(tokens, name, parameter, text)
    word, number = numbered[1], int(numbered[2])
    occurrences = _named(tokens, word)
    if not occurrences:
        raise _not_there(tokens, word, parameter, text)
    if not 1 <= number <= len(occurrences):
        raise UsageError(
            f"{option(parameter, repr(name))} asks for number {number}, but {word!r} occurs "
            f"{len(occurrences)} time{'s' * (len(occurrences) > 1)}",
            f"count from 1 to {len(occurrences)}",
        )
    return [occurrences[number - 1]]


def _matching(
    tokens: Sequence[Token], name: str, parameter: str, text: str
) -> list[tuple[int, ...]]:
    """Find the tokens in which a regular expression between slashes occurs.

    A special token is not part of the text: `/^[A-Z]/` does not match BOS, `/BOS|^a/` does.
    """
    expression = compiled(name, parameter)
    meant = [token for token in tokens if not token.special or token.label in name]
    try:
        matches: list[tuple[int, ...]] = [
            (token.index,) for token in meant if expression.search(token.label, timeout=SECONDS)
        ]
    except TimeoutError:
        raise UsageError(
            f"{option(parameter, name)} takes too long to search for", "simplify it"
        ) from None
    if not matches:
        raise _not_there(tokens, name, parameter, text)
    return matches


def _named(tokens: Sequence[Token], name: str) -> list[tuple[int, ...]]:
    """Where a word stands, exactly so beside insets; else the tokens of the whole that it names."""
    if of_pair := [(token.index,) for token in tokens if name == f"@{token.segment}"]:
        return list(of_pair)
    found = _occurrences(tokens, name)
    if not found and (own := own_named(tokens, name)):
        return own
    if (wholes := wholes_named(tokens, name)) is None:
        return found
    whole = _whole(tokens)
    words = [
        run for run in found if whole(run) and "".join(tokens[i].text for i in run).strip() == name
    ]
    return words or wholes


def _occurrences(tokens: Sequence[Token], word: str) -> list[tuple[int, ...]]:
    """The occurrences of a word by itself, in one token or several; else in another case.

    If it nowhere occurs by itself, the tokens and runs spelled so within longer words: `it` is
    the word if the text has it, and not a piece of `suitcase`, however that was split.
    """
    exact: list[tuple[int, ...]] = [
        (token.index,)
        for token in tokens
        if word == token.label or (word == token.text and token.part is None)
    ]
    anywhere = sorted({*exact, *_spelled(tokens, word)})
    folded = word.casefold()
    alike = [(token.index,) for token in tokens if token.label.casefold() == folded]
    whole = _whole(tokens) if anywhere or alike else lambda _: False
    for matches in (filter(whole, anywhere), filter(whole, alike), exact, alike, anywhere):
        if several := list(matches):
            return several
    return []


def word_around(tokens: Sequence[Token], name: str) -> str:
    """The first word of which a name matches only a piece, or "" if it matches a word."""
    if is_expression(name) or re.fullmatch(r"-?[0-9]{1,9}", name):
        return ""
    numbered = re.fullmatch(r"(.+)#[0-9]{1,9}", name, flags=re.DOTALL)
    occurrences = _occurrences(tokens, name) or (
        _occurrences(tokens, numbered[1]) if numbered else []
    )
    if not occurrences or _whole(tokens)(occurrences[0]):
        return ""
    first, last = occurrences[0][0], occurrences[0][-1]
    around = [group for group in _words(tokens) if group[-1] >= first and group[0] <= last]
    return "".join(tokens[i].text for group in around for i in group).strip()


def _words(tokens: Sequence[Token]) -> list[list[int]]:
    visible = [token for token in tokens if token.text.strip() or token.special]
    return [[visible[i].index for i in group] for group in word_groups(visible)]


def _whole(tokens: Sequence[Token]) -> Callable[[tuple[int, ...]], bool]:
    """A test whether a run of tokens begins and ends where words do."""
    groups = _words(tokens)
    firsts, lasts = {group[0] for group in groups}, {group[-1] for group in groups}
    return lambda run: run[0] in firsts and run[-1] in lasts


def _spelled(tokens: Sequence[Token], word: str) -> list[tuple[int, ...]]:
    """Find runs of tokens whose source, without outer spaces, is the word (or several words)."""
    bare = word.strip()
    runs = []
    for first, token in enumerate(tokens):
        spelled = ""
        blank = not token.text.strip()  # a word does not begin with the space before it
        if token.special or blank or not bare or (token.part is not None and token.part[0] > 1):
            continue
        end = token.start
        for last in range(first, len(tokens)):
            spelled += " " * (tokens[last].start - end)  # blanks that no token holds
            spelled += tokens[last].text[max(0, end - tokens[last].start) :]
            end = max(end, tokens[last].end)
            part = tokens[last].part
            if spelled.strip() == bare and (part is None or part[0] == part[1]):
                runs.append(tuple(range(first, last + 1)))
                break
            if len(spelled.strip()) > len(bare):
                break
    return runs


def _not_there(tokens: Sequence[Token], name: str, parameter: str, text: str) -> UsageError:
    if error := place_not_there(tokens, name, parameter):
        return error
    labels = list(dict.fromkeys(token.label for token in tokens if not token.inset))
    near = get_close_matches(name, [*labels, *(wholes := wholes_of(tokens))], 1, 0.5)
    meant = f" (did you mean {near[0]}?)" if near else ""
    words = " ".join(labels[:40]) + (" …" if len(labels) > 40 else "")
    return UsageError(
        f"{option(parameter, repr(name))} is not in the {text}",
        f"its tokens are: {'; '.join(filter(None, [words, *wholes.values()]))}{meant}",
    )


# A user's regular expression between slashes, compiled and searched for within limits.

LONGEST, MOST_REPEATS = 500, 1_000
"""The most characters of an expression, and the most repetitions of all its counts together."""
SECONDS = 1.0
"""The seconds that the search of an expression in one text may take."""
_CALL = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<call>\(\?(?:[R0-9&]|[+-][0-9]|P[>&]))", re.DOTALL
)
"""A call to a group, `(?R)`, outside of escapes and sets."""
_COUNT = re.compile(r"\{\s*(\d*)\s*(?:,\s*(\d*)\s*)?\}")


def is_expression(name: str) -> bool:
    """Whether a name is a regular expression between slashes."""
    return len(name) > 2 and name[0] == name[-1] == "/"


def compiled(name: str, parameter: str) -> Any:
    """The expression of the package `regex`, whose search has a limit of time."""
    import regex  # type: ignore[import-untyped]  # slow to import

    if len(name) > LONGEST:
        raise UsageError(
            f"the regular expression in {option(parameter)} has {len(name):,} characters",
            f"give {LONGEST:,} at most",
        )
    if any(match["call"] for match in _CALL.finditer(name)):
        raise UsageError(
            f"{option(parameter, name)} calls a group recursively, which needs unlimited memory",
            "write the group out",
        )
    counts = (int((match[2] or match[1] or "0")[:9]) for match in _COUNT.finditer(name))
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
