"""The token that a word is where it follows a text."""

from attnviz.errors import UsageError, option
from attnviz.runs.fit import encode
from attnviz.runs.options import TextOptions
from attnviz.runs.prepare import Prepared

MOST_NAMED = 8
"""How many tokens of an answer that is too long are named."""


def token_after(prepared: Prepared, options: TextOptions, word: str, parameter: str) -> int:
    """The token that a word is, where it follows the text.

    Args:
        prepared: the text.
        options: how it became tokens.
        word: with a space before it or without.
        parameter: that holds the word, for messages.

    Raises:
        UsageError: it is no token, or several.
    """
    text, tokenizer = prepared.empty.text, prepared.model.tokenizer
    before = [token.id for token in encode(tokenizer, text, options)]
    continuations = []
    for space in (" ", ""):
        ids = [token.id for token in encode(tokenizer, text + space + word, options)]
        if ids[: len(before)] == before and len(ids) > len(before):
            continuations.append(ids[len(before) :])
    shortest = min(continuations, key=len, default=[])
    if len(shortest) != 1:
        labels = [tokenizer.label(id_) for id_ in shortest[:MOST_NAMED]]
        labels += ["…"] * (len(shortest) > MOST_NAMED)
        such = f", such as its first, {labels[0]}" if labels else ""
        raise UsageError(
            f"{option(parameter, repr(word))} is {len(shortest) or 'no'} tokens here"
            + (f" ({' '.join(labels)})" if labels else ""),
            f"give one that is a single token{such}",
        )
    return shortest[0]
