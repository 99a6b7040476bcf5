"""Statistical induction heads (arXiv 2402.11004): risk by hand, least losses, stages, claim."""

from itertools import product

import numpy as np
import pytest

from simulations.reproduction.predicates import Verdict
from simulations.stated.in_context import CountingRisk, Stages, random_matrices, random_repetition
from tests.closeness import close, within
from tests.simulations.quick import result


def test_reference_values():
    """Compare with the printed digits of an independent implementation."""
    loss, _ = CountingRisk(3, 3).value(np.array([0.1, 0.8, -0.3, 0.9, -0.2]))
    close(loss, 1.077860559175, rel=1e-12)
    close(CountingRisk(2, 12).bigram, 0.58797, rel=1e-5)


@pytest.mark.parametrize("law", [random_matrices, random_repetition])
def test_slopes_are_derivatives_in_one_entry(law):
    risk = CountingRisk(3, 4, law)
    state = np.random.default_rng(3).normal(size=6)
    steps = 1e-6 * np.eye(6)
    slopes = [(risk.value(state + x)[0] - risk.value(state - x)[0]) / 2e-6 for x in steps]
    within(risk.value(state)[1] * [1, 1, 1, 1, 3, 6], slopes, absolute=1e-9)
    assert np.abs(slopes).min() > 1e-4


def test_random_repetition_is_a_mean_over_its_probability():
    labels, weights = random_repetition(4, 3)
    nodes, quadrature = np.polynomial.legendre.leggauss(4)
    expected = dict.fromkeys(map(tuple, labels.tolist()), 0.0)
    for sequence in product(range(3), repeat=4):
        names: dict[int, int] = {}
        pattern = tuple(names.setdefault(x, len(names)) for x in sequence)
        repeats = sum(a == b for a, b in zip(sequence[1:], sequence))
        stay = 0.5 * (nodes + 1.0)
        mean = 0.5 * quadrature @ (stay**repeats * ((1.0 - stay) / 2.0) ** (3 - repeats))
        expected[pattern] += float(mean) / 3.0
    within(weights, list(expected.values()), absolute=1e-15)
    close(weights.sum(), 1.0, rel=1e-14)


def test_least_losses_by_enumeration():
    """Two symbols and two tokens seen: probabilities of the third are known."""
    risk = CountingRisk(2, 2)
    weight = dict(zip(map(tuple, risk.parts[1][0].tolist()), risk.parts[1][1]))
    first = np.log(2.0)  # one token has no information on the next
    pairs = [(weight[0, 0, 0], weight[0, 0, 1]), (weight[0, 1, 0], weight[0, 1, 1])]
    second = sum(-x * np.log(x / sum(pair)) for pair in pairs for x in pair)
    close(risk.bigram, (first + second) / 2.0, rel=1e-14)
    # counts (1, 1) do not contain the order
    x, y = pairs[0]
    by_counts = -x * np.log(x / (x + y)) - y * np.log(y / (x + y)) + sum(pairs[1]) * np.log(2.0)
    close(risk.unigram, (first + by_counts) / 2.0, rel=1e-14)
    longer = CountingRisk(2, 3)
    assert longer.bigram < longer.unigram < longer.uniform


def test_a_centred_second_layer_preserves_rows_of_sum_zero():
    run = CountingRisk(3, 3).flow(0.1, 0.5, centred=True)
    within(run.states[:, -2] + 2.0 * run.states[:, -1], 0.0, absolute=1e-12)
    assert run.stationary
    assert run.loss[-1] < run.loss[0]


def stages(rate, share=None):
    rate = np.array(rate, float)
    other = np.ones(rate.size) if share is None else 1.0 / np.array(share) - 1.0
    states = np.column_stack([other, np.ones(rate.size), np.zeros((rate.size, 2))])
    return Stages(True, 2.0 ** np.arange(rate.size), states, np.zeros(rate.size), rate)


@pytest.mark.parametrize(("rate", "index", "depth"), [
    ([1, 4, 2, 3, 1], 2, 2 / 3), ([1, 4, 3, 3.5, 0.5, 2, 0], 4, 0.25), ([0, 1, 2, 1, 0], 0, None),
])  # fmt: skip
def test_shoulder_is_the_deepest_minimum_between_two_peaks(rate, index, depth):
    at, ratio = stages(rate).shoulder
    assert at == index
    assert np.isnan(ratio) if depth is None else ratio == pytest.approx(depth, rel=1e-15, abs=0)


def test_lag_one_is_formed_when_it_stays_above_half():
    close(stages([1] * 4, [0.6, 0.4, 0.6, 0.7]).formed, 2.0**1.5, rel=1e-12)
    assert np.isnan(stages([1] * 3, [0.6, 0.4, 0.4]).formed)
    assert stages([1] * 3, [0.6, 0.6, 0.6]).formed == 1.0


@pytest.mark.slow
def test_claim_in_short():
    outcome = result("theory-statistical-induction")
    assert outcome.verdict is Verdict.FINDING
    (figure,) = outcome.measurement.figures
    assert figure.data["loss"].notnull().all()
