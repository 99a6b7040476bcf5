"""Conserved forms, equal entries and growth rates of flows that are known analytically."""

import numpy as np
import pytest

from dynamics.theory.closure import closure, discover, growth, linear, quadratic
from tests.closeness import within


@pytest.fixture
def states():
    return np.random.default_rng(0).normal(size=(40, 4))


def test_conserved_sum(states):
    """For the gradient (3 f, -f, g, h) only x + 3 y is conserved."""
    x, y, u, v = states.T
    f = np.sin(x + u)
    gradients = np.stack([3.0 * f, -f, x * u, v**2 + y], axis=1)
    gradients[:, 0], gradients[:, 1] = -3.0 * f, f
    within(linear(gradients), [[1.0, 3.0, 0.0, 0.0]], absolute=1e-9)
    assert len(quadratic(states, gradients)) == 0  # the square of a conserved form is excluded


def test_conserved_quadratic_form(states):
    """For the products v a and v b, v^2 - a^2 - b^2 is conserved."""
    v, a, b, _ = states.T
    pull = np.cos(v * a), v * b - 1.0
    gradients = np.stack([a * pull[0] + b * pull[1], v * pull[0], v * pull[1], v**3], axis=1)
    assert len(linear(gradients)) == 0
    (form,) = quadratic(states, gradients)
    within(form, np.diag([1.0, -1.0, -1.0, 0.0]), absolute=1e-9)


def test_no_conserved_form(states):
    gradients = states**3 + 1.0
    assert len(linear(gradients)) == 0
    assert len(quadratic(states, gradients)) == 0


@pytest.mark.parametrize(("curvature", "rate"), [(-0.3, 0.3), (2.0, -0.5)])
def test_growth_normal_to_a_line(curvature, rate):
    """The loss is t^4 + (curvature p^2 + 0.5 r^2) / 2 around the t axis, in rotated coordinates."""
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]

    def gradient(x):
        t, p, r = rotation.T @ x
        return rotation @ np.array([4.0 * t**3, curvature * p, 0.5 * r])

    at = rotation[:, 0] * 0.7
    within(growth(gradient, at, rotation[:, :1]), rate, absolute=1e-8)
    assert growth(gradient, at, rotation) == -np.inf


def two_layers(x):
    """Return the slopes of (x0 x1 + x2 x3 - 1)^2 / 2 + (x4 x5)^2 / 2."""
    error, product = x[0] * x[1] + x[2] * x[3] - 1.0, x[4] * x[5]
    pairs = np.array([x[1], x[0], x[3], x[2]]) * error
    return np.append(pairs, [product * x[5], product * x[4]])


def test_entries_that_remain_equal():
    """Four entries with equal modulus at the start form one block, and zeros remain 0."""
    result = discover(two_layers, [0.3, 0.3, -0.3, -0.3, 0.0, 0.0])
    assert result.label.tolist() == [0, 0, 0, 0, -1, -1]
    assert result.sign.tolist() == [1, 1, -1, -1, 0, 0]
    assert result.moves.tolist() == [True]


def test_entries_that_separate():
    """x0 differs at the start, so that x1 separates from x2 and x3; x4 and x5 do not move."""
    result = discover(two_layers, [0.5, 0.3, 0.3, 0.3, 0.7, 0.0])
    assert result.label.tolist() == [0, 1, 2, 2, 3, -1]
    assert result.moves.tolist() == [True, True, True, False]
    assert result.refined_by(np.array([0, 1, 2, 2, 3, 4]))
    assert not result.refined_by(np.array([0, 0, 2, 2, 3, 4]))


def test_zeros_with_opposite_slopes_form_a_signed_block():
    def gradient(x):
        return np.array([-1.0, 1.0, -2.0, 0.0]) + x * [1.0, 1.0, 2.0, 3.0]

    result = discover(gradient, np.zeros(4))
    assert result.label.tolist() == [0, 0, 1, -1]
    assert result.sign.tolist() == [1, -1, 1, 0]


def test_smallest_invariant_space():
    """A conserved sum and a constant entry reduce four dimensions to two."""

    def gradient(x):
        pull = np.sin(x[0] + 2.0 * x[2]) + 0.3
        return np.array([pull, x[0] * x[2], -0.5 * pull, 0.0])

    basis = closure(gradient, [0.1, 0.2, 0.3, 0.4])
    assert basis.shape == (2, 4)
    within(basis @ np.array([1.0, 0.0, 2.0, 0.0]), np.zeros(2), absolute=1e-12)
    within(basis @ basis.T, np.eye(2), absolute=1e-12)
    assert len(closure(two_layers, [0.0] * 6)) == 0  # a saddle
