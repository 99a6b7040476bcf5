"""Training runs behind the claims: learning rates, records, sample sizes, and starts."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dynamics import Population, Problem, gradient_descent, gradient_flow
from dynamics.positional.oracle.descent import FullPopulation
from dynamics.positional.samples import (
    EmpiricalRisk,
    HeldOut,
    initial_weights,
    random_feature,
    sample,
    train,
)
from simulations.positional import (
    initialization_runs,
    sample_sizes,
    training_runs,
)
from simulations.positional.idealized_runs import (
    idealized,
    one_rate_problem,
    steps_with_one_rate,
    three_values,
)
from simulations.positional.initialization_runs import Start
from simulations.positional.training_runs import Setting, trained
from simulations.reproduction.claim import Context
from simulations.seeds import seed_at
from tests.closeness import close, within

SMALL = Problem(D=8, C=2, q=2 / 8, nu=0.1, output_scale=1.0, d=12)
SETTING = Setting(SMALL, 400, 0.3, 8.0, 40, records=9, tested=500)


class TestTwoLearningRates:
    """Training with two rates equals training of a rescaled problem with one rate."""

    def test_on_samples(self):
        rng = np.random.default_rng(0)
        X, y = sample(SMALL, 300, rng)
        A, v = initial_weights(SMALL, rng)
        two = train(SMALL, X, y, learning_rate=0.3, learning_rate_A=8.0, steps=30, initial=(A, v))
        scaled, rate = one_rate_problem(SMALL, 0.3, 8.0)
        c = scaled.kappa / SMALL.kappa
        single = train(scaled, X, y, learning_rate=rate, steps=30, initial=(A, v / c))
        assert np.abs(single.A - two.A).max() < 1e-11
        assert np.abs(c * single.v - two.v).max() < 1e-11

    def test_idealized_process_against_the_full_matrix(self):
        population = FullPopulation(SMALL, np.eye(1, 12)[0], None)
        alpha = SMALL.initial_state.alpha
        A, v = SMALL.beta * np.eye(8), alpha * np.eye(1, 12)[0]
        for _ in range(20):
            value = population.evaluate(A, v)
            A, v = A - 8.0 * value.dA, v - 0.3 * value.dv
        path = idealized(SMALL, 0.3, 8.0, 20)
        last = path.final
        assert np.abs(three_values(SMALL, last.gamma, last.rho) - A).max() < 1e-8
        assert path.alpha[-1] * path.problem.kappa == pytest.approx(v[0], abs=1e-8)
        assert last.gamma > 0.01  # gamma has changed

    def test_steps_with_one_rate_against_descent(self):
        problem = SMALL.replace(output_scale=None)
        needed = steps_with_one_rate(SMALL, gap=0.1)
        population = Population(problem, tolerance=1e-6)
        settled = gradient_flow(population, horizon=1.0).final._replace(gamma=0.0, rho=0.0)
        rate = population.largest_stable_learning_rate(settled) / 2
        path = gradient_descent(
            population, learning_rate=rate, steps=int(2.5 * needed), record="linear", records=2000
        )
        step = np.interp(0.1, path.gamma - path.rho, path.time / rate)
        close(step, 2.0 * needed, rel=0.02)


class TestTrainedRuns:
    def test_a_resumed_run_equals_an_uninterrupted_run(self, tmp_path, monkeypatch):
        monkeypatch.setattr(training_runs, "_finished", {})
        whole = trained(SETTING, 0, 0)
        training_runs._finished.clear()
        calls, gradient = SimpleNamespace(left=5), EmpiricalRisk.gradient

        def interrupted(*arguments):
            calls.left -= 1
            if calls.left == 0:
                raise KeyboardInterrupt
            return gradient(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(EmpiricalRisk, "gradient", interrupted)
            with pytest.raises(KeyboardInterrupt):
                trained(SETTING, 0, 0, scratch=tmp_path)
        assert list(tmp_path.iterdir())
        resumed = trained(SETTING, 0, 0, scratch=tmp_path)
        assert np.array_equal(resumed.A, whole.A)
        assert np.array_equal(resumed.history.test_error, whole.history.test_error)
        assert np.array_equal(resumed.control, whole.control)

    def test_control_starts_at_the_test_error_and_runs_differ(self, monkeypatch):
        monkeypatch.setattr(training_runs, "_finished", {})
        first, second = trained(SETTING, 0, 0), trained(SETTING, 0, 1)
        assert first.control[0] == first.history.test_error[0]
        assert trained(SETTING, 0, 0) is first
        assert not np.array_equal(first.A, second.A)
        assert not np.array_equal(first.w_star, second.w_star)

    def test_records_equal_those_of_training_at_every_step(self, monkeypatch):
        monkeypatch.setattr(training_runs, "_finished", {})
        run = trained(SETTING, 0, 0)
        step = run.history.step
        assert step.tolist() == training_runs.record_steps(SETTING.steps, SETTING.records).tolist()
        assert run.association.shape == run.gap.shape == (SETTING.steps + 1,)
        np.testing.assert_array_equal(run.association[step], run.history.association)
        np.testing.assert_array_equal(run.gap[step], run.history.gap)
        held_out = HeldOut(SMALL, SETTING.tested, seed_at(0, SMALL.D, 0, training_runs.HELD_OUT))
        fresh = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(SMALL.D, 0)))
        w = random_feature(SMALL, fresh)
        X, y = sample(SMALL, SETTING.N, fresh, None, w, dtype=np.float32)
        path = train(
            SMALL, X, y, learning_rate=SETTING.rate_v, learning_rate_A=SETTING.rate_A,
            steps=SETTING.steps, rng=fresh, w_star=w, held_out=held_out,
            record=range(SETTING.steps + 1), threads=1,
        ).history  # fmt: skip
        np.testing.assert_array_equal(path.test_error[step], run.history.test_error)
        fallen = path.test_error <= 0.5 - 0.9 * (0.5 - path.test_error[-1])
        at = int(run.learned)
        assert fallen[at]
        assert at == 0 or not fallen[at - 1]  # it is a step at which the fall gets there

    def test_record_steps_are_dense_at_first_and_include_the_last(self):
        result = training_runs.record_steps(600, 41)
        assert result[:21].tolist() == list(range(21))
        assert result[-1] == 600
        assert 38 <= result.size <= 42
        assert training_runs.record_steps(3, 41).tolist() == [0, 1, 2, 3]

    def test_window(self):
        def result(*values):
            return tuple(training_runs.window(np.array(values, dtype=bool)))

        assert result(0, 1, 1, 1) == (1.0, math.inf, 1.0)
        assert result(0, 1, 1, 0, 1, 0) == (1.0, 3.0, 0.6)
        first, lost, share = result(0, 0)
        assert math.isnan(first)
        assert math.isnan(lost)
        assert share == 0.0

    def test_first_below_is_exact(self):
        values = np.array([5.0, 4.0, 3.5, 3.0, 2.0, 1.0, 0.5])
        step = np.array([0, 6])
        for expected, value in enumerate(values):
            for level in (value, value + 0.1):
                result = training_runs.first_below(step, values[step], level, lambda s: values[s])
                assert result == expected
        assert math.isnan(training_runs.first_below(step, values[step], 0.1, lambda s: values[s]))


class TestSampleSizes:
    def test_training_in_pieces_equals_one_run(self):
        problem = SMALL.replace(d=None)
        key = np.random.SeedSequence(0, spawn_key=(problem.D, 300, 1))
        rng = np.random.default_rng(key)
        A, v = initial_weights(problem, rng)
        X, y = sample(problem, 300, rng, dtype=np.float32)
        whole = train(
            problem, X, y, learning_rate=0.3, learning_rate_A=0.5, steps=250, initial=(A, v),
            record=range(251),
        ).history.association  # fmt: skip
        result = sample_sizes.train_until(problem, 300, 0.3, 0.5, 250, 0, 1, lambda progress: False)
        assert result == training_runs.window(whole == 1.0)
        assert 50 < result.lost < 250  # in a later piece than the first

    @pytest.mark.slow
    def test_samples_needed_suffice_and_fewer_do_not(self):
        problem = training_runs.SMALL.replace(D=16, q=0.5)
        N = sample_sizes.samples_needed(problem, 0, 0)
        tried = [round(32 * math.sqrt(2.0) ** k) for k in range(20)]
        assert N in tried
        for size in (single for single in tried if single <= N):
            result = sample_sizes.train_until(
                problem, size, 0.3, 32.0, 300, 0, 0, lambda progress: False
            )
            assert math.isfinite(result.first) == (size == N)

    def test_exponents_of_a_constructed_scan(self):
        loss = sample_sizes.AssociationLoss(SMALL, 0.3, 8.0, (100, 200, 400), 10_000, 5)
        need = sample_sizes.SampleNeed((16, 32), 8.0, 5)
        noise = np.random.default_rng(0).uniform(0.9, 1.1, (3, 5))
        lost = 3.0 * np.array(loss.sizes)[:, None] ** 0.5 * noise
        needed = np.array([[100.0] * 5, [400.0] * 4 + [math.inf]])
        scan = sample_sizes.Scan(loss, need, lost / 2, lost, needed)
        power, low, high = scan.loss_exponent
        assert low < 0.5 < high
        assert low < power < high
        assert scan.need_exponent[0] > 2.0  # the infinite one counts as the largest tried
        lost[0, :3] = math.nan  # never associated: no step at which it is lost
        assert scan._replace(lost=lost).loss_exponent[0] == pytest.approx(0.5, abs=0.15)
        lost[:2] = math.nan
        assert math.isnan(scan._replace(lost=lost).loss_exponent[0])

    def test_scan_is_stored_and_reuses_given_windows(self, tmp_path, monkeypatch):
        scans = (
            sample_sizes.AssociationLoss(SMALL, 0.3, 8.0, (100, 200), 60, 1),
            sample_sizes.SampleNeed((16,), 8.0, 1),
        )
        windows = {200: [training_runs.Window(7.0, math.inf, 1.0)]}
        progress = []
        context = Context(quick=True, progress=progress.append, scratch=tmp_path)
        first = sample_sizes.scan(scans, context, windows)
        assert first.first[1, 0] == 7.0
        assert math.isinf(first.lost[1, 0])
        assert first.timed[1, 0] == 60
        close(progress[-1], 1.0, rel=1e-12)
        monkeypatch.setattr(sample_sizes, "train_until", None)  # nothing is computed again
        again = sample_sizes.scan(scans, context, windows)
        np.testing.assert_array_equal(again.lost, first.lost)
        np.testing.assert_array_equal(again.needed, first.needed)


class TestStarts:
    def test_random_starts_have_the_size_of_the_paper(self):
        problem = initialization_runs.problem_of(64)
        off = ~np.eye(64, dtype=bool)
        expected = problem.beta / 8.0
        for start in (Start(scale=1.0), Start(initialization_runs.ENCODINGS)):
            A = initialization_runs.scores(problem, start, np.random.default_rng(0))
            close(A[off].std(), expected, rel=0.1)
            assert np.all(np.diag(A) == problem.beta)
        P = initialization_runs.scores(
            problem, Start(initialization_runs.IDENTITY, trains_P=True), np.random.default_rng(0)
        )
        within(P.T @ P, problem.beta * np.eye(64), 1e-15)
        assert np.all(
            initialization_runs.scores(problem, Start(), np.random.default_rng(0))[off] == 0.0
        )

    def test_descent_from_zero_on_the_population_is_the_idealized_process(self):
        problem = training_runs.SMALL.replace(D=8, C=2, q=2 / 8)
        result = initialization_runs.descend_from(problem, Start(), 15, 0, 0)
        path = idealized(problem, initialization_runs.RATE, initialization_runs.RATE_A * 8, 15)
        gap = path.gamma - path.rho
        within(result.gap, gap, 1e-8)
        assert gap[-1] > 0.1

    def test_runs_of_a_number_have_the_same_samples(self, monkeypatch):
        samples = []

        def sampled(*arguments, **options):
            samples.append(sample(*arguments, **options)[0])
            return samples[-1], np.ones(len(samples[-1]), np.float32)

        monkeypatch.setattr(initialization_runs, "sample", sampled)
        problem = initialization_runs.problem_of(16)
        for start in (
            Start(),
            Start(scale=1.0),
            Start(initialization_runs.ENCODINGS, trains_P=True),
        ):
            initialization_runs.train_from(problem, start, 2, 0, 3)
        assert np.array_equal(samples[0], samples[1])
        assert np.array_equal(samples[0], samples[2])
