"""Adam: against its definition by sums over all gradients, and against PyTorch."""

import numpy as np
import pytest

from dynamics.core.adam import adam, clipped, initial_moments
from tests.closeness import close


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.9, 0.99), (0.0, 0.5)])
def test_direction_equals_the_definition(betas):
    rng = np.random.default_rng(0)
    gradients = rng.standard_normal((7, 3)) * [1.0, 1e-3, 1e-9]
    moments = initial_moments(np.zeros(3))
    for done, gradient in enumerate(gradients):
        direction, moments = adam(gradient, moments, done, betas)
        ages = np.arange(done, -1, -1)[:, None]
        mean, square = (
            (weight**ages * seen).sum(axis=0) / (weight**ages).sum()
            for weight, seen in zip(betas, (gradients[: done + 1], gradients[: done + 1] ** 2))
        )
        close(direction, mean / (np.sqrt(square) + 1e-8), rel=1e-12)


def test_steps_equal_those_of_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    ours = rng.normal(size=5)
    theirs, moments = torch.tensor(ours.copy(), requires_grad=True), initial_moments(ours)
    reference = torch.optim.Adam([theirs], lr=0.1)
    for done in range(20):
        gradient = rng.normal(size=5)
        direction, moments = adam(gradient, moments, done)
        ours = ours - 0.1 * direction
        theirs.grad = torch.tensor(gradient)
        reference.step()
    close(ours, theirs.detach().numpy(), rel=1e-9)


def test_moments_have_the_dtype_of_the_parameters():
    moments = initial_moments(np.zeros((2, 3), np.float32))
    direction, moments = adam(np.ones((2, 3), np.float32), moments, 0)
    assert direction.dtype == moments.mean.dtype == moments.square.dtype == np.float32


def test_clipping_scales_a_gradient_to_the_norm():
    gradient = np.array([3.0, -4.0])
    close(clipped(gradient, 1.0), np.array([0.6, -0.8]), rel=1e-15)
    close(clipped(gradient, 5.0), gradient, rel=0.0)
    close(clipped(gradient, 9.0), gradient, rel=0.0)
