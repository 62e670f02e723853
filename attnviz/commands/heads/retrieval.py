"""Retrieval heads: those that look at the token that is copied."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.terminal.cells import bar_style, folded
from attnviz.draw.titles import amount, bar_of
from attnviz.errors import UsageError, readable
from attnviz.kit import cache
from attnviz.kit.prepare import TextOptions, prepare_tokens
from attnviz.kit.result import Form, Result
from attnviz.records.capture import ModelIdentity, PatternBlock
from attnviz.records.heads import Head, every_head, listed
from attnviz.records.rows import Field, Fields, head_fields, model_name
from attnviz.records.tokens import Token, numbered

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


RETRIEVES = 0.1
"""The least score of a retrieval head (Wu et al. 2024)."""
MOST = 16
"""The number of strongest heads that are joined where an answer's rows are shown."""
NAME = 2
"""Tokens that stand before the needle's random ones, and at the end of the text."""


@dataclass(frozen=True)
class Needles:
    """How retrieval is measured.

    A needle, a name with `length` random tokens, stands at each of `depths` (shares of the filler)
    in a filler of `filler` tokens; the text ends with the name again. `samples` are drawn anew for
    each depth, from `seed` on.
    """

    length: int = 8
    filler: int = 192
    depths: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    samples: int = 4
    seed: int = 0


@dataclass(frozen=True)
class Retrieval:
    """The score of each head: the share of copied tokens that its strongest key is."""

    model: ModelIdentity
    needles: Needles
    scores: tuple[tuple[Head, float], ...]

    @property
    def ranked(self) -> Sequence[tuple[Head, float]]:
        """Every head with its score, the strongest first."""
        return sorted(self.scores, key=lambda each: (-each[1], each[0]))

    @property
    def heads(self) -> Sequence[Head]:
        """The retrieval heads, strongest first."""
        return [head for head, score in self.ranked if score >= RETRIEVES][:MOST]


@dataclass(frozen=True)
class Haystack:
    """The ids of a text; and by each query that predicts the answer, the key that it copies."""

    ids: tuple[int, ...]
    copied: Mapping[int, int]


def measure_retrieval(model: "LoadedModel", needles: Needles, options: TextOptions) -> Retrieval:
    """Score every head of a model: a needle in a haystack, and the heads that look at the copy.

    Wu et al. 2024, "Retrieval Head Mechanistically Explains Long-Context Factuality", arXiv
    2404.15574. There the model writes the answer; here it is given, so that heads of models that
    would not write it can be measured, too. Needle and filler are random tokens, which no model
    knows by heart.

    Raises:
        UsageError: the model does not attend to what it reads itself, or has too short a context.
    """
    if model.kind != "self" or not model.causal:
        raise UsageError(
            f"{model.identity.name} does not go on with a text, so no head can copy from it",
            "use a model that does",
        )
    heads = every_head(model.identity.heads_per_layer)
    hits = dict.fromkeys(heads, 0.0)
    stacks = list(haystacks(model, needles))
    for stack in stacks:
        tokens = numbered(Token(0, id_, model.tokenizer.label(id_), 0, 0) for id_ in stack.ids)

        def count(block: PatternBlock, copied: Mapping[int, int] = stack.copied) -> None:
            strongest = block.weights.argmax(axis=2)  # (heads, rows)
            keys = np.array([copied[query] for query in block.queries.tolist()])
            for head, share in zip(block.heads, (strongest == keys).mean(axis=1), strict=True):
                rows = len(keys) / len(copied)
                hits[Head(block.layer, head)] += float(share) * rows

        prepare_tokens(model, tokens, options).run(heads, count, tuple(stack.copied))
    scores = tuple((head, hit / len(stacks)) for head, hit in hits.items())
    return Retrieval(model.identity, needles, scores)


def haystacks(model: "LoadedModel", needles: Needles) -> Iterator[Haystack]:
    """Every sample at every depth, in a context that is as long as the model's at most."""
    tokenizer, length = model.tokenizer, needles.length
    first = [token.id for token in tokenizer.ends(tokenizer.bos)[0]]
    ordinary = np.array(tokenizer.ordinary_ids())
    size = min(needles.filler, tokenizer.context - len(first) - 2 * NAME - 2 * length)
    if size < length or len(ordinary) < length + NAME + 1:
        raise UsageError(
            f"the context of {tokenizer.context} tokens, or the vocabulary, is too small",
            "use another model",
        )
    for number in range(needles.samples):
        draw = np.random.default_rng((needles.seed, number))
        needle = draw.choice(ordinary, NAME + length, replace=False).tolist()
        filler = draw.choice(np.setdiff1d(ordinary, needle), size).tolist()
        for depth in needles.depths:
            at = round(depth * size)
            ids = [*first, *filler[:at], *needle, *filler[at:], *needle[:-1]]
            query, key = len(ids) - length, len(first) + at + NAME
            yield Haystack(tuple(ids), {query + i: key + i for i in range(length)})


# Each head's share of copied tokens that it looks at, as rows and as a person reads it.


RETRIEVAL_ROW = Fields[tuple[Retrieval, Head, float]](
    "RetrievalRow",
    "How a head copies from a long text.",
    (
        model_name(lambda row: row[0].model.name),
        *head_fields(lambda row: row[1]),
        Field(
            "retrieval",
            float,
            "The share of copied tokens that are the head's strongest key.",
            lambda row: row[2],
        ),
    ),
)
BAR = 20


def of_retrieval(retrieval: Retrieval, top: int | None = None) -> Result[Retrieval]:
    """How heads copy; of the `top` that copy most."""
    form = Form[Retrieval](
        "heads",
        RETRIEVAL_ROW,
        lambda retrieval, top, line: ((retrieval, *each) for each in retrieval.ranked[:top]),
        lambda retrieval: f"{retrieval.model.name}, retrieval",
        terminal=_render,
        top=sys.maxsize,
    )
    return Result(form, retrieval, models=(retrieval.model,), _top=top)


def _render(retrieval: Retrieval, display: Display, top: int) -> Iterator[Text]:
    """The measurement, the heads with a score, and those of them that retrieve."""
    needles = retrieval.needles
    runs = len(needles.depths) * needles.samples
    said = (
        f"{readable(retrieval.model.name)}, retrieval: {needles.length} random tokens copied from "
        f"a haystack of random tokens, {amount(runs, 'text')}; share of the copied tokens that "
        "are the head's strongest key"
    )
    yield from folded(Text(said, "dim"), display.width)
    yield Text()
    for head, score in retrieval.ranked[:top]:
        if score > 0:
            line = Text(f"{head!s:<8}{score:.2f} ")
            line.append(bar_of(score, BAR, display.unicode), bar_style(score, display))
            line.rstrip()
            yield line
    verdict = f"no head reaches {RETRIEVES}, so none is a retrieval head"
    if retrieval.heads:
        verdict = f"retrieval heads ({RETRIEVES} or more): {listed(retrieval.heads)}"
    yield Text()
    yield from folded(Text(verdict), display.width)


# Retrieval scores, kept in the user's cache so that a model is measured once.

KEPT = "retrieval"


def keep(model: "LoadedModel", retrieval: Retrieval) -> Path | None:
    """Keep the scores; None where the user's cache cannot be written."""
    scores = {str(head): score for head, score in retrieval.scores}
    return cache.keep(model, KEPT, {"needles": asdict(retrieval.needles), "scores": scores})


def known(model: "LoadedModel") -> Retrieval | None:
    """The scores of an earlier measurement; None where there is none that can be read."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        content = cache.known(model, KEPT)
        heads = every_head(model.identity.heads_per_layer)
        scores = tuple((head, float(content["scores"][str(head)])) for head in heads)
        needles = Needles(**{**content["needles"], "depths": tuple(content["needles"]["depths"])})
        if all(0 <= score <= 1 for _, score in scores):
            return Retrieval(model.identity, needles, scores)
    return None


def heads_for_answers(model: "LoadedModel") -> tuple[Head, ...]:
    """The heads whose rows say most about an answer: those of the card, else those measured."""
    measured = None if model.card.retrieval else known(model)
    return model.card.retrieval or tuple(sorted(measured.heads if measured else ()))
