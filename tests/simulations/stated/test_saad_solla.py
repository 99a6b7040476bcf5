"""The soft committee machine: equations of the paper, slow direction of the plateau, claim."""

import numpy as np
import pytest

import patchdyn
from simulations.reproduction.predicates import Verdict
from simulations.stated.claims import saad_solla, saad_solla_sgd
from tests.closeness import close, within
from tests.simulations.quick import result


def test_equations_have_the_numbers_computed_outside():
    """Compare loss and slopes of R with an independent implementation of one step."""
    equations = saad_solla.Equations(2, equivalent=False)
    Q, R = np.array([[0.6, 0.2], [0.2, 0.5]]), np.array([[0.4, 0.1], [0.15, 0.3]])
    state = np.array([Q, R]).ravel()
    close(equations.loss(state), 0.3010816536177, rel=2e-13)
    after = [[0.5196721459, 0.2393811853], [0.2548036112, 0.4573862422]]  # after a step of 0.7
    within(R + 0.7 * equations.velocity(state)[4:].reshape(2, 2), after, absolute=6e-11)


def test_equations_of_equivalent_units_are_those_of_all():
    state = np.array([0.5, 0.1, 0.3, 0.1])
    both = saad_solla.Equations(3), saad_solla.Equations(3, equivalent=False)
    gram = both[0].gram(state)
    full = both[1].velocity(np.array([gram[:3, :3], gram[:3, 3:]]).ravel())
    close(both[0].velocity(state), full[[0, 1, 9, 10]], rel=1e-13)


@pytest.mark.parametrize("K", [2, 8])
def test_power_of_the_slow_direction(K):
    """The exponent is a rational number, found by fits of K = 2 to 8."""
    risk = patchdyn.load_theory(saad_solla.FILE).risk(K=K, d=2 * K)
    close(saad_solla.slow_power(risk, K), (3 * K - 2) / (4 * K - 2), rel=1e-6)


def test_power_of_the_slow_direction_in_a_flow():
    """Without the exponential, R - S decreases like this power of the time while Q - C decays."""
    equations, K = saad_solla.Equations(2), 2
    start = np.array([0.2, 0.01, 0.01 + 1e-9, 0.01])
    flow = equations.flow(start)
    times = np.array([75.0, 150.0])
    gaps = np.array([flow.at(t)[0] - flow.at(t)[1] for t in times])
    ratio = gaps[0] / gaps[1]  # (t_1 + shift) / (t_0 + shift)
    shift = (times[1] - ratio * times[0]) / (ratio - 1.0)
    growth = np.log(flow.spread(times[1]) / flow.spread(times[0]))
    excess = growth - saad_solla.escape_rate(K) * (times[1] - times[0])
    power = -excess / np.log((times[1] + shift) / (times[0] + shift))
    within(power, 2 / 3, absolute=0.02)


@pytest.mark.slow
@pytest.mark.traced
def test_claim_in_short():
    outcome = result("saad-solla")
    assert outcome.verdict is Verdict.FINDING
    (figure,) = outcome.measurement.figures
    assert np.isfinite(figure.data["half"]).all()
    growth = outcome.tables["flows"].data.growth
    assert growth.xs("as stated", level="start").max() < -0.05
    assert growth.xs("alike", level="start").abs().max() < 0.001


def test_threshold_grows_with_the_comparisons():
    """A fresh run of a normal distribution exceeds the threshold with the stated probability."""
    rng, runs = np.random.default_rng(0), 6
    samples = rng.normal(size=(200_000, runs + 1))
    others = samples[:, 1:]
    distance = np.abs(samples[:, 0] - others.mean(axis=1)) / others.std(axis=1, ddof=1)
    within(np.mean(distance > saad_solla_sgd.threshold(1, runs)), 0.05, absolute=0.002)
    within(np.mean(distance > saad_solla_sgd.threshold(10, runs)), 0.005, absolute=0.0007)


@pytest.mark.slow
@pytest.mark.traced
def test_claim_of_sgd_in_short():
    outcome = result("saad-solla-sgd")
    assert outcome.verdict is Verdict.HOLDS
    noisy, without = (outcome.tables[name].data for name in ("with noise", "without noise"))
    assert noisy.distance.max() < 0.3 * without.distance.min()
