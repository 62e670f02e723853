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

from attnviz.data.ablations import AblatedRun
from attnviz.data.heads import Head, every_head
from attnviz.models.ablation import ablate_native
from attnviz.models.card import read_card
from attnviz.models.known import BUILTIN
from attnviz.training.probe import Probe

FOLDER = Path("attnviz/models/builtin")


@dataclass(frozen=True)
class Loss:
    """What some words of a behaviour's texts lose, in nats: mean and standard error over `n` texts.

    `named`: without the head that the card names for it; `median`: without the head that is
    in the middle among those that the card names for nothing.
    """

    behaviour: str
    measure: str
    head: Head
    named: tuple[float, float]
    middle: Head
    median: tuple[float, float]
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


def losses(probe: Probe, named: Mapping[str, Head], count: int) -> Iterator[Loss]:
    """One for each measure, on so many held-out texts."""
    heads = every_head(probe.model.config.heads_per_layer)
    for behaviour, measure in MEASURES:
        texts = _repeated(probe) if measure == REPEATED else _written(probe, behaviour, measure)
        asked = [(ids, at) for ids, at in itertools.islice(texts, count)]
        lost = np.array([_lost(probe, ids, at, heads) for ids, at in asked])  # (texts, heads)
        mean, error = lost.mean(axis=0), lost.std(axis=0, ddof=1) / sqrt(len(lost))
        others = sorted(
            (i for i, other in enumerate(heads) if other not in named.values()),
            key=lambda i: float(mean[i]),
        )
        middle, mine = others[len(others) // 2], heads.index(named[behaviour])
        of_head, of_middle = ((float(mean[i]), float(error[i])) for i in (mine, middle))
        of = behaviour, measure, heads[mine], of_head, heads[middle], of_middle
        yield Loss(*of, n=len(lost))


def _repeated(probe: Probe) -> Iterator[tuple[list[int], list[int]]]:
    """The ids of BOS and 40 random tokens twice, and the positions of the copy but its first."""
    for n in itertools.count():
        drawn = np.random.default_rng(n).choice(probe.model.config.vocab_size - 1, 40)
        block = drawn.tolist()
        yield [probe.encoder.bos, *block, *block], list(range(42, 81))


def _written(probe: Probe, behaviour: str, measure: str) -> Iterator[tuple[list[int], list[int]]]:
    """The ids of held-out texts, and the positions of the tokens that are looked at."""
    for seen in probe.see_kind(behaviour, "test", sys.maxsize):
        ids, positions = probe.encoder.text(seen.text)
        words = [answer.word for answer in seen.text.answers]
        if measure == ASKED:  # "the creature was blue": its noun, where one adjective is named
            words = [word - 2 for word in words if seen.text.words[word - 1] in ("was", "is")]
        if words:
            yield ids, [at for word in words for at in positions[word]]


def _lost(
    probe: Probe, ids: Sequence[int], asked: Sequence[int], heads: Sequence[Head]
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
    probe = Probe.open(checkpoint)
    card = read_card(checkpoint, BUILTIN, probe.model.config.heads_per_layer)
    named = {each.behaviour: each.head for each in card.heads}
    table = Table("behaviour", "looked at", "without", "lost", "without", "lost", "texts")
    for loss in losses(probe, named, count):
        (mine, error), (middle, of_middle) = loss.named, loss.median
        table.add_row(
            loss.behaviour,
            loss.measure,
            str(loss.head),
            f"{mine:.3f} ± {error:.3f}",
            str(loss.middle),
            f"{middle:.3f} ± {of_middle:.3f}",
            str(loss.n),
        )
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
