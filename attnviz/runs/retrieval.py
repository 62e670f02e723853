"""Which heads retrieve: a needle in a haystack, and the heads that look at the token copied.

Wu et al. 2024, "Retrieval Head Mechanistically Explains Long-Context Factuality", arXiv 2404.15574.
There the model writes the answer; here it is given, so that heads of models that would not write
it can be measured, too. Needle and filler are random tokens, which no model knows by heart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnviz.data.retrieval import Needles, Retrieval
from attnviz.errors import UsageError
from attnviz.kit.prepare import TextOptions, prepare_tokens
from attnviz.records.capture import PatternBlock
from attnviz.records.heads import Head, every_head
from attnviz.records.tokens import Token, numbered

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

NAME = 2
"""Tokens that stand before the needle's random ones, and at the end of the text."""


@dataclass(frozen=True)
class Haystack:
    """The ids of a text, the queries that predict the answer, and the key that each copies."""

    ids: tuple[int, ...]
    queries: tuple[int, ...]
    keys: tuple[int, ...]


def measure_retrieval(model: "LoadedModel", needles: Needles, options: TextOptions) -> Retrieval:
    """Score every head of a model.

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
        copied = dict(zip(stack.queries, stack.keys, strict=True))

        def count(block: PatternBlock, copied: dict[int, int] = copied) -> None:
            strongest = block.weights.argmax(axis=2)  # (heads, rows)
            keys = np.array([copied[query] for query in block.queries.tolist()])
            for head, share in zip(block.heads, (strongest == keys).mean(axis=1), strict=True):
                rows = len(keys) / len(copied)
                hits[Head(block.layer, head)] += float(share) * rows

        prepare_tokens(model, tokens, options).run(heads, count, stack.queries)
    scores = tuple((head, hit / len(stacks)) for head, hit in hits.items())
    return Retrieval(model.identity, needles, scores)


def haystacks(model: "LoadedModel", needles: Needles) -> Iterator[Haystack]:
    """Every sample at every depth, in a context that is as long as the model's at most."""
    tokenizer = model.tokenizer
    first, _ = tokenizer.ends(tokenizer.bos)
    ordinary = np.array(tokenizer.ordinary_ids())
    beside = len(first) + 2 * NAME + 2 * needles.length
    filler = min(needles.filler, tokenizer.context - beside)
    if filler < needles.length or len(ordinary) < needles.length + NAME + 1:
        raise UsageError(
            f"the context of {tokenizer.context} tokens, or the vocabulary, is too small",
            "use another model",
        )
    for number in range(needles.samples):
        draw = np.random.default_rng((needles.seed, number))
        needle = draw.choice(ordinary, NAME + needles.length, replace=False)
        rest = draw.choice(np.setdiff1d(ordinary, needle), filler)
        for depth in needles.depths:
            yield _haystack([token.id for token in first], needle.tolist(), rest.tolist(), depth)


def _haystack(first: list[int], needle: list[int], filler: list[int], depth: float) -> Haystack:
    """The name and its tokens at a depth of the filler; at the end both again."""
    at = round(depth * len(filler))
    begin = len(first) + at
    ids = [*first, *filler[:at], *needle, *filler[at:], *needle[:-1]]
    end, length = len(ids) - len(needle) + 1, len(needle) - NAME
    queries = tuple(end + NAME - 1 + i for i in range(length))
    return Haystack(tuple(ids), queries, tuple(begin + NAME + i for i in range(length)))
