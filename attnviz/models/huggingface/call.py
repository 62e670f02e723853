"""One call of a transformers model's attention: its queries, keys and values, and what it makes.

The module's own `eager_attention_forward` gives the weights, with everything that the model adds to
them (position bias, soft caps, windows, shared keys).
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from attnviz.errors import ModelError, option
from attnviz.models.products import scores_of

LOWEST = torch.finfo(torch.float32).min
HIDDEN = torch.finfo(torch.float16).min / 2
"""A mask of any type adds less than this where it hides a key."""
NEAR = 1e-3
PLAIN = 1e-5
"""The largest difference of a module's eager function from the plain one, to count as plain."""


@dataclass(frozen=True)
class AttentionCall:
    """One attention module at work, for one text of the batch.

    q (h, n_q, d_k); k and v (kv_heads, n_k, d_k), after rotation; `bias` (h, n_q, n_k) is
    added to the scores; `scaling` multiplies q·k. `function`: the name of the model's attention
    function.
    """

    module: Any
    scaling: float
    function: str
    _masks: Tensor | None
    _more: Mapping[str, Any]
    _texts: tuple[Tensor, Tensor, Tensor]
    """q, k and v of all texts of the batch."""
    _function: Callable[..., tuple[Tensor, Tensor | None]]
    _result: tuple[Tensor, Tensor | None]
    """The function's result for all of them: outputs, and weights if it has any."""
    _text: int = 0
    """The text of the batch that this call is of."""

    @property
    def texts(self) -> int:
        return self._texts[0].size(0)

    def of(self, text: int) -> "AttentionCall":
        """The call for another text of the batch."""
        return replace(self, _text=text)

    def joined(self, texts: Sequence[int]) -> "AttentionCall":
        """Neighbouring texts as one, whose heads are theirs, one text after the other.

        Several may be joined where `masks_alike` holds.
        """
        if len(texts) == 1:
            return self.of(texts[0])
        some = slice(texts[0], texts[-1] + 1)
        q, k, v = (each[some].flatten(0, 1)[None] for each in self._texts)
        output = self._result[0].reshape(self.texts, self.q.size(1), self.q.size(0), -1)[some]
        output = output.transpose(0, 1).flatten(1, 2)[None]  # (1, n_q, B·h, d_v)
        masks = None if self._masks is None else self._masks[:1]
        return replace(self, _masks=masks, _texts=(q, k, v), _result=(output, None), _text=0)

    @property
    def masks_alike(self) -> bool:
        """Whether the texts of the batch have the same mask, and no bias."""
        masks = self._masks
        return self.bias is None and (masks is None or len(masks) == 1 or masks.stride(0) == 0)

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of all texts (B, heads, n, d_k)."""
        return self._texts

    @property
    def q(self) -> Tensor:
        return self._texts[0][self._text]

    @property
    def k(self) -> Tensor:
        return self._texts[1][self._text]

    @property
    def v(self) -> Tensor:
        return self._texts[2][self._text]

    @property
    def bias(self) -> Tensor | None:
        bias = self._more.get("position_bias")
        return None if bias is None else bias[self._text % len(bias)]

    @property
    def _mask(self) -> Tensor | None:
        """The mask of this text only."""
        masks = self._masks
        if masks is None or self.texts == 1:
            return masks
        return masks[self._text % len(masks)][None]

    @property
    def output(self) -> Tensor:
        """The function's output (n_q, h, d_v), in the order in which the module reads it."""
        heads, n_q = self.q.size(0), self.q.size(1)
        return self._result[0].reshape(self.texts, n_q, heads, -1)[self._text]

    @property
    def returned(self) -> Tensor | None:
        """The weights that the function itself returned (h, n_q, n_k), or None without such."""
        weights, shape = self._result[1], (self.q.size(0), self.q.size(1), self.k.size(1))
        if not isinstance(weights, Tensor) or weights.shape != (self.texts, *shape):
            return None
        return weights[self._text]

    @property
    def light(self) -> "AttentionCall":
        """The call without the function's result, of which the weights are the text's square."""
        return replace(self, _result=(self._result[0].new_empty(0), None))

    @property
    def foreign(self) -> bool:
        return is_foreign(self._function)

    @property
    def dense(self) -> "AttentionCall":
        """The call with the numbers of each head side by side, which makes products faster."""
        q, k, v = self._texts
        return replace(self, _texts=(q.contiguous(), k.contiguous(), v))

    def on(self, values: Tensor) -> "AttentionCall":
        """Call the model's function on other values (kv_heads, n_k, d_v)."""
        q, k, v = self.q[None], self.k[None], values[None]
        bias = {} if self.bias is None else {"position_bias": self.bias[None]}
        mask, more = self._mask, {**self._more, **bias}
        with torch.random.fork_rng():  # a function may draw
            result = self._function(self.module, q, k, v, mask, **more)
        return replace(self, _masks=mask, _more=more, _texts=(q, k, v), _result=result, _text=0)

    def with_input(self, which: int, values: Tensor) -> Tensor:
        """The output (B, n_q, h, d_v) for all texts with one of the `inputs` replaced."""
        inputs = list(self._texts)
        inputs[which] = values
        q, k, v = inputs
        with torch.random.fork_rng():  # a function may draw
            return self._function(self.module, q, k, v, self._masks, **self._more)[0]

    @property
    def cap(self) -> float | None:
        """The soft cap on the scores (Gemma 2); None where there is none."""
        cap = self._more.get("softcap")
        return None if cap is None else float(cap)

    def added(self, queries: Tensor) -> Tensor | None:
        """The addend to the scores of the keys that a query attends to (h, rows, n_k), or None.

        The position bias, and what a mask holds beside what it hides (ALiBi, Doge).
        """
        mask = self._additive(queries, self.k.size(1))
        more = torch.zeros(()) if mask is None else mask[0]
        seen = more.masked_fill(more <= LOWEST / 2, 0)
        if self.bias is None and not seen.any():
            return None
        every = seen if self.bias is None else precise(self.bias[:, queries]) + seen
        return every.expand(self.q.size(0), len(queries), self.k.size(1)).to(self.q.dtype)

    def visible(self, queries: Tensor | None = None) -> Tensor:
        """(rows, n_k), True where the query may attend to the key, or None for all."""
        rows = torch.arange(self.q.size(1)) if queries is None else queries
        size, mask = (len(rows), self.k.size(1)), self._additive(rows, self.k.size(1))
        if mask is None:
            return torch.ones(size, dtype=torch.bool, device=self.q.device)
        # some encoders have one row for all queries
        return (mask[0, 0] > torch.finfo(mask.dtype).min / 2).expand(size)

    def weights(
        self, queries: Tensor | None = None, hidden: Sequence[Sequence[int]] = ()
    ) -> Tensor:
        """The pattern of query rows, (h, rows, n), by the module's own eager function.

        `hidden`: for each row, the keys to hide beside those that the mask hides; a row of which
        no key is left is 0. A query may have several rows.

        The first n keys are all keys that these queries attend to in a causal module; None:
        all rows, and all keys. It is computed in float32 at least, since the softmax of some
        modules runs in the type of its input.
        """
        rows = torch.arange(self.q.size(1)) if queries is None else queries
        n = self.k.size(1) if queries is None else self._seen(queries)
        eager = eager_of(self.module)
        more = dict(self._more)
        if self.bias is not None:
            more["position_bias"] = precise(self.bias[None, :, rows, :n])
        mask = self._additive(rows, n)
        if any(hidden):
            mask = _hiding(self.q.new_zeros((1, 1, 1, n)).float() if mask is None else mask, hidden)
        pattern: Tensor = eager(
            self.module,
            precise(self.q[None, :, rows]),
            precise(self.k[None, :, :n]),
            precise(self.v[None, :, :n, :0]),  # the output is not needed: no values
            # some eager functions (ModernBERT's decoder's) want a mask even where all is seen
            self.q.new_zeros((1, 1, 1, n), dtype=torch.float32) if mask is None else mask,
            **more,
        )[1]
        if any(hidden) and mask is not None:
            pattern = pattern.masked_fill(mask == LOWEST, 0)
        return pattern[0]

    def plain_rows(self, queries: Tensor, room: "Room") -> tuple[Tensor, Tensor]:
        """The `weights` and their scores, for a module of which `is_plain` holds.

        Both (h, rows, n) are good until the room is used again; the scores are those after the
        mask. Unlike the eager functions of transformers, it makes no copy of keys that heads share.
        """
        n = self._seen(queries)
        shape, most = (self.q.size(0), len(queries), n), self.k.size(1)
        scores, weights = (room.of(name, shape, most, self.q.device) for name in ("scores", "rows"))
        _grouped(self.q[:, queries].float() * self.scaling, self.k.float(), out=scores)
        if self._mask is None and self.causal and self.q.size(1) == self.k.size(1):
            # only of the last keys, some are ahead of a query
            first = int(queries[0])
            ahead = torch.arange(first, n) > queries[:, None]
            scores[..., first:].masked_fill_(ahead.to(scores.device), LOWEST)
        elif (mask := self._additive(queries, n)) is not None:
            scores += mask[0].clamp_min(LOWEST)  # not minus infinity, which times 0 is NaN
        return torch.softmax(scores, dim=-1, out=weights), scores

    def is_plain(self) -> bool:
        """Whether the module's own eager function is the softmax of scaled products, and no more.

        It is seen on a few keys, with scores from 0 to large: a soft cap, a sink or a bias of its
        own would show.
        """
        if self.bias is not None:
            return False
        draw = torch.Generator(self.q.device).manual_seed(0)
        like: dict[str, Any] = {"generator": draw, "device": self.q.device}
        groups, width = self.k.size(0), self.k.size(2)
        reach = torch.tensor([[0.0], [1.0], [10.0], [100.0]], device=self.q.device)
        q = torch.randn(self.q.size(0), 4, width, **like) * reach
        k = torch.nn.functional.normalize(torch.randn(groups, 16, width, **like), dim=-1)
        texts, masks = (q[None], k[None], k[None, ..., :0]), q.new_zeros(1, 1, 4, 16)
        seen = replace(self, _texts=texts, _masks=masks, _text=0)
        try:
            theirs = seen.weights()
        except (ValueError, TypeError, RuntimeError, IndexError):
            return False  # it wants more than these few keys
        ours = torch.softmax(_grouped(q, k, out=q.new_empty(len(q), 4, 16)) * self.scaling, dim=-1)
        return bool((theirs - ours).abs().max() < PLAIN)

    def pattern(self, queries: Tensor) -> Tensor:
        """The `weights` in the type of the queries."""
        if self.q.dtype is torch.float64:  # eager functions compute in float32
            scores = self.scores(queries)
            mask = self._additive(queries, scores.size(2))
            weights = torch.softmax(scores if mask is None else scores + mask[0], dim=-1)
        else:
            weights = self.weights(queries)
        return weights.to(self.q.dtype)

    def scores(self, queries: Tensor) -> Tensor:
        """The scores of query rows before the mask, as softmax is given them: (h, rows, n)."""
        n, group = self._seen(queries), self.q.size(0) // self.k.size(0)
        k = precise(self.k[:, :n]).repeat_interleave(group, dim=0)  # (h, n, d_k)
        scores = precise(self.q[:, queries]) @ k.transpose(1, 2) * self.scaling
        if self.cap is not None:
            scores = torch.tanh(scores / self.cap) * self.cap
        if self.bias is not None:
            scores = scores + precise(self.bias[:, queries, :n])
        mask = self._additive(queries, n)
        pattern = torch.softmax(scores if mask is None else scores + mask[0], dim=-1)
        weights = self.weights(queries)
        weights = weights / weights.sum(dim=-1, keepdim=True)  # a sink takes a part of each row
        if (pattern - weights).abs().max() > NEAR:
            raise ModelError(
                f"{type(self.module).__name__} changes its scores in a way that "
                "attnviz does not know",
                f"leave {option('scores')} out",
            )
        return scores

    def _seen(self, queries: Tensor) -> int:
        """The number of the first keys these queries attend to: all, except in a causal module."""
        n_q, n_k = self.q.size(1), self.k.size(1)
        if n_q != n_k or not self.causal:
            return n_k
        return int(queries.max()) + 1

    @property
    def causal(self) -> bool:
        """Whether the module hides later keys where it has no mask."""
        causal = self._more.get("is_causal")
        return bool(getattr(self.module, "is_causal", False) if causal is None else causal)

    def _additive(self, queries: Tensor, n: int) -> Tensor | None:
        """The mask (1, 1, rows, n) of these rows and the first n keys, as eager functions add it.

        A missing mask may mean causal.
        """
        if self._mask is not None:
            rows = queries if self._mask.size(-2) > 1 else slice(None)
            mask = self._mask[..., rows, :n]
            if mask.dtype is not torch.bool:
                return mask.float()
            return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, LOWEST)
        if self.q.size(1) == 1 or not self.causal:
            return None
        ahead = self.k.size(1) - self.q.size(1)
        future = (torch.arange(n) > queries[:, None] + ahead).to(self.q.device)
        return torch.where(future, LOWEST, 0.0)[None, None]


def is_foreign(function: object) -> bool:
    """Whether an attention function is none of transformers' own, wherever it says it is from."""
    while isinstance(function, partial):
        function = function.func
    # `functools.wraps` copies `__module__`
    names = getattr(function, "__globals__", {"__name__": getattr(function, "__module__", "")})
    return not str(names.get("__name__")).startswith("transformers.")


def eager_of(module: Any) -> Callable[..., tuple[Tensor, Tensor]]:
    """The eager function of the file that a module's attention is written in.

    A class of the user's own is in another file than the one that it derives from.
    """
    from transformers.models.llama.modeling_llama import eager_attention_forward as plain

    files = (sys.modules.get(kind.__module__) for kind in type(module).__mro__)
    functions = (getattr(file, "eager_attention_forward", None) for file in files)
    eager: Callable[..., tuple[Tensor, Tensor]] = next(filter(None, functions), plain)
    return eager


def _hiding(mask: Tensor, hidden: Sequence[Sequence[int]]) -> Tensor:
    """A mask (1, …, rows, n), or one row of it for all, that hides more keys of each row.

    All that it hides is the same lowest number: softmax prefers none where nothing else is left.
    """
    mask = mask.expand(*mask.shape[:2], len(hidden), -1)
    mask = mask.masked_fill(mask <= HIDDEN, LOWEST)
    rows = [row for row, keys in enumerate(hidden) for _ in keys]
    mask[..., rows, [key for keys in hidden for key in keys]] = LOWEST
    return mask


def precise(tensor: Tensor) -> Tensor:
    """In float32 at least."""
    return tensor if tensor.dtype is torch.float64 else tensor.float()


def _grouped(q: Tensor, k: Tensor, *, out: Tensor) -> Tensor:
    """q·k (h, rows, n) of the first n keys (kv_heads, m, d_k), without a copy of shared ones."""
    rows = q.reshape(k.size(0), -1, q.size(2))  # (kv_heads, group * rows, d_k)
    scores_of(rows, k, out=out.view(*rows.shape[:2], out.size(2)))
    return out


class Room:
    """Memory that is used for block after block.

    Asking the system for new memory takes as long as computing what goes into it.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, torch.device], Tensor] = {}

    def of(self, name: str, shape: tuple[int, int, int], most: int, device: torch.device) -> Tensor:
        """A float32 tensor of this shape, of which the last number will grow to `most`."""
        size, kept = prod(shape), self._kept.get((name, device))
        if kept is None or len(kept) < size:
            room = prod(shape[:2]) * most
            kept = self._kept[name, device] = torch.empty(room, dtype=torch.float32, device=device)
        return kept[:size].view(shape)
