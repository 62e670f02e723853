"""What every engine offers: a loaded model that runs token ids and hands over patterns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from attnviz.data.capture import ModelIdentity, PatternBlock
from attnviz.data.card import ModelCard
from attnviz.data.heads import Head
from attnviz.data.tokens import Token
from attnviz.data.trace import HeadTrace
from attnviz.models.tokenizer import TextTokenizer

Wanted: TypeAlias = Mapping[int, tuple[int, ...]]
"""Layer to the heads asked for in it; a layer that is not named is not recorded."""

Consumer: TypeAlias = Callable[[PatternBlock], None]


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
    def causal(self) -> bool:
        """Whether a query sees only itself and what stands before it."""

    def versions(self) -> Mapping[str, str]:
        """The libraries that ran it, by name."""

    def run(self, ids: Sequence[int], wanted: Wanted, consume: Consumer) -> None:
        """Run the tokens; hand the wanted heads' pattern of each layer to the consumer.

        Layers after the last one wanted are not run.
        """

    def trace(self, text: str, tokens: Sequence[Token], head: Head, query: int) -> HeadTrace:
        """Run the whole model over the tokens of a text, and keep all that this head computes.

        Raises:
            ModelError: this architecture's queries, keys and values cannot be recorded.
        """
