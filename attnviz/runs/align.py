"""Which position of one text takes its vectors from which of another."""

from collections.abc import Sequence

from attnviz.draw.titles import amount
from attnviz.errors import InputError, UsageError, option
from attnviz.records.capture import Capture
from attnviz.records.positions import find_matches


def aligned(text: Capture, source: Capture, words: Sequence[str]) -> tuple[int | None, ...]:
    """For each position of the text that of the source; None where there is none.

    Texts of one length are aligned position by position. With `words`, such as `blue=red`, the
    tokens that both texts begin and end with are aligned, and these words with each other,
    occurrence by occurrence: token by token where they have equally many, else the last with the
    last.

    Args:
        text, source: the runs of both, without patterns.
        words: pairs of names of tokens.

    Raises:
        InputError: the texts have other lengths, and no words are given.
        UsageError: a pair cannot be read, names no token, or a word more often in one text.
    """
    ours, theirs = text.query_tokens, source.query_tokens
    if not words:
        if len(ours) != len(theirs):
            raise InputError(
                f"the text has {amount(len(ours), 'token')}, and the source {len(theirs)}",
                "give two texts of one length, or align words of theirs with "
                + option("align", "WORD=WORD"),
            )
        return tuple(range(len(ours)))
    alike = [a.id == b.id for a, b in zip(ours, theirs, strict=False)]
    ends = [a.id == b.id for a, b in zip(reversed(ours), reversed(theirs), strict=False)]
    n = len(ours)
    places = dict[int, int]()
    behind = _run(ends)
    for i in range(behind):
        places[n - 1 - i] = len(theirs) - 1 - i
    for i in range(min(_run(alike), min(n, len(theirs)) - behind)):
        places[i] = i
    for pair in words:
        places |= _of_words(text, source, pair)
    return tuple(places.get(position) for position in range(n))


def _run(alike: Sequence[bool]) -> int:
    """How many of the first are true."""
    return next((i for i, same in enumerate(alike) if not same), len(alike))


def _of_words(text: Capture, source: Capture, pair: str) -> dict[int, int]:
    ours, equals, theirs = pair.partition("=")
    if not (equals and ours and theirs):
        raise UsageError(
            f"{option('align', repr(pair))} is not a pair of words", "give them as in blue=red"
        )
    mine = find_matches(text.query_tokens, ours, "align")
    try:
        other = find_matches(source.query_tokens, theirs, "align")
    except UsageError as error:
        raise UsageError(" source".join(error.wrong.rsplit(" text", 1)), error.hint) from None
    if len(mine) != len(other):
        raise UsageError(
            f"{ours!r} stands {amount(len(mine), 'time')} in the text, and {theirs!r} "
            f"{amount(len(other), 'time')} in the source",
            f"name one of each, as in {option('align', f'{ours}#1={theirs}#1')}",
        )
    places = dict[int, int]()
    for a, b in zip(mine, other, strict=True):
        places |= dict(zip(a, b, strict=True)) if len(a) == len(b) else {a[-1]: b[-1]}
    return places
