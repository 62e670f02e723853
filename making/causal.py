"""The loss of each behaviour without its named head.

    python -m making.causal [CHECKPOINT]

Every head is ablated by itself on held-out texts. What is measured is the log-probability of the
word that follows a query (a noun, a pronoun, an ambiguous word, the last "was") and that the
query's true keys decide; for repetition, that of random tokens that occur a second time.
"""

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from attnviz.models.folder.config import read_card
from attnviz.models.placement import BUILTIN
from attnviz.models.scratch.runs import intervene_native
from attnviz.records.heads import Head, every_head
from attnviz.records.interventions import ChangedRun, Edit, Interventions, Site
from making.probe import WorldProbe
from making.sentences import BEHAVIOURS

FOLDER = Path("attnviz/builtin/gpt")


@dataclass(frozen=True)
class Without:
    """A head, and the loss without it, in nats: mean and standard error over texts."""

    head: Head
    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.head} {self.mean:.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Loss:
    """The losses in a behaviour's `n` texts without a head.

    `named`: the head that the card names for the behaviour; `middle`: the median head among
    those that the card does not name; `most`: the head that is needed most, outside layer 0, on
    which all others build. `errors`: by how many standard errors of their difference, text by
    text, the named head is needed more than the median one.
    """

    behaviour: str
    named: Without
    middle: Without
    most: Without
    errors: float
    n: int


REPEATED = ("induction", "previous token")


def losses(
    probe: WorldProbe,
    named: Mapping[str, Head],
    count: int,
    behaviours: Sequence[str] = (*BEHAVIOURS, *REPEATED),
) -> Iterator[Loss]:
    """The losses of each behaviour, on `count` held-out texts."""
    heads = every_head(probe.model.config.heads_per_layer)
    for behaviour in behaviours:
        texts = _repeated(probe) if behaviour in REPEATED else _written(probe, behaviour)
        chosen = itertools.islice(texts, count)
        lost = np.array([_lost(probe, ids, at, heads) for ids, at in chosen])  # (texts, heads)
        yield _loss(behaviour, lost, heads, named)


def _loss(
    behaviour: str, lost: NDArray[np.float64], heads: Sequence[Head], named: Mapping[str, Head]
) -> Loss:
    """The loss of a behaviour from that of each text and head, (texts, heads)."""
    mean, error = lost.mean(axis=0), _error(lost)
    without = [
        Without(head, float(m), float(e)) for head, m, e in zip(heads, mean, error, strict=True)
    ]
    its_own = without[heads.index(named[behaviour])]
    unnamed = sorted((w for w in without if w.head not in named.values()), key=lambda w: w.mean)
    middle = unnamed[len(unnamed) // 2]
    difference = lost[:, heads.index(its_own.head)] - lost[:, heads.index(middle.head)]
    return Loss(
        behaviour,
        named=its_own,
        middle=middle,
        most=max((w for w in without if w.head.layer > 0), key=lambda w: w.mean),
        errors=float(difference.mean() / _error(difference)),
        n=len(lost),
    )


def _error(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard error over texts, which are the first axis."""
    result: NDArray[np.float64] = values.std(axis=0, ddof=1) / sqrt(len(values))
    return result


def _repeated(probe: WorldProbe) -> Iterator[tuple[list[int], list[int]]]:
    """The ids of BOS and 40 random tokens twice, and the second copy's positions but the first."""
    for n in itertools.count():
        drawn = np.random.default_rng(n).choice(probe.model.config.vocab_size - 1, 40)
        block = drawn.tolist()
        yield [probe.encoder.bos, *block, *block], list(range(42, 81))


def _written(probe: WorldProbe, behaviour: str) -> Iterator[tuple[list[int], list[int]]]:
    """The ids of held-out texts, and the positions of the words that follow a query."""
    for seen in probe.see_kind(behaviour, "test", sys.maxsize):
        ids, positions = probe.encoder.text(seen.text)
        after = {link.query + 1 for link in seen.text.links if link.behaviour == behaviour}
        words = [answer.word for answer in seen.text.answers if answer.word in after]
        if words:
            yield ids, [at for word in words for at in positions[word]]


def _lost(
    probe: WorldProbe, ids: Sequence[int], positions: Sequence[int], heads: Sequence[Head]
) -> Sequence[float]:
    """The drop of the mean log-probability at these positions without each head."""
    means: dict[int, float] = {}

    def keep(run: ChangedRun) -> None:
        means[run.index] = float(run.followed[[at - 1 for at in positions]].mean())

    with torch.inference_mode():
        changes = [(), *((Edit(Site("head", *head), "zero"),) for head in heads)]
        runs = Interventions(changes, whole=True)
        intervene_native(probe.model, torch.tensor([list(ids)]), runs, keep)
    return [means[0] - means[i] for i in range(1, len(changes))]


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a model folder")] = FOLDER,
    count: Annotated[int, typer.Option(help="texts of each kind")] = 300,
) -> None:
    """Print the loss of each behaviour's answers without its head, and without a median head."""
    probe = WorldProbe.open(checkpoint)
    card = read_card(checkpoint, BUILTIN, probe.model.config.heads_per_layer)
    named = {each.behaviour: each.head for each in reversed(card.heads)}
    table = Table("behaviour", "named", "median", "standard errors", "needed most", "texts")
    for loss in losses(probe, named, count):
        lost = (str(loss.named), str(loss.middle), f"{loss.errors:.1f}", str(loss.most))
        table.add_row(loss.behaviour, *lost, str(loss.n))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
