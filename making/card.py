"""The built-in model's `card.json`, written beside the weights."""

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
import torch

from attnviz.commands.train.plan import TrainingProgress
from attnviz.models.folder.config import MODEL_CARD
from attnviz.records.heads import Head, ModelCard
from making.recipe import BuiltinRecipe

if TYPE_CHECKING:
    from making.evaluate import Report

DESCRIPTION = (
    "A small GPT-2 trained from scratch on generated English sentences and on WordNet's "
    "definitions and examples: to predict the next token and, at some words, to name another word "
    "that belongs to them, which is read from what one head adds. No attention targets were used: "
    "nothing says where that head should look. In the later part of the training the entropy of "
    "the attention cost a little, which makes heads crisper."
)


@dataclass(frozen=True)
class Training:
    """The recipe of the weights, the progress at the end, and the folder of the first weights."""

    recipe: BuiltinRecipe
    end: TrainingProgress
    begin: Path | None = None


def write_card(
    folder: Path,
    report: "Report",
    training: Training,
    loss_limit: float | None = None,
    retrieval: Iterable[Head] = (),
) -> None:
    """Write `card.json`, with the numbers that the evaluation measured."""
    about = ModelCard(
        name="builtin",
        description=DESCRIPTION,
        bos=True,
        heads=tuple(report.heads),
        figures=tuple(report.figures),
        loss_limit=loss_limit,
        retrieval=tuple(retrieval),
        stop=(".",),
    )
    card = {**MODEL_CARD.row(about), "training": _training(training)}
    text = json.dumps(card, indent=2, ensure_ascii=False)
    (folder / "card.json").write_text(text + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """The versions of the libraries that made the weights."""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "tokenizers": tokenizers.__version__,
    }


def _training(training: Training) -> dict[str, Any]:
    end = training.end
    return {
        **asdict(training.recipe),
        "tokens": end.tokens,
        "minutes": round(end.seconds / 60, 1),
        "tokens_per_second": round(end.tokens / end.seconds),
        "final_loss": round(end.loss, 4),
        "versions": versions(),
        "from": _first(training.begin),
    }


def _first(begin: Path | None) -> Any:
    """The training of the weights that this one began with."""
    if begin is None:
        return None
    return json.loads((begin / "card.json").read_text(encoding="utf-8"))["training"]
