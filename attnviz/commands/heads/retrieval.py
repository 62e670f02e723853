"""Retrieval heads: those that attend to the token that is copied, or write it."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.terminal.cells import bar_style, folded
from attnviz.draw.titles import amount, bar_of
from attnviz.errors import UsageError, readable
from attnviz.kit import cache
from attnviz.kit.intervene import told_of
from attnviz.kit.prepare import Prepared, TextOptions, frozen, prepare_tokens
from attnviz.kit.result import Form
from attnviz.records.capture import ModelIdentity, PatternBlock
from attnviz.records.heads import Head, every_head, listed
from attnviz.records.rows import ABSENT, Field, Fields, at, head_fields, model_name
from attnviz.records.tokens import Token, numbered

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


RetrievalScore: TypeAlias = Literal["attention", "writes"]
RETRIEVES = 0.1
"""The least score of a retrieval head (Wu et al. 2024)."""
MOST = 16
"""The number of strongest heads that are joined where an answer's rows are shown."""
NAME = 2
"""Tokens before the needle's random ones, and at the end of the text."""


@dataclass(frozen=True)
class Needles:
    """The setting of a measure of retrieval.

    A needle, a name with `length` random tokens, is at each of `depths` (shares of the filler)
    in a filler of `filler` tokens; the text ends with the name again. `samples` are drawn anew for
    each depth, from `seed` on.
    """

    length: int = 8
    filler: int = 192
    depths: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    samples: int = 4
    seed: int = 0


FOR_ANSWERS = Needles(samples=2)
"""Half as many texts, for a model that is measured when its first answer is shown."""


@dataclass(frozen=True)
class Retrieval:
    """The score of each head.

    `score`: "attention": the share of copied tokens that are the head's strongest key. "writes":
    how much more it adds to their logits from the needle than from elsewhere.
    """

    model: ModelIdentity
    needles: Needles
    scores: tuple[tuple[Head, float], ...]
    score: RetrievalScore = "attention"

    @property
    def ranked(self) -> Sequence[tuple[Head, float]]:
        """Every head with its score, the strongest first."""
        return sorted(self.scores, key=lambda each: (-each[1], each[0]))

    @property
    def heads(self) -> Sequence[Head]:
        """The retrieval heads, strongest first."""
        return [head for head, score in self.ranked if score >= self.least][:MOST]

    @property
    def least(self) -> float:
        """The least score of a retrieval head; by its writes, a tenth of the highest one, too."""
        highest = 1.0 if self.score == "attention" else self.ranked[0][1]
        return RETRIEVES * max(1.0, highest)


@dataclass(frozen=True)
class Haystack:
    """The ids of a text; and by each query that predicts the answer, the key that it copies.

    `needle`: its tokens, the name included; `elsewhere`: those of the filler.
    """

    ids: tuple[int, ...]
    copied: Mapping[int, int]
    needle: range
    elsewhere: tuple[int, ...]


def measure_retrieval(
    model: "LoadedModel",
    needles: Needles,
    options: TextOptions,
    score: RetrievalScore = "attention",
) -> Retrieval:
    """Score every head of a model: a needle in a haystack, and the heads that attend to it.

    Wu et al. 2024, "Retrieval Head Mechanistically Explains Long-Context Factuality", arXiv
    2404.15574. There the model writes the answer; here it is given, so that heads of models that
    would not write it can be measured, too. Needle and filler are random tokens, which no model
    knows by heart.

    Raises:
        UsageError: the model does not attend to what it reads itself, or has too short a context.
    """
    if wrong := not_measurable(model, needles):
        raise UsageError(wrong, "use another model")
    scores = dict.fromkeys(every_head(model.identity.heads_per_layer), 0.0)
    stacks = list(haystacks(model, needles))
    measure = _looked_at if score == "attention" else _written
    for stack in told_of(stacks):
        tokens = numbered(Token(0, id_, model.tokenizer.label(id_), 0, 0) for id_ in stack.ids)
        for head, of_stack in measure(prepare_tokens(model, tokens, options), stack):
            scores[head] += of_stack
    means = tuple((head, total / len(stacks)) for head, total in scores.items())
    return Retrieval(model.identity, needles, means, score)


def _looked_at(prepared: Prepared, stack: Haystack) -> list[tuple[Head, float]]:
    """The share of the copied tokens that are a head's strongest key, block by block."""
    found = list[tuple[Head, float]]()

    def count(block: PatternBlock) -> None:
        strongest = block.weights.argmax(axis=2)  # (heads, rows)
        keys = np.array([stack.copied[query] for query in block.queries.tolist()])
        for head, share in zip(block.heads, (strongest == keys).mean(axis=1), strict=True):
            found.append((Head(block.layer, head), float(share) * len(keys) / len(stack.copied)))

    heads = every_head(prepared.model.identity.heads_per_layer)
    prepared.run(heads, count, tuple(stack.copied))
    return found


def _written(prepared: Prepared, stack: Haystack) -> list[tuple[Head, float]]:
    """Each head's addition to the copied token's logit from the needle, minus the same elsewhere.

    LOCOS: Gema et al. 2026, "Logit-Contribution Scoring Identifies Non-Literal Retrieval Heads",
    arXiv 2607.01002, section 3: Σ_needle φ − (|needle| / |elsewhere|)·Σ_elsewhere φ, the mean over
    the answer's tokens, where φ is as in `writes`.
    """
    from attnviz.models.frozen.last import writes

    queries, needle, elsewhere = list(stack.copied), list(stack.needle), list(stack.elsewhere)
    ids = [stack.ids[key] for key in stack.copied.values()]
    found = list[tuple[Head, float]]()
    for layer, added in writes(frozen(prepared), queries, ids):  # (h, queries, n)
        near, far = added[:, :, needle].sum(axis=2), added[:, :, elsewhere].mean(axis=2)
        each = (near - len(needle) * far).mean(axis=1)
        found += [(Head(layer, head), float(score)) for head, score in enumerate(each)]
    return found


def not_measurable(model: "LoadedModel", needles: Needles) -> str | None:
    """The reason why no head of this model can be seen to copy, or None if it can be measured."""
    if model.kind != "self" or not model.causal:
        return f"{model.identity.name} does not go on with a text, so no head can copy from it"
    tokenizer, few = model.tokenizer, needles.length + NAME
    if _filler_in(model, needles) < needles.length or len(tokenizer.ordinary_ids()) <= few:
        return f"the context of {tokenizer.context} tokens, or the vocabulary, is too small"
    return None


def _filler_in(model: "LoadedModel", needles: Needles) -> int:
    """The number of the filler's tokens that fit into the model's context."""
    tokenizer = model.tokenizer
    others = len(tokenizer.ends(tokenizer.bos)[0]) + 2 * NAME + 2 * needles.length
    return min(needles.filler, tokenizer.context - others)


def haystacks(model: "LoadedModel", needles: Needles) -> Iterator[Haystack]:
    """Every sample at every depth, in a context that is as long as the model's at most."""
    tokenizer, length = model.tokenizer, needles.length
    first = [token.id for token in tokenizer.ends(tokenizer.bos)[0]]
    ordinary, size = np.array(tokenizer.ordinary_ids()), _filler_in(model, needles)
    for number in range(needles.samples):
        draw = np.random.default_rng((needles.seed, number))
        needle = draw.choice(ordinary, NAME + length, replace=False).tolist()
        filler = draw.choice(np.setdiff1d(ordinary, needle), size).tolist()
        for depth in needles.depths:
            at = round(depth * size)
            ids = [*first, *filler[:at], *needle, *filler[at:], *needle[:-1]]
            query, key = len(ids) - length, len(first) + at + NAME
            own = range(len(first) + at, key + length)
            context = range(len(first), own.stop - own.start + len(first) + size)
            yield Haystack(
                tuple(ids),
                {query + i: key + i for i in range(length)},
                own,
                tuple(i for i in context if i not in own),
            )


# Each head's share of copied tokens that it attends to, as rows and as a person reads it.


RETRIEVAL_ROW = Fields[tuple[Retrieval, Head, float]](
    "RetrievalRow",
    "How a head copies from a long text.",
    (
        model_name(at("0.model.name")),
        *head_fields(at("1")),
        Field(
            "retrieval",
            float,
            "The share of copied tokens that are the head's strongest key.",
            lambda row: row[2] if row[0].score == "attention" else ABSENT,
            optional=True,
        ),
        Field(
            "writes",
            float,
            "With --retrieval-score writes: its addition to the copied token's logit from the "
            "needle, minus from elsewhere.",
            lambda row: row[2] if row[0].score == "writes" else ABSENT,
            optional=True,
        ),
    ),
)
BAR = 20
MEANS: Mapping[RetrievalScore, str] = {
    "attention": "share of the copied tokens that are the head's strongest key",
    "writes": "what the head adds to the copied token's logit from the needle, minus from as many "
    "tokens elsewhere",
}


def _render(retrieval: Retrieval, display: Display, top: int) -> Iterator[Text]:
    """Render the measurement, the heads with a score, and those of them that retrieve."""
    needles = retrieval.needles
    runs = len(needles.depths) * needles.samples
    said = (
        f"{readable(retrieval.model.name)}, retrieval: {needles.length} random tokens copied from "
        f"a haystack of random tokens, {amount(runs, 'text')}; {MEANS[retrieval.score]}"
    )
    yield from folded(Text(said, "dim"), display.width)
    yield Text()
    looks = retrieval.score == "attention"
    most = 1.0 if looks else retrieval.ranked[0][1]
    for head, score in retrieval.ranked[:top]:
        if score > 0:
            line, share = Text(f"{head!s:<8}{score:.2f} "), score / most
            line.append(bar_of(share, BAR, display.unicode), bar_style(share, display))
            line.rstrip()
            yield line
    least = f"{retrieval.least:.2g}"
    verdict = f"no head reaches {least}, so none is a retrieval head"
    if retrieval.heads:
        verdict = f"retrieval heads ({least} or more): {listed(retrieval.heads)}"
    yield Text()
    yield from folded(Text(verdict), display.width)


OF_RETRIEVAL = Form[Retrieval](
    "heads",
    RETRIEVAL_ROW,
    lambda retrieval, top, line: ((retrieval, *each) for each in retrieval.ranked[:top]),
    lambda retrieval: f"{retrieval.model.name}, retrieval",
    terminal=_render,
    top=sys.maxsize,
)


# Retrieval scores, kept in the user's cache so that a model is measured once.

KEPT = "retrieval"


def keep(model: "LoadedModel", retrieval: Retrieval) -> Path | None:
    """Keep the scores; None where the user's cache cannot be written."""
    scores = {str(head): score for head, score in retrieval.scores}
    return cache.keep(
        model,
        KEPT,
        {"needles": asdict(retrieval.needles), "score": retrieval.score, "scores": scores},
    )


def known(model: "LoadedModel") -> Retrieval | None:
    """The scores of an earlier measurement; None where there is none that can be read."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        content = cache.known(model, KEPT)
        heads = every_head(model.identity.heads_per_layer)
        scores = tuple((head, float(content["scores"][str(head)])) for head in heads)
        needles = Needles(**{**content["needles"], "depths": tuple(content["needles"]["depths"])})
        kind = content.get("score", "attention")
        most = {"attention": 1.0, "writes": sys.float_info.max}[kind]
        if all((0 if most == 1 else -most) <= score <= most for _, score in scores):
            return Retrieval(model.identity, needles, scores, kind)
    return None


_NOT_KEPT = dict[Path, Retrieval]()
"""The measures of this process if the user's cache cannot be written."""


def heads_for_answers(model: "LoadedModel", max_memory: int | None = None) -> tuple[Head, ...]:
    """The heads whose rows say most about an answer: those of the card, else those measured.

    A model without either is measured now, and its scores are kept; none if it cannot be. The card
    of a bundled model names its head, so that nothing is measured of it.
    """
    if model.card.retrieval or model.kind != "self" or not model.can("generate"):
        return model.card.retrieval
    measured = known(model) or _NOT_KEPT.get(cache.kept_in(model, KEPT))
    if measured is None and not not_measurable(model, FOR_ANSWERS):
        with suppress(UsageError):  # something has to stand beside every text
            measured = measure_retrieval(model, FOR_ANSWERS, TextOptions(max_memory=max_memory))
            if keep(model, measured) is None:
                _NOT_KEPT[cache.kept_in(model, KEPT)] = measured
    return tuple(sorted(measured.heads)) if measured else ()
