"""The learner that looks for the sets: what it finds, where it cannot, and its bound."""

import numpy as np
import pytest

from dynamics import Problem
from dynamics.core.errors import ParameterError
from dynamics.positional.baselines.set_finder import find_feature, find_sets, look_for_sets
from dynamics.positional.baselines.set_knowledge import bayes_error, least_error
from dynamics.positional.samples import HeldOut, random_feature, sample
from dynamics.positional.samples.partitions import random_partition

PROBLEM = Problem(D=32, C=4, q=0.25, nu=0.1, output_scale=1.0)


def as_sets(partition):
    return {frozenset(one.tolist()) for one in partition}


class TestFoundSets:
    def test_are_the_planted_ones_given_many_samples(self):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            partition, w = random_partition(PROBLEM, rng), random_feature(PROBLEM, rng)
            X, y = sample(PROBLEM, 120, rng, partition, w)
            found = look_for_sets(PROBLEM, X, y, rng)
            assert as_sets(found.sets) == as_sets(partition)
            assert found.feature @ w > 0.99
            error = HeldOut(PROBLEM, 4000, 0, partition).error(found.A, found.v, w)
            assert error.error == pytest.approx(bayes_error(PROBLEM, 8).coin, abs=0.003)

    def test_are_always_a_partition_and_owe_nothing_to_the_order_of_the_patches(self):
        sets = [find_sets(np.zeros((3, 32), bool), 4, np.random.default_rng(k)) for k in range(40)]
        for one in sets:
            assert sorted(one.ravel()) == list(range(32))
        joined = np.mean([any({0, 1} <= one for one in as_sets(found)) for found in sets])
        assert joined < 0.35  # by chance 3 / 31: neighbours are not favoured

    def test_mean_error_is_not_below_the_bound_for_all_learners(self):
        rng = np.random.default_rng(0)
        tested = HeldOut(PROBLEM, 4000, 0)
        for N in (4, 8):
            errors = []
            for _ in range(15):
                w = random_feature(PROBLEM, rng)
                found = look_for_sets(PROBLEM, *sample(PROBLEM, N, rng, None, w), rng)
                errors.append(tested.error(found.A, found.v, w).error)
            assert np.mean(errors) > least_error(PROBLEM, N)


class TestFeature:
    def test_follows_the_labels(self):
        rng = np.random.default_rng(1)
        w = random_feature(PROBLEM, rng)
        X, y = sample(PROBLEM, 40, rng, None, w)
        assert find_feature(X, y) @ w > 0.99
        assert find_feature(X, -y) @ w < -0.99


def test_refuses_what_is_no_table_of_sets():
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="agree of shape"):
        find_sets(np.zeros(8, bool), 4, rng)
    with pytest.raises(ParameterError, match="D = 9"):
        find_sets(np.zeros((2, 9), bool), 4, rng)
    with pytest.raises(ParameterError, match="X"):
        look_for_sets(PROBLEM, np.zeros((2, 3, 4)), np.ones(2), rng)
