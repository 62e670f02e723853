"""Implicit attention of Mamba-2 layers, proven where it is taken.

Before its gate and norm, a head of such a layer gives y_t = Σ_{s≤t} M[t, s]·x_s + D·x_t, with
M[t, s] = (C_t·B_s) · exp(Σ_{s<r≤t} A·Δ_r) · Δ_s (Dao and Gu 2024, "Transformers are SSMs", arXiv
2405.21060, section 3); x is the output of the convolution. M is shown. It has a sign,
and its rows do not sum to 1.

All Mamba-2 modules of transformers call one function for y, which they look up by its name in their
own file. While a model is listened to, a function that calls it has that name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from inspect import unwrap
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from attnviz.errors import ModelError, UsageError, option
from attnviz.models.attention import EnoughSeen
from attnviz.models.engine import Handover, rows_at_a_time
from attnviz.models.folder.config import lacks_mamba2
from attnviz.models.huggingface.attention import attention_modules, forward, hooked
from attnviz.models.huggingface.capture import HALF, ROUNDED
from attnviz.models.huggingface.layers import Layers, first_of
from attnviz.models.huggingface.model import HuggingFaceModel
from attnviz.records.capture import Consumer, Wanted
from attnviz.records.tokens import Ids

SCAN = "mamba2_chunk_scan"
"""The name of the function in the files of transformers."""
EXACT = 1e-5
"""The largest error of M·x against y - D·x, as a share of the terms of M·x, in float32.

Added to it is the layer's own rounding in float32: of products of C and B that cancel, of D·x, and
of the exponents of what comes from earlier chunks, which are sums over a whole chunk."""


Given: TypeAlias = Mapping[str, Any]
"""The arguments: x (1, n, h, p), dt (1, n, h), a (h), b, c (1, n, groups, N); the rest by name."""


@dataclass(frozen=True)
class HeadScan:
    """The function's arguments for some heads, and its result; in float64, on the CPU.

    x, y, skip (h, n, p), skip: D·x; step (h, n): Δ; decay (h, n): A·Δ, summed up to each token;
    b, c (groups, n, N), and the `group` of each head (h). `chunk`: the tokens whose decay the layer
    sums up. `exact`, `rounding`: the shares by which M·x may be off, and numbers be rounded.
    """

    x: Tensor
    y: Tensor
    skip: Tensor
    step: Tensor
    decay: Tensor
    b: Tensor
    c: Tensor
    group: Tensor
    chunk: int
    exact: float
    rounding: float

    @classmethod
    def of(cls, given: Given, y: Tensor, heads: Sequence[int]) -> "HeadScan":
        """The scan of some heads of the first text."""
        dt, some = given["dt"], torch.tensor(list(heads))
        if given.get("dt_bias") is not None:
            dt = dt + given["dt_bias"].to(dt.dtype)
        if given.get("dt_softplus"):
            dt = softplus(dt)
        dt = dt.clamp(*given.get("dt_limit", (0.0, torch.inf)))
        x, step = _by_head(given["x"][:, :, some]), _by_head(dt[..., some])
        a, d = (given[name][some].cpu().double()[:, None] for name in ("a", "D"))
        plain = y.dtype is torch.float32 and torch.get_float32_matmul_precision() == "highest"
        return cls(
            x=x,
            y=_by_head(y[:, :, some]),
            skip=d[..., None] * x,
            step=step,
            decay=(a * step).cumsum(dim=1),
            b=_by_head(given["b"]),
            c=_by_head(given["c"]),
            group=some // (y.size(2) // given["b"].size(2)),
            chunk=given["chunk_size"],
            exact=EXACT if plain else HALF,
            rounding=ROUNDED if plain else HALF,
        )

    def rows(self, queries: Tensor) -> Tensor:
        """M of query rows (h, rows, n), on the keys up to the last of these queries.

        Raises:
            ValueError: M·x + D·x is not y in one of these rows.
        """
        n = int(queries[-1]) + 1
        decay = self.decay[:, queries, None] - self.decay[:, None, :n]
        decay.masked_fill_(torch.arange(n) > queries[:, None], -torch.inf)
        kept = decay.exp_().mul_(self.step[:, None, :n])  # (h, rows, n)
        c, b = self.c[:, queries], self.b[:, :n].mT
        rows = (c @ b)[self.group] * kept
        allowed = self._allowed(queries, rows, kept.mul_((c.abs() @ b.abs())[self.group]))
        x, y, skip = self.x[:, :n], self.y[:, queries], self.skip[:, queries]
        apart = (rows @ x + skip - y).abs().amax(dim=-1)
        if not (apart <= allowed).all():
            raise ValueError("M·x + D·x is not y")
        return rows

    def _allowed(self, queries: Tensor, rows: Tensor, products: Tensor) -> Tensor:
        """The largest error of M·x + D·x against y in these rows (h, rows).

        `products`: M if every product of C and B were positive, as each of them is rounded.
        """
        sizes = self.x[:, : rows.size(2)].abs().amax(dim=-1, keepdim=True)  # (h, n, 1)
        start = queries - queries % self.chunk  # of the query's own chunk
        earlier = torch.arange(rows.size(2)) < start[:, None]
        added, terms, carried = (
            (part @ sizes)[..., 0] for part in (rows.abs(), products, rows.abs() * earlier)
        )
        ends = self.y[:, queries].abs() + self.skip[:, queries].abs()
        terms += self.reach * carried + ends.amax(dim=-1)
        return self.exact * added + self.rounding * terms

    @property
    def reach(self) -> Tensor:
        """The largest sum of A·Δ over a chunk (h, 1), with which it continues to the next."""
        ends = self.decay[:, self.chunk - 1 :: self.chunk]
        sums = ends.diff(dim=1, prepend=torch.zeros_like(ends[:, :1]))
        return sums.abs().amax(dim=1, keepdim=True) if ends.size(1) else ends.new_zeros(1, 1)


def _by_head(each: Tensor) -> Tensor:
    """(1, n, h, …) as (h, n, …), in float64."""
    return each[0].transpose(0, 1).cpu().double()


ScanListener: TypeAlias = Callable[[nn.Module, Given, Tensor], None]
"""Is given the module that called the function, its arguments, and y (1, n, h, p)."""


def mamba2_modules(model: nn.Module) -> dict[nn.Module, dict[str, Any]]:
    """The modules that call the function, each with the names of its file."""
    forwards = {module: unwrap(type(module).forward) for module in model.modules()}
    return {
        module: each.__globals__
        for module, each in forwards.items()
        if hasattr(each, "__code__") and SCAN in each.__code__.co_names and SCAN in each.__globals__
    }


@contextmanager
def listening(model: nn.Module, listener: ScanListener) -> Iterator[None]:
    """Hand over every call of the function, and the module that called it, until the end."""
    modules, at_work = mamba2_modules(model), list[nn.Module]()

    def begin(module: nn.Module, _args: Any) -> None:
        at_work[:] = [module]

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def scan(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, **more: Any) -> Any:
            result = function(x, dt, a, b, c, **more)
            given = {"x": x, "dt": dt, "a": a, "b": b, "c": c, **more}
            listener(at_work[0], given, first_of(result))
            return result

        return scan

    with ExitStack() as stack, hooked(m.register_forward_pre_hook(begin) for m in modules):
        for names in {id(names): names for names in modules.values()}.values():
            stack.callback(names.__setitem__, SCAN, names[SCAN])
            names[SCAN] = around(names[SCAN])
        yield


def implicit_heads(model: Any, inputs: Mapping[str, Any], layers: int) -> tuple[int, ...]:
    """The heads of each layer that has implicit attention, seen at work; 0 in the others."""
    heads, numbering = [0] * layers, Layers(model, "self")

    def see(module: nn.Module, _given: Given, y: Tensor) -> None:
        layer = numbering.at_work(module)
        if layer is not None and layer < layers:
            heads[layer] = y.size(2)

    with torch.inference_mode(), listening(model, see):
        forward(model.base_model, **inputs, use_cache=False)
    if not any(heads):
        raise lacks_mamba2()
    return tuple(heads)


class ImplicitAttention(HuggingFaceModel):
    """The Mamba-2 layers of a causal model."""

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        config, heads = self.model.config.get_text_config(), max(self.identity.heads_per_layer)
        sizes = (getattr(config, name, None) for name in ("chunk_size", "mamba_chunk_size"))
        chunk: int = next(filter(None, sizes), n_keys)
        own = 3 * n_keys * min(chunk, n_keys) * heads  # transformers' own, within chunks
        rows = 8 * rows_at_a_time(n_keys, heads) * heads * n_keys  # four at a time, in float64
        beside = n_keys if attention_modules(self.model) else 0  # of a hybrid's other layers
        return super().working_bytes(n_queries, beside) + 4 * (own + rows)

    def run(self, ids: Ids, wanted: Wanted, consume: Consumer, target: Ids = ()) -> None:
        if wanted.scores:
            raise UsageError(
                "Mamba-2 layers have no scores before a softmax", f"leave {option('scores')} out"
            )
        handover, layers = Handover(wanted, consume), Layers(self.model, "self")

        def heard(module: nn.Module, given: Given, y: Tensor) -> None:
            layer = layers.at_work(module)
            if layer is not None and layer in wanted.heads:
                _hand_over(HeadScan.of(given, y, wanted.heads[layer]), layer, handover)
            if layer == wanted.last_layer:
                raise EnoughSeen

        with torch.inference_mode(), listening(self.model, heard), suppress(EnoughSeen):
            forward(self.model.base_model, **self.inputs(ids))


def _hand_over(scan: HeadScan, layer: int, handover: Handover) -> None:
    """Hand over the wanted rows of a layer, each of them proven."""
    (heads, n, _), wanted = scan.x.shape, handover.wanted.queries
    queries = torch.arange(n) if wanted is None else torch.tensor(wanted)
    for block in torch.split(queries, rows_at_a_time(n, heads)):
        try:
            rows = scan.rows(block)
        except ValueError:
            raise ModelError(
                f"what layer {layer} gives before its gate is not its implicit attention times its "
                "inputs, so attnviz cannot show it",
                "use another model",
            ) from None
        handover.take(layer, block, rows)
