"""Tables of states. References: the multinomial law, and a loop over all patterns of an image."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dynamics import Problem
from dynamics.positional.population.importance import proposal_laws
from dynamics.positional.population.states import (
    UNDERFLOWN_WEIGHT,
    count_states,
    enumerate_states,
    sample_states,
    select_states,
    set_types,
    weight_error,
)
from tests.closeness import close


def multisets(states):
    """Return the weight of each state (T, sorted types)."""
    law = Counter()
    group = np.repeat(np.arange(states.total.size), np.diff(states.offset))
    for i, weight in enumerate(states.weight):
        entries = slice(states.start[i], states.start[i + 1])
        types = tuple(
            sorted(
                (int(states.plus[k]), int(states.minus[k]), int(m))
                for k, m in zip(states.type_index[entries], states.copies[entries])
            )
        )
        law[int(states.total[group[i]]), types] += weight
    return law


def brute_force(problem, K):
    q, C = problem.q, problem.C
    law = Counter()
    for pattern in itertools.product((1, -1, 0), repeat=problem.D - C):
        features = sum(map(abs, pattern))
        if features > K:
            continue
        sets = [pattern[i : i + C] for i in range(0, len(pattern), C)]
        types = Counter((s.count(1), s.count(-1)) for s in sets if any(s))
        key = tuple(sorted((a, b, m) for (a, b), m in types.items()))
        law[C + sum(pattern), key] += (q / 2) ** features * (1 - q) ** (len(pattern) - features)
    return law


@pytest.mark.parametrize(("D", "C", "q", "K"), [(8, 2, 0.3, 6), (8, 2, 0.3, 3), (9, 3, 0.9, 6)])
def test_enumeration_equals_the_law_of_all_patterns(D, C, q, K):
    problem = Problem(D=D, C=C, q=q)
    ours, brute = multisets(enumerate_states(problem, K)), brute_force(problem, K)
    assert ours.keys() == brute.keys()
    for key, probability in brute.items():
        close(ours[key], probability, rel=1e-13)


def test_q_of_one_gives_no_empty_patch():
    problem = Problem(D=8, C=2, q=1.0)
    states = enumerate_states(problem, 6)
    assert states.weight.sum() == pytest.approx(1.0, abs=1e-14)
    law = {key: w for key, w in multisets(states).items() if w > 0}
    assert all(sum((a + b) * m for a, b, m in types) == 6 for _, types in law)


@pytest.mark.parametrize("K", [0, 1, 5, 12])
def test_count_predicts_the_number_of_states(K):
    problem = Problem(D=64, C=4, q=2 / 64)
    assert count_states(problem, 12)[K] == enumerate_states(problem, K).weight.size


def test_the_neglected_probability_is_the_binomial_tail():
    problem = Problem(D=64, C=4, q=2 / 64)
    states = enumerate_states(problem, 12)
    assert states.weight.size == 8659
    close(1.0 - states.weight.sum(), 3.5275e-8, rel=1e-4)


def test_probabilities_of_types_add_up_to_one():
    types = set_types(Problem(D=64, C=4, q=0.3))
    assert types.probability.sum() + types.empty == pytest.approx(1.0, abs=1e-15)
    assert types.plus.size == math.comb(6, 2) - 1


def test_selected_states_have_unchanged_entries_and_weights():
    problem = Problem(D=12, C=3, q=0.3)
    states = enumerate_states(problem, 5)
    mask = np.random.default_rng(0).random(states.weight.size) < 0.4
    selected = multisets(select_states(states, mask))
    everything = multisets(states)
    assert len(selected) == mask.sum()
    assert all(everything[key] == weight for key, weight in selected.items())


def test_sample_frequencies_equal_probabilities():
    problem = Problem(D=8, C=2, q=0.3)
    samples = 40_000
    states = sample_states(problem, samples, np.random.default_rng(1))
    ours, exact = multisets(states), brute_force(problem, 6)
    for key, probability in exact.items():
        sigma = math.sqrt(probability * (1 - probability) / samples)
        assert abs(ours[key] - probability) < 5 * sigma


def test_weighted_frequencies_with_proposals_equal_probabilities():
    """Weights are at most 2 / n, so that the variance of a frequency is at most 2 p / n."""
    problem = Problem(D=8, C=2, q=0.3)
    samples = 40_000
    states = sample_states(problem, samples, np.random.default_rng(1), proposal_laws(problem))
    ours, exact = multisets(states), brute_force(problem, 6)
    assert states.weight.max() <= 2.0 / samples * (1 + 1e-9)
    for key, probability in exact.items():
        assert abs(ours[key] - probability) < 5 * math.sqrt(2 * probability / samples)
    rare = {key: p for key, p in exact.items() if key[0] <= -4}  # all six patches -1: 1e-5
    plain = multisets(sample_states(problem, samples, np.random.default_rng(1)))
    assert all(abs(ours[key] - p) < 0.2 * p for key, p in rare.items())
    assert not all(abs(plain[key] - p) < 0.2 * p for key, p in rare.items())


@pytest.mark.parametrize("q", [1e-12, 1e-3, 0.4, 0.9, 1 - 1e-14, 1.0])
@pytest.mark.parametrize(("D", "C"), [(8, 2), (10, 5), (40, 4)])
def test_errors_of_weights_are_within_their_bound(D, C, q):
    """Images without and with one feature, compared with exact fractions."""
    problem = Problem(D=D, C=C, q=q)
    states, exact = enumerate_states(problem, 1), Fraction(q)
    assert states.weight.size == 3
    lengths = np.diff(states.start)
    for weight, features in zip(states.weight.tolist(), lengths.tolist()):
        ways = (D - C) if features else 1
        truth = ways * (exact / 2) ** features * (1 - exact) ** (D - C - features)
        bound = weight_error(problem, 1) * truth + Fraction(UNDERFLOWN_WEIGHT)
        assert abs(Fraction(weight) - truth) <= bound
