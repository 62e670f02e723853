"""Implicit attention of Mamba-2 and Gated DeltaNet layers, proven where it is taken.

Before its gate and norm, a head of such a layer gives y_t = Σ_{s≤t} M[t, s]·x_s + D·x_t, with
M = (C·Bᵀ∘Γ)·W and Γ[t, s] = exp(Σ_{s<r≤t} a_r) for s ≤ t. M is shown. It has a sign, and its
rows do not sum to 1.

- Mamba-2: a = A·Δ, W = diag(Δ), and x is the output of the convolution (Dao and Gu 2024,
  "Transformers are SSMs", arXiv 2405.21060, section 3).
- Gated DeltaNet: C and B are queries and keys, x is the values, and D = 0. A token writes what its
  key does not yet recall: W = (I + diag(β)·L)⁻¹·diag(β), where L is B·Bᵀ∘Γ below its diagonal
  (Yang, Kautz and Hatamizadeh 2024, arXiv 2412.06464, section 3).

All modules of a kind in transformers call one function for y, which they look up by its name in
their own file. While a model is listened to, a function that calls it has that name.
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
from attnviz.models.folder.config import lacks_implicit
from attnviz.models.huggingface.attention import attention_modules, forward, hooked
from attnviz.models.huggingface.capture import HALF, ROUNDED
from attnviz.models.huggingface.layers import Layers, first_of
from attnviz.models.huggingface.model import HuggingFaceModel
from attnviz.records.capture import Consumer, Wanted
from attnviz.records.tokens import Ids

EXACT = 1e-5
"""The largest error of M·x against y - D·x, as a share of the terms of M·x, in float32.

Added to it is the layer's own rounding in float32: of products of C and B that cancel, of D·x, and
of the exponents of what comes from earlier chunks, which are sums over a whole chunk."""

DELTA_RULE, DELTA_CHUNK = "torch_chunk_gated_delta_rule", 64
"""The function of Gated DeltaNet in the files of transformers, and its usual chunk."""

Given: TypeAlias = Mapping[str, Any]
"""The arguments: x (1, n, h, p), b, c (1, n, groups, N) and the others of its function by name."""


@dataclass(frozen=True, eq=False)
class HeadScan:
    """The function's arguments for some heads, and its result; in float64, on the CPU.

    x, y, skip (h, n, p), skip: D·x; decay (h, n): a, summed up to each token; w: W, (h, n, n), or
    its diagonal (h, n); b, c (groups, n, N), and the `group` of each head (h). `chunk`: the tokens
    whose decay the layer sums up. `exact`, `rounding`: the shares by which M·x may be off, and
    numbers be rounded.
    """

    x: Tensor
    y: Tensor
    skip: Tensor
    decay: Tensor
    w: Tensor
    b: Tensor
    c: Tensor
    group: Tensor
    chunk: int
    exact: float
    rounding: float

    @classmethod
    def of(cls, given: Given, y: Tensor, heads: Sequence[int]) -> "HeadScan":
        """The scan of some heads of the first text."""
        some, x = torch.tensor(list(heads)), _by_head(given["x"][:, :, list(heads)])
        b, c = (_by_head(given[name]) for name in ("b", "c"))
        group = some // (y.size(2) // given["b"].size(2))
        plain = y.dtype is torch.float32 and torch.get_float32_matmul_precision() == "highest"
        if "beta" in given:
            if given.get("use_qk_l2norm_in_kernel"):
                b, c = (
                    each / (each.square().sum(dim=-1, keepdim=True) + 1e-6).sqrt()
                    for each in (b, c)
                )
            c, d = c * c.size(-1) ** -0.5, x.new_zeros(())
            decay = _by_head(given["g"][..., some]).cumsum(dim=1)
            w = _delta_rule(b[group], decay, _by_head(given["beta"][..., some]))
        else:
            w = _by_head(_step(given)[..., some])
            a, d = (given[name][some].cpu().double()[:, None] for name in ("a", "D"))
            decay, d = (a * w).cumsum(dim=1), d[..., None]
        return cls(
            x=x,
            y=_by_head(y[:, :, some]),
            skip=d * x,
            decay=decay,
            w=w,
            b=b,
            c=c,
            group=group,
            chunk=given.get("chunk_size", DELTA_CHUNK),
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
        kept = decay.masked_fill_(torch.arange(n) > queries[:, None], -torch.inf).exp_()
        c, b = self.c[:, queries], self.b[:, :n].mT
        rows = self._written((c @ b)[self.group] * kept, self.w)
        products = self._written(kept.mul_((c.abs() @ b.abs())[self.group]), self.w.abs())
        allowed = self._allowed(queries, rows, products)
        x, y, skip = self.x[:, :n], self.y[:, queries], self.skip[:, queries]
        apart = (rows @ x + skip - y).abs().amax(dim=-1)
        if not (apart <= allowed).all():
            raise ValueError("M·x + D·x is not y")
        return rows

    @staticmethod
    def _written(read: Tensor, w: Tensor) -> Tensor:
        """What queries read from the states of n tokens (h, rows, n), by what the tokens wrote."""
        n = read.size(-1)
        return read @ w[:, :n, :n] if w.dim() == 3 else read.mul_(w[:, None, :n])

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


def _step(given: Given) -> Tensor:
    """Δ of Mamba-2 (1, n, h)."""
    dt: Tensor = given["dt"]
    if given.get("dt_bias") is not None:
        dt = dt + given["dt_bias"].to(dt.dtype)
    if given.get("dt_softplus"):
        dt = softplus(dt)
    return dt.clamp(*given.get("dt_limit", (0.0, torch.inf)))


def _delta_rule(keys: Tensor, decay: Tensor, beta: Tensor) -> Tensor:
    """W of Gated DeltaNet (h, n, n), one head at a time; keys (h, n, N), beta (h, n)."""
    written = decay.new_empty((*decay.shape, decay.size(1)))
    for head, k in enumerate(keys):
        kept = (decay[head, :, None] - decay[head]).tril_().exp_()  # nothing reads above it
        system = kept.mul_(k @ k.T).mul_(beta[head, :, None])
        written[head] = torch.linalg.solve_triangular(
            system, beta[head].diag(), upper=False, unitriangular=True
        )
    return written


ScanListener: TypeAlias = Callable[[nn.Module, Given, Tensor], None]
"""Is given the module that called the function, its arguments, and y (1, n, h, p)."""
SCANS: Mapping[str, Sequence[str]] = {
    "mamba2_chunk_scan": ("x", "dt", "a", "b", "c"),
    DELTA_RULE: ("c", "b", "x"),
}
"""The functions by their names in the files of transformers, and their first arguments."""


def scanning_modules(model: nn.Module) -> dict[nn.Module, tuple[str, dict[str, Any]]]:
    """The modules that call a function of `SCANS`: its name, and the names of their file."""
    forwards = {module: unwrap(type(module).forward) for module in model.modules()}
    return {
        module: (name, each.__globals__)
        for module, each in forwards.items()
        for name in SCANS
        if hasattr(each, "__code__") and name in each.__code__.co_names and name in each.__globals__
    }


@contextmanager
def listening(model: nn.Module, listener: ScanListener) -> Iterator[None]:
    """Hand over every call of a function of `SCANS`, and the module that called it."""
    modules, at_work = scanning_modules(model), list[nn.Module]()

    def begin(module: nn.Module, _args: Any) -> None:
        at_work[:] = [module]

    def around(function: Callable[..., Any], first: Sequence[str]) -> Callable[..., Any]:
        def scan(*args: Tensor, **more: Any) -> Any:
            result = function(*args, **more)
            listener(at_work[0], {**dict(zip(first, args, strict=True)), **more}, first_of(result))
            return result

        return scan

    with ExitStack() as stack, hooked(m.register_forward_pre_hook(begin) for m in modules):
        files = {(name, id(names)): names for name, names in modules.values()}
        for (name, _), names in files.items():
            stack.callback(names.__setitem__, name, names[name])
            names[name] = around(names[name], SCANS[name])
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
        raise lacks_implicit()
    return tuple(heads)


class ImplicitAttention(HuggingFaceModel):
    """The layers with implicit attention of a causal model."""

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        config, heads = self.model.config.get_text_config(), max(self.identity.heads_per_layer)
        delta = any(name == DELTA_RULE for name, _ in scanning_modules(self.model).values())
        sizes = (getattr(config, name, None) for name in ("chunk_size", "mamba_chunk_size"))
        chunk: int = DELTA_CHUNK if delta else next(filter(None, sizes), n_keys)
        w = 4 * heads * n_keys**2 if delta else 0  # and its magnitudes, in float64
        own = 3 * n_keys * min(chunk, n_keys) * heads  # transformers' own, within chunks
        rows = 8 * rows_at_a_time(n_keys, heads) * heads * n_keys  # four at a time, in float64
        beside = n_keys if attention_modules(self.model) else 0  # of a hybrid's other layers
        return super().working_bytes(n_queries, beside) + 4 * (own + rows + w)

    def run(self, ids: Ids, wanted: Wanted, consume: Consumer, target: Ids = ()) -> None:
        if wanted.scores:
            raise UsageError(
                "implicit attention has no scores before a softmax", f"leave {option('scores')} out"
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
