"""How exact the capture of an architecture is: against its own eager attention, and its output."""

from collections.abc import Mapping
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import torch

from attnviz.models import engine
from attnviz.models.huggingface.capture import run_and_capture
from attnviz.models.huggingface.load import ModelAttention, attention_of
from attnviz.records.capture import KeepEverything, Kind, LayerPattern, Wanted
from tests.architectures import Architecture

THEIRS: Mapping[Kind, str] = {
    "self": "attentions",
    "cross": "cross_attentions",
    "decoder": "decoder_attentions",
}


@dataclass(frozen=True)
class Exactness:
    """Largest differences: of the weights to eager ones, and of the output to that without capture.

    `sums`: how far the sum of a row is from 1 at most.
    """

    attention: ModelAttention
    weights: float
    output: float
    sums: float


def exactness_of(architecture: Architecture) -> Exactness:
    """Run a model with capture, without it, and in eager mode."""
    theirs = eager(architecture, architecture.inputs())
    found, ours, during = captured(architecture, architecture.inputs(), theirs[-1].shape[1:])
    with torch.no_grad():
        without = architecture.model()(**architecture.inputs()).last_hidden_state
    assert len(ours) == len(theirs)
    differences = (np.abs(a.weights - b).max() for a, b in zip(ours, theirs, strict=True))
    return Exactness(
        attention=found,
        weights=float(max(differences)),
        output=float((during - without).abs().max()),
        sums=float(max(np.abs(layer.weights.sum(axis=2) - 1).max() for layer in ours)),
    )


def eager(architecture: Architecture, inputs: Mapping[str, torch.Tensor]) -> list[np.ndarray]:
    """What transformers itself returns, (h, n_q, n_k) for each layer that attends."""
    with torch.no_grad():
        output = architecture.model("eager")(**inputs, output_attentions=True)
    return [w[0].numpy() for w in output[THEIRS[architecture.kind]] if w is not None]


def captured(
    architecture: Architecture, inputs: Mapping[str, torch.Tensor], shape: tuple[int, ...]
) -> tuple[ModelAttention, tuple[LayerPattern, ...], torch.Tensor]:
    """What attention the model has, its patterns, and its output while they were captured.

    Three rows at a time, so that every pattern comes in several blocks.
    """
    model = architecture.model()
    found = attention_of(model, inputs, 2, architecture.kind)
    keep = KeepEverything((shape[0], shape[1]))
    wanted = Wanted({n: tuple(range(h)) for n, h in enumerate(found.heads_per_layer) if h})
    with patch.multiple(engine, LEAST_ROWS=3, MOST_ROWS=3):
        output = run_and_capture(model, inputs, wanted, keep, architecture.kind, whole=True)
    return found, keep.layers(), output.last_hidden_state
