"""Attention by meaning or position: formulas, runs of SGD, fitted boundaries, claim."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from simulations.reproduction.predicates import Verdict
from simulations.stated.claims import semantic_positional
from simulations.stated.claims.semantic_positional import LEARNING_RATE, LEVEL, Attention, Counts
from tests.closeness import close, within
from tests.simulations.quick import result


@pytest.mark.parametrize(("c", "expected"), [(1.0, 0.3122), (2.0, 0.3750), (4.0, 0.4020)])
def test_boundaries_are_those_computed_outside(c, expected):
    own = Attention(0.0, c=c)
    within(own.boundary, expected, absolute=5e-5)
    m, n = own._replace(omega=own.boundary).speeds
    close(m, n, rel=1e-12)


def test_velocity_is_the_slope_of_the_loss():
    own, state = Attention(0.4), np.array([0.3, -0.2])
    slopes = [(own.loss(state + x) - own.loss(state - x)) / 2e-5 for x in 1e-5 * np.eye(2)]
    within(own.velocity(0.0, state), -np.array(slopes), absolute=1e-9)


def test_runs_with_many_samples_are_the_flow():
    """On either side of the crossing of the flow, runs learn what the flow learns first."""
    crossing = Attention(0.0).crossing(LEVEL)
    mixtures = crossing + np.array([-0.015, 0.015])
    counts = semantic_positional.counts(2000, mixtures, 2, np.random.default_rng(0))
    assert counts.semantic.tolist() == [2, 0]
    assert counts.unfinished == 0


def test_width_is_the_deviation_of_the_first_overlaps():
    """The variance of m - n after one step is V times the squared rate, by sampling."""
    own, rng = Attention(0.0), np.random.default_rng(1)
    at = own._replace(omega=own.boundary)
    a, b, u = math.sqrt(2.0) * rng.standard_normal((3, 400_000))
    score = (1 - at.omega) / (1 + np.exp(-own.c * a)) + at.omega * (1 + own.tau) / 2
    step = LEARNING_RATE * (score - 0.5) / 4 * u**2 * (a - b - 2)
    variance = (own.width(LEVEL) * own.total) ** 2 * LEVEL / at.speeds[0]
    close(step.var(), LEARNING_RATE**2 * variance, rel=0.03)


def test_fitted_boundaries():
    """Fractions of a normal distribution have its centre and width."""
    mixtures = np.linspace(0.1, 0.7, 25)
    expected = 1000 * norm.cdf((0.35 - mixtures) / 0.06)
    close(np.array(Counts(mixtures, expected, 1000, 0).boundary), np.array([0.35, 0.06]), rel=1e-3)


@pytest.mark.slow
@pytest.mark.traced
def test_claim_in_short():
    outcome = result("semantic-positional")
    assert outcome.verdict is not Verdict.FAILS
    (figure,) = outcome.measurement.figures
    assert all(np.isfinite(figure.data[name]).all() for name in figure.data)
