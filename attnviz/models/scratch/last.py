"""The last position of a model from scratch, in one run that keeps nothing of other positions."""

from collections.abc import Callable

import torch
from torch import Tensor

from attnviz.errors import ModelError
from attnviz.models.attention import Hook, attached
from attnviz.models.engine import Handover, numbers
from attnviz.models.frozen.last import LastLayer, LastRead, value_lengths
from attnviz.models.frozen.layer import FrozenOutput, check_adds_up, norm_held
from attnviz.models.scratch.decoder import CausalBlock, Decoder
from attnviz.records.capture import Wanted
from attnviz.records.rests import FindRests


class LayerAtLast:
    """What passes the hook points of a layer, kept for the last position.

    `rests`: is given the lengths of all values, if it keeps them, and its rows.
    """

    def __init__(self, layer: int, block: CausalBlock, rests: FindRests | None) -> None:
        self._layer, self._block, self._rests = layer, block, rests
        self._w_o = block.output[0]
        if rests is not None:
            every = Wanted({layer: tuple(range(len(self._w_o)))}, rests.queries)
            self._hand_over = Handover(every, rests).hook(layer)

    def hooks(self) -> dict[str, Hook]:
        names = {"resid_pre": self._before, "resid_post": self._after}
        names |= {f"attn.{name}": getattr(self, f"_{name}") for name in ("v", "pattern", "z")}
        return {f"h.{self._layer}.{name}": hook for name, hook in names.items()}

    def _before(self, x: Tensor) -> None:
        self._arrived = x[0, -1]

    def _v(self, v: Tensor) -> None:  # (1, g, n, d_v)
        self._values = v[0]
        if self._rests is not None and self._rests.lengths is not None:
            self._rests.learn(self._layer, numbers(value_lengths(v[0], self._w_o)))

    def _pattern(self, pattern: Tensor) -> None:  # (1, h, rows, keys)
        self._row = pattern[0, :, -1].clone()
        if self._rests is not None:
            self._hand_over(pattern)

    def _z(self, z: Tensor) -> None:
        self._attended = self._block.joined(z[:, :, -1:])[0]  # (1, d)

    def _after(self, x: Tensor) -> None:
        self._written = x[0, -1] - self._arrived

    def read(self) -> LastLayer:
        attended, added = self._attended[0], self._added()
        return LastLayer(self._row, self._values, self._w_o, None, added, attended, self._written)

    def _added(self) -> Callable[[Tensor], Tensor]:
        """What the stream gets of attention outputs (B, 1, d), with the norm behind them held."""
        behind, factor = self._block.behind, self._block.factor
        if behind is None:
            return lambda x: factor * x
        norm = norm_held(behind, self._attended)
        return lambda x: factor * norm(x)


@torch.no_grad()
def read_last(model: Decoder, ids: Tensor, rests: FindRests | None) -> LastRead:
    """Run a decoder over ids (1, n), and read the last position, as `LoadedModel.last`."""
    check_adds_up(model.dtype)
    if model.logit_cap is not None:
        raise ModelError(
            "the logits of this model are not a sum over its parts",
            "it caps them; use another model",
        )
    layers = [LayerAtLast(i, model.block(i), rests) for i in range(len(model.h))]
    hooks = {name: hook for layer in layers for name, hook in layer.hooks().items()}
    with attached(model, hooks):
        final = model.by_rows(ids)[0, -1:]  # (1, d)
    parts = {kind: part[..., -1, :].view(-1) for kind, part in model.embedded(ids).items()}
    weight = model.unembedding.detach().to(final.dtype)
    output = FrozenOutput(norm_held(model.ln_f, final), weight, factor=model.logit_factor)
    return LastRead(
        n=ids.size(1),
        embedded=parts,
        constant=torch.zeros_like(final[0]),
        layers=[layer.read() for layer in layers],
        final=final[0],
        output=output,
        logits=model.read_out(final)[0],
    )
