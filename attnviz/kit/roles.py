"""The role of each token of a text, by which parts of several texts are added up."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from attnviz.errors import option
from attnviz.inputs.prompts import named
from attnviz.kit.option import only, panel_option
from attnviz.records.capture import Capture
from attnviz.records.tokens import OTHER, partition, segment_of

Alike: TypeAlias = Literal["position", "word"]
Roles: TypeAlias = Annotated[
    Alike | None,
    panel_option(
        "What is asked",
        "--roles",
        help="Distinguish parts by the token that they are from, in a way that several texts "
        "share: by its position from the start, its word, or its part of the text (--segment).",
    ),
]


ONE_OF_ROLES = only(
    "roles", lambda call: not call["segments"], f"does nothing with {option('segments')}"
)


def roles_of(capture: Capture, alike: Alike | None, segments: Sequence[str]) -> tuple[str, ...]:
    """The role of each token of a text (n); empty if none is wanted.

    `segments`: named as for `inputs.prompts.named`; every other token is in `other`.
    """
    tokens, text = capture.key_tokens, capture.text
    if segments:
        parts = partition(text, named(text, segments))
        own = segment_of(tokens, parts, text)
        return tuple(OTHER if i is None else parts[i].name for i in own)
    if alike == "position":
        return tuple(f"position {token.index}" for token in tokens)
    return tuple(token.label for token in tokens) if alike == "word" else ()
