"""Runs of an answer after variants of its prompt: without some of it, or with unrelated text.

Unrelated text is what the model writes itself, without the prompt: it shows what noise looks like.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from attnviz.records.capture import Wanted
from attnviz.records.grounding import SEED, Doubles
from attnviz.records.tokens import Sampling

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True, eq=False)
class AnswerRuns:
    """Runs of an answer (`new`) after variants of its prompt (`ids`); each variant is run once.

    `reader`: the model, which has read the prompt. `told`: what rivals go on with, by their place.
    """

    model: "LoadedModel"
    reader: "LoadedModel"
    ids: Sequence[int]
    new: Sequence[int]
    rivals: Sequence[int]
    made: dict[tuple[int, ...], Doubles] = field(default_factory=dict)
    told: dict[int, str] = field(default_factory=dict)

    def after(self, prompts: Sequence[Sequence[int]]) -> Doubles:
        """The log-probability of each token of the answer after each of these prompts (…, m)."""
        return self.with_rivals(prompts)[..., 0]

    def with_rivals(self, prompts: Sequence[Sequence[int]]) -> Doubles:
        """The same of each token, and of its rival in its place (…, m, 2)."""
        keys = [tuple(ids) for ids in prompts]
        if missing := [key for key in dict.fromkeys(keys) if key not in self.made]:
            pairs = [*zip(self.new, self.rivals, strict=True)]
            found = self.reader.choices(missing, self.new, pairs).astype(np.float64)
            self.made.update(zip(missing, found, strict=True))
        return np.stack([self.made[key] for key in keys])

    def without(self, sets: Iterable[Iterable[int]]) -> Doubles:
        """Doubles of the prompt without each of these sets of tokens, given by their places."""
        return self.after([*self.deleted(sets)])

    def deleted(self, sets: Iterable[Iterable[int]]) -> Iterator[list[int]]:
        """The prompt without each of these sets of tokens, given by their places."""
        for gone in map(set, sets):
            yield [id_ for i, id_ in enumerate(self.ids) if i not in gone]


UNRELATED = 19
"""Texts in the place of the documents: of 20 that are alike, one is the greatest by chance 1 in 20
times, which makes the greatest of 19 the 95th percentile."""
WINDOW = 64
"""Unrelated text is made of stretches of this many tokens."""
LEAST_OWN, MOST_OWN = 128, 512
"""The number of tokens that the model writes to draw them from."""
_WRITTEN: "WeakKeyDictionary[LoadedModel, dict[int, list[int]]]" = WeakKeyDictionary()
"""Texts of each model, by their least length."""


def unrelated_prompt(
    ids: Sequence[int], gone: Sequence[int], own: Sequence[int], n: int
) -> list[int]:
    """The n-th prompt with stretches of the model's `own` text in the place of these tokens."""
    replaced, draw = list(ids), np.random.default_rng((SEED, n))
    starts = draw.integers(len(own), size=ceil(len(gone) / WINDOW)).tolist()
    drawn = (own[(start + i) % len(own)] for start in starts for i in range(WINDOW))
    for place, id_ in zip(gone, drawn, strict=False):
        replaced[place] = id_
    return replaced


def own_text(model: "LoadedModel", size: int) -> list[int]:
    """Text that the model writes after its beginning token, or a line end, at temperature 1.

    It is of the model's world, in whatever language, and knows nothing of the prompt, nor of what
    was written before: its length goes by powers of two.
    """
    wanted = min(max(1 << (size - 1).bit_length(), LEAST_OWN), MOST_OWN)
    text = _WRITTEN.setdefault(model, {}).setdefault(wanted, [])
    tokenizer = model.tokenizer
    before = [tokenizer.bos_id] if tokenizer.bos_id is not None else tokenizer.ids("\n")
    ordinary = set(tokenizer.ordinary_ids())
    most = min(wanted, tokenizer.context - len(before) - 1)
    for seed in range(WINDOW):  # a text may end at once
        if len(text) >= wanted or not before or most < 1:
            break
        written = list[int]()

        def go_on(id_: int, written: list[int] = written) -> bool:
            written.append(id_)
            return len(written) < most

        sampling = Sampling(most, 1.0, seed=seed)
        model.generate(before, sampling, Wanted({}), lambda block: None, go_on)
        text += [id_ for id_ in written if id_ in ordinary]
    return text
