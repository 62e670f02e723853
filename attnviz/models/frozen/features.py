"""Sparse autoencoders: the features of a stream, in the place of all that wrote it.

A dictionary encodes the stream x at a layer as x = Σ a_f·W_dec[f] + b_dec + rest, with few features
f that are active (Bricken et al. 2023, "Towards Monosemanticity"; Rajamanoharan et al. 2024, arXiv
2407.14435, for JumpReLU; Gao et al. 2024, arXiv 2406.04093, for top-k). Letters in the shape
comments as in `models/frozen/run.py`; F: features of a dictionary.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
HOOK = re.compile(r"blocks\.(?P<layer>\d{1,5})\.hook_resid_(?P<where>pre|post)")
BIASES = {
    "standard": ("b_enc",),
    "topk": ("b_enc",),
    "jumprelu": ("b_enc", "threshold"),
    "gated": ("b_gate", "r_mag", "b_mag"),
}
"""The vectors (F) of each architecture."""
PLAIN: Mapping[str, tuple[Any, ...]] = {
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
    """A sparse autoencoder of the stream that arrives at `layer`.

    `tensors`: W_enc (d, F), W_dec (F, d), b_dec (d), and those of `BIASES`. `centred`: b_dec is
    subtracted before it encodes. `k`: the number of active features, for top-k.
    """

    name: str
    layer: int
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
    hook = HOOK.fullmatch(str(of_hook.get("hook_name") or of_hook.get("hook_point")))
    kwargs = settings.get("activation_fn_kwargs") or {}
    k = settings.get("k", kwargs.get("k") if isinstance(kwargs, dict) else None)
    topk = (settings.get("activation_fn_str") or settings.get("activation_fn")) == "topk"
    architecture = "topk" if topk else str(settings.get("architecture", "standard"))
    if hook is None or architecture not in BIASES:
        raise _refused(folder, "is not a sparse autoencoder of the stream between two layers")
    for name, plain in PLAIN.items():
        if of_hook.get(name) not in plain:
            raise _refused(folder, f"has {name} = {of_hook[name]!r}")
    layer = int(hook["layer"]) + (hook["where"] == "post")
    tensors = _tensors(folder)
    features = tensors["W_enc"].size(-1) if "W_enc" in tensors else 0
    shapes = {"W_enc": (width, features), "W_dec": (features, width), "b_dec": (width,)}
    shapes |= dict.fromkeys(BIASES[architecture], (features,))
    found = {name: tuple(tensors[name].shape) for name in shapes if name in tensors}
    if found != shapes or not features or layer > layers:
        raise _refused(folder, f"is not of this model, whose {layers} layers are {width} wide")
    if architecture == "topk" and not (type(k) is int and 0 < k <= features):
        raise _refused(folder, "does not say how many features are active (k)")
    own = {name: tensors[name].float() for name in shapes}
    if not all(bool(each.isfinite().all()) for each in own.values()):
        raise _refused(folder, "has weights that are not numbers")
    centred = settings.get("apply_b_dec_to_input", True) is not False
    return Dictionary(folder.name, layer, architecture, own, centred, k or 0)


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
    """The run with the features of a dictionary in the place of what wrote its stream."""
    layer, t = dictionary.layer, dictionary.tensors
    stream = run.streams[layer]
    t = {name: each.to(stream) for name, each in t.items()}
    active = replace(dictionary, tensors=t).encode(stream)  # (n, F)
    tokens, features = active.nonzero(as_tuple=True)
    if len(tokens) * stream.size(1) > MOST_NUMBERS:
        raise InputError(f"{len(tokens):,} features are active at the tokens", "shorten the text")
    vectors = active[tokens, features, None] * t["W_dec"][features]
    rest = t["b_dec"].expand_as(stream)
    left = stream - rest - torch.zeros_like(stream).index_add(0, tokens, vectors)
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
    spread = (stream - stream.mean(dim=0)).square().sum()
    explained = 1 - float(left.square().sum() / spread.clamp_min(1e-30))
    return replace(run, features=parts), Explained(dictionary.name, layer, explained)
