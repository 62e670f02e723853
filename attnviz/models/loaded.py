"""The interface of all engines: a model in memory, whose attention can be recorded.

An engine derives from `LoadedModel`, and overrides what else it can do; the rest is refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from attnviz.errors import UsageError, option
from attnviz.records.capture import (
    Capture,
    Consumer,
    FloatArray,
    Kind,
    ModelIdentity,
    PatternBlock,
    Wanted,
)
from attnviz.records.heads import Head, ModelCard, Reads
from attnviz.records.interventions import Interventions, RunConsumer, Site
from attnviz.records.paths import FirstOrder, PathConsumer, Paths, SlopeOf
from attnviz.records.places import GivenBeside, HeardSound, RawImage, RawSound, ReadAs, SeenImage
from attnviz.records.predict import LogitConsumer
from attnviz.records.tokens import GoOn, Ids, Sampling, Slice, Token
from attnviz.records.trace import HeadTrace, LayerNumbers
from attnviz.records.transforms import Transform

if TYPE_CHECKING:
    from torch import Tensor

    from attnviz.models.engine import RecordedHead
    from attnviz.models.frozen.last import LastRead
    from attnviz.models.frozen.run import FrozenRun
    from attnviz.models.tokenizer import TextTokenizer
    from attnviz.records.rests import FindRests

ALONE: Mapping[Reads, tuple[str, str]] = {
    "image": ("images", "show, heads, compare or predict"),
    "speech": ("sounds", "show, heads, compare or align"),
}
"""The inputs of a model that reads no text, and the commands that take it."""


@dataclass(frozen=True)
class HeadRows:
    """Some query rows of one layer, of all wanted heads, in some windows of a batch.

    `windows`: those of the batch; `first`: the first query; `weights` (b, h, r, m), on the first m
    keys: none of these queries attends to a later one. `scores` (b, h, r, m), where they are
    known: after the mask; a reduction may write over them. Both are good only during the call.
    """

    layer: int
    windows: slice
    first: int
    weights: "Tensor"
    scores: "Tensor | None" = None


@dataclass(frozen=True)
class SomeHeadRows:
    """Some query rows of some heads in windows of a batch.

    `pairs`: the window and the head of each matrix; `first`: the first query; `weights`
    (pairs, r, m), on keys as in `HeadRows`.
    """

    layer: int
    pairs: Sequence[tuple[int, int]]
    first: int
    weights: "Tensor"


class RowReduction(ABC):
    """Takes the rows of a run where they are computed: all of a layer in order, layer by layer.

    `asks_again`: whether `again` may name any.
    """

    asks_again: ClassVar[bool] = False

    @abstractmethod
    def take(self, rows: HeadRows) -> None:
        """Take some rows of all wanted heads."""

    def again(self, layer: int, windows: slice) -> Sequence[tuple[int, int]]:
        """Name the (window, head) whose rows to give once more.

        It is asked when all rows of a layer were given for these windows.
        """
        return ()

    def take_again(self, rows: SomeHeadRows) -> None:  # noqa: B027 - most ask for none
        """Take some rows of heads that `again` named."""


@dataclass(frozen=True, eq=False)
class ReadInput:
    """What a model was given beside a text or in its place, as it reads it.

    `model`: the same model, which reads it wherever it runs over these tokens. `text`: as it is
    read, with the model's own mark in the place of each image; empty: there is none. `notes`: what
    was done to it. `spans`: the characters of each mark in the text. `keys`: the tokens of the
    images, where its attention to them is cross-attention. `transforms`: what is handed over in the
    place of weights. `sound`: what was heard.
    """

    model: "LoadedModel"
    text: str
    tokens: tuple[Token, ...]
    images: tuple[SeenImage, ...]
    notes: tuple[str, ...] = ()
    spans: tuple[Slice, ...] = ()
    keys: tuple[Token, ...] = ()
    transforms: tuple[Transform, ...] = ()
    sound: HeardSound | None = None


Ability: TypeAlias = Literal[
    "predict",
    "classes",
    "fill",
    "generate",
    "value_norms",
    "record",
    "vectors",
    "freeze",
    "last",
    "write",
]
"""A method that some engines refuse."""


TOGETHER, LOGITS = 1 << 12, 1 << 26
"""The most tokens, and the most logits, of prompts that run together."""


@dataclass(frozen=True, kw_only=True)
class LoadedModel(ABC):
    """A model in memory.

    `kind`: the attention that `run` hands over: "self", or one of an encoder-decoder's three.
    `causal`: a query attends only to itself and to earlier tokens. `sinks`: a part of each row may
    go to a sink that is not a token. `sight`: its side that reads only an image (CLIP).
    """

    identity: ModelIdentity
    card: ModelCard
    tokenizer: "TextTokenizer"
    causal: bool
    kind: Kind = "self"
    sinks: bool = False
    sight: "LoadedModel | None" = None

    def can(self, ability: Ability) -> bool:
        """Whether this engine overrides a method that others refuse."""
        return getattr(type(self), ability) is not getattr(LoadedModel, ability)

    def require(self, ability: Ability) -> None:
        """Refuse, before anything is run, what this engine does not do.

        Raises:
            UsageError: it does not.
        """
        if not self.can(ability):
            raise self._refusal(ability)

    @abstractmethod
    def run(self, ids: Ids, wanted: Wanted, consume: Consumer, target: Ids = ()) -> None:
        """Run the tokens; hand the wanted rows of the wanted heads to the consumer.

        Layers after the last wanted one are not run. An encoder-decoder whose
        cross-attention or decoder is recorded needs a `target`: row i is the position that
        produces target token i, whose input is the token before.
        """

    @abstractmethod
    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        """About how much memory a run takes, without the model and what is kept of the run."""

    def versions(self) -> Mapping[str, str]:
        """The versions of the libraries that run the model, by name."""
        import torch

        return {"torch": str(torch.__version__)}

    def weights(self) -> "tuple[dict[str, Tensor], str] | None":
        """The tensors of a fingerprint, and the rest of it; None where it never changes."""
        return None

    def reduce(self, ids: "Tensor", wanted: Wanted, reduction: RowReduction) -> None:
        """Run windows (B, n), and give the rows of the wanted heads to a reduction.

        Layers after the last wanted one are not run. Here one window runs after the other, and once
        more for the heads that are wanted again.
        """
        import torch

        for window, own in enumerate(ids.tolist()):
            windows = slice(window, window + 1)

            def consume(block: PatternBlock, windows: slice = windows) -> None:
                weights, first = torch.from_numpy(block.weights)[None], int(block.queries[0])
                reduction.take(HeadRows(block.layer, windows, first, weights))

            def consume_again(block: PatternBlock, window: int = window) -> None:
                first, weights = int(block.queries[0]), torch.from_numpy(block.weights)
                pairs = [(window, head) for head in block.heads]
                reduction.take_again(SomeHeadRows(block.layer, pairs, first, weights))

            self.run(own, wanted, consume)
            again = {
                layer: tuple(sorted(head for _, head in reduction.again(layer, windows)))
                for layer in wanted.heads
            }
            again = {layer: heads for layer, heads in again.items() if heads}
            if again:
                self.run(own, Wanted(again), consume_again)

    @property
    def reads(self) -> Reads:
        """The input that it reads without a text: `see` takes images."""
        return self.identity.reads

    @property
    def reads_images(self) -> bool:
        """Whether `see` takes images."""
        return False

    @property
    def matches(self) -> bool:
        """Whether `see` compares an image with a text (CLIP)."""
        return False

    def check_sees(self) -> None:
        """Refuse images where it reads none.

        Raises:
            UsageError: it reads none.
        """
        if not self.reads_images:
            raise UsageError(
                f"{self.identity.name} reads no images",
                f"leave {option('image')} out, or use a model that does",
            )

    def check_alone(self) -> None:
        """Refuse a text by itself where it is the attention to or within images that is meant."""
        if self.kind != "self" and self.reads_images:
            what = "to" if self.kind == "cross" else "within"
            raise UsageError(
                f"{option('kind', self.kind)} of {self.identity.name} is its attention {what} "
                "images",
                f"give one with {option('image')}",
            )

    def read(self, text: str, given: Sequence[GivenBeside], how: ReadAs) -> ReadInput:
        """Read a text with what is given beside it, or what is given in its place."""
        for sound in (each for each in given if isinstance(each, RawSound)):
            return self.hear(sound)
        return self.see(text, [each for each in given if isinstance(each, RawImage)], how)

    def see(self, text: str, pictures: Sequence[RawImage], how: ReadAs) -> ReadInput:
        """Read a text with images, each in the place of an `<image>` in it, or before it."""
        self.check_sees()
        raise NotImplementedError

    def hear(self, sound: RawSound) -> ReadInput:
        """Read a sound.

        Raises:
            UsageError: it reads none.
        """
        raise UsageError(
            f"{self.identity.name} reads no sounds",
            f"leave {option('audio')} out, or use a model that does, such as Whisper",
        )

    def of_pair(self, tokens: Sequence[Token]) -> "LoadedModel":
        """The model with the types of these tokens, wherever it runs over them."""
        return self

    def unknown_words(self, text: str, target: str) -> tuple[str, ...]:
        """The words of a text that the model was never trained on, each once, in order.

        `target`: its answer; empty where nothing is written.
        """
        return ()

    def predict(
        self, ids: Ids, positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        """Hand over the logits after each of these positions, in blocks.

        `lens`: before them, the logits after each layer but the last, as if the model stopped
        there: the logit lens (nostalgebraist 2020).
        """
        raise self._refusal("predict")

    def intervene(self, ids: Ids, interventions: Interventions, consume: RunConsumer) -> None:
        """Run the tokens once for each intervention; a model that predicts can do it.

        The consumer is given the runs in no particular order.
        """
        raise self._refusal("predict")

    def site_vectors(self, ids: Ids, sites: Collection[Site]) -> dict[Site, FloatArray]:
        """The vectors of sites at every position of an unchanged run (n, width).

        A model that predicts can do it.
        """
        raise self._refusal("predict")

    def paths(self, ids: Ids, paths: Paths, consume: PathConsumer) -> None:
        """Run the tokens for each sender, and each receiver after it.

        A model that predicts can do it.

        Raises:
            ModelError: these paths of this model cannot be separated from others.
        """
        raise self._refusal("predict")

    def first_order(self, ids: Ids, slope_of: SlopeOf) -> FirstOrder:
        """The effects of patches to first order, by two runs and a gradient; as `intervene`."""
        raise self._refusal("predict")

    def fill(
        self, ids: Ids, positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        """Hand over the logits at each of these positions, not after it; else as `predict`."""
        raise self._refusal("predict")

    @property
    def beams(self) -> int:
        """The number of texts that its own settings write side by side, to take the likeliest."""
        return 1

    def generate(
        self, ids: Ids, sampling: Sampling, wanted: Wanted, consume: Consumer, go_on: GoOn
    ) -> None:
        """Write tokens until one that ends a text, or as long as `go_on` says so.

        `wanted` rows are those of the positions that predict a new token; `consume` is given them,
        numbered from 0, before `go_on` gets it. Their keys are the tokens read and the new
        ones before this one; in cross-attention only the tokens read.
        """
        raise self._refusal("generate")

    def log_probabilities(self, prompts: Sequence[Ids], answer: Ids) -> FloatArray:
        """The log-probability in nats of each token of an answer after each prompt (prompts, m)."""
        return self.choices(prompts, answer, [[id_] for id_ in answer])[..., 0]

    def choices(self, prompts: Sequence[Ids], answer: Ids, ids: Sequence[Ids]) -> FloatArray:
        """The log-probability in nats of other tokens, too, at each place of an answer.

        Prompts of one length run together.

        Args:
            prompts: what the answer follows.
            answer: m ids; what comes before a place is of the answer.
            ids: (m, k), the tokens at each place.

        Returns:
            (prompts, m, k).
        """
        from attnviz.models.engine import at_places

        found = np.zeros((len(prompts), *np.shape(ids)), np.float32)
        for n in {len(each) for each in prompts}:
            own = [i for i, each in enumerate(prompts) if len(each) == n]
            logits = self.tokenizer.vocab_size * len(answer)
            most = max(1, min(TOGETHER // (n + len(answer)), LOGITS // logits))
            for some in (own[i : i + most] for i in range(0, len(own), most)):
                found[some] = at_places(self.answered([prompts[i] for i in some], answer), ids)
        return found

    def likeliest(self, prompt: Ids, answer: Ids, among: Ids) -> list[int]:
        """The likeliest of some tokens at each place of an answer (m)."""
        best = self.answered([prompt], answer)[0][:, list(among)].argmax(dim=-1).tolist()
        return [among[i] for i in best]

    def having_read(self, ids: Ids) -> "LoadedModel":
        """The model for many answers to variants of a prompt: it may read what they share once."""
        return self

    def answered(self, prompts: Sequence[Ids], answer: Ids) -> "Tensor":
        """The logits (B, m, V) of what follows prompts of one length, and each token but the last.

        Raises:
            UsageError: the model writes no answers.
        """
        raise self._refusal("generate")

    def value_norms(self, ids: Ids) -> FloatArray:
        """‖v·W_O‖ of every key: the length of what it would add to a query at a weight of 1.

        (layers, heads, n), NaN where a layer has no such head.
        """
        raise self._refusal("value_norms")

    @property
    def gated(self) -> bool:
        """Whether `gates` takes a run."""
        return False

    def gates(self, ids: Ids) -> FloatArray | None:
        """The share that gates after the softmax let through, as `GATES`; None without a gate."""
        return None

    def check_contributions(self) -> None:
        """Check that the output of each head can be separated by keys.

        Raises:
            UsageError: this engine does not have it.
            ModelError: this model keeps it to itself.
        """
        raise self._refusal("contributions")

    def trace(
        self, blank: Capture, ids: Ids, head: Head, query: int, target: Ids = ()
    ) -> HeadTrace:
        """Run the whole model, and keep all that one head computes.

        `blank`: the run without its patterns; the rest as in `record`.
        """
        from attnviz.models.engine import head_trace

        (recorded,) = self.record(ids, [head], query, target)
        return head_trace(recorded, blank, self.tokenizer)

    def record(
        self, ids: Ids, heads: Sequence[Head], query: int, target: Ids = ()
    ) -> "Sequence[RecordedHead]":
        """Run the whole model, and keep all that these heads of one layer compute.

        `query`: the row that is followed to the end of the layer. `target`: as in `run`.
        """
        raise self._refusal("record")

    def whole_layer(self, ids: Ids, layer: int, target: Ids = ()) -> LayerNumbers:
        """The numbers of every head and query of a layer."""
        from attnviz.models.engine import layer_numbers

        heads = [Head(layer, n) for n in range(self.identity.heads_per_layer[layer])]
        return layer_numbers(self.record(ids, heads, -1, target))

    def output_vectors(self) -> "Tensor":
        """(V, d'): each token's vector in the output layer, which makes its logit."""
        raise self._refusal("record")

    def vectors(self, ids: Ids, position: int) -> FloatArray:
        """The stream at a position, (layers + 1, d): before layer 0, and after each layer."""
        raise self._refusal("vectors")

    @property
    def stream_width(self) -> int:
        """The number of entries of a vector of its residual stream."""
        raise self._refusal("vectors")

    def steered(self, vectors: Mapping[int, FloatArray], about: str) -> "LoadedModel":
        """A view of the model, which adds a vector (d) to the stream at some layers' inputs.

        They are added at every position of every run. `about`: what they are, for its name.

        Raises:
            ModelError: its layers cannot be told apart.
        """
        raise self._refusal("vectors")

    def freeze(self, ids: Ids) -> "FrozenRun":
        """Run the tokens, and hold norms and attention at what they were."""
        raise self._refusal("freeze")

    def last(self, ids: Ids, rests: "FindRests | None" = None) -> "LastRead":
        """Run the tokens, and record what the last position reads, adds up and predicts.

        A model that predicts can do it. `rests` learns how long all values are, and is given
        its rows in the same run.

        Raises:
            ModelError: its logits are not a sum over its parts that attnviz can follow.
        """
        raise self._refusal("predict")

    def classes(self) -> tuple[Sequence[str], FloatArray]:
        """The names of the classes that an image may have, and its logits of them (classes)."""
        raise self._refusal("classes")

    def write(self, ids: Ids) -> tuple[str, tuple[Token, ...]]:
        """The likeliest target text for these tokens, and the tokens of it."""
        raise self._refusal("write")

    def read_target(self, text: str) -> tuple[Token, ...]:
        """Read the tokens of a target text, without special ones."""
        self.require("write")
        return self.tokenizer.encode(text, bos=False, special=False)

    def _refusal(self, ability: Ability | Literal["contributions"]) -> UsageError:
        name = self.identity.name
        match ability:
            case "predict" | "fill" | "generate" | "vectors" | "freeze" if self.reads != "text":
                reads, takes = ALONE[self.reads]
                wrong = f"{name} reads only {reads}, but this is asked about a text"
                hint = f"use {takes} for what it attends to, or a model that reads a text, too"
            case "predict" | "fill":
                wrong = f"{name} does not predict the token that follows a text"
                hint = "use a model that does, such as builtin or gpt2"
            case "classes":
                wrong = f"{name} has no classes of images to choose among"
                hint = "use a model that was trained to name them, such as shapes-vit"
            case "generate":
                wrong, hint = f"{name} does not write text", "use a model that does, such as gpt2"
            case "value_norms" | "contributions":
                models = "models of one text with projections"
                asked = option("weighted" if ability == "value_norms" else "contribution")
                wrong = f"{asked} is for {models}, which {name} is not"
                hint = "leave it out, or use another model"
            case "record":
                wrong, hint = "this has no queries, keys and values", "choose another model"
                if self.reads != "text":
                    wrong = f"{name} reads no text, but this calculation is of texts"
            case "write":
                wrong = f"{name} is not an encoder-decoder"
                hint = f"use {option('model', 'translator')}"
            case "vectors" | "freeze":
                wrong = (
                    f"{name} cannot be taken apart: this attention is not within a single residual "
                    "stream that attnviz follows"
                )
                hint = "use a decoder or an encoder, such as builtin or gpt2"
        return UsageError(wrong, hint)
