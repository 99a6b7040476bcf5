"""The teacher of arXiv 2603.22801: derived risk, formula and claim."""

import numpy as np
import pytest

from simulations.reproduction.predicates import Verdict
from simulations.stated.claims import teacher
from simulations.stated.runs import risk
from symbolic.theory import load_theory
from tests.closeness import close
from tests.simulations.quick import result


def by_hand(D, K, nu, state):
    """Return nu^2 D/2 [C1^2 (K a^2 + (D-K) b^2) - 2 C1 a + 1/K] with v = nu C1."""
    v, c_in, c_out = state
    e_in, e_out = np.exp(c_in / D**0.5), np.exp(c_out / D**0.5)
    Z = K * e_in + (D - K) * e_out
    a, b, C1 = e_in / Z, e_out / Z, v / nu
    return nu**2 * D / 2 * (C1**2 * (K * a**2 + (D - K) * b**2) - 2 * C1 * a + 1 / K)


@pytest.mark.parametrize(("D", "K", "nu"), [(8, 2, 1.0), (12, 4, 0.3), (100, 5, 2.0), (30, 15, 1)])
def test_risk_is_the_formula(D, K, nu):
    population = risk(load_theory(teacher.FILE), D=D, K=K, nu=nu)
    rng = np.random.default_rng(D)
    for state in rng.normal(size=(5, 3)) * [nu, 5.0, 5.0]:
        close(population.evaluate(state).loss, by_hand(D, K, nu, state), rel=1e-12)
        slopes = [by_hand(D, K, nu, state + 1e-30j * e).imag / 1e-30 for e in np.eye(3)]
        result = population.gradient(state) * np.array([1, D * K, D * (D - K)])
        close(result, np.array(slopes), rel=1e-10)


@pytest.mark.slow
@pytest.mark.traced
def test_claim_in_short():
    outcome = result("theory-teacher")
    assert outcome.verdict is Verdict.HOLDS
    (figure,) = outcome.measurement.figures
    assert np.isfinite(figure.data["settled"]).all()
