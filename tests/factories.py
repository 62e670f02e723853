"""Hand-made captures and exhibits: seeded or given patterns, no model, no torch."""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st
from rich.console import Console, Group, RenderableType

from attnviz.console import Display
from attnviz.kit.choose import plan_heads
from attnviz.kit.prepare import HeadOptions
from attnviz.kit.session import as_flag
from attnviz.records.capture import Capture, FloatArray, LayerPattern, ModelIdentity
from attnviz.records.exhibit import Exhibit, HeadMap, Reduction
from attnviz.records.heads import Head, NamedHead
from attnviz.records.tokens import Token
from attnviz.records.transforms import Transform

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

# Pieces of text that have broken terminals, markup or measuring somewhere.
_awkward = st.sampled_from(
    [
        *(" the", " the", "楚留香", "😀", "x" * 90, "  ", " \n\n x", "$x^2$"),
        *("e\u0301", "\u0301", "❤\ufe0f", "1\ufe0f\u20e3"),  # marks, wide by a selector
        *("[red]", "[/]", ":smile:", "\x1b[31m"),
        *("\n", "\t", "\x00", "\u202e", "\u200d", "\udc80"),
    ]
)
awkward_pieces = st.lists(_awkward | st.text(min_size=1, max_size=12), min_size=1, max_size=12)


def make_tokens(text: str | Sequence[str], *, bos: bool = False) -> tuple[str, tuple[Token, ...]]:
    """A text and its tokens: words with the space before them, or the pieces that are given."""
    pieces = re.findall(r"\s*\S+", text) if isinstance(text, str) else list(text)
    tokens = [Token(0, 0, "", 0, 0, special=True)] if bos else []
    start = 0
    for piece in pieces:
        end = start + len(piece)
        tokens.append(Token(len(tokens), 100 + len(tokens), piece, start, end))
        start = end
    return "".join(pieces), tuple(tokens)


def random_patterns(heads: int, size: int, *, causal: bool = True, seed: int = 0) -> FloatArray:
    """(heads, size, size) seeded rows, each of which sums to 1 and is strong in few places."""
    draw = np.random.default_rng(seed)
    scores = draw.normal(0, 3, (heads, size, size))
    if causal:
        scores = np.where(np.tril(np.ones((size, size), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


def make_capture(
    text: str | Sequence[str] = "a fluffy blue creature roamed the verdant forest",
    *,
    heads_per_layer: Sequence[int] = (2, 2),
    patterns: Mapping[Head, FloatArray] | None = None,
    bos: bool = False,
    causal: bool = True,
    named_heads: tuple[NamedHead, ...] = (),
    transforms: tuple[Transform, ...] = (),
    seed: int = 0,
) -> Capture:
    """A capture with seeded patterns in every head but those that `patterns` gives."""
    source, tokens = make_tokens(text, bos=bos)
    layers = []
    for layer, n in enumerate(heads_per_layer):
        weights = random_patterns(n, len(tokens), causal=causal, seed=1000 * seed + layer)
        for head, given in (patterns or {}).items():
            if head.layer == layer:
                weights[head.head] = given
        layers.append(LayerPattern(layer, tuple(range(n)), weights))
    model = ModelIdentity("tiny", "gpt2", tuple(heads_per_layer), 1234, "native")
    return Capture(
        text=source,
        query_tokens=tokens,
        key_tokens=tokens,
        layers=tuple(layers),
        model=model,
        bos=bos,
        causal=causal,
        named_heads=named_heads,
        transforms=transforms,
    )


def make_exhibit(
    capture: Capture | None = None,
    *,
    heads: Sequence[Head] | None = None,
    queries: Sequence[int] | None = None,
    keys: Sequence[int] | None = None,
    top: int | None = None,
    least: float = 0.0,
    about: str = "L0H0, chosen by hand",
    reduced: Reduction | None = None,
) -> Exhibit:
    """An exhibit of some heads of a capture (default: the first), every token in it.

    With `reduced`, the one map is the mean or maximum of the chosen heads.
    """
    capture = capture or make_capture()
    chosen = tuple(heads) if heads is not None else capture.heads[:1]
    maps = tuple(HeadMap(head.layer, head.head, weights=capture.weights(head)) for head in chosen)
    if reduced:
        stack = np.stack([m.weights for m in maps])
        weights = stack.mean(axis=0) if reduced == "mean" else stack.max(axis=0)
        maps = (HeadMap(None, None, reduced, weights=weights.astype(np.float32)),)
    return Exhibit(
        capture=capture,
        maps=maps,
        queries=tuple(range(len(capture.query_tokens)) if queries is None else queries),
        keys=tuple(range(len(capture.key_tokens)) if keys is None else keys),
        top=top,
        least=least,
        caption=about,
    )


def printed(renderable: RenderableType, display: Display) -> list[str]:
    """The lines that a console of this display prints, with escape codes if it has colour."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=display.width,
        color_system="truecolor" if display.color else None,
        force_terminal=display.color,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.print(renderable)
    return stream.getvalue().split("\n")[:-1]


def view_lines(
    view: Callable[..., Iterable[RenderableType]], exhibit: Exhibit, width: int, **display: bool
) -> list[str]:
    """What a terminal of this width shows of an exhibit in this view."""
    shown = Display(width, speller=as_flag, **display)
    return printed(Group(*view(exhibit, shown)), shown)


def recorded_heads(model: "LoadedModel", options: HeadOptions) -> tuple[Head, ...]:
    """The heads that a run of this model records for these options."""
    return plan_heads(model.identity, model.card.heads, options).recorded
