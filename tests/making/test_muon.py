"""Muon: a step is orthogonal, and stacked matrices step as they would alone."""

import pytest
import torch

from making.muon import Muon, orthogonal


@pytest.mark.parametrize("shape", [(8, 8), (8, 24), (24, 8)])
def test_an_orthogonal_step_has_singular_values_near_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonal(torch.randn(3, *shape)))
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_a_step_keeps_the_directions_of_the_gradient() -> None:
    torch.manual_seed(0)
    gradient = torch.randn(1, 6, 6)
    u, _, v = torch.linalg.svd(gradient)
    inner = u.mT @ orthogonal(gradient) @ v.mT  # diagonal, if the singular vectors are the same
    assert torch.allclose(inner, torch.diag_embed(inner.diagonal(dim1=-2, dim2=-1)), atol=1e-4)


def test_matrices_of_one_shape_step_as_they_would_alone() -> None:
    torch.manual_seed(0)
    start, gradients = torch.randn(2, 4, 12), torch.randn(2, 4, 12)
    together = [start[i].clone().requires_grad_() for i in range(2)]
    alone = [start[i].clone().requires_grad_() for i in range(2)]
    optimizers = [Muon(together, 0.1, 0.01), *(Muon([p], 0.1, 0.01) for p in alone)]
    for _ in range(3):
        for parameters in (together, alone):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(together, alone, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
        assert not torch.equal(one, start[0])
