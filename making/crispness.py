"""How crisp the heads are: `python -m making.crispness CHECKPOINT`.

Over plain English sentences, for every head: how much of the weights is on one place, the entropy
of its rows, and its largest score. A head that always rests shows nothing, and one whose scores
are extreme cannot be moved.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from attnviz.models.attention import attached
from making.probe import WorldProbe
from making.sentences import DEVELOPMENT, SENTENCES, read_sentences

FILES = ("plain", "none")
RESTS = 0.95


@dataclass(frozen=True)
class Crispness:
    """What each head's rows are like on each text, all (texts, layer, head). BOS's row is left out.

    resting: the mean weight of that key which has most.
    entropy: the mean entropy of the rows, in nats.
    score: the largest score before the softmax, positive or negative.
    """

    resting: NDArray[np.float64]
    entropy: NDArray[np.float64]
    score: NDArray[np.float64]


def crispness(probe: WorldProbe, folder: Path) -> Crispness:
    """The crispness on the plain sentences of a folder."""
    texts = [each.text for name in FILES for each in read_sentences(folder, name)]
    each = [_of_text(probe, probe.encoder.typed(text)[0]) for text in texts]
    resting, entropy, score = (np.array(values) for values in zip(*each, strict=True))
    return Crispness(resting, entropy, score)


def _of_text(probe: WorldProbe, ids: list[int]) -> tuple[NDArray[np.float64], ...]:
    """Resting, entropy and score on one text, each (layer, head)."""
    scores: list[torch.Tensor] = []
    hooks = {
        f"h.{n}.attn.scores": lambda s: scores.append(s[0])
        for n in range(probe.model.config.n_layer)
    }
    with attached(probe.model, hooks):
        patterns = probe.run(ids)[0][:, :, 1:].astype(np.float64)  # (layer, head, n - 1, n)
    seen = torch.stack(scores).tril().abs().amax((-2, -1))  # (layer, head)
    entropies = -(patterns * np.log(np.maximum(patterns, 1e-30))).sum(-1)
    return patterns.mean(2).max(-1), entropies.mean(-1), seen.double().numpy()


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a model folder")],
    sentences: Annotated[Path, typer.Argument(help="a folder of sentences")] = SENTENCES
    / DEVELOPMENT,
) -> None:
    """Print each head's mean weight on one place, mean entropy, and largest score."""
    found = crispness(WorldProbe.open(checkpoint), sentences)
    table = Table("head", "on one place", "least on a text", "entropy, nats", "largest score")
    resting = found.resting.mean(0)
    for layer, head in np.ndindex(resting.shape):
        at = (slice(None), layer, head)
        least, entropy = found.resting[at].min(), found.entropy[at].mean()
        numbers = (resting[layer, head], least, entropy, found.score[at].max())
        table.add_row(f"L{layer}H{head}", *(f"{number:.2f}" for number in numbers))
    Console().print(table)
    rest = (resting > RESTS).sum()
    print(f"{rest} of {resting.size} heads rest on one place with a mean above {RESTS}")


if __name__ == "__main__":
    typer.run(main)
