"""Attention on a Markov chain (arXiv 2402.04161): risk, energy, basins and claim."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

from simulations.reproduction.predicates import Verdict
from simulations.stated.chains import CRITICAL, SMALL, ChainRisk, boundary, ends, energy, learns
from tests.closeness import close, within
from tests.simulations.quick import result

STATE = [0.7, 0.4, 0.3, 0.2]  # e, w, a, c


def test_reference_values():
    """Compare with the printed digits of an independent implementation (T = 4, sign = -1)."""
    chain = ChainRisk(0.2, 0.3, 4)
    close(chain.loss(STATE, -1.0), 0.7033881962935, rel=1e-13)
    slopes = [-0.0182534732, 0.015032272, 0.0008453985, 0.1912813139]
    within(chain.gradient(STATE, -1.0), slopes, absolute=6e-11)


def test_risk_is_the_mean_over_all_sequences():
    p, q, T, sign, (e, w, a, c) = 0.2, 0.7, 5, 1.0, STATE
    step, total = {0: p, 1: 1.0 - q}, 0.0
    for x in product((0, 1), repeat=T):
        weight = (p if x[0] else q) / (p + q)
        for before, after in pairwise(x):
            weight *= step[before] if after else 1.0 - step[before]
        for n in range(1, T):
            logit = e**2 * (1 + 2 * sign * w**2) * (x[n - 1] + a * np.mean(x[:n])) + c
            total += weight * (math.log1p(math.exp(logit)) - x[n] * logit) / (T - 1)
    close(ChainRisk(p, q, T).loss(STATE, sign), total, rel=1e-13)


def test_losses_of_a_symmetric_chain():
    close(ChainRisk(0.1, 0.1).bigram, 0.325083, rel=1e-6)
    close(ChainRisk(0.9, 0.9).unigram, math.log(2.0), rel=1e-15)


def test_bisected_start_is_that_of_an_independent_implementation():
    close(ChainRisk(0.1, 0.1).bisected(1.0), 0.3917095984, rel=2e-7)
    close(math.sqrt(boundary(1.0) ** 2 + SMALL), 0.3917095984, rel=1e-9)
    close(energy(boundary(0.4), 0.4, -1.0), CRITICAL, rel=1e-14)


@pytest.mark.parametrize(("p", "end"), [(0.1, "bigram"), (0.9, "unigram")])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_ends_from_a_small_start(p, end, sign):
    chain = ChainRisk(p, p)
    assert chain.end([0.02, 0.02, 0.0, 0.0], sign).name == end
    assert learns(p, p, 0.02, 0.02, sign) == (end == "bigram")
    (at_once,) = ends(*np.array([[p], [p], [0.02], [0.02], [sign]]), 1e3)
    within(at_once, float(end == "unigram"), absolute=1e-3)


def test_an_end_between_the_losses_is_neither():
    """A large start with trained attention."""
    chain = ChainRisk(0.1, 0.1, 3)
    end = chain.end([2.5, 3.0, 0.0, 0.0], -1.0, attention=True)
    assert end.name == "other"
    assert chain.bigram + 0.01 < end.loss < chain.unigram - 0.01


@pytest.mark.parametrize(("e", "w", "expected"), [
    (0.38, 1.0, False), (0.40, 1.0, True), (0.1, 0.6, True), (0.1, 0.8, False),
])  # fmt: skip
def test_energy_decides_where_the_slope_has_the_wrong_sign(e, w, expected):
    assert learns(0.1, 0.1, e, w, -1.0) == expected
    assert ChainRisk(0.1, 0.1).end([e, w, 0.0, 1.0], -1.0).name == (
        "bigram" if expected else "unigram"
    )


@pytest.mark.slow
def test_claim_in_short():
    outcome = result("theory-markov-chain")
    assert outcome.verdict is Verdict.FINDING
    (figure,) = outcome.measurement.figures
    assert figure.data["starts"].notnull().all()
