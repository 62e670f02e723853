"""Token positions: what `--query creature#2` means in a text."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from attnviz.data.tokens import Token
from attnviz.errors import UsageError


def find_positions(tokens: Sequence[Token], names: Sequence[str], option: str) -> tuple[int, ...]:
    """All positions that the names match, in the order of the text, each once.

    A name is an index (`3`), a token as it is shown (`creature`), a word that was cut
    into several tokens (all of them), one of several equal ones counted from 1
    (`creature#2`; `3#1` is the token "3"), or a regular expression between slashes that is
    searched for in each token as it is shown (`/^cr/`).

    Raises:
        UsageError: a name that matches nothing; it lists the tokens and the nearest.
    """
    found = {
        position for name in names for match in _matches(tokens, name, option) for position in match
    }
    return tuple(sorted(found))


def one_position(tokens: Sequence[Token], name: str, option: str) -> int:
    """The one position that a name matches; of a word in several tokens, the last.

    Raises:
        UsageError: no match, or several (all are listed).
    """
    matches = _matches(tokens, name, option)
    if len(matches) > 1:
        places = ", ".join(str(match[-1]) for match in matches)
        raise UsageError(
            f"{option} {name!r} stands at {len(matches)} positions ({places})",
            f"choose one: {option} {name}#1 is the first, {option} {matches[0][-1]} its index",
        )
    return matches[0][-1]


def last_word(tokens: Sequence[Token]) -> int:
    """The position of the last token that holds a letter or a digit; without one, the last."""
    for token in reversed(tokens):
        if not token.special and any(character.isalnum() for character in token.text):
            return token.index
    return len(tokens) - 1


def _matches(tokens: Sequence[Token], name: str, option: str) -> list[tuple[int, ...]]:
    """The occurrences of a name, each as the positions of its tokens; at least one."""
    if re.fullmatch(r"[0-9]{1,9}", name):
        if int(name) < len(tokens):
            return [(int(name),)]
        raise UsageError(
            f"{option} {name} is no position in this text",
            f"its tokens are 0 to {len(tokens) - 1}; {name}#1 would be the token {name!r}",
        )
    if len(name) > 2 and name[0] == name[-1] == "/":
        return _matching(tokens, name, option)
    numbered = re.fullmatch(r"(.+)#([0-9]{1,9})", name, flags=re.DOTALL)
    if not name.strip():
        raise UsageError(f"{option} names no token", "give a token of the text")
    occurrences = _occurrences(tokens, name)
    if occurrences or numbered is None:
        if not occurrences:
            raise _not_there(tokens, name, option)
        return occurrences
    word, number = numbered[1], int(numbered[2])
    occurrences = _occurrences(tokens, word)
    if not occurrences:
        raise _not_there(tokens, word, option)
    if not 1 <= number <= len(occurrences):
        raise UsageError(
            f"{option} {name!r} asks for number {number}, but {word!r} occurs "
            f"{len(occurrences)} time{'s' * (len(occurrences) > 1)}",
            f"count from 1 to {len(occurrences)}",
        )
    return [occurrences[number - 1]]


def _matching(tokens: Sequence[Token], name: str, option: str) -> list[tuple[int, ...]]:
    """The tokens that a regular expression between slashes is found in."""
    try:
        expression = re.compile(name[1:-1])
    except re.error as error:
        raise UsageError(
            f"{option} {name} is no regular expression ({error})",
            "mend it, or leave the slashes out",
        ) from None
    found: list[tuple[int, ...]] = [
        (token.index,) for token in tokens if expression.search(token.label)
    ]
    if not found:
        raise _not_there(tokens, name, option)
    return found


def _occurrences(tokens: Sequence[Token], word: str) -> list[tuple[int, ...]]:
    """Equal labels; without one, equal but for case; without one, runs of tokens that spell it."""
    exact: list[tuple[int, ...]] = [
        (token.index,)
        for token in tokens
        if word == token.label or (word == token.text and token.part is None)
    ]
    if exact:
        return exact
    folded = word.casefold()
    alike = [(token.index,) for token in tokens if token.label.casefold() == folded]
    return [*alike] or _spelled(tokens, word)


def _spelled(tokens: Sequence[Token], word: str) -> list[tuple[int, ...]]:
    """Runs of tokens whose source, without outer spaces, is the word (or are the words)."""
    wanted = word.strip()
    runs = []
    for first, token in enumerate(tokens):
        spelled = ""
        blank = not token.text.strip()  # a word does not begin with the space before it
        if token.special or blank or not wanted or (token.part is not None and token.part[0] > 1):
            continue
        end = token.start
        for last in range(first, len(tokens)):
            spelled += " " * (tokens[last].start - end)  # blanks that no token holds
            spelled += tokens[last].text[max(0, end - tokens[last].start) :]
            end = max(end, tokens[last].end)
            if spelled.strip() == wanted and not _splits_character(tokens, last):
                runs.append(tuple(range(first, last + 1)))
                break
            if len(spelled.strip()) > len(wanted):
                break
    return runs


def _splits_character(tokens: Sequence[Token], last: int) -> bool:
    part = tokens[last].part
    return part is not None and part[0] < part[1]


def _not_there(tokens: Sequence[Token], name: str, option: str) -> UsageError:
    labels = list(dict.fromkeys(token.label for token in tokens))
    near = get_close_matches(name, labels, n=1, cutoff=0.5)
    listed = " ".join(labels[:40]) + (" …" if len(labels) > 40 else "")
    return UsageError(
        f"{option} {name!r} is not in the text",
        f"its tokens are: {listed}" + (f" (did you mean {near[0]}?)" if near else ""),
    )
