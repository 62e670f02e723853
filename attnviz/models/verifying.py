"""The exactness of a capture: the output with and without it, and its weights against eager ones.

The eager weights are transformers' own, the matrices of all layers at once, as a user gets
them with `output_attentions=True`. A model whose attention function is not transformers' own has
none; there, as everywhere, weights times values are compared with what the function returned.
Where float32 runs differ by more than a small tolerance, the same models run in float64, and show
rounding from a mistake.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from attnviz.errors import ModelError, UsageError, option
from attnviz.models.catalog import Source, locate
from attnviz.models.huggingface.attention import foreign, hooked, language_of
from attnviz.models.huggingface.load import load_huggingface
from attnviz.models.huggingface.model import HuggingFaceModel
from attnviz.models.huggingface.vision import float64_copy
from attnviz.models.scratch.native import NativeModel
from attnviz.records.capture import KeepEverything, Kind, Wanted
from attnviz.records.tokens import Ids
from attnviz.records.trace import EXACT, FromExact, Verified

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

Verifiable = TypeVar("Verifiable", bound=NativeModel | HuggingFaceModel)

THEIRS: Mapping[Kind, str] = {
    "self": "attentions",
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}


def verify(
    model: "LoadedModel",
    source: Source | None,
    ids: Ids,
    target: Ids,
    shape: tuple[int, int],
    check_room: Callable[[int], None],
) -> Verified:
    """Run a text with and without capture, and once more with eager attention.

    A difference above `EXACT` in float32 is judged by runs in float64. `model`: its fingerprint is
    of all bytes. `source`: where it came from, or None if in memory. `shape`: (queries, keys) of
    its patterns. `check_room`: raises a ModelError where this many more bytes do not fit into
    memory.
    """
    if not isinstance(model, NativeModel | HuggingFaceModel):
        comparing = f"{option('verify')} compares with transformers"
        raise UsageError(f"{comparing}, which does not have {model.identity.name}")
    if model.kind == "encoder" and model.reads_images:
        comparing = f"{option('verify')} compares the rows of a text"
        raise UsageError(f"{comparing}, not those within an image")
    theirs = model if isinstance(model, HuggingFaceModel) else _through_transformers(source)
    expected = eager_weights(theirs, ids, target)
    heads = {n: tuple(range(h)) for n, h in enumerate(model.identity.heads_per_layer) if h}
    keep, products = KeepEverything(shape), dict[int, float]()
    proven = {"errors": products} if theirs is model else {}
    without = model.output(ids, target)
    captured = model.output(ids, target, Wanted(heads), keep, **proven)
    ours = {layer.layer: torch.tensor(layer.weights) for layer in keep.layers()}
    by_layer = _by_layer(ours, expected) if expected else {}
    verified = Verified(
        output=_apart(captured, without),
        weights=_largest(by_layer) if by_layer else None,
        dtype=model.identity.dtype,
        by_layer=by_layer,
        products=products,
        fingerprint=model.identity.fingerprint,
    )
    if verified.exact or not math.isfinite(verified.output + (verified.weights or 0)):
        return verified
    check_room(8 * model.identity.parameters)
    if verified.output > EXACT:
        exact = in_float64(model).output(ids, target)
        apart = FromExact(ours=_apart(captured, exact), theirs=_apart(without, exact))
        verified = replace(verified, exact_output=apart)
    if verified.weights is not None and verified.weights > EXACT:
        true = eager_weights(in_float64(theirs), ids, target)
        of_ours, of_theirs = _by_layer(ours, true), _by_layer(expected, true)
        apart = FromExact(ours=_largest(of_ours), theirs=_largest(of_theirs))
        verified = replace(verified, exact_weights=apart)
    return verified


def _through_transformers(source: Source | None) -> HuggingFaceModel:
    """The model of a name, as transformers loads it; those of attnviz's own have one."""
    assert source is not None
    folder, revision = locate(source)
    return load_huggingface(folder, source.name, revision, placement=source.placement)


def in_float64(model: Verifiable) -> Verifiable:
    """A copy of the model that runs in float64, on the CPU."""
    return replace(model, model=float64_copy(model.model))


def _apart(one: Tensor, other: Tensor) -> float:
    """The largest difference; NaN where one of them is."""
    return float((one.cpu().double() - other.cpu().double()).abs().max())


def _by_layer(ours: Mapping[int, Tensor], theirs: Mapping[int, Tensor]) -> dict[int, float]:
    """The largest difference in each layer; infinite where one side does not have it."""
    apart = dict.fromkeys(sorted(ours.keys() | theirs.keys()), math.inf)
    return apart | {n: _apart(ours[n], theirs[n]) for n in ours.keys() & theirs.keys()}


def _largest(by_layer: Mapping[int, float]) -> float:
    """The largest; NaN where one of them is."""
    return float(torch.tensor([*by_layer.values()], dtype=torch.float64).max())


def eager_weights(model: HuggingFaceModel, ids: Ids, target: Ids) -> dict[int, Tensor]:
    """Each layer's pattern (h, n_q, n_k) from the model in eager mode, which is switched back.

    Empty where its attention function is none of transformers' own.
    """
    body: Any = model.model.base_model
    switches = model.model._can_set_attn_implementation()
    if switches and foreign(model.model):
        return {}
    configs = {id(m.config): m.config for m in body.modules() if hasattr(m, "config")}.values()
    before = [(config, config._attn_implementation) for config in configs]
    if switches:
        model.model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            text, inner = language_of(model.model), list[Any]()
            with hooked([text.register_forward_hook(lambda *made: inner.append(made[-1]))]):
                output = body(**model.inputs(ids, target), output_attentions=True)
    finally:
        for config, implementation in before:  # parts of a model may differ in it
            config._attn_implementation = implementation
    attending = [n for n, heads in enumerate(model.identity.heads_per_layer) if heads]
    for each in inner:  # of a text beside an image, what the whole model returns is the image's
        output = each if getattr(each, "attentions", None) else output
    weights = output[own if (own := THEIRS[model.kind]) in output else "attentions"]
    if len(weights) == len(model.identity.heads_per_layer):  # some may be of another kind
        weights = [weights[n] for n in attending]
    patterns = [w for w in weights if isinstance(w, Tensor) and w.dim() == 4]
    if len(patterns) != len(attending):
        raise ModelError(
            f"transformers' eager mode returns {len(patterns)} patterns of this model, which has "
            f"{len(attending)} layers with attention",
            f"leave {option('verify')} out",
        )
    return {n: pattern[0] for n, pattern in zip(attending, patterns, strict=True)}
