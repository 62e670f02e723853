"""Token positions: which tokens of a text a name such as `creature#2` stands for."""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from attnviz.data.expressions import SECONDS, compiled, is_expression
from attnviz.data.tokens import Token
from attnviz.data.words import word_groups
from attnviz.errors import UsageError, option


def check_names(names: Sequence[str], parameter: str) -> None:
    """Check what can be wrong with names whatever the text.

    Raises:
        UsageError: one is no regular expression, though it stands between slashes.
    """
    for name in filter(is_expression, names):
        compiled(name, parameter)


def find_positions(
    tokens: Sequence[Token], names: Sequence[str], parameter: str
) -> tuple[int, ...]:
    """All positions that the names match, in the order of the text, each once.

    A name is an index (`3`; `-1` is the last token), a word (`creature`; all of its tokens, if it
    was cut into several), a token as it is shown where no word reads so, one of several equal ones,
    counted from 1 (`creature#2`; `3#1` is the token "3"), or a regular expression between slashes,
    which is searched for in each token as it is shown (`/^cr/`). `parameter` is the Python name of
    the parameter that holds the names, for messages.

    Raises:
        UsageError: a name matches nothing; the message lists the tokens and the nearest one.
    """
    matches = (match for name in names for match in find_matches(tokens, name, parameter))
    return tuple(sorted({position for match in matches for position in match}))


def one_position(tokens: Sequence[Token], name: str, parameter: str) -> int:
    """The one position that a name matches; for a word in several tokens, its last token.

    Raises:
        UsageError: the name matches nothing, or several positions (the message lists them).
    """
    matches = find_matches(tokens, name, parameter)
    if len(matches) > 1:
        places = ", ".join(str(match[-1]) for match in matches)
        raise UsageError(
            f"{option(parameter, repr(name))} stands at {len(matches)} positions ({places})",
            f"choose one: {option(parameter, f'{name}#1')} is the first, "
            f"{option(parameter, matches[0][-1])} its index",
        )
    return matches[0][-1]


def last_word(tokens: Sequence[Token]) -> int:
    """The position of the last token that holds a letter or a digit, or of the last token."""
    for token in reversed(tokens):
        if not token.special and any(character.isalnum() for character in token.text):
            return token.index
    return len(tokens) - 1


def find_matches(tokens: Sequence[Token], name: str, parameter: str) -> list[tuple[int, ...]]:
    """The occurrences of a name, each as the positions of its tokens; at least one."""
    if re.fullmatch(r"-?[0-9]{1,9}", name):
        if -len(tokens) <= int(name) < len(tokens):
            return [(int(name) % len(tokens),)]
        raise UsageError(
            f"{option(parameter, name)} is not a position in this text",
            f"its tokens are 0 to {len(tokens) - 1}, or -1 for the last one; {name}#1 would be the "
            f"token {name!r}",
        )
    if is_expression(name):
        return _matching(tokens, name, parameter)
    numbered = re.fullmatch(r"(.+)#([0-9]{1,9})", name, flags=re.DOTALL)
    if not name.strip():
        raise UsageError(f"{option(parameter)} names no token", "give a token of the text")
    occurrences = _occurrences(tokens, name)
    if occurrences or numbered is None:
        if not occurrences:
            raise _not_there(tokens, name, parameter)
        return occurrences
    word, number = numbered[1], int(numbered[2])
    occurrences = _occurrences(tokens, word)
    if not occurrences:
        raise _not_there(tokens, word, parameter)
    if not 1 <= number <= len(occurrences):
        raise UsageError(
            f"{option(parameter, repr(name))} asks for number {number}, but {word!r} occurs "
            f"{len(occurrences)} time{'s' * (len(occurrences) > 1)}",
            f"count from 1 to {len(occurrences)}",
        )
    return [occurrences[number - 1]]


def _matching(tokens: Sequence[Token], name: str, parameter: str) -> list[tuple[int, ...]]:
    """The tokens in which a regular expression between slashes occurs.

    A special token is no part of the text: `/^[A-Z]/` does not match BOS, `/BOS|^a/` does.
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
        raise _not_there(tokens, name, parameter)
    return matches


def _occurrences(tokens: Sequence[Token], word: str) -> list[tuple[int, ...]]:
    """Where the word stands by itself, in one token or in several; else in another case.

    Where it nowhere stands by itself, the tokens and runs that read so within longer words:
    `it` is the word wherever there is one, and no piece of `suitcase`, however that was cut.
    """
    exact: list[tuple[int, ...]] = [
        (token.index,)
        for token in tokens
        if word == token.label or (word == token.text and token.part is None)
    ]
    found = sorted({*exact, *_spelled(tokens, word)})
    folded = word.casefold()
    alike = [(token.index,) for token in tokens if token.label.casefold() == folded]
    whole = _whole(tokens) if found or alike else lambda _: False
    for matches in (filter(whole, found), filter(whole, alike), exact, alike, found):
        if several := list(matches):
            return several
    return []


def word_around(tokens: Sequence[Token], name: str) -> str:
    """The first word of which a name stands for a piece, as none reads so; else nothing."""
    if is_expression(name) or re.fullmatch(r"-?[0-9]{1,9}", name):
        return ""
    numbered = re.fullmatch(r"(.+)#[0-9]{1,9}", name, flags=re.DOTALL)
    found = _occurrences(tokens, name) or (_occurrences(tokens, numbered[1]) if numbered else [])
    if not found or _whole(tokens)(found[0]):
        return ""
    first, last = found[0][0], found[0][-1]
    around = [group for group in _words(tokens) if group[-1] >= first and group[0] <= last]
    return "".join(tokens[i].text for group in around for i in group).strip()


def _words(tokens: Sequence[Token]) -> list[list[int]]:
    """The positions of each word's tokens, blanks left out."""
    said = [token for token in tokens if token.text.strip() or token.special]
    return [[said[i].index for i in group] for group in word_groups(said)]


def _whole(tokens: Sequence[Token]) -> Callable[[tuple[int, ...]], bool]:
    """Whether a run of tokens begins and ends where words do."""
    groups = _words(tokens)
    firsts, lasts = {group[0] for group in groups}, {group[-1] for group in groups}
    return lambda run: run[0] in firsts and run[-1] in lasts


def _spelled(tokens: Sequence[Token], word: str) -> list[tuple[int, ...]]:
    """Runs of tokens whose source, without outer spaces, is the word (or several words)."""
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
            if spelled.strip() == bare and not _splits_character(tokens, last):
                runs.append(tuple(range(first, last + 1)))
                break
            if len(spelled.strip()) > len(bare):
                break
    return runs


def _splits_character(tokens: Sequence[Token], last: int) -> bool:
    part = tokens[last].part
    return part is not None and part[0] < part[1]


def _not_there(tokens: Sequence[Token], name: str, parameter: str) -> UsageError:
    labels = list(dict.fromkeys(token.label for token in tokens))
    near = get_close_matches(name, labels, n=1, cutoff=0.5)
    listed = " ".join(labels[:40]) + (" …" if len(labels) > 40 else "")
    return UsageError(
        f"{option(parameter, repr(name))} is not in the text",
        f"its tokens are: {listed}" + (f" (did you mean {near[0]}?)" if near else ""),
    )
