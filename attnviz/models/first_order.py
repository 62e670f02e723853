"""Attribution patching: the effects of all patches at once, to first order, by one gradient.

Nanda 2023, "Attribution Patching: Activation Patching At Industrial Scale"; Kramár et al. 2024,
"AtP*", arXiv 2403.00745. The measure m changes by about (source − text)·∂m/∂text where the vectors
of a site are those of the source.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attnviz.models.engine import numbers
from attnviz.records.interventions import SiteKind
from attnviz.records.paths import LOGITS, FirstOrder, Receiver, SlopeOf, held_fixed
from attnviz.records.tokens import Ids


@dataclass
class SitesPassed:
    """The vectors that pass kinds of sites of layers in a run, within the graph of its gradient.

    `held`: kinds that are held fixed, so that no gradient passes them to what is before.
    `arrived`: the vectors (1, n, width) that reach receivers.
    """

    held: Collection[SiteKind] = ()
    values: dict[tuple[SiteKind, int], Tensor] = field(default_factory=dict)
    arrived: dict[Receiver, Tensor] = field(default_factory=dict)

    def hook(self, at: tuple[SiteKind, int]) -> Callable[[Tensor], Tensor]:
        """A function that keeps what passes one, and passes it on."""

        def keep(values: Tensor) -> Tensor:
            if at[0] == "mlp":
                self.arrived[Receiver(at[1])] = values
            if at[0] in self.held or not values.requires_grad:
                values = values.detach().requires_grad_()
            self.values[at] = values
            return values.clone()  # Falcon adds to it in place

        return keep


def first_order(
    last_of: Callable[[Sequence[int], SitesPassed], Tensor],
    by_head: Callable[[Tensor, tuple[SiteKind, int]], Tensor],
    ids: Ids,
    slope_of: SlopeOf,
    received: Callable[[Receiver, Tensor], Tensor] | None,
) -> FirstOrder:
    """The first order of all sites that `last_of` passes, by two runs and one gradient.

    A path to a part takes a run and two gradients more: of the measure, for what the part receives;
    and of what it receives, for the sites.

    `last_of`: runs a text, passes sites, and gives the last logits (V). `by_head`: the vectors of a
    site as (n, heads, width), with one head where it has none. `received`: the logits (1, V) where
    a receiver alone gets other vectors; None without paths.
    """
    there = SitesPassed()
    theirs = there.values
    here = SitesPassed(held_fixed(slope_of.direct) if slope_of.direct else ())
    with torch.inference_mode(False), torch.no_grad():
        ends = last_of(slope_of.source.ids, there)
    with torch.inference_mode(False), torch.enable_grad():
        last = last_of(ids, here)
        before, after = numbers(last), numbers(ends)
        answer, *versus = slope_of.measure(before, after)

        def measured(last: Tensor) -> Tensor:
            scores = last.float()
            return scores[answer] - (scores[versus[0]] if versus else scores.logsumexp(dim=0))

        products, places = dict[Receiver, Any](), list(slope_of.source.places)
        for to in slope_of.receivers:
            value = measured(last)
            if received and to != LOGITS:
                vectors = here.arrived[to].detach().requires_grad_()
                (slope,) = torch.autograd.grad(measured(received(to, vectors)[0]), vectors)
                value = (slope * here.arrived[to]).sum()
            values = list(here.values.values())
            slopes = torch.autograd.grad(value, values, retain_graph=True, materialize_grads=True)
            products[to] = {}
            for (at, own), slope in zip(here.values.items(), slopes, strict=True):
                apart = by_head(theirs[at], at)[places] - by_head(own, at)
                effects = by_head(slope, at).float() * apart.float()  # (n, heads, width)
                products[to][at] = numbers(effects.sum(dim=-1))
    return FirstOrder(before, after, products)
