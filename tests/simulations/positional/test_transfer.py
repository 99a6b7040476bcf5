"""Transfer to a new feature: runs, their statistics, and exact bounds."""

import math

import numpy as np
import pytest

from dynamics import Problem
from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.samples import (
    random_feature,
    sample,
)
from simulations.positional import (
    partial_transfer,
    transfer_runs,
)
from simulations.positional import transfer_statistics as statistics
from simulations.positional.idealized_runs import (
    three_values,
)
from simulations.positional.learners import LOGISTIC, PRETRAINED, SCRATCH, UNIFORM
from simulations.positional.transfer_statistics import Sweep, SweepConfig
from simulations.reproduction.claim import Context
from tests.closeness import close


class TestTransfer:
    @pytest.mark.parametrize(
        ("means", "needed"),
        [
            ((0.4, 0.1, 0.01), 2.0 * 2.0 ** (math.log(4.0) / math.log(10.0))),
            ((0.02, 0.01, 0.01), 1.0),
            ((0.4, 0.3, 0.1), math.inf),
            ((0.01, 0.1, 0.025), 4.0),  # the size from which it stays below
        ],
    )
    def test_samples_needed(self, means, needed):
        problem = transfer_runs.downstream(16, 4.0)
        sweep = Sweep(PRETRAINED, problem, (1, 2, 4), np.array(means)[:, None])
        close(sweep.needed(0.025), needed, rel=1e-12)

    def test_exponent(self):
        close(statistics.exponent((16, 32, 64), (4, 8, 16)), 1.0, rel=1e-12)
        assert math.isnan(statistics.exponent((16, 32), (4, math.inf)))

    def test_interval_of_the_exponent_contains_it_and_is_a_point_without_noise(self):
        rng = np.random.default_rng(0)
        sweeps = []
        for D in (16, 32):
            problem = transfer_runs.downstream(D, 4.0)
            means = np.array([0.4, 0.1 * D / 16, 0.005])[:, None]
            sweeps.append(
                Sweep(SCRATCH, problem, (1, 2, 4), means * rng.uniform(0.5, 1.5, (3, 30)))
            )
        power, low, high = statistics.exponent_interval(sweeps, 0.025, 0)
        assert low < power < high
        sure = [sweep._replace(errors=sweep.errors[:, :1]) for sweep in sweeps]
        power, low, high = statistics.exponent_interval(sure, 0.025, 0)
        close(low, high, rel=1e-12)

    def test_different_groups_widen_the_interval_of_the_samples_needed(self):
        rng = np.random.default_rng(1)
        problem = transfer_runs.downstream(16, 4.0)
        errors = np.array([0.2, 0.02])[:, None] * rng.uniform(0.8, 1.2, (2, 50))
        same = Sweep(PRETRAINED, problem, (1, 8), errors)
        scale = np.array([0.5, 0.8, 1.0, 1.2, 1.6])[np.arange(50) % 5]
        apart = same._replace(errors=errors * scale)
        narrow, wide = (sweep.interval(0.05, 0) for sweep in (same, apart))
        assert narrow.low <= narrow.value <= narrow.high
        assert wide.high - wide.low > 3.0 * (narrow.high - narrow.low)
        assert np.ptp(apart.needed_by_seed(0.05)) > np.ptp(same.needed_by_seed(0.05))

    def test_binomial_interval_has_tails_of_a_fortieth(self):
        share = statistics.binomial_interval(0, 100)
        assert (share.value, share.low) == (0.0, 0.0)
        close(share.high, 1.0 - 0.025**0.01, rel=1e-9)
        share = statistics.binomial_interval(3, 400)
        tail = sum(
            math.comb(400, k) * share.high**k * (1 - share.high) ** (400 - k) for k in range(4)
        )
        close(tail, 0.025, rel=1e-9)

    def test_mean_error_without_a_failed_run_has_a_positive_interval(self):
        problem = transfer_runs.downstream(16, 4.0)
        good = Sweep(PRETRAINED, problem, (3,), np.full((1, 400), 0.01))
        error = good.error_interval(3)
        close(error.value, 0.01, rel=1e-12)
        share = statistics.binomial_interval(0, 400).high
        close(error.high, 0.01 * (1 - share) + share, rel=1e-12)
        failed = good._replace(errors=np.where(np.arange(400) < 4, 1.0, 0.01)[None])
        assert failed.error_interval(3).low > 0.01
        assert failed.error_interval(3).high > error.high

    def test_interval_of_groups_is_by_students_t(self):
        value, low, high = statistics.group_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
        assert value == 3.0
        # t(0.975, 4), which is algebraic: 2.776445 in the tables
        root = math.sqrt(4 * 0.975 * 0.025)
        quantile = 2 * math.sqrt(math.cos(math.acos(root) / 3) / root - 1)
        half = quantile * math.sqrt(2.5 / 5)
        close((low, high), (3.0 - half, 3.0 + half), rel=1e-12)

    def test_sign_failure_against_sums_of_sampled_features(self):
        problem = transfer_runs.downstream(16, 8.0)
        rng = np.random.default_rng(0)
        for N in (1, 2):
            signs = rng.choice([-1, 0, 1], p=[0.25, 0.5, 0.25], size=(40_000, 12 * N)).sum(axis=1)
            sampled = np.mean(signs < -4 * N) + 0.5 * np.mean(signs == -4 * N)
            exact = transfer_runs.sign_failure(problem, N)
            assert sampled == pytest.approx(exact, abs=4 * math.sqrt(exact / 40_000))

    def test_partial_transfer_with_perfect_training_is_on_the_exact_line(self, monkeypatch):
        """Use scores with the old sets, and v along the feature, with a small part against ties."""
        problem = transfer_runs.downstream(32, 8.0)
        scores = three_values(problem, 20.0, 0.0)
        np.fill_diagonal(scores, 20.0)

        def perfect(problem, A, v, X, y, w_star, tested):
            return tested.error(A, partial_transfer.ALPHA * w_star + 0.01 * v, w_star).error

        monkeypatch.setattr(partial_transfer, "pretrained", lambda *_: scores)
        monkeypatch.setattr(partial_transfer, "fine_tuned_error", perfect)
        partial_transfer.test_error.cache_clear()
        shares = (1.0, 0.5, 0.0)
        errors = [
            np.mean([partial_transfer.test_error(problem, share, 1, run, 0) for run in range(10)])
            for share in shares
        ]
        partial_transfer.test_error.cache_clear()
        exact = partial_transfer.uniform_attention_error(problem, shares)
        tested = 5 * partial_transfer.TESTED
        assert np.all(np.abs(errors - exact) < 4.0 * np.sqrt(exact / tested))
        bound = partial_transfer.bayes_errors(problem, shares)
        assert np.all(bound <= exact)
        assert bound[0] < bound[1] < bound[2]

    def test_error_of_logistic_regression_equals_the_error_on_new_data(self):
        """Use a large penalty: the weights are proportional to the difference of means."""
        problem = Problem(D=16, C=4, q=4 / 16, nu=0.1, output_scale=1.0)
        rng = np.random.default_rng(0)
        w = random_feature(problem, rng)
        X, y = sample(problem, 40, rng, w_star=w)
        error = transfer_runs.logistic_error(problem, X, y, w, 1e4)
        fresh, labels = sample(problem, 20_000, rng, w_star=w)
        score = np.einsum("njk,jk->n", fresh, (X * y[:, None, None]).mean(axis=0))
        direct = float(np.mean(score * labels <= 0.0))
        assert error == pytest.approx(direct, abs=4 * math.sqrt(direct / 4000))
        assert transfer_runs.logistic_error(problem, X, y, w, 1e-2) < 0.5

    def test_uniform_attention_ends_at_the_exact_linear_error(self):
        problem = transfer_runs.downstream(32, 8.0)
        errors = [transfer_runs.test_error(UNIFORM, problem, 128, run, 0) for run in range(4)]
        assert np.mean(errors) == pytest.approx(uniform_error(problem).coin, abs=0.012)

    def test_stored_sweeps_are_not_computed_again(self, tmp_path, monkeypatch):
        entries = [SweepConfig(LOGISTIC, 4.0, 16, (8, 16), 2)]
        seen = []
        context = Context(quick=True, progress=seen.append, scratch=tmp_path)
        first = transfer_runs.sweeps(entries, context)
        monkeypatch.setattr(transfer_runs, "test_error", None)  # nothing is computed again
        second = transfer_runs.sweeps(entries, context)
        assert np.array_equal(first[entries[0]].errors, second[entries[0]].errors)
        assert seen == [1.0, 1.0]
