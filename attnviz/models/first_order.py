"""Attribution patching: the effects of all patches at once, to first order, by one gradient.

Nanda 2023, "Attribution Patching: Activation Patching At Industrial Scale"; Kramár et al. 2024,
"AtP*", arXiv 2403.00745. The measure m changes by about (source − text)·∂m/∂text where the vectors
of a site are those of the source.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnviz.models.engine import numbers
from attnviz.records.interventions import SiteKind
from attnviz.records.paths import FirstOrder, SlopeOf, held_fixed


@dataclass
class SitesPassed:
    """The vectors that pass kinds of sites of layers in a run, within the graph of its gradient.

    `held`: kinds that are held fixed, so that no gradient passes them to what is before.
    """

    held: Collection[SiteKind] = ()
    values: dict[tuple[SiteKind, int], Tensor] = field(default_factory=dict)

    def hook(self, at: tuple[SiteKind, int]) -> Callable[[Tensor], Tensor]:
        """A function that keeps what passes one, and passes it on."""

        def keep(values: Tensor) -> Tensor:
            if at[0] in self.held or not values.requires_grad:
                values = values.detach().requires_grad_()
            self.values[at] = values
            return values.clone()  # Falcon adds to it in place

        return keep


def first_order(
    last_of: Callable[[Sequence[int], SitesPassed], Tensor],
    by_head: Callable[[Tensor, tuple[SiteKind, int]], Tensor],
    ids: Sequence[int],
    slope_of: SlopeOf,
) -> FirstOrder:
    """The first order of all sites that `last_of` passes, by two runs and one gradient.

    `last_of`: runs a text, passes sites, and gives the last logits (V). `by_head`: the vectors of a
    site as (n, heads, width), with one head where it has none.
    """
    there = SitesPassed()
    here = SitesPassed(held_fixed(slope_of.direct) if slope_of.direct else ())
    with torch.inference_mode(False), torch.no_grad():
        ends = last_of(slope_of.source.ids, there)
    with torch.inference_mode(False), torch.enable_grad():
        last = last_of(ids, here)
        before, after = numbers(last), numbers(ends)
        answer, *versus = slope_of.measure(before, after)
        scores = last.float()
        value = scores[answer] - (scores[versus[0]] if versus else scores.logsumexp(dim=0))
        slopes = torch.autograd.grad(value, list(here.values.values()))
    places, products = list(slope_of.source.places), {}
    for (at, values), slope in zip(here.values.items(), slopes, strict=True):
        other = by_head(there.values[at], at)[places]
        own, gradient = (by_head(each, at).detach() for each in (values, slope))
        products[at] = numbers((gradient.float() * (other - own).float()).sum(dim=-1))
    return FirstOrder(before, after, products)
