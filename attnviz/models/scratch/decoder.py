"""What all decoders from scratch have in common: the contract of their sites.

    ids ─► embedded ─► blocks ─► ln_f ─► logits

A model says how its blocks compute; captures, interventions, paths and frozen runs are written
once, on the hook points and the functions that are named here (`native.py`, `runs.py`,
`paths.py`). Letters in the shape comments:

    B batch   n tokens   d d_model   h heads   g heads of keys and values   V vocabulary
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnviz.models.attention import Hook, HookPoint, attached, kept
from attnviz.models.engine import rows_at_a_time
from attnviz.models.folder.config import GPTConfig
from attnviz.models.folder.llama import LlamaConfig
from attnviz.models.frozen.run import Embedded
from attnviz.records.tokens import Ids

Project: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]


class CausalBlock(nn.Module, ABC):
    """One layer: attention, then MLP, each added to the residual stream.

    Hook points (B, n, d): `resid_pre` (before the layer), `attn_out` and `mlp_out` (what is added),
    `resid_mid` (after attention), `resid_post` (after the layer). Its attention `attn` has the hook
    points q (B, h, n, d_k), k and v (B, g, n, d_k), scores, pattern and z.
    """

    ln_1: nn.Module
    ln_2: nn.Module  # before the MLP

    def __init__(self) -> None:
        super().__init__()
        self.resid_pre, self.resid_mid, self.resid_post = HookPoint(), HookPoint(), HookPoint()
        self.attn_out, self.mlp_out = HookPoint(), HookPoint()

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        rows: int | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        x = self.resid_pre(x)  # (B, n, d)
        attended = self.attended(x, mask, rows, positions)
        x = self.resid_mid(x + self.attn_out(attended))  # (B, n, d)
        out: Tensor = self.resid_post(x + self.mlp_out(self.fed(x)))  # (B, n, d)
        return out

    @property
    def norm(self) -> nn.Module:
        """What stands between the stream and its attention."""
        return self.ln_1

    @abstractmethod
    def projected(
        self, normed: Tensor, positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, h, n, d_k), keys and values (B, g, n, d_k) of `normed` (B, n, d)."""

    def held(self, normed: Tensor) -> Project:
        """`projected`, with norms of queries and keys held at what they do to `normed` (n, d)."""
        return self.projected

    @abstractmethod
    def weights(self, q: Tensor, k: Tensor, queries: Tensor) -> Tensor:
        """The pattern (..., rows, m) of query rows (..., rows, d_k) at these positions (rows).

        `k`: of the first m keys (..., m, d_k); of all heads of keys, or of one.
        """

    @abstractmethod
    def joined(self, z: Tensor) -> Tensor:
        """The output projection (B, n, d) of its heads' results (B, h, n, d_v)."""

    def added(self, joined: Tensor) -> Tensor:
        """What of this output (B, n, d) the attention adds to the stream."""
        return joined

    def written(self, z: Tensor) -> Tensor:
        """What the attention adds to the stream (B, n, d) for its heads' results (B, h, n, d_v)."""
        return self.added(self.joined(z))

    @abstractmethod
    def attended(
        self, x: Tensor, mask: Tensor | None, rows: int | None, positions: Tensor | None
    ) -> Tensor:
        """What the attention adds to a stream (B, n, d), past its hook points."""

    def visible(self, queries: Tensor, n_keys: int) -> Tensor:
        """(rows, n_keys), True where the query at each of these positions (rows) may attend."""
        return torch.arange(n_keys, device=queries.device) <= queries[:, None]

    @abstractmethod
    def fed(self, x: Tensor) -> Tensor:
        """What the MLP adds to a stream (B, n, d)."""

    @property
    @abstractmethod
    def scaling(self) -> float:
        """The factor on the products of queries and keys."""

    @property
    @abstractmethod
    def output(self) -> tuple[Tensor, Tensor | None]:
        """The output projection: W_O (h, d_v, d), and its bias (d)."""

    @property
    def behind(self) -> nn.Module | None:
        """A norm between the output projection and the stream."""
        return None

    factor: float = 1.0
    """On what attention and MLP add to the stream."""
    score_cap: float | None = None
    """The bound that tanh keeps scores within."""


class Decoder(nn.Module, ABC):
    """Token ids in, next-token logits out: blocks `h` around a stream, and a last norm `ln_f`.

    Hook points are named as in `h.2.attn.pattern` or `h.0.resid_pre`.
    """

    config: GPTConfig | LlamaConfig
    h: nn.ModuleList
    ln_f: nn.Module
    dtype: torch.dtype = torch.float32
    logit_factor: float = 1.0
    logit_cap: float | None = None
    fixed_positions: bool = True
    """A token's position acts on it in the same way however long its text is."""

    @abstractmethod
    def embedded(self, ids: Tensor, positions: Tensor | None = None) -> Mapping[Embedded, Tensor]:
        """What is added up to the input of layer 0: parts (B or 1, n, d); arguments as `hidden`."""

    @property
    @abstractmethod
    def unembedding(self) -> Tensor:
        """The output matrix (V, d)."""

    @abstractmethod
    def published(self) -> dict[str, Tensor]:
        """Its tensors under their names in transformers, in their own precision."""

    @abstractmethod
    def dense(self) -> "Decoder":
        """The same model with weights that are read fast, for runs over many texts."""

    @property
    def device(self) -> torch.device:
        return self.unembedding.device

    def block(self, layer: int) -> Any:
        """A layer, a `CausalBlock`."""
        return self.h[layer]

    def forward(
        self, ids: Tensor, *, mask: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """Logits (B, n, V) of the token that follows each position; arguments as in `hidden`."""
        return self.read_out(self.hidden(ids, mask=mask, positions=positions))

    def hidden(
        self,
        ids: Tensor,
        *,
        mask: Tensor | None = None,
        positions: Tensor | None = None,
        n_layer: int | None = None,
        rows: int | None = None,
    ) -> Tensor:
        """The residual stream (B, n, d) before the last norm, of ids (B, n).

        `mask`: broadcast to (B, h, n, n), True where a query may attend; None is causal.
        `positions`: (B, n) or (n); None counts from 0. `n_layer`: how many layers to run, from the
        first. `rows`: how many queries form a block. None takes all.
        """
        x = self.embed(ids, positions)
        layers = range(len(self.h[:n_layer]))
        return self.through(x, layers, mask, rows=rows, positions=positions)

    def by_rows(self, ids: Tensor, n_layer: int | None = None) -> Tensor:
        """As `hidden`, with some rows of attention at a time."""
        rows = rows_at_a_time(ids.size(1), self.config.n_head * len(ids))
        return self.hidden(ids, n_layer=n_layer, rows=rows)

    def embed(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """The input of layer 0 (B, n, d); arguments as in `hidden`."""
        first, *more = self.embedded(ids, positions).values()
        return sum(more, start=first)

    def through(
        self,
        x: Tensor,
        layers: range,
        mask: Tensor | None = None,
        *,
        rows: int | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """The residual stream (B, n, d) after these layers; arguments as in `hidden`."""
        for layer in layers:
            x = self.h[layer](x, mask, rows, positions)  # (B, n, d)
        return x

    def logits(self, normed: Tensor) -> Tensor:
        """(..., V) of what the last norm gives (..., d)."""
        logits = nn.functional.linear(normed, self.unembedding.to(normed.dtype))
        if self.logit_factor != 1:
            logits = logits * self.logit_factor
        cap = self.logit_cap
        return logits if cap is None else torch.tanh(logits / cap) * cap

    def read_out(self, stream: Tensor) -> Tensor:
        """The logits (..., V) of a stream (..., d) behind the last layer."""
        return self.logits(self.ln_f(stream))


# A prompt that is read once, for variants that begin as it does: what stands in front of a change
# is the same in every variant, as no token attends to a later one.


FEWEST = 16


@dataclass(frozen=True, eq=False)
class ReadPrefix:
    """A prompt of n tokens, none by default: keys and values by hook point (1, g, n, d_k)."""

    model: Decoder
    ids: tuple[int, ...] = ()
    read: Mapping[str, Tensor] = field(default_factory=dict)

    def shared(self, ids: Ids) -> int:
        """How many tokens of another prompt need no run; its last one does, as it predicts.

        None of a few: a text that runs from its beginning has faster attention.
        """
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(self.ids, ids, strict=False))
        number = min(sum(1 for _ in alike), len(ids) - 1)
        return number if FEWEST * number >= len(ids) else 0

    def ends(self, ids: Tensor, shared: int, number: int) -> Tensor:
        """The stream (B, number, d) of texts (B, n) at their last tokens, behind the shared ones.

        In the last layer the others need only keys and values.
        """
        n, model, last = ids.size(1), self.model, len(self.model.h) - 1
        rows = rows_at_a_time(n, model.config.n_head * len(ids))
        at = torch.arange(shared, n, device=ids.device) if shared else None
        read = {point: each[:, :, :shared] for point, each in self.read.items() if shared}
        with attached(model, {point: _behind(each) for point, each in read.items()}):
            x = model.embed(ids[:, shared:], at)
            x = model.through(x, range(last), rows=rows, positions=at)
        block, hooks = model.block(last), dict[str, Hook]()
        _, *others = block.projected(block.norm(block.resid_pre(x)), at)
        for name, own in zip("kv", others, strict=True):
            point = f"h.{last}.attn.{name}"
            first = read[point].expand(len(own), -1, -1, -1) if read else own[:, :, :0]
            hooks[point] = _behind(torch.cat([first, own[:, :, : own.size(2) - number]], dim=2))
        at = torch.arange(n - number, n, device=ids.device)
        with attached(model, hooks):
            return model.through(x[:, -number:], range(last, last + 1), rows=rows, positions=at)


def _behind(first: Tensor) -> Hook:
    """Puts earlier keys, or values (B or 1, g, shared, d_k), in front of new ones."""

    def grow(new: Tensor) -> Tensor:
        return torch.cat([first.expand(len(new), -1, -1, -1), new], dim=2)

    return grow


@torch.inference_mode()
def read_prefix(model: Decoder, ids: Ids) -> ReadPrefix:
    """Read a prompt, and keep the keys and values of all layers."""
    points = [f"h.{layer}.attn.{name}" for layer in range(len(model.h)) for name in "kv"]
    with kept(model, points, lambda x: x) as read:
        model.by_rows(torch.tensor([list(ids)], device=model.device))
    return ReadPrefix(model, tuple(ids), read)


@contextmanager
def without_memory() -> Iterator[None]:
    """Build modules whose weights are replaced at once: they take neither memory nor time."""
    with torch.device("meta"), _Undrawn():
        yield


class _Undrawn(TorchFunctionMode):
    """Draws no random numbers, which on the meta device would import PyTorch's compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is nn.init.normal_:
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))
