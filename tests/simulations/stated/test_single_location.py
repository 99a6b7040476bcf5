"""Single-location regression: formula, velocities, starts and claim."""

import numpy as np
import pytest

from simulations.reproduction.predicates import Verdict
from simulations.stated.claims import single_location
from tests.closeness import close, within
from tests.simulations.quick import result


@pytest.fixture(scope="module")
def formula():
    return single_location.Formula(**single_location.PROBLEM)


def test_risk_has_the_numbers_computed_outside(formula):
    states = np.array([[0.3, 0.4, 0.2, -0.1, 0.15], [1.0, 1.0, 0.0, 0.0, 0.0]])
    close(formula.loss(states), np.array([2.6605423700517, 0.1134980829647]), rel=2e-12)


def test_slopes_are_the_derivatives_of_the_risk(formula):
    state = np.array([0.3, 0.4, 0.2, -0.1, 0.15])
    step = 1e-5 * np.eye(5)
    differences = (formula.loss(state + step) - formula.loss(state - step)) / 2e-5
    within(formula.slopes(state[None])[0], differences, absolute=1e-6)
    close(formula.slopes(state[None])[0, 0], 10.6947436516, rel=1e-11)


def test_velocity_is_the_limit_of_small_steps(formula):
    states = np.array([[0.3, 0.4, 0.2, -0.1, 0.15], [0.1, -0.2, 0.05, 0.3, -0.2]])
    moved = (formula.step(states, 1e-6) - formula.step(states, -1e-6)) / 2e-6
    within(formula.velocity(states), moved, absolute=1e-6)


def test_starts_are_possible_overlaps():
    """The Gram matrix is positive definite, and its entries have variance 1 / d."""
    rng, d = np.random.default_rng(1), 20
    for starts in (
        single_location.on_spheres(rng, 500, d),
        single_location.on_manifold(rng, 500, d),
    ):
        for kappa, nu, theta, eta, rho in starts[:20]:
            gram = [
                [1, rho, kappa, eta],
                [rho, 1, theta, nu],
                [kappa, theta, 1, 0],
                [eta, nu, 0, 1],
            ]
            assert np.linalg.eigvalsh(np.array(gram, float))[0] > 0.0
        close(np.var(starts[:, :2]) * d, 1.0, rel=0.2)
    assert not starts[:, 2:].any()


def test_only_a_common_sign_solves():
    ends = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [1.0, 0.9998], [0.0, 0.0]])
    runs = single_location.Runs(
        np.empty((1, 5, 5)), np.hstack([ends, np.zeros((5, 3))]), np.zeros(5)
    )
    assert runs.solved.tolist() == [True, True, False, False, False]


@pytest.mark.slow
@pytest.mark.traced
def test_claim_in_short():
    outcome = result("single-location")
    assert outcome.verdict is Verdict.HOLDS
    (figure,) = outcome.measurement.figures
    assert all(np.isfinite(figure.data[name]).all() for name in figure.data)
    ends = outcome.tables["other ends"].data
    within(ends.eta.to_numpy(), 1.0, absolute=1e-4)  # k ends at v* instead of k*
