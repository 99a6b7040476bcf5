"""Recovery of the sets from coincidences, and the lower bound of its error."""

import numpy as np
import pytest

from dynamics import Problem
from dynamics.core.errors import ParameterError
from dynamics.positional.baselines.set_finder import find_feature, find_sets, recover_sets
from dynamics.positional.baselines.set_knowledge import bayes_error, least_error
from dynamics.positional.samples import HeldOut, random_feature, sample
from dynamics.positional.samples.partitions import random_partition

PROBLEM = Problem(D=32, C=4, q=0.25, nu=0.1, output_scale=1.0)


def as_sets(partition):
    return {frozenset(patches.tolist()) for patches in partition}


class TestRecoveredSets:
    def test_many_samples_recover_the_true_sets(self):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            partition, w = random_partition(PROBLEM, rng), random_feature(PROBLEM, rng)
            X, y = sample(PROBLEM, 120, rng, partition, w)
            result = recover_sets(PROBLEM, X, y, rng)
            assert as_sets(result.sets) == as_sets(partition)
            assert result.feature @ w > 0.99
            error = HeldOut(PROBLEM, 4000, 0, partition).error(result.A, result.v, w)
            assert error.error == pytest.approx(bayes_error(PROBLEM, 8).coin, abs=0.003)

    def test_without_information_result_is_a_random_partition(self):
        partitions = [
            find_sets(np.zeros((3, 32), bool), 4, np.random.default_rng(k)) for k in range(40)
        ]
        for partition in partitions:
            assert sorted(partition.ravel()) == list(range(32))
        joined = np.mean([any({0, 1} <= s for s in as_sets(p)) for p in partitions])
        assert joined < 0.35  # the probability is 3 / 31 if neighbours are not favoured

    def test_mean_error_exceeds_the_lower_bound(self):
        rng = np.random.default_rng(0)
        tested = HeldOut(PROBLEM, 4000, 0)
        for N in (4, 8):
            errors = []
            for _ in range(15):
                w = random_feature(PROBLEM, rng)
                result = recover_sets(PROBLEM, *sample(PROBLEM, N, rng, None, w), rng)
                errors.append(tested.error(result.A, result.v, w).error)
            assert np.mean(errors) > least_error(PROBLEM, N)


class TestFeature:
    def test_sign_follows_the_labels(self):
        rng = np.random.default_rng(1)
        w = random_feature(PROBLEM, rng)
        X, y = sample(PROBLEM, 40, rng, None, w)
        assert find_feature(X, y) @ w > 0.99
        assert find_feature(X, -y) @ w < -0.99


def test_invalid_arguments_raise():
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="agree of shape"):
        find_sets(np.zeros(8, bool), 4, rng)
    with pytest.raises(ParameterError, match="D = 9"):
        find_sets(np.zeros((2, 9), bool), 4, rng)
    with pytest.raises(ParameterError, match="X"):
        recover_sets(PROBLEM, np.zeros((2, 3, 4)), np.ones(2), rng)
