"""Patterns of several texts: their mean with its errors, and the ratio of two."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from attnviz.errors import InputError
from attnviz.records.capture import Capture
from attnviz.records.tokens import Token
from attnviz.records.transforms import ErrorsOverTexts, MeanOverTexts, Relative

NAMED = 2
"""The most tokens of one position that are named."""


def mean_of(captures: Sequence[Capture]) -> tuple[Capture, Capture]:
    """Compute the mean of patterns, position by position, and its standard errors over the texts.

    A position at which texts have several tokens is named by the first ones: `blue|red`.

    Raises:
        InputError: the texts have different numbers of tokens.
    """
    first, n = captures[0], len(captures)
    if n < 2:
        raise InputError("a mean needs several texts", "give two or more, or only one text")
    for name in ("query_tokens", "key_tokens"):
        sizes = sorted({len(getattr(each, name)) for each in captures})
        if len(sizes) > 1:
            raise InputError(
                f"the texts have {sizes[0]} and {sizes[-1]} tokens, so their positions do not "
                "correspond",
                "give texts of the same number of tokens",
            )
    queries, target = common_tokens([each.query_tokens for each in captures])
    keys, text = common_tokens([each.key_tokens for each in captures])
    whole = replace(
        first,
        text=text,
        target=target if first.target else "",
        query_tokens=queries,
        key_tokens=keys,
        segments=(),
        extras={},
        unknown_words=(),
        loss=None,
    )
    means, errors = [], []
    for same in zip(*(each.layers for each in captures), strict=True):
        every = np.stack([layer.weights for layer in same]).astype(np.float64)
        error = every.std(axis=0, ddof=1) / sqrt(n)
        means.append(replace(same[0], weights=every.mean(axis=0).astype(np.float32)))
        errors.append(replace(same[0], weights=error.astype(np.float32)))
    done = first.transforms
    return (
        replace(whole, layers=tuple(means), transforms=(*done, MeanOverTexts(n))),
        replace(whole, layers=tuple(errors), transforms=(*done, ErrorsOverTexts(n))),
    )


def common_tokens(each: Sequence[Sequence[Token]]) -> tuple[tuple[Token, ...], str]:
    """The tokens that stand for those of all texts, and the text that they are slices of."""
    text, tokens = "", list[Token]()
    for same in zip(*each, strict=True):
        token = same[0]
        names = list(dict.fromkeys(t.label for t in same))
        if len(names) > 1:
            blank = token.text[: len(token.text) - len(token.text.lstrip())]
            more = "|…" if len(names) > NAMED else ""
            name = f"{blank}{'|'.join(names[:NAMED])}{more}"
            token = replace(token, text=name, special=False, part=None)
        text += " " if token.spaced and text else ""
        tokens.append(replace(token, start=len(text), end=len(text) + len(token.text)))
        text += token.text
    return tuple(tokens), text


def relative_to(capture: Capture, neutral: Capture, prompt: str) -> Capture:
    """The weights on insets divided by those of the last row of a neutral prompt; others are 0.

    Both have the same heads and insets. A neutral weight below a hundredth of an even share
    counts as that, as the ratio to next to nothing says nothing.
    """
    ours, theirs = ([t.index for t in c.key_tokens if t.inset] for c in (capture, neutral))
    layers = []
    for layer, other in zip(capture.layers, neutral.layers, strict=True):
        last = np.maximum(other.weights[:, -1, theirs], np.float32(0.01 / len(theirs)))
        ratios = np.zeros_like(layer.weights)
        ratios[:, :, ours] = layer.weights[:, :, ours] / last[:, None]
        layers.append(replace(layer, weights=ratios))
    transforms = (*capture.transforms, Relative(prompt))
    return replace(capture, layers=tuple(layers), transforms=transforms)
