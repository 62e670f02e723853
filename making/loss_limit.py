"""Choose from which loss on a text is none of the built-in model's world.

`python -m making.loss_limit CHECKPOINT` measures the development half of the annotated
sentences. The training writes the limit into the card.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from attnviz.kit.prepare import text_loss
from attnviz.models.scratch.native import NativeModel, load_native
from attnviz.records.capture import TextLoss
from making.sentences import (
    DEVELOPMENT,
    ENGLISH,
    SENTENCES,
    STRANGE,
    read_sentences,
)


def losses(model: NativeModel, texts: Sequence[str], limit: float = 0.0) -> list[TextLoss]:
    """The loss on each text, cut to the model's context."""
    encode, context = model.tokenizer.encode, model.tokenizer.context
    cut = (encode(text, bos=True, special=False)[:context] for text in texts)
    return [text_loss(model, tokens, limit) for tokens in cut]


def best_limit(english: Sequence[float], strange: Sequence[float]) -> float:
    """The limit that errs least, in nats per character: the middle of the widest gap.

    An error is a strange text below the limit or an English one above it, each as a share of its
    own kind.
    """
    values = sorted({*english, *strange})
    gaps = list(pairwise(values))
    assert gaps, "there are not two different losses"

    def error(gap: tuple[float, float]) -> tuple[float, float]:
        low, high = gap
        missed = sum(value <= low for value in strange) / len(strange)
        false = sum(value >= high for value in english) / len(english)
        return missed + false, low - high

    low, high = min(gaps, key=error)
    return (low + high) / 2


@dataclass(frozen=True)
class Limit:
    """A limit in nats per character, and the shares of texts above it."""

    limit: float
    english: float
    strange: float


def chosen_limit(checkpoint: Path, sentences: Path) -> Limit:
    """The limit that errs least on a folder of sentences."""
    model = load_native(checkpoint, "builtin")
    english = [s.text for name in ENGLISH for s in read_sentences(sentences, name)]
    strange = [s.text for s in read_sentences(sentences, STRANGE)]
    measured = [[loss.per_character for loss in losses(model, t)] for t in (english, strange)]
    limit = round(best_limit(*measured), 2)
    return Limit(limit, *(sum(v > limit for v in values) / len(values) for values in measured))


def main(
    checkpoint: Annotated[Path, typer.Argument(help="a model folder")],
    sentences: Annotated[Path, typer.Argument(help="a folder of sentences")] = SENTENCES
    / DEVELOPMENT,
) -> None:
    """Print the limit that errs least on these sentences, and what lies above it."""
    found = chosen_limit(checkpoint, sentences)
    above = f"{found.english:.1%} of English texts above, {found.strange:.1%} of strange ones"
    print(f"limit {found.limit}: {above}")


if __name__ == "__main__":
    typer.run(main)
