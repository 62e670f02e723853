"""Sparse autoencoders and transcoders: features in the place of what wrote a stream.

A dictionary encodes the stream x at a layer as x = Σ a_f·W_dec[f] + b_dec + rest, with few features
f that are active (Bricken et al. 2023, "Towards Monosemanticity"; Rajamanoharan et al. 2024, arXiv
2407.14435, for JumpReLU; Gao et al. 2024, arXiv 2406.04093, for top-k). Letters in the shape
comments as in `models/frozen/run.py`; F: features of a dictionary. A transcoder encodes x as
what is given to an MLP, and its features add up to what this MLP writes (Dunefsky, Chlenski and
Nanda 2024, "Transcoders Find Interpretable LLM Feature Circuits").
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attnviz.errors import InputError, ModelError, option
from attnviz.models.folder.files import read_object, tensor_shapes
from attnviz.models.frozen.run import FrozenRun, StreamParts
from attnviz.records.parts import Explained, Part

SETTINGS, WEIGHTS = "cfg.json", "sae_weights.safetensors"
HOOK = re.compile(r"blocks\.(?P<layer>[0-9]{1,5})\.(?P<point>[a-z0-9_.]+)")
PRE, POST, WRITTEN = "hook_resid_pre", "hook_resid_post", "hook_mlp_out"
GIVEN = ("hook_resid_mid", "hook_mlp_in", "ln2.hook_normalized", "mlp.hook_in")
"""Hook points of TransformerLens: before an MLP's norm; behind it, without its weight and with.

Of a LayerNorm, some versions have the third one behind its weight, too.
"""
BIASES = {
    "standard": ("b_enc",),
    "topk": ("b_enc",),
    "jumprelu": ("b_enc", "threshold"),
    "gated": ("b_gate", "r_mag", "b_mag"),
    "transcoder": ("b_enc",),
    "jumprelu_transcoder": ("b_enc", "threshold"),
}
"""The vectors (F) of each architecture."""
PLAIN: Mapping[str, tuple[Any, ...]] = {
    "activation_fn": ("relu", "topk", None),
    "activation_fn_str": ("relu", "topk", None),
    "normalize_activations": ("none", None),
    "hook_head_index": (None,),
    "finetuning_scaling_factor": (False, None),
    "rescale_acts_by_decoder_norm": (False, None),
    "reshape_activations": ("none", None),
}
"""Settings that change what is encoded, and the values that leave it as it is."""
MOST_NUMBERS = 1 << 28
"""The most numbers in the vectors of a text's active features."""


@dataclass(frozen=True, eq=False)
class Dictionary:
    """A sparse autoencoder of the stream that arrives at `layer`, or of what the MLP there writes.

    `reads`: the hook point of the MLP that it encodes; None for the stream. `tensors`: W_enc
    (d, F), W_dec (F, d), b_dec (d), and those of `BIASES`. `centred`: b_dec is subtracted before it
    encodes. `k`: the number of active features, for top-k.
    """

    name: str
    layer: int
    reads: str | None
    architecture: str
    tensors: Mapping[str, Tensor]
    centred: bool
    k: int = 0

    @torch.no_grad()
    def encode(self, x: Tensor) -> Tensor:
        """How active each feature is (n, F), for the stream (n, d)."""
        t = self.tensors
        x = x - t["b_dec"] if self.centred else x
        pre = x @ t["W_enc"]
        if self.architecture == "gated":
            size = torch.relu(pre * t["r_mag"].exp() + t["b_mag"])
            return size * (pre + t["b_gate"] > 0)
        pre = pre + t["b_enc"]
        if self.architecture == "topk":
            top = pre.topk(self.k, dim=-1)
            return torch.zeros_like(pre).scatter(-1, top.indices, torch.relu(top.values))
        return torch.relu(pre) * (pre > t["threshold"] if "threshold" in t else 1)


def read_dictionary(folder: Path, width: int, layers: int) -> Dictionary:
    """The dictionary in a folder, as sae-lens saves it; for streams of this width.

    Raises:
        InputError: there is none, or it is damaged.
        ModelError: it is of another stream, or of a kind that is not read.
    """
    if not (folder / SETTINGS).is_file():
        raise InputError(f"there is no file {str(folder / SETTINGS)!r}", HINT)
    settings = read_object(folder / SETTINGS)
    metadata = settings.get("metadata")
    of_hook = {**settings, **(metadata if isinstance(metadata, dict) else {})}
    point = str(of_hook.get("hook_name") or of_hook.get("hook_point"))
    place = _place(point, str(of_hook.get("hook_name_out") or point))
    kwargs = settings.get("activation_fn_kwargs") or {}
    k = settings.get("k", kwargs.get("k") if isinstance(kwargs, dict) else None)
    topk = (settings.get("activation_fn_str") or settings.get("activation_fn")) == "topk"
    architecture = "topk" if topk else str(settings.get("architecture", "standard"))
    if architecture not in BIASES:
        raise _refused(folder, f"has the architecture {architecture[:80]!r}")
    if place is None or ("transcoder" in architecture) != (place[1] in GIVEN):
        raise _refused(folder, f"is of {point[:80]!r}: of no stream before a layer, and of no MLP")
    for name, plain in PLAIN.items():
        if of_hook.get(name) not in plain:
            raise _refused(folder, f"has {name} = {of_hook[name]!r:.80}")
    layer, reads = place
    if layer + (reads is not None) > layers:
        raise _refused(folder, f"is of layer {layer}, and this model has {layers} layers")
    own = _weights(folder, BIASES[architecture], width)
    if architecture == "topk" and not (type(k) is int and 0 < k <= own["W_enc"].size(1)):
        raise _refused(folder, "does not say how many features are active (k)")
    centred = settings.get("apply_b_dec_to_input", True) is not False and reads not in GIVEN
    return Dictionary(folder.name, layer, reads, architecture, own, centred, k or 0)


def _weights(folder: Path, biases: Sequence[str], width: int) -> dict[str, Tensor]:
    """The tensors of a dictionary, for vectors of this width."""
    tensors = _tensors(folder)
    features = tensors["W_enc"].size(-1) if "W_enc" in tensors else 0
    shapes = {"W_enc": (width, features), "W_dec": (features, width), "b_dec": (width,)}
    shapes |= dict.fromkeys(biases, (features,))
    for name, shape in shapes.items():
        found = tuple(tensors[name].shape) if name in tensors else None
        if found != shape or not features:
            has = f"has {name} of the shape {found}" if found else f"has no {name}"
            raise _refused(folder, f"{has}, and not {shape} as for this model's width {width}")
    if others := [name for name in tensors if name.startswith("W_") and name not in shapes]:
        raise _refused(folder, f"has {others[0][:80]}, which is not known")
    own = {name: tensors[name] for name in shapes}
    if all(each.is_floating_point() for each in own.values()):
        own = {name: each.float() for name, each in own.items()}
        if all(bool(each.isfinite().all()) for each in own.values()):
            return own
    raise _refused(folder, "has weights that are not numbers")


def _place(*points: str) -> tuple[int, str | None] | None:
    """The layer of what a dictionary reads and writes, and the point it reads, if of an MLP."""
    read, written = map(HOOK.fullmatch, points)
    if read is None or written is None or read["layer"] != written["layer"]:
        return None
    layer, ways = int(read["layer"]), (read["point"], written["point"])
    if ways in ((PRE, PRE), (POST, POST)):
        return layer + (ways[0] == POST), None
    return (layer, ways[0]) if ways[0] in (*GIVEN, WRITTEN) and ways[1] == WRITTEN else None


def _tensors(folder: Path) -> dict[str, Tensor]:
    path = folder / WEIGHTS
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}", HINT)
    tensor_shapes(path)  # its errors come before a number is read
    try:
        tensors: dict[str, Tensor] = load_file(path)
        return tensors
    except (SafetensorError, OSError) as error:
        raise InputError(f"{str(path)!r} is damaged: {error}", HINT) from None


HINT = f"{option('features')} is a folder of sae-lens, with {SETTINGS} and {WEIGHTS}"


def _refused(folder: Path, wrong: str) -> ModelError:
    return ModelError(f"the dictionary {folder.name!r} {wrong}", "use another one")


@torch.no_grad()
def with_features(run: FrozenRun, dictionary: Dictionary) -> tuple[FrozenRun, Explained]:
    """The run with the features of a dictionary in the place of what wrote its stream.

    Raises:
        InputError: too many features are active.
        ModelError: the model does not show what its MLPs read.
    """
    layer, reads, t = dictionary.layer, dictionary.reads, dictionary.tensors
    stream = run.streams[layer] if reads is None else run.mlps[layer]  # or what is added to it
    t = {name: each.to(stream) for name, each in t.items()}
    given = _given(run, layer, reads) if reads in GIVEN else stream
    active = replace(dictionary, tensors=t).encode(given)  # (n, F)
    tokens, features = active.nonzero(as_tuple=True)
    if len(tokens) * stream.size(1) > MOST_NUMBERS:
        raise InputError(f"{len(tokens):,} features are active at the tokens", "shorten the text")
    vectors = active[tokens, features, None] * t["W_dec"][features]
    rest = t["b_dec"].expand_as(stream)
    left = stream - rest - torch.zeros_like(stream).index_add(0, tokens, vectors)
    if not left.isfinite().all():
        raise ModelError(f"features of {dictionary.name!r} are too large here", "use another one")
    pairs = zip(tokens.tolist(), features.tolist(), strict=True)
    every = range(len(stream))
    parts = StreamParts(
        layer,
        (
            *(Part("feature", layer, None, token, feature) for token, feature in pairs),
            *(Part("unexplained", layer, None, token) for token in every),
        ),
        torch.cat([tokens, torch.tensor(every, device=tokens.device)]),
        torch.cat([vectors, left]),
        rest,
    )
    spread = float((stream - stream.mean(dim=0)).square().sum())
    explained = 1 - float(left.square().sum()) / spread if spread else nan  # of one token
    of_mlp = reads is not None
    own = replace(run, fed={layer: parts}) if of_mlp else replace(run, features=parts)
    return own, Explained(dictionary.name, layer, of_mlp, explained)


def _given(run: FrozenRun, layer: int, point: str | None) -> Tensor:
    """What the MLP of a layer is given (n, d), at one of the hook points `GIVEN`."""
    stream = run.behind_attention(layer)
    norm = run.layers[layer].before_mlp(stream)
    if norm is None:
        raise ModelError(
            "the norm before an MLP of this model is not known", f"leave {option('features')} out"
        )
    if point == "ln2.hook_normalized":
        if norm.centred and norm.weight is not None:
            wrong = f"{point} of a LayerNorm is before or behind its weight"
            raise ModelError(
                f"{wrong}, by the version of TransformerLens", "use another dictionary"
            )
        norm = replace(norm, weight=None, constant=None)
    return stream if point in GIVEN[:2] else norm(stream[None])[0]
