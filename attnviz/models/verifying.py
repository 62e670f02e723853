"""How exact a capture is: the output with and without it, and its weights against eager ones.

The eager ones are transformers' own, every matrix of every layer at once, as a user gets
them with `output_attentions=True`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attnviz.data.capture import Kind, Wanted
from attnviz.data.keep import KeepEverything
from attnviz.data.verify import Verified
from attnviz.errors import ModelError, UsageError, option
from attnviz.models.catalog import Source, locate
from attnviz.models.huggingface.load import load_huggingface
from attnviz.models.huggingface.model import HuggingFaceModel
from attnviz.models.scratch.native import NativeModel

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

THEIRS: Mapping[Kind, str] = {
    "self": "attentions",
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}


def verify(
    model: "LoadedModel", source: Source, ids: Sequence[int], target: Sequence[int]
) -> Verified:
    """Run a text with and without capture, and once more with eager attention.

    Args:
        model: the loaded model, from `source`.
        source: where it came from.
        ids: the tokens.
        target: of an encoder-decoder, what it is to have written.

    Raises:
        UsageError: transformers does not have this model.
        ModelError: its eager mode returns no patterns to compare with.
    """
    if isinstance(model, NativeModel):
        folder, revision = locate(source)
        theirs = load_huggingface(folder, source.name, revision, placement=source.placement)
    elif isinstance(model, HuggingFaceModel):
        theirs = model
    else:
        raise UsageError(
            f"{option('verify')} compares with transformers, which does not have "
            f"{model.identity.name}",
            "leave it out",
        )
    expected = eager_weights(theirs, ids, target)
    heads = {n: tuple(range(h)) for n, h in enumerate(model.identity.heads_per_layer) if h}
    _, n_queries, n_keys = next(iter(expected.values())).shape
    keep = KeepEverything((n_queries, n_keys))
    with torch.inference_mode():
        without = model.output(ids, target)
        captured = model.output(ids, target, Wanted(heads), keep)
    differences = [
        np.abs(layer.weights - expected[layer.layer].float().cpu().numpy()).max()
        for layer in keep.layers()
    ]
    whole = len(differences) == len(expected)  # else a layer was not handed over
    return Verified(
        output=float((captured - without).abs().max()),
        weights=float(np.max(differences)) if whole else math.inf,
        dtype=model.identity.dtype,
    )


def eager_weights(
    model: HuggingFaceModel, ids: Sequence[int], target: Sequence[int]
) -> dict[int, Tensor]:
    """Layer to (h, n_q, n_k), from the model in eager mode; its own mode is restored."""
    body: Any = model.model.base_model
    switches = model.model._can_set_attn_implementation()
    configs = {id(m.config): m.config for m in body.modules() if hasattr(m, "config")}.values()
    before = [(config, config._attn_implementation) for config in configs]
    if switches:
        model.model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            output = body(**model.inputs(ids, target), output_attentions=True)
    finally:
        for config, implementation in before:  # parts of a model may differ in it
            config._attn_implementation = implementation
    attending = [n for n, heads in enumerate(model.identity.heads_per_layer) if heads]
    given = output[THEIRS[model.kind]]
    found = [w for w in given if isinstance(w, Tensor) and w.dim() == 4]
    if len(found) != len(attending):
        raise ModelError(
            f"transformers' eager mode returns {len(found)} patterns of this model, which has "
            f"{len(attending)} layers with attention",
            f"leave {option('verify')} out",
        )
    return {n: weights[0] for n, weights in zip(attending, found, strict=True)}
