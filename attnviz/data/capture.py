"""The capture: everything recorded from one run of a model over one text.

Axes, everywhere: (layer, head, query, key). Rows are queries and columns are keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.data.asked import Asked
from attnviz.data.blocks import FloatArray, IntArray, LayerPattern
from attnviz.data.card import NamedHead
from attnviz.data.head import Head
from attnviz.data.segments import Segment
from attnviz.data.tokens import Token
from attnviz.data.transforms import Difference, Scores, Transform

Kind: TypeAlias = Literal["self", "cross", "encoder", "decoder", "answer"]
"""Whose attention: a text's to itself; of an encoder-decoder's three one; or that of an answer's
tokens, each in the row of the position that predicted it, to the prompt and the answer so far."""
PairKind: TypeAlias = Literal["cross", "encoder", "decoder"]
"""Which attention of an encoder-decoder."""


VALUE_NORMS = "value_norms"
"""The extra that holds ‖v·W_O‖, (layers, heads, n_keys), NaN where there is no such head."""


MadeBy: TypeAlias = Literal["native", "transformers", "array", "none"]
"""The code that ran a model; "array" where another program computed the weights, "none" where no
model was run, as for its tokens."""


@dataclass(frozen=True)
class ModelIdentity:
    """Which model made a capture, and how it was run.

    `fingerprint`: of the weights, by fixed samples of every tensor; behind a `-` that of all their
    bytes, where they were verified. None where another program made the capture, or no model was
    run: then `dtype` is "none", too. `parameters` is 0 where nobody counted them. `own_code`: its
    folder names code of its own, which was not run. `differs`: why its tokens may be others than
    in transformers. A saved capture does not keep the last two.
    """

    name: str
    architecture: str
    heads_per_layer: tuple[int, ...]
    parameters: int
    engine: MadeBy
    dtype: str = "float32"
    revision: str | None = None
    fingerprint: str | None = None
    own_code: bool = False
    differs: str = field(default="", compare=False)

    @property
    def n_layer(self) -> int:
        return len(self.heads_per_layer)


UNPREDICTABLE = 10
"""Characters by which a text counts as longer than it is: its beginning cannot be predicted."""


@dataclass(frozen=True)
class TextLoss:
    """How well the model predicts a text: `nats` in all, over so many `characters`.

    Characters and not tokens are counted, as a foreign text has more tokens a word. `limit` is
    the loss a character above which the model's card calls a text none of its world.
    """

    nats: float
    characters: int
    limit: float

    @property
    def per_character(self) -> float:
        """Nats per character, the text counted as `UNPREDICTABLE` characters longer."""
        return self.nats / (self.characters + UNPREDICTABLE)

    @property
    def strange(self) -> bool:
        """Whether the text is not of the model's world."""
        return self.per_character > self.limit


@dataclass(frozen=True, eq=False)
class Capture:
    """Everything recorded from one run: text, tokens, patterns, and the model's identity.

    `text` is the source whose slices the tokens are; `target` is what an encoder-decoder
    made of it: in cross-attention the query tokens, in the decoder's own all tokens are
    slices of that. Their rows stand for the token that a position produces. `bos` says
    whether a beginning token was put in front; `left_out` how many tokens were cut off
    before and after those that are here, to fit the model's context; `causal` whether a
    query sees only itself and what stands before it; `sinks` whether a part of each row goes
    to a sink that is no token, so that rows sum to less than 1; `transforms` what was done to the
    patterns since; `extras` holds arrays recorded beside the pattern, by name;
    `named_heads` are the heads that the model's card names, so that a saved capture shows
    the same default head without a model; `unknown_words` those words of the text that the
    model was never trained on, where it can tell; `loss` is how well the model predicted the
    text, where its card says what that means. `segments`: those of the prompt, where the capture is
    of an answer; its text is the prompt with the answer behind it. `asked`: with which options
    it was made.
    """

    text: str
    query_tokens: tuple[Token, ...]
    key_tokens: tuple[Token, ...]
    layers: tuple[LayerPattern, ...]
    model: ModelIdentity
    bos: bool
    left_out: tuple[int, int] = (0, 0)
    kind: Kind = "self"
    causal: bool = True
    sinks: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    transforms: tuple[Transform, ...] = ()
    extras: Mapping[str, FloatArray] = field(default_factory=dict)
    named_heads: tuple[NamedHead, ...] = ()
    unknown_words: tuple[str, ...] = ()
    loss: TextLoss | None = None
    segments: tuple[Segment, ...] = ()
    asked: Asked = field(default_factory=Asked)

    @property
    def strange(self) -> bool:
        """Whether the text is known not to be of the model's world."""
        return self.loss is not None and self.loss.strange

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads that this capture holds, in order."""
        return tuple(Head(layer.layer, head) for layer in self.layers for head in layer.heads)

    @property
    def one_sequence(self) -> bool:
        """Whether query and key of one position are the same token."""
        return self.kind in ("self", "encoder")

    @property
    def texts(self) -> tuple[str, str]:
        """The texts whose slices the query tokens and the key tokens are."""
        queries = self.target if self.kind in ("cross", "decoder") else self.text
        return queries, self.target if self.kind == "decoder" else self.text

    @property
    def signed(self) -> bool:
        """Whether its numbers may lie below zero: they are scores or differences, no weights."""
        return self.transformed_by(Scores) or self.transformed_by(Difference)

    def transformed_by(self, kind: type[Transform]) -> bool:
        """Whether a transform of this kind was applied."""
        return any(isinstance(transform, kind) for transform in self.transforms)

    def named(self, layer: int | None, head: int | None) -> tuple[NamedHead, ...]:
        """What the model's card says of a head."""
        return tuple(each for each in self.named_heads if each.head == (layer, head))

    def weights(self, head: Head) -> FloatArray:
        """The pattern of one head, (n_queries, n_keys).

        Raises:
            KeyError: the head is not in this capture.
        """
        for layer in self.layers:
            if layer.layer == head.layer and head.head in layer.heads:
                weights: FloatArray = layer.weights[layer.heads.index(head.head)]
                return weights
        raise KeyError(str(head))

    def allowed(self) -> NDArray[np.bool_]:
        """(n_queries, n_keys), True where the query may attend to the key."""
        return np.arange(len(self.key_tokens)) < self.allowed_count()[:, None]

    def allowed_count(self) -> IntArray:
        """(n_queries), how many keys each query may attend to."""
        n_queries, n_keys = len(self.query_tokens), len(self.key_tokens)
        every = np.full(n_queries, n_keys, np.int64)
        first = n_keys - n_queries + 1 if self.kind == "answer" else 1
        return np.minimum(every, np.arange(first, first + n_queries)) if self.causal else every

    def only(self, heads: tuple[Head, ...]) -> "Capture":
        """The same capture with only these heads; each must be in it."""
        layers = []
        for layer in self.layers:
            kept = tuple(h for h in layer.heads if Head(layer.layer, h) in heads)
            if kept == layer.heads:
                layers.append(layer)  # a copy of its patterns may be gigabytes
            elif kept:
                rows = [layer.heads.index(h) for h in kept]
                layers.append(LayerPattern(layer.layer, kept, layer.weights[rows]))
        return replace(self, layers=tuple(layers))
