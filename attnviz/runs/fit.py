"""A text to the tokens that a model reads, cut where they are more than it takes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.text import check_encodable, check_not_blank
from attnviz.records.tokens import Token, numbered
from attnviz.runs.options import TextOptions, Truncation

ALWAYS_ENCODED = 1 << 20
"""Up to so many characters, a text is encoded, so that it can be told how many tokens it has."""

if TYPE_CHECKING:
    from attnviz.models.tokenizer import TextTokenizer


def encode(tokenizer: "TextTokenizer", text: str, options: TextOptions) -> tuple[Token, ...]:
    """All tokens of a text, be they more than the model takes.

    Raises:
        InputError: nothing but blanks, no text that UTF-8 can write, too long to be tried, or
            nothing that this tokenizer knows.
        UsageError: a beginning token was asked for, and the model has none.
    """
    check_not_blank(text, "the text")
    check_encodable(text)
    _check_length(tokenizer, text)
    if options.bos and tokenizer.bos_id is None and not tokenizer.adds_special:
        raise UsageError("this model has no beginning token", f"leave {option('bos')} out")
    bos = tokenizer.bos if options.bos is None else options.bos
    tokens = tokenizer.encode(text, bos=bos, special=options.special)
    if not tokens or (not options.special and all(token.special for token in tokens)):
        raise InputError("this model's tokenizer makes no token of the text", "give another text")
    return tokens


def _check_length(tokenizer: "TextTokenizer", text: str) -> None:
    """Check that a text could be few enough tokens, before it is cut into any.

    Raises:
        InputError: it could not, were all its tokens the longest that there is.
    """
    if len(text) > ALWAYS_ENCODED and len(text) > tokenizer.context * tokenizer.longest:
        raise InputError(
            f"the text has {len(text):,} characters, but the model takes at most "
            f"{tokenizer.context:,} tokens",
            "give a part of it",
        )


@dataclass(frozen=True)
class Fitted:
    """Tokens that fit the context, and how many were left out before and after them."""

    tokens: tuple[Token, ...]
    left_out: tuple[int, int] = (0, 0)


def fit(tokens: tuple[Token, ...], context: int, side: Truncation | None) -> Fitted:
    """Cut to the context, on the side asked for; special tokens at the ends stay.

    Raises:
        InputError: the text is too long and no side was named.
    """
    if side not in (None, "left", "right"):
        raise UsageError(f"truncate is {side!r}", "give left or right")
    more = len(tokens) - context
    if more <= 0:
        return Fitted(tokens)
    if side is None:
        raise InputError(
            f"the text has {len(tokens)} tokens, but the model takes at most {context}",
            f"shorten it, or cut it with {option('truncate', 'left')} or "
            f"{option('truncate', 'right')}",
        )
    first = tokens[:1] if tokens[0].special else ()
    last = tokens[-1:] if tokens[-1].special and len(tokens) > 1 else ()
    text = tokens[len(first) : len(tokens) - len(last)]
    if side == "left":
        return Fitted(numbered(first + text[more:] + last), (more, 0))
    return Fitted(numbered(first + text[:-more] + last), (0, more))
