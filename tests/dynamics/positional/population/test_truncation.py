"""Bounds of the truncation error of the enumeration.

Reference: complete enumeration of a small problem, including the neglected images.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Problem
from dynamics.positional._emitted import attention_weights, row_gradient
from dynamics.positional.population.enumeration import predicted_states
from dynamics.positional.population.expectation import Constants, risk_sums
from dynamics.positional.population.states import enumerate_states, select_states
from dynamics.positional.population.truncation import (
    _add_rows,
    _inflated,
    binomial_tail,
    group_bounds,
    groups_by_sum,
    state_bounds,
)
from tests.closeness import close, within

PARAMETERS = {
    "shape": st.sampled_from([(8, 2), (12, 3), (12, 2), (10, 5)]),
    "q": st.floats(0.02, 1.0),
    "p": st.sampled_from([3, 5]),
    "beta": st.floats(-2.0, 3.0),
    "state": st.tuples(st.floats(-1.0, 1.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)),
}


def neglected_exactly(problem, states, state):
    """Return the moduli of loss and gradient entries summed over the given states."""
    sums, _ = risk_sums(states, Constants.of(problem), *state)
    return np.abs([sums[0, 0], *(sums[0, 2:] / problem.multiplicity)])


@settings(max_examples=60)
@given(**PARAMETERS, K=st.integers(0, 5))
def test_contribution_beyond_K_is_within_its_bound(shape, q, p, beta, state, K):
    problem = Problem(D=shape[0], C=shape[1], q=q, p=p, beta=beta)
    everything = enumerate_states(problem, problem.D - problem.C)
    included = enumerate_states(problem, K)
    bound = group_bounds(binomial_tail(problem).beyond(K), Constants.of(problem), *state).sum(
        axis=0
    )
    whole, _ = risk_sums(everything, Constants.of(problem), *state)
    part, _ = risk_sums(included, Constants.of(problem), *state)
    gap = np.abs(whole[0] - part[0])[[0, 2, 3, 4]] / [1.0, *problem.multiplicity]
    assert np.all(gap <= bound + (whole[2] + part[2])[[0, 2, 3, 4]])


@settings(max_examples=60)
@given(**PARAMETERS, seed=st.integers(0, 100))
def test_dropped_states_are_within_their_bounds_singly_and_in_groups(
    shape, q, p, beta, state, seed
):
    problem = Problem(D=shape[0], C=shape[1], q=q, p=p, beta=beta)
    constants = Constants.of(problem)
    states = enumerate_states(problem, problem.D - problem.C)
    dropped = np.random.default_rng(seed).random(states.weight.size) < 0.3
    dropped[0] = True
    exact = neglected_exactly(problem, select_states(states, dropped), state)
    singly = state_bounds(states, constants, *state)[dropped].sum(axis=0)
    grouped = group_bounds(groups_by_sum(problem, states, dropped), constants, *state).sum(axis=0)
    assert np.all(exact <= grouped * (1 + 1e-9))
    assert np.all(exact <= singly * (1 + 1e-9))


def test_probabilities_of_groups_add_up_to_one():
    for problem in (Problem(D=8, C=2, q=0.3), Problem(D=10**6, C=4, q=2e-6)):
        assert binomial_tail(problem).mass.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_expected_number_of_sets_adds_up():
    problem = Problem(D=64, C=4, q=2 / 64)
    tail = binomial_tail(problem)
    features = tail.sets @ np.arange(5)
    within(features[:-1], np.arange(features.size - 1), 1e-9)
    close(tail.sets.sum(axis=1), problem.L - 1, rel=1e-9)


@pytest.mark.parametrize("q", [1e-12, 1e-3, 0.4, 0.9, 1 - 1e-14, 1.0])
@pytest.mark.parametrize(("D", "C", "p"), [(8, 2, 3), (60, 5, 21), (600, 4, 3)])
def test_groups_contain_sharp_upper_bounds(D, C, p, q):
    """The reference are exact fractions of the binary value of q."""
    tail, exact = binomial_tail(Problem(D=D, C=C, q=q, p=p)), Fraction(q)
    trials = D - C
    if tail.mass[-1] > 0.5:
        assert tail.mass.size == 2
        # the norm increases with k, so that any k gives a lower bound for the last group
        moment = sum(math.comb(trials, h) * abs(C + 2 * h - trials) ** p for h in range(trials + 1))
        assert Fraction(tail.norm[1]) ** p >= Fraction(moment, 2**trials)
        return
    for k in range(0, tail.mass.size - 1, max(1, tail.mass.size // 12)):
        mass = math.comb(trials, k) * exact**k * (1 - exact) ** (trials - k)
        assert mass <= Fraction(tail.mass[k]) <= mass * (1 + Fraction(1e-9)) + Fraction(1e-280)
        moment = sum(math.comb(k, h) * abs(C + 2 * h - k) ** p for h in range(k + 1))
        assert Fraction(tail.norm[k]) ** p >= Fraction(moment, 2**k)
        assert Fraction(tail.norm[k]) ** p <= Fraction(moment, 2**k) * (1 + Fraction(1e-10))
        for m in range(C + 1):
            sets = (D // C - 1) * Fraction(
                math.comb(C, m) * math.comb(trials - C, k - m) if k >= m else 0,
                math.comb(trials, k),
            )
            assert sets <= Fraction(tail.sets[k, m]) <= sets * (1 + Fraction(1e-9))


def test_too_many_features_are_detected_without_counting():
    assert binomial_tail(Problem(D=10**9, C=4, q=0.27)).mass.size == 2
    assert binomial_tail(Problem(D=10**5, C=4, q=0.3)).mass.size == 2
    assert predicted_states(Problem(D=10**5, C=4, q=0.3), 1e-6) == math.inf


@given(
    st.tuples(st.floats(-1.0, 1.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)),
    st.sampled_from([(8, 2), (12, 3), (64, 16), (16, 8)]),
    st.sampled_from([3, 5]),
    st.data(),
)
def test_every_row_is_within_its_bound(state, shape, p, data):
    """Sums over rows would hide a missing term."""
    constants = Constants.of(Problem(*shape, q=0.5, p=p, beta=0.5))
    a = data.draw(st.integers(0, shape[1]))
    b = data.draw(st.integers(0, shape[1] - a))
    s = data.draw(st.sampled_from([s for s, n in ((1, a), (-1, b), (0, shape[1] - a - b)) if n]))
    T = data.draw(st.integers(-shape[0] + shape[1], shape[0]))
    alpha, gamma, rho = state
    tau, C, D = constants.tau, constants.C, constants.D
    weights = attention_weights(constants.beta, gamma, rho, tau, C, D)
    row = row_gradient(
        float(s),
        float(a - b),
        float(T),
        alpha,
        *weights,
        C,
        D,
        constants.kappa,
        tau,
        p,
        constants.nu,
    )
    bound = np.zeros(4)
    enlarged = _inflated(constants, gamma, rho)
    _add_rows(bound, 1.0, abs(float(s)), float(a + b), abs(float(T)), alpha, enlarged, constants)
    checked = 4 if a + b else 2  # an empty set does not contribute to derivatives in gamma and rho
    underflow = np.finfo(float).tiny
    assert all(
        abs(value) <= limit * (1 + 1e-12) + underflow for value, limit in zip(row[:checked], bound)
    )
