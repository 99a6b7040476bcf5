"""Adam against its definition, with sums over all gradients so far in place of running means."""

import numpy as np
import pytest

from dynamics.core.adam import adam, at_rest, clipped
from tests.closeness import close


@pytest.mark.parametrize("means", [(0.9, 0.999), (0.9, 0.99), (0.0, 0.5)])
def test_directions_are_those_of_the_definition(means):
    rng = np.random.default_rng(0)
    gradients = rng.standard_normal((7, 3)) * [1.0, 1e-3, 1e-9]
    kept = at_rest(np.zeros(3))
    for done, gradient in enumerate(gradients):
        direction, kept = adam(gradient, kept, done, means)
        ages = np.arange(done, -1, -1)[:, None]
        mean, square = (
            (weight**ages * seen).sum(axis=0) / (weight**ages).sum()
            for weight, seen in zip(means, (gradients[: done + 1], gradients[: done + 1] ** 2))
        )
        close(direction, mean / (np.sqrt(square) + 1e-8), rel=1e-12)


def test_steps_are_those_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    ours = rng.normal(size=5)
    theirs, kept = torch.tensor(ours.copy(), requires_grad=True), at_rest(ours)
    reference = torch.optim.Adam([theirs], lr=0.1)
    for done in range(20):
        gradient = rng.normal(size=5)
        direction, kept = adam(gradient, kept, done)
        ours = ours - 0.1 * direction
        theirs.grad = torch.tensor(gradient)
        reference.step()
    close(ours, theirs.detach().numpy(), rel=1e-9)


def test_what_is_kept_is_of_the_kind_of_the_parameters():
    kept = at_rest(np.zeros((2, 3), np.float32))
    direction, kept = adam(np.ones((2, 3), np.float32), kept, 0)
    assert direction.dtype == kept.mean.dtype == kept.square.dtype == np.float32


def test_a_gradient_is_clipped_at_a_length_and_keeps_its_direction():
    gradient = np.array([3.0, -4.0])
    close(clipped(gradient, 1.0), np.array([0.6, -0.8]), rel=1e-15)
    close(clipped(gradient, 5.0), gradient, rel=0.0)
    close(clipped(gradient, 9.0), gradient, rel=0.0)
