"""What every engine offers: a loaded model, and what else some models can do.

A model class has the methods of those capabilities only that it has. Whoever needs one asks
for it here: `predicting(model)`, `valuing(model)`, `tracing(model)`, `freezing(model)`,
`writing(model)`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from attnviz.errors import UsageError, option
from attnviz.records.capture import Capture, Consumer, FloatArray, Kind, ModelIdentity, Wanted
from attnviz.records.heads import Head, ModelCard
from attnviz.records.interventions import Intervention, RunConsumer, SourceRun
from attnviz.records.predict import LogitConsumer
from attnviz.records.prompt import GoOn, Sampling
from attnviz.records.tokens import Token
from attnviz.records.trace import HeadTrace

if TYPE_CHECKING:
    from torch import Tensor

    from attnviz.models.frozen.sums import FrozenRun
    from attnviz.models.tokenizer import TextTokenizer


@dataclass(frozen=True)
class Rows:
    """Some query rows of one layer, of all wanted heads, in some windows of a batch.

    `windows`: those of the batch; `first`: the first query; `weights` (b, h, r, m), on the first m
    keys: none of these queries attends to a later one. `scores` (b, h, r, m), where they are
    known: after the mask; a reduction may write over them. Both are good during the call alone.
    """

    layer: int
    windows: slice
    first: int
    weights: "Tensor"
    scores: "Tensor | None" = None


Take: TypeAlias = Callable[[Rows], None]
"""Is given all rows of a layer in order, layer after layer."""


class LoadedModel(Protocol):
    """A model in memory, whose attention can be recorded."""

    @property
    def identity(self) -> ModelIdentity:
        """Which model this is, and how it is run."""

    @property
    def card(self) -> ModelCard:
        """What the model says about itself; empty where it says nothing."""

    @property
    def tokenizer(self) -> "TextTokenizer":
        """Cuts a text into this model's tokens."""

    @property
    def kind(self) -> Kind:
        """The attention that `run` hands over: "self", or one of an encoder-decoder's three."""

    @property
    def causal(self) -> bool:
        """Whether a query attends only to itself and to earlier tokens."""

    @property
    def sinks(self) -> bool:
        """Whether a part of each row goes to a sink that is no token."""

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        """About how much memory a run takes, without the model and what is kept of the run."""

    def versions(self) -> Mapping[str, str]:
        """The versions of the libraries that run the model, by name."""

    def run(
        self,
        ids: Sequence[int],
        wanted: Wanted,
        consume: Consumer,
        target: Sequence[int] = (),
    ) -> None:
        """Run the tokens; hand the wanted rows of the wanted heads to the consumer.

        Layers after the last wanted one are not run. An encoder-decoder whose
        cross-attention or decoder is recorded needs a `target`: row i is the position that
        produces target token i, whose input is the token before.
        """


@runtime_checkable
class Predicts(Protocol):
    """A model that predicts the token that follows a text."""

    def predict(
        self, ids: Sequence[int], positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        """Hand over the logits after each of these positions, in blocks.

        `lens`: before them, the logits after each layer but the last, as if the model stopped
        there: the logit lens (nostalgebraist 2020).
        """

    def intervene(
        self,
        ids: Sequence[int],
        interventions: Sequence[Intervention],
        consume: RunConsumer,
        *,
        whole: bool,
        source: SourceRun | None = None,
    ) -> None:
        """Run the tokens once for each intervention.

        The consumer is given the runs in no particular order; `whole`: with the
        log-probabilities of all tokens that followed. `source`: where edits take vectors from.

        Raises:
            ModelError: what is to be changed cannot be found in this architecture.
        """


@runtime_checkable
class Fills(Protocol):
    """A model that fills masks in a text: what it predicts stands at a position, not after it."""

    @property
    def mask(self) -> Token | None:
        """The mask, by its id and its name; None where the tokenizer has none."""

    def fill(
        self, ids: Sequence[int], positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        """Hand over the logits at each of these positions; `lens` as for `Predicts.predict`."""


@runtime_checkable
class HasStream(Protocol):
    """A model with one residual stream, which runs through all its layers."""

    def vectors(self, ids: Sequence[int], position: int) -> FloatArray:
        """The stream at a position, (layers + 1, d): before layer 0, and after each layer."""


@runtime_checkable
class HasValues(Protocol):
    """A model of one text whose heads have values and an output projection."""

    def value_norms(self, ids: Sequence[int]) -> FloatArray:
        """‖v·W_O‖ of every key: the length of what it would add to a query at a weight of 1.

        (layers, heads, n), NaN where a layer has no such head.

        Raises:
            ModelError: the values cannot be found in this architecture.
        """


@runtime_checkable
class Traces(Protocol):
    """A model that can record every step of one head."""

    def trace(
        self,
        blank: Capture,
        ids: Sequence[int],
        head: Head,
        query: int,
        target: Sequence[int] = (),
    ) -> HeadTrace:
        """Run the whole model, and keep all that one head computes.

        Args:
            blank: the run without its patterns: text, and the tokens of rows and columns.
            ids: the tokens that the model reads.
            head: of the attention of the model's kind.
            query: the row that is followed to the end of the layer.
            target: the tokens that an encoder-decoder is to have written, as in `run`.

        Raises:
            ModelError: this architecture's queries, keys and values cannot be recorded.
        """


@runtime_checkable
class Freezes(Protocol):
    """A model of one residual stream, a run of which can be held fixed."""

    def freeze(self, ids: Sequence[int]) -> "FrozenRun":
        """Run the tokens, and hold norms and attention at what they were.

        Raises:
            ModelError: this architecture is not affine then, or keeps its attention to itself.
        """


@runtime_checkable
class Writes(Protocol):
    """An encoder-decoder, whose decoder writes a target text."""

    def write(self, ids: Sequence[int]) -> tuple[str, tuple[Token, ...]]:
        """The likeliest target text for these tokens, and the tokens of it.

        Raises:
            UsageError: the model has no output layer.
        """

    def read_target(self, text: str) -> tuple[Token, ...]:
        """The tokens of a given target text, without special ones."""


@runtime_checkable
class Generates(Protocol):
    """A model that goes on with a text, or writes another, token by token."""

    @property
    def beams(self) -> int:
        """How many texts its own settings write side by side, to take the likeliest."""

    def generate(
        self,
        ids: Sequence[int],
        sampling: Sampling,
        wanted: Wanted,
        consume: Consumer,
        go_on: GoOn,
    ) -> None:
        """Write tokens until one that ends a text, or as long as `go_on` says so.

        Args:
            ids: the tokens that the model reads.
            sampling: how tokens are chosen, and how many there are at most.
            wanted: which heads; their rows are those of the positions that predict a new token.
            consume: is given the rows of a new token, numbered from 0, before `go_on` is told of
                it. Their keys are the tokens read and the new ones before this one; in
                cross-attention the tokens read alone.
            go_on: see `GoOn`.

        Raises:
            ModelError: transformers cannot run it.
        """

    def log_probabilities(self, ids: Sequence[int], answer: Sequence[int]) -> FloatArray:
        """The log-probability in nats of each token of an answer, given all before it (m).

        Args:
            ids: the tokens that the model reads.
            answer: the ids of the m tokens that it is to write.
        """


@runtime_checkable
class Reduces(Protocol):
    """A model that runs several windows of tokens at once, and reduces their attention."""

    def reduce(self, ids: "Tensor", wanted: Wanted, take: Take) -> None:
        """Run windows (B, n), and give the rows of the wanted heads to `take`, layer after layer.

        Layers after the last wanted one are not run.

        Raises:
            ModelError: the model cannot run them, or not at once.
        """


@runtime_checkable
class KnowsWords(Protocol):
    """A model that can tell which words of a text it was never trained on."""

    def unknown_words(self, text: str, target: str) -> tuple[str, ...]:
        """The words of the text that it does not know, each once, in order.

        Args:
            text: what it reads.
            target: what it writes; empty where nothing is written.
        """


def predicting(model: LoadedModel) -> Predicts:
    """The model, as one that predicts.

    Raises:
        UsageError: it does not predict the token that follows a text.
    """
    if isinstance(model, Predicts):
        return model
    raise UsageError(
        f"{model.identity.name} does not predict the token that follows a text",
        "use a model that does, such as builtin or gpt2",
    )


def generating(model: LoadedModel) -> Generates:
    """The model, as one that writes.

    Raises:
        UsageError: it has no output layer, or is the encoder of a model that has one.
    """
    if isinstance(model, Generates):
        return model
    raise UsageError(
        f"{model.identity.name} does not write text", "use a model that does, such as gpt2"
    )


def valuing(model: LoadedModel) -> HasValues:
    """The model, as one that has values.

    Raises:
        UsageError: it does not attend to the text that it reads, or has no projections.
    """
    if isinstance(model, HasValues):
        return model
    raise UsageError(
        f"{option('weighted')} is for models of one text with projections, which "
        f"{model.identity.name} is not",
        "leave it out, or use another model",
    )


def tracing(model: LoadedModel) -> Traces:
    """The model, as one that can record every step of a head.

    Raises:
        UsageError: it has no queries, keys and values.
    """
    if isinstance(model, Traces):
        return model
    raise UsageError("this has no queries, keys and values", "choose another model")


def freezing(model: LoadedModel) -> Freezes:
    """The model, as one whose runs can be held fixed.

    Raises:
        UsageError: its attention is not within one residual stream.
    """
    if isinstance(model, Freezes):
        return model
    raise UsageError(
        f"{model.identity.name} cannot be taken apart: this attention is not within a single "
        "residual stream that attnviz follows",
        "use a decoder or an encoder, such as builtin or gpt2",
    )


def writing(model: LoadedModel) -> Writes:
    """The model, as one that writes a target text.

    Raises:
        UsageError: it is not an encoder-decoder.
    """
    if isinstance(model, Writes):
        return model
    raise UsageError(
        f"{model.identity.name} is not an encoder-decoder", f"use {option('model', 'translator')}"
    )
