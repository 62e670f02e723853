"""An encoder-decoder's second text: what it writes, and the rows and columns that it makes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.text import check_encodable, check_not_blank
from attnviz.records.capture import Kind
from attnviz.records.tokens import Token, numbered

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


def target_of(
    model: "LoadedModel", source: Sequence[Token], given: str | None
) -> tuple[str, tuple[Token, ...]]:
    """The text that an encoder-decoder writes, or is given, with its tokens; else nothing."""
    from attnviz.models.loaded import writing

    if model.kind in ("self", "encoder"):
        if given is not None:
            raise UsageError(
                f"{option('target')} is the output of an encoder-decoder, for "
                f"{option('kind', 'cross')} or decoder",
                "leave it out",
            )
        return "", ()
    if given is None:
        written = writing(model).write([token.id for token in source])
        if not written[1]:
            raise InputError(
                "the model wrote nothing for this text",
                f"give a {option('target')}, or use {option('kind', 'encoder')}",
            )
        return written
    check_not_blank(given, "the target")
    check_encodable(given)
    tokens = writing(model).read_target(given)
    if len(tokens) >= model.tokenizer.context:
        raise InputError(
            f"the target has {len(tokens)} tokens, but the model writes at most "
            f"{model.tokenizer.context - 1}",
            "shorten it",
        )
    return given, tokens


def rows_and_columns(
    kind: Kind, source: tuple[Token, ...], target: tuple[Token, ...]
) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """Query tokens and key tokens: a decoder's row is named by the token that it produces."""
    if kind == "cross":
        return target, source
    if kind == "decoder":
        begin = Token(0, -1, "", 0, 0, special=True)
        return target, numbered((begin, *target[:-1]))
    return source, source


def unknown_words(
    model: "LoadedModel", text: str, source: Sequence[Token], written: str
) -> tuple[str, ...]:
    """The words that the model was never trained on, of that part of the text that it reads."""
    from attnviz.models.loaded import KnowsWords

    if not isinstance(model, KnowsWords):
        return ()
    inner = [token for token in source if not token.special]
    read = text[inner[0].start : inner[-1].end] if inner else ""
    return model.unknown_words(read, written)
