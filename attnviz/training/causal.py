"""What the named heads are for: how much worse the answers get without them.

    python -m attnviz.training.causal [CHECKPOINT]

Every head is ablated by itself on held-out texts, and the log-probability of the words that
their text determines is compared with that of the whole model; for repetition, of random tokens
that come a second time.
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
from rich.console import Console
from rich.table import Table

from attnviz.data.ablate import AblatedRun
from attnviz.data.head import Head, every_head
from attnviz.models.folder.card import read_card
from attnviz.models.known import BUILTIN
from attnviz.models.scratch.ablate import ablate_native
from attnviz.training.probe import WorldProbe

FOLDER = Path("attnviz/models/builtin")


@dataclass(frozen=True)
class Without:
    """A head, and what is lost without it, in nats: mean and standard error over texts."""

    head: Head
    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.head} {self.mean:.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Loss:
    """What some words of a behaviour's `n` texts lose without a head.

    `named`: the head that the card names for it; `middle`: the one in the middle among those
    that it names for nothing; `most`: the one that is needed most, layer 0 apart, on which all
    others build.
    """

    behaviour: str
    measure: str
    named: Without
    middle: Without
    most: Without
    n: int


ANSWERS, ASKED, REPEATED = "the words that follow from it", "the thing asked about", "the copy"
MEASURES = (
    ("adjectives", ANSWERS),
    ("adjectives", ASKED),
    ("pronouns", ANSWERS),
    ("mystery", ANSWERS),
    ("senses", ANSWERS),
    ("induction", REPEATED),
    ("previous token", REPEATED),
)


def losses(probe: WorldProbe, named: Mapping[str, Head], count: int) -> Iterator[Loss]:
    """One for each measure, on so many held-out texts."""
    heads = every_head(probe.model.config.heads_per_layer)
    for behaviour, measure in MEASURES:
        texts = _repeated(probe) if measure == REPEATED else _written(probe, behaviour, measure)
        asked = [(ids, at) for ids, at in itertools.islice(texts, count)]
        lost = np.array([_lost(probe, ids, at, heads) for ids, at in asked])  # (texts, heads)
        mean, error = lost.mean(axis=0), lost.std(axis=0, ddof=1) / sqrt(len(lost))
        each = [
            Without(head, float(m), float(e)) for head, m, e in zip(heads, mean, error, strict=True)
        ]
        unnamed = sorted((w for w in each if w.head not in named.values()), key=lambda w: w.mean)
        yield Loss(
            behaviour,
            measure,
            named=next(w for w in each if w.head == named[behaviour]),
            middle=unnamed[len(unnamed) // 2],
            most=max((w for w in each if w.head.layer > 0), key=lambda w: w.mean),
            n=len(lost),
        )


def _repeated(probe: WorldProbe) -> Iterator[tuple[list[int], list[int]]]:
    """The ids of BOS and 40 random tokens twice, and the positions of the copy but its first."""
    for n in itertools.count():
        drawn = np.random.default_rng(n).choice(probe.model.config.vocab_size - 1, 40)
        block = drawn.tolist()
        yield [probe.encoder.bos, *block, *block], list(range(42, 81))


def _written(
    probe: WorldProbe, behaviour: str, measure: str
) -> Iterator[tuple[list[int], list[int]]]:
    """The ids of held-out texts, and the positions of the tokens that are looked at."""
    for seen in probe.see_kind(behaviour, "test", sys.maxsize):
        ids, positions = probe.encoder.text(seen.text)
        words = [answer.word for answer in seen.text.answers]
        if measure == ASKED:  # "the creature was blue": its noun, where one adjective is named
            words = [word - 2 for word in words if seen.text.words[word - 1] in ("was", "is")]
        if words:
            yield ids, [at for word in words for at in positions[word]]


def _lost(
    probe: WorldProbe, ids: Sequence[int], asked: Sequence[int], heads: Sequence[Head]
) -> Sequence[float]:
    """How much the mean log-probability of these tokens falls without each head."""
    found: dict[int, float] = {}

    def keep(run: AblatedRun) -> None:
        found[run.index] = float(run.followed[[at - 1 for at in asked]].mean())

    with torch.inference_mode():
        ablations = [(), *((head,) for head in heads)]
        ablate_native(probe.model, torch.tensor([list(ids)]), ablations, "zero", keep, whole=True)
    return [found[0] - found[i] for i in range(1, len(ablations))]


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a model folder")] = Path(
        "attnviz/models/builtin"
    ),
    count: Annotated[int, typer.Option(help="texts of each kind")] = 300,
) -> None:
    """Print what each behaviour's answers lose without its head, and without a median one."""
    probe = WorldProbe.open(checkpoint)
    card = read_card(checkpoint, BUILTIN, probe.model.config.heads_per_layer)
    named = {each.behaviour: each.head for each in card.heads}
    table = Table("behaviour", "looked at", "named", "middle", "needed most", "texts")
    for loss in losses(probe, named, count):
        lost = map(str, (loss.named, loss.middle, loss.most, loss.n))
        table.add_row(loss.behaviour, loss.measure, *lost)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
