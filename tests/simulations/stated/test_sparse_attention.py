"""Sparse attention (arXiv 2505.17863): reference values, formula, limit and claim."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from simulations.reproduction.predicates import Verdict
from simulations.stated.claims import sparse_attention
from simulations.stated.runs import risk
from symbolic.theory import load_theory
from tests.closeness import close, within
from tests.simulations.quick import result


@pytest.fixture(scope="module")
def theory():
    return load_theory(sparse_attention.FILE)


def test_reference_values(theory):
    """Compare with the printed digits of an independent implementation."""
    close(risk(theory, T=64, d=16).evaluate([0.0, 2.0, 0.5]).loss, 0.450479630713, rel=2e-12)
    close(sparse_attention.emergence(theory, 64, 16).half, 349.305582, rel=2e-9)


def test_derived_loss_is_the_formula(theory):
    assert sparse_attention.difference(theory, seed=3) <= sparse_attention.SAME


def test_formula_is_a_mean_over_tokens():
    """Compare with a sample mean for a W without symmetry, within 5 standard errors."""
    T, d = 3, 2
    rng = np.random.default_rng(5)
    state = rng.normal(size=T + d * d)
    formula = sparse_attention.Formula(T, d)
    p, W = formula.split(state)
    x = rng.normal(size=(200_000, T, d))
    errors = 0.5 * ((np.einsum("t,ntk->nk", p, x) @ W.T - x[:, -1]) ** 2).sum(axis=1) / d
    within(formula.loss(state), errors.mean(), absolute=5 * errors.std() / 200_000**0.5)
    assert abs(formula.loss(state) - 0.5) > 0.05


def test_slopes_of_the_formula():
    formula = sparse_attention.Formula(4, 3)
    state = np.random.default_rng(2).normal(size=4 + 9)
    step = 1e-5
    slopes = [
        (formula.loss(state + step * e) - formula.loss(state - step * e)) / (2 * step)
        for e in np.eye(state.size)
    ]
    within(-formula.slope(state), slopes, absolute=1e-9)
    assert np.abs(slopes).max() > 0.05


@pytest.mark.parametrize("mean", [0.0, 0.003, -0.004])
def test_limit_is_the_divergence_of_the_equations(mean):
    """For many tokens, dw/dt = e^g - w / sqrt(d) and dg/dt = w e^g."""
    d = 10_000

    def rate(_, state):
        w, g = state
        return [np.exp(g) - w / d**0.5, w * np.exp(g)]

    def large(_, state):
        return state[1] - 25.0

    large.terminal = True
    start = [mean * d**0.5, 0.0]
    run = solve_ivp(rate, (0.0, 5.0), start, rtol=1e-10, atol=1e-12, events=large)
    absolute = 1e-5 if mean == 0.0 else 5e-3  # first order in 1 / sqrt(d), or order 0
    within(sparse_attention.expected(d, mean), run.t_events[0][0], absolute=absolute)


@pytest.mark.slow
@pytest.mark.traced
def test_claim_in_short():
    outcome = result("theory-sparse-attention")
    assert outcome.verdict is Verdict.HOLDS
    (figure,) = outcome.measurement.figures
    assert all(np.isfinite(figure.data[name]).all() for name in figure.data)
