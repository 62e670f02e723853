"""Text to capture. Read this first: it sets the order of everything.

    load ─► encode ─► fit the context ─► run with hooks ─► capture (─► choose ─► exhibit: showing)

Nothing here prints; torch is imported only when a model is loaded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attnviz.analyses.loss import SumLoss, text_loss
from attnviz.errors import option
from attnviz.models.catalog import Source
from attnviz.models.loaded import freezing
from attnviz.models.placement import BUILTIN
from attnviz.records.call import asked
from attnviz.records.capture import (
    VALUE_NORMS,
    Capture,
    Checked,
    Consumer,
    KeepEverything,
    TextLoss,
    Wanted,
)
from attnviz.records.heads import Head, by_layer, every_head
from attnviz.records.rows import versions_now
from attnviz.records.tokens import Token
from attnviz.records.trace import HeadTrace, Verified
from attnviz.records.transforms import Scores
from attnviz.runs.budget import Budget
from attnviz.runs.fit import Fitted, encode, fit
from attnviz.runs.options import TextOptions
from attnviz.runs.pair import rows_and_columns, target_of, unknown_words

if TYPE_CHECKING:
    from attnviz.models.frozen.sums import Sums
    from attnviz.models.loaded import LoadedModel


def load_model(source: Source) -> "LoadedModel":
    """Load the model; the one place where torch comes in.

    Raises:
        ModelError: it cannot be found, fetched or loaded.
    """
    from attnviz.models.catalog import load

    return load(source)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A text that fits its model: the tokens that it reads, and those that it is to write."""

    model: "LoadedModel"
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    empty: Capture
    """The capture to be, without any pattern."""
    budget: Budget

    @property
    def ids(self) -> list[int]:
        """The ids of the tokens that it reads."""
        return [token.id for token in self.source]

    @property
    def shape(self) -> tuple[int, int]:
        """How many (queries, keys) there are."""
        return self.budget.shape

    def run(
        self,
        heads: Sequence[Head],
        consume: Consumer,
        queries: tuple[int, ...] | None = None,
        *,
        scores: bool = False,
    ) -> None:
        """Run the model; of these heads hand the query rows that are wanted to the consumer.

        Raises:
            ModelError: what the model attends to is no pattern over these tokens, or not numbers.
        """
        asked = Wanted(by_layer(heads), queries, scores)
        checked = Checked(consume, self.blank(scores=scores))
        self.model.run(self.ids, asked, checked, [t.id for t in self.target])
        checked.finish(asked)

    def record(
        self,
        heads: Sequence[Head],
        queries: tuple[int, ...] | None = None,
        *,
        scores: bool = False,
    ) -> Capture:
        """The whole patterns of these heads; of other than these queries, rows of zeros.

        `scores`: in their place, what they are made of.

        Raises:
            ModelError: they do not fit into memory.
        """
        keep = self.keeping(heads, queries)
        self.run(heads, keep, queries, scores=scores)
        return replace(self.blank(scores=scores), layers=keep.layers())

    def trace(self, head: Head, query: int) -> HeadTrace:
        """All that one head computes, and what becomes of it at one query.

        Raises:
            UsageError: the model has no queries, keys and values.
            ModelError: those of this architecture cannot be recorded.
        """
        from attnviz.models.loaded import tracing

        target = [token.id for token in self.target]
        return tracing(self.model).trace(self.empty, self.ids, head, query, target)

    def keeping(
        self, heads: Sequence[Head], queries: tuple[int, ...] | None = None
    ) -> KeepEverything:
        """The consumer that keeps whole patterns; raises what `record` raises."""
        rows = self.shape[0] if queries is None else len(queries)
        self.budget.check_patterns(heads, 4 * len(heads) * rows * self.shape[1])
        # memory is taken only by rows that are written
        return KeepEverything(self.shape)

    def blank(self, *, scores: bool) -> Capture:
        """The capture to be, without any pattern; or of scores."""
        done = self.empty.transforms
        return replace(self.empty, transforms=(*done, Scores())) if scores else self.empty

    def with_norms(self, captured: Capture) -> Capture:
        """A capture of this text, with how long the values of all keys are beside it.

        Raises:
            UsageError: the model has none.
        """
        from attnviz.models.loaded import valuing

        norms = valuing(self.model).value_norms([token.id for token in self.source])
        return replace(captured, extras={**captured.extras, VALUE_NORMS: norms})


def prepare(model: "LoadedModel", text: str, options: TextOptions) -> Prepared:
    """Make a text fit for a model.

    Raises:
        InputError: nothing but blanks, or longer than the model's context.
        UsageError: a beginning token was asked for, and the model has none.
    """
    fitted = fit(encode(model.tokenizer, text, options), model.tokenizer.context, options.truncate)
    written, target = target_of(model, fitted.tokens, options.target)
    prepared = _prepared(model, text, fitted, written, target, options.max_memory)
    return replace(prepared, empty=replace(prepared.empty, loss=loss_of(model, prepared.source)))


def prepare_tokens(
    model: "LoadedModel", tokens: tuple[Token, ...], options: TextOptions
) -> Prepared:
    """Make tokens that no text spells fit for a model that has one sequence."""
    return _prepared(model, "", Fitted(tokens), "", (), options.max_memory)


def loss_of(model: "LoadedModel", tokens: Sequence[Token]) -> TextLoss | None:
    """How well the built-in model predicts a text, if its card says what that means."""
    from attnviz.models.loaded import Predicts

    limit, ids = model.card.loss_limit, [token.id for token in tokens]
    if limit is None or model.identity.name != BUILTIN or not isinstance(model, Predicts):
        return None
    lost = SumLoss(ids)
    if len(ids) > 1:
        model.predict(ids, range(len(ids) - 1), lost, lens=False)
    return text_loss(tokens, lost.nats, limit)


def _prepared(
    model: "LoadedModel",
    text: str,
    fitted: Fitted,
    written: str,
    target: tuple[Token, ...],
    max_memory: int | None,
) -> Prepared:
    source = fitted.tokens
    sequences = rows_and_columns(model.kind, source, target)
    empty = Capture(
        text=text,
        query_tokens=sequences[0],
        key_tokens=sequences[1],
        layers=(),
        model=model.identity,
        bos=source[0].special,
        causal=model.causal,
        sinks=model.sinks,
        kind=model.kind,
        target=written,
        left_out=fitted.left_out,
        versions={**versions_now(), **model.versions()},
        asked=asked(),
        named_heads=model.card.heads,
        unknown_words=unknown_words(model, text, source, written),
    )
    shape = len(empty.query_tokens), len(empty.key_tokens)
    return Prepared(model, source, target, empty, Budget(model, shape, max_memory))


def verify(
    model: "LoadedModel", source: Source | None, text: str, options: TextOptions
) -> Verified:
    """How exact the capture of a text is; raises what `prepare` raises.

    `source`: where the model came from; None: it was in memory.

    Raises:
        UsageError: transformers does not have this model.
        ModelError: every matrix of it at once does not fit into memory.
    """
    from attnviz.models.verifying import verify as verified

    prepared = prepare(model, text, options)
    whole = prepared.budget.patterns(every_head(model.identity.heads_per_layer))

    # theirs, ours, and what they are made from; in float64 all of it once more
    def check_room(more: int) -> None:
        instead = f"shorten the text, or leave {option('verify')} out"
        prepared.budget.check(3 * whole + more, instead)

    check_room(0)
    ids = [token.id for token in prepared.source]
    target = [token.id for token in prepared.target]
    return verified(model, source, ids, target, prepared.shape, check_room)


def frozen(prepared: Prepared) -> "Sums":
    """The run of a text, held fixed.

    Raises:
        UsageError: the model has no one residual stream.
        ModelError: this architecture cannot be taken apart, or it does not fit into memory.
    """
    from attnviz.models.frozen.sums import Sums

    model = freezing(prepared.model)
    heads = every_head(prepared.model.identity.heads_per_layer)
    # each layer's scores, pattern and mask, and the vectors of a walk
    prepared.budget.check(4 * prepared.budget.patterns(heads), "shorten the text")
    return Sums(model.freeze(prepared.ids))
