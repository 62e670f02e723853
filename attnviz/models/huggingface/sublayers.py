"""Which stream an attention reads, and what its layer adds: with a second attention in a decoder.

A decoder of an encoder-decoder has three parts: self-attention, cross-attention and MLP. As in
`residual.py` they are found by what sums up, so that no architecture's names are needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnviz.models.huggingface.projections import agrees
from attnviz.models.huggingface.residual import Added, is_norm, what_is_added
from attnviz.models.huggingface.watching import Seen
from attnviz.records.capture import Kind


@dataclass(frozen=True)
class Sublayer:
    """An attention in its layer: the stream `x` (n_q, d) that arrives at it, the `norm` between,
    and what is added to the stream. `crossed` (n_q, d): in a decoder's self-attention, what
    cross-attention adds; None where it cannot be told apart from the rest."""

    x: Tensor
    norm: nn.Module | None
    added: Added
    crossed: Tensor | None = None


def sublayer_of(seen: Seen, kind: Kind) -> Sublayer | None:
    """The attention that was seen, in its layer; None where a decoder adds it up in other ways.

    `kind`: "cross", "decoder", or "self" for a layer with one attention.
    """
    if kind == "cross":
        return _cross(seen)
    if kind == "decoder":
        return _decoder(seen)
    added = what_is_added(seen.x, seen.x_after, seen.attention_out, seen.outputs)
    return Sublayer(seen.x, _norm_before(seen), added)


def _norm_before(seen: Seen) -> nn.Module | None:
    """The norm whose output the queries are made of."""
    norms = (m for m, out in seen.outputs if is_norm(m) and torch.equal(out, seen.normed))
    return next(norms, None)


def _cross(seen: Seen) -> Sublayer | None:
    """The stream arrives behind self-attention: before the norm, or as the queries read it."""
    norm = _norm_before(seen)
    after = seen.outputs[seen.own_at :]  # before it, among others, is what the queries read
    candidates = [] if norm is None else [(seen.reads[norm], norm)]
    for x, before in [*candidates, (seen.normed, None)]:
        added = what_is_added(x, seen.x_after, seen.attention_out, after)
        if added.how != "mixed":
            return Sublayer(x, before, added)
    return Sublayer(seen.normed, None, added) if _summed_in_a_norm(seen, seen.normed) else None


def _decoder(seen: Seen) -> Sublayer | None:
    """Self-attention adds to what arrives at the layer, cross-attention and the MLP after it."""
    norm = _norm_before(seen)
    for crossed in _crossed(seen):
        rest = [(module, out) for module, out in seen.outputs if out is not crossed]
        added = what_is_added(seen.x, seen.x_after - crossed, seen.attention_out, rest)
        if added.how != "mixed":
            return Sublayer(seen.x, norm, added, crossed)
    if not _summed_in_a_norm(seen, seen.x):
        return None
    change = seen.x_after - seen.x
    added = Added(seen.attention_out, change - seen.attention_out, "mixed")
    return Sublayer(seen.x, norm, added)


def _crossed(seen: Seen) -> Iterator[Tensor]:
    """What cross-attention may add: its output, or that of the first norm behind it."""
    yield seen.other_out
    after = seen.outputs[seen.other_at :]
    yield from [out for module, out in after if is_norm(module)][:1]


def _summed_in_a_norm(seen: Seen, x: Tensor) -> bool:
    """Whether norms stand over the sums: over that of the stream and attention, and at the end."""
    summed = any(agrees(read, x + seen.attention_out) for read in seen.reads.values())
    return summed and any(is_norm(m) and agrees(out, seen.x_after) for m, out in seen.outputs)
