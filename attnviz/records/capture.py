"""The capture: everything recorded from one run of a model over one text.

Axes, everywhere: (layer, head, query, key). Rows are queries and columns are keys.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import ModelError, option
from attnviz.records.heads import Bringing, Head, NamedHead, Reads
from attnviz.records.places import HeardSound, SeenImage, lie_beside
from attnviz.records.tokens import CallOptions, Segment, Token
from attnviz.records.transforms import SIGNED, Transform, value_name

# Blocks of query rows, and the consumers that every run has.

FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PatternBlock:
    """Query rows of heads of one layer, as a model passes them to its consumer.

    `weights` has the shape (len(heads), len(queries), n): the weights on the first n keys;
    none of these queries attends to a later one. Use the array only during the call.
    """

    layer: int
    heads: tuple[int, ...]
    queries: IntArray
    weights: FloatArray

    @cached_property
    def sums(self) -> FloatArray:
        """The sum of each row (heads, queries)."""
        # numpy's own sum takes three times as long; BLAS may flag lanes that it does not use
        with np.errstate(invalid="ignore"):
            return np.asarray(self.weights @ np.ones(self.weights.shape[2], np.float32))


Consumer: TypeAlias = Callable[[PatternBlock], None]
"""A function that takes the wanted rows of each layer in blocks, layers and rows in order."""


@dataclass(frozen=True)
class Wanted:
    """The rows that a model passes on: the heads of each layer, and the queries.

    `heads`: layer to heads; a layer that is not named is not recorded. `queries`: positions
    in rising order; None for all. `scores`: q·k / √d_k, before mask and softmax, instead of the
    weights. `contributions`: each key's share of what the heads write.
    """

    heads: Mapping[int, tuple[int, ...]]
    queries: tuple[int, ...] | None = None
    scores: bool = False
    contributions: bool = False

    @property
    def last_layer(self) -> int:
        """The last layer that has to run, or -1 if no layer is wanted."""
        return max(self.heads, default=-1)


NOTHING = Wanted({})


@dataclass(frozen=True, eq=False)
class LayerPattern:
    """The chosen heads of one layer: `weights` (len(heads), n_queries, n_keys), read-only."""

    layer: int
    heads: tuple[int, ...]
    weights: FloatArray

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False


@dataclass
class KeepEverything:
    """The plainest consumer: whole patterns by layer; `shape` is (n_queries, n_keys)."""

    shape: tuple[int, int]
    _kept: dict[int, tuple[tuple[int, ...], FloatArray]] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        if block.layer not in self._kept:
            zeros = np.zeros((len(block.heads), *self.shape), np.float32)
            self._kept[block.layer] = block.heads, zeros
        columns = block.weights.shape[2]
        self._kept[block.layer][1][:, block.queries, :columns] = block.weights

    def layers(self) -> tuple[LayerPattern, ...]:
        return tuple(
            LayerPattern(layer, heads, weights)
            for layer, (heads, weights) in sorted(self._kept.items())
        )


@dataclass
class Checked:
    """Passes blocks on to a consumer, after a check of each.

    `empty`: the capture without arrays, which says whether queries attend to later keys, whether
    rows sum to 1, and how many queries and keys there are.
    """

    consume: Consumer
    empty: "Capture"
    _rows: dict[int, int] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        """Check a block, and pass it on.

        Raises:
            ModelError: the weights are not numbers, or not an attention pattern over these tokens.
        """
        self._rows[block.layer] = self._rows.get(block.layer, 0) + len(block.queries)
        if not np.isfinite(block.sums).all():
            raise ModelError(
                f"the attention of layer {block.layer} is not a number (NaN or infinite)",
                "the checkpoint may be damaged; in half precision try "
                f"{option('dtype', 'float32')}",
            )
        n, keys = block.weights.shape[2], len(self.empty.key_tokens)
        # causal blocks may end after the last key of their queries
        if n != keys and not (self.empty.causal and int(block.queries[-1]) < n < keys):
            raise self._no_pattern(block.layer, "does not attend to each of the tokens")
        if self.empty.signed:  # scores have no further properties to check
            self.consume(block)
            return
        tolerance = 1e-3 if self.empty.model.dtype == "float32" else 0.05
        if not self.empty.sinks and np.abs(block.sums - 1).max() > tolerance:
            raise self._no_pattern(block.layer, "has rows that do not sum to 1")
        if self.empty.causal and _looks_ahead(block):
            raise self._no_pattern(block.layer, "attends to later tokens")
        self.consume(block)

    def finish(self, wanted: Wanted) -> None:
        """Check that every wanted row arrived exactly once."""
        queries = len(self.empty.query_tokens) if wanted.queries is None else len(wanted.queries)
        silent = [layer for layer in sorted(wanted.heads) if layer not in self._rows]
        if len(silent) == len(wanted.heads):
            raise ModelError(
                f"attnviz cannot find attention in {self.empty.model.architecture}: it has none, "
                "or computes it in a way that attnviz does not know",
                "use another model",
            )
        if silent:
            raise ModelError(
                f"layer {silent[0]} of this model has no attention that attnviz can show",
                f"choose others with {option('layers')}",
            )
        for layer, rows in self._rows.items():
            if rows != queries:
                raise self._no_pattern(layer, f"has {rows} rows for {queries} tokens")

    def _no_pattern(self, layer: int, why: str) -> ModelError:
        return ModelError(
            f"layer {layer} of {self.empty.model.architecture} {why}: this is not an "
            "attention pattern that attnviz can show",
            "use another model",
        )


def _looks_ahead(block: PatternBlock) -> bool:
    first = int(block.queries[0])  # no earlier column can be ahead of any of these rows
    later = np.arange(first, block.weights.shape[2]) > block.queries[:, None]
    return bool(block.weights[:, :, first:][:, later].any())


Kind: TypeAlias = Literal["self", "cross", "encoder", "decoder", "answer"]
"""The kind of attention: within a text; one of an encoder-decoder's three; or from an answer's
tokens, each in the row of the position that predicted it, to the prompt and the answer so far."""
PairKind: TypeAlias = Literal["cross", "encoder", "decoder"]
"""One of the attentions of an encoder-decoder."""
ShownKind: TypeAlias = Literal["cross", "encoder", "decoder", "implicit"]
"""One of the attentions of a model with several: an encoder-decoder, or with recurrent layers."""

VALUE_NORMS = "value_norms"
"""The extra that holds ‖v·W_O‖, (layers, heads, n_keys), NaN without such a head."""
RESTS = "rests"
"""The extra that is 1 if a key is a rest of a head (`records/rests.py`), else 0: (layers, heads,
n_keys), NaN without such a head."""
GATES = "gates"
"""The extra that holds the share that a gate after the softmax lets through: (2, layers, heads,
n_queries), the gate's mean, and the share of the length of the head's output; NaN without one."""
END_READ = "end_read"
"""The extra that holds the attention at the end of a sound's transcript, a row after all that
predict the text: (layers, heads, n_keys), NaN without such a head."""

MadeBy: TypeAlias = Literal["native", "transformers", "array", "none"]
"""The code that ran a model; "array" for weights from another program, "none" if no model was run,
as for its tokens."""


@dataclass(frozen=True)
class ModelIdentity:
    """The model that made a capture, and how it was run.

    `fingerprint`: of the weights, by fixed samples of every tensor; after a `-` that of all their
    bytes, if they were verified; None if another program made the capture, or no model was run
    (then `dtype` is "none", too). `quantization`: of the weights in their file, of which float32 or
    the like was made. `parameters`: 0 if not counted. `own_code`: its folder names
    its own code, which was not run. `differs`: why its tokens may differ from those of
    transformers, or the settings left out. `hooks`: the number that a user has registered on its
    modules, which its name then states. `added`: the vectors added to its stream, likewise.
    `implicit`: its heads are those of recurrent layers. `reads_images`: with a text. `reads`: the
    only kind of input. A saved capture lacks the last 7.
    """

    name: str
    architecture: str
    heads_per_layer: tuple[int, ...]
    parameters: int
    engine: MadeBy
    dtype: str = "float32"
    revision: str | None = None
    fingerprint: str | None = None
    quantization: str | None = None
    own_code: bool = False
    differs: str = field(default="", compare=False)
    hooks: int = field(default=0, compare=False)
    added: str = field(default="", compare=False)
    implicit: bool = field(default=False, compare=False)
    reads_images: bool = field(default=False, compare=False)
    reads: Reads = field(default="text", compare=False)

    @property
    def n_layer(self) -> int:
        return len(self.heads_per_layer)

    def with_hooks(self, hooks: int) -> "ModelIdentity":
        """The same model with this number of a user's hooks: `gpt2 with 2 hooks of your own`."""
        plain, now = (
            f" with {n} hook{'s' * (n > 1)} of your own" if n else "" for n in (self.hooks, hooks)
        )
        return replace(self, name=self.name.removesuffix(plain) + now, hooks=hooks)

    def with_added(self, added: str) -> "ModelIdentity":
        """The same model with vectors added: `gpt2 with happy.npy × 3 added at layer 4`."""
        return replace(self, name=f"{self.name} with {added}", added=added)


UNPREDICTABLE = 10
"""Characters added to a text's length, since its beginning cannot be predicted."""


@dataclass(frozen=True)
class TextLoss:
    """The model's loss on a text: `nats` in total, over `characters`.

    Characters and not tokens are counted, as a foreign text has more tokens per word. `limit`: the
    loss per character above which the model's card calls a text unlike those of its training.
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
        """Whether the text is unlike those of the model's training."""
        return self.per_character > self.limit


@dataclass(frozen=True, eq=False)
class Capture:
    """Everything recorded from one run: text, tokens, patterns, and the model's identity.

    Attributes:
        text: the source whose slices the tokens are; for an answer the prompt with the answer.
        target: an encoder-decoder's output, of which the decoder's tokens are slices; their rows
            are named by the token that a position produces.
        bos: a beginning token was added.
        left_out: the numbers of tokens cut off before and after, to fit the model's context.
        causal: a query attends only to itself and to earlier tokens.
        sinks: part of each row goes to a sink that is not a token, so that its sum is below 1.
        transforms: those applied to the patterns since.
        extras: arrays recorded with the pattern, by name.
        named_heads: those that the model's card names, for the default head of a saved capture.
        unknown_words: words of the text that the model was never trained on.
        loss: the model's loss on the text, if its card has a limit for it.
        segments: those of the prompt, in the capture of an answer.
        asked: the options of the call.
        images, sound: those that the model read.
        notes: remarks on how the input was read.
        brings: the links that bring the next token, if the choice of a head needed them.
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
    asked: CallOptions = field(default_factory=CallOptions)
    images: tuple[SeenImage, ...] = ()
    sound: HeardSound | None = None
    notes: tuple[str, ...] = ()
    brings: Bringing | None = None

    @property
    def strange(self) -> bool:
        """Whether the text is known to be unlike those of the model's training."""
        return self.loss is not None and self.loss.strange

    @property
    def heads(self) -> tuple[Head, ...]:
        return tuple(Head(layer.layer, head) for layer in self.layers for head in layer.heads)

    @property
    def image_alone(self) -> bool:
        """Whether the input was only an image: its patches, and perhaps the model's own tokens."""
        return bool(self.images) and all(token.special for token in self.query_tokens)

    @property
    def beside(self) -> bool:
        """Whether it read images whose patches are none of the keys."""
        return lie_beside(self.images, self.key_tokens)

    @property
    def timed(self) -> bool:
        """Whether keys stand for seconds of a sound."""
        return any(token.time for token in self.key_tokens)

    def inset_name(self, number: int | None) -> str:
        """The name of an image: `image`, or of several `image 2`."""
        return f"image {(number or 0) + 1}" if len(self.images) > 1 else "image"

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
        """Whether its numbers may be negative, like scores, contributions and differences."""
        return any(isinstance(each, SIGNED) for each in self.transforms)

    @property
    def values(self) -> str:
        """The name of its numbers, for a sentence."""
        return f"{value_name(self.transforms).replace('_', ' ')}s"

    def transformed_by(self, kind: Any) -> bool:
        return any(isinstance(transform, kind) for transform in self.transforms)

    def named(self, layer: int | None, head: int | None) -> tuple[NamedHead, ...]:
        """The entries of the model's card about a head."""
        return tuple(each for each in self.named_heads if each.head == (layer, head))

    def weights(self, head: Head) -> FloatArray:
        """The pattern of one head, (n_queries, n_keys); a KeyError without one."""
        for layer in self.layers:
            if layer.layer == head.layer and head.head in layer.heads:
                weights: FloatArray = layer.weights[layer.heads.index(head.head)]
                return weights
        raise KeyError(str(head))

    def allowed(self) -> NDArray[np.bool_]:
        """A mask (n_queries, n_keys), True where the query may attend to the key."""
        return np.arange(len(self.key_tokens)) < self.allowed_count()[:, None]

    @property
    def first_query(self) -> int:
        """The first query's position among the keys: an answer's queries follow its prompt."""
        before = len(self.key_tokens) - len(self.query_tokens)
        return before + (self.model.engine != "array") if self.kind == "answer" else 0

    def allowed_count(self) -> IntArray:
        """The number of keys that each query may attend to, shape (n_queries)."""
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


class OverText:
    """A result over one text; `capture` is its run without any pattern."""

    capture: Capture

    @property
    def text(self) -> str:
        return self.capture.text

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.capture.key_tokens

    @property
    def model(self) -> ModelIdentity:
        return self.capture.model

    @property
    def versions(self) -> Mapping[str, str]:
        return self.capture.versions
