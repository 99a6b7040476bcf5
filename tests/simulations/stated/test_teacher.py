"""The teacher of arXiv 2603.22801: the derived risk against the formula, and the claim's judge."""

import numpy as np
import pytest

from simulations.reproduction.claim import Context, Verdict
from simulations.stated.claims import teacher
from simulations.stated.runs import risk
from symbolic.theory import load_theory
from tests.closeness import close


def by_hand(D, K, nu, state):
    """nu^2 D/2 [C1^2 (K a^2 + (D-K) b^2) - 2 C1 a + 1/K], v = nu C1; slopes by complex step."""
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
        found = population.gradient(state) * np.array([1, D * K, D * (D - K)])
        close(found, np.array(slopes), rel=1e-10)


def test_the_file_is_short():
    assert len(teacher.FILE.read_text().splitlines()) <= 80


GOOD = {"slope": -1.001, "ratio": 1.01, "constant": 0.995, "drift": 1e-9}


@pytest.mark.parametrize(
    ("change", "free", "agrees", "verdict"),
    [
        ({}, 2, True, Verdict.HOLDS),
        ({"slope": -1.02}, 2, True, Verdict.FAILS),
        ({"slope": -0.98}, 2, True, Verdict.FAILS),
        ({"ratio": 1.2}, 2, True, Verdict.FAILS),
        ({"constant": 1.02}, 2, True, Verdict.FAILS),
        ({"drift": 1e-5}, 2, True, Verdict.FAILS),
        ({"slope": float("nan")}, 2, True, Verdict.FAILS),
        ({}, 3, True, Verdict.FAILS),
        ({}, 2, False, Verdict.FAILS),
    ],
)
def test_judge(change, free, agrees, verdict):
    assert teacher.judge([GOOD, GOOD | change], free, agrees, 1e-16)[0] is verdict


def test_claim_in_short():
    outcome = teacher.CLAIM.run(Context(quick=True))
    assert outcome.verdict is Verdict.HOLDS, outcome.summary
    (figure,) = outcome.figures
    assert np.isfinite(figure.data["settled"]).all()
