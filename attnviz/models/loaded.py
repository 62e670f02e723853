"""What every engine offers: a loaded model that runs token ids and hands over patterns."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from attnviz.data.ablate import Ablated, Replacement, RunConsumer
from attnviz.data.capture import Consumer, FloatArray, Kind, ModelIdentity, Wanted
from attnviz.data.card import ModelCard
from attnviz.data.explain import HeadTrace
from attnviz.data.head import Head
from attnviz.data.predict import LogitConsumer
from attnviz.data.tokens import Token
from attnviz.errors import UsageError
from attnviz.models.tokenizer import TextTokenizer


class LoadedModel(Protocol):
    """A model in memory."""

    @property
    def identity(self) -> ModelIdentity:
        """Which model this is, and how it is run."""

    @property
    def card(self) -> ModelCard:
        """What the model says about itself; empty where it says nothing."""

    @property
    def tokenizer(self) -> TextTokenizer:
        """Cuts a text into this model's tokens."""

    @property
    def kind(self) -> Kind:
        """Which attention `run` hands over: a model's own, or one of an encoder-decoder's three."""

    @property
    def causal(self) -> bool:
        """Whether a query sees only itself and what stands before it."""

    @property
    def sinks(self) -> bool:
        """Whether a part of each row goes to a sink that is no token."""

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        """About how much memory a run takes, beside the model and what is kept of it."""

    def versions(self) -> Mapping[str, str]:
        """The libraries that ran it, by name."""

    def run(
        self,
        ids: Sequence[int],
        wanted: Wanted,
        consume: Consumer,
        target: Sequence[int] = (),
    ) -> None:
        """Run the tokens; hand the wanted rows of the wanted heads to the consumer.

        Layers after the last one wanted are not run. An encoder-decoder that shows its
        cross-attention or its decoder needs a `target`: row i is the position that
        produces target token i, whose input is the token before.
        """

    def predict(
        self, ids: Sequence[int], positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        """Hand over the logits of what follows each of these positions, some at a time.

        `lens`: before them, those after each layer but the last, as if the model stopped
        there: the logit lens (nostalgebraist 2020).

        Raises:
            UsageError: this model predicts no next token.
        """

    def vectors(self, ids: Sequence[int], position: int) -> FloatArray | None:
        """The residual stream of a position, (layers + 1, d): before layer 0, after each layer.

        None where the model has no such stream.
        """

    def value_norms(self, ids: Sequence[int]) -> FloatArray:
        """How long what each key adds to a query would be at a weight of 1: ‖v·W_O‖.

        (layers, heads, n), NaN where a layer has no such head.

        Raises:
            UsageError: this model does not attend to what it reads by itself.
            ModelError: the values cannot be found in this architecture.
        """

    def ablate(
        self,
        ids: Sequence[int],
        ablations: Sequence[Ablated],
        replacement: Replacement,
        consume: RunConsumer,
        *,
        whole: bool,
    ) -> None:
        """Run the tokens once for each ablation, without the output of its heads.

        The consumer is given each run, in no particular order; `whole`: with the
        log-probabilities of all tokens that followed.

        Raises:
            UsageError: this model predicts no next token.
            ModelError: the heads' output cannot be found in this architecture.
        """

    def write(self, ids: Sequence[int]) -> tuple[str, tuple[Token, ...]]:
        """What an encoder-decoder makes of the tokens: the likeliest text, and its tokens.

        Raises:
            UsageError: this model writes nothing of its own.
        """

    def read_target(self, text: str) -> tuple[Token, ...]:
        """The tokens of a given target text, without special ones.

        Raises:
            UsageError: this model has no target.
        """

    def trace(self, text: str, tokens: Sequence[Token], head: Head, query: int) -> HeadTrace:
        """Run the whole model over the tokens of a text, and keep all that this head computes.

        Raises:
            ModelError: this architecture's queries, keys and values cannot be recorded.
        """


def no_target(name: str) -> UsageError:
    """The error for a model that reads a text and writes no other."""
    return UsageError(f"{name} is no encoder-decoder", "use --model translator")


def no_values(name: str) -> UsageError:
    """The error of a model of which norm-based attention is asked, and that has none to give."""
    return UsageError(
        f"--weighted is for models of one text with projections, which {name} is not",
        "leave it out, or use another model",
    )


def no_prediction(name: str) -> UsageError:
    """The error of a model that is asked for the next token and predicts none."""
    return UsageError(
        f"{name} does not predict the token that follows a text",
        "use a model that does, such as builtin or gpt2",
    )


class WithoutNextToken:
    """What a model says that predicts no next token, and has no stream of vectors of its own."""

    if TYPE_CHECKING:

        @property
        def identity(self) -> ModelIdentity: ...

    def predict(
        self, ids: Sequence[int], positions: Sequence[int], consume: LogitConsumer, *, lens: bool
    ) -> None:
        raise no_prediction(self.identity.name)

    def ablate(
        self,
        ids: Sequence[int],
        ablations: Sequence[Ablated],
        replacement: Replacement,
        consume: RunConsumer,
        *,
        whole: bool,
    ) -> None:
        raise no_prediction(self.identity.name)

    def value_norms(self, ids: Sequence[int]) -> FloatArray:
        raise no_values(self.identity.name)

    def vectors(self, ids: Sequence[int], position: int) -> FloatArray | None:
        return None
