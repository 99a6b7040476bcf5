"""Training on (E): descent steps, records, statuses, checkpoints and gradient flow."""

import os

import numpy as np
import pytest

from dynamics import Interrupted, ParameterError, Problem, Status
from dynamics.core.files import FileError
from dynamics.positional.samples import (
    HeldOut,
    TrainingInterrupted,
    empirical_gradient,
    initial_weights,
    patch_association,
    sample,
    set_of,
    train,
    train_by_flow,
)
from tests.closeness import close, within

PROBLEM = Problem(D=8, C=2, q=0.3, p=3, nu=0.1, d=6, output_scale=1.0)
X, Y = sample(PROBLEM, 400, np.random.default_rng(0))


def run(steps=60, seed=3, **options):
    options = {"learning_rate": 0.3, "rng": np.random.default_rng(seed)} | options
    return train(PROBLEM, X, Y, steps=steps, **options)


def assert_same(result, expected):
    np.testing.assert_array_equal(result.A, expected.A)
    np.testing.assert_array_equal(result.v, expected.v)
    assert (result.status, result.message) == (expected.status, expected.message)
    for name, column in vars(result.history).items():
        np.testing.assert_array_equal(column, getattr(expected.history, name))


class TestDescent:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"momentum": 0.9},
            {"learning_rate_A": 20.0},
            {"learning_rate_v": 0.7, "trainable": "v"},
            {"learning_rate_A": 20.0, "trainable": "A", "momentum": 0.5},
        ],
    )
    def test_result_equals_a_plain_loop(self, options):
        A, v = initial_weights(PROBLEM, np.random.default_rng(1), omega=0.3)
        result = run(20, initial=(A, v), rng=None, **options)
        rate_A, rate_v = (options.get(f"learning_rate_{name}", 0.3) for name in "Av")
        push_A, push_v, momentum = 0.0, 0.0, options.get("momentum", 0.0)
        start = A.copy(), v.copy()
        for _ in range(20):
            _, dA, dv = empirical_gradient(PROBLEM, X, Y, A, v)
            push_A, push_v = momentum * push_A - rate_A * dA, momentum * push_v - rate_v * dv
            A = A + push_A * (options.get("trainable") != "v")
            v = v + push_v * (options.get("trainable") != "A")
        np.testing.assert_allclose(result.A, A, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(result.v, v, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(np.diag(result.A), np.diag(start[0]))
        assert np.abs(result.v - start[1]).max() > 0 or options["trainable"] == "A"

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("momentum", [0.0, 0.9])
    @pytest.mark.parametrize(("rate", "samples"), [(0.3, 60), (2.0, 60), (40.0, 60), (1e200, 5)])
    def test_records_do_not_change_the_run(self, dtype, momentum, rate, samples):
        """Steps in v between two records are one call of a kernel."""
        data, labels = sample(PROBLEM, samples, np.random.default_rng(1), dtype=dtype)

        def last(record):
            return train(
                PROBLEM,
                data,
                labels,
                learning_rate=rate,
                steps=40,
                momentum=momentum,
                rng=np.random.default_rng(2),
                omega=0.3,
                trainable="v",
                record=record,
            )

        every, few = last(range(41)), last([7])
        np.testing.assert_array_equal(every.v, few.v)
        assert (every.status, every.message, every.stats) == (few.status, few.message, few.stats)
        assert (every.stats["steps"] < 40) == (rate >= 40.0)
        common = np.isin(every.history.step, few.history.step)
        np.testing.assert_array_equal(every.history.loss[common], few.history.loss)

    def test_initial_weights_and_records(self):
        w = -np.eye(6)[2]
        A, v = initial_weights(PROBLEM, np.random.default_rng(3), omega=1e-2)
        np.testing.assert_array_equal(np.diag(A), 1.0)
        close(np.std(A[~np.eye(8, dtype=bool)]), 1e-2, rel=0.3)
        sets = np.arange(8)[::-1].reshape(4, 2)
        held_out = HeldOut(PROBLEM, 500, 2, sets)
        result = run(
            30,
            omega=1e-2,
            record=[4, 7, 99],
            keep_states=True,
            w_star=w,
            partition=sets,
            held_out=held_out,
        )
        history = result.history
        np.testing.assert_array_equal(history.step, [0, 4, 7, 30])
        close(history.time, 0.3 * history.step, rel=1e-12)
        np.testing.assert_array_equal(history.A[0], A)
        np.testing.assert_array_equal(history.v[0], v)
        np.testing.assert_array_equal(history.v[-1], result.v)
        for k, (A, v) in enumerate(zip(history.A, history.v)):
            assert history.loss[k] == empirical_gradient(PROBLEM, X, Y, A, v).loss
            close(history.alpha[k], v @ w, rel=1e-12)
            close(history.cosine[k], v @ w / np.linalg.norm(v), rel=1e-12)
            close(history.across[k], np.linalg.norm(v - (v @ w) * w), rel=1e-12)
            assert history.association[k] == patch_association(A, set_of(PROBLEM, sets))
            error = held_out.error(A, v, w)
            assert (history.test_error[k], history.disagreement[k]) == (error[0], error[2])
        data = result.to_dataset()
        assert data.attrs["status"] == "completed"
        np.testing.assert_array_equal(data["loss"], history.loss)

    def test_linear_and_log_schedules(self):
        assert run(100, record="linear", records=5).history.step.tolist() == [0, 25, 50, 75, 100]
        log = run(100, record="log", records=5).history.step
        assert log.tolist() == [0, 1, 3, 10, 32, 100]

    def test_scale_D_with_one_rate_is_scale_1_with_two_rates(self):
        # kappa = D with one rate eta equals kappa = 1 with v-rate D^2 eta and v D times larger.
        A, v = initial_weights(PROBLEM, np.random.default_rng(1), omega=0.1)
        problem = PROBLEM.replace(output_scale=8.0)
        scaled = train(problem, X, Y, learning_rate=1e-2, steps=40, initial=(A, v / 8))
        plain = train(
            PROBLEM, X, Y, learning_rate=1e-2, learning_rate_v=0.64, steps=40, initial=(A, v)
        )
        close(scaled.A, plain.A, rel=1e-11)
        np.testing.assert_allclose(8 * scaled.v, plain.v, rtol=1e-11, atol=1e-14)

    def test_patch_association_is_learned(self):
        problem = Problem(D=16, C=4, q=0.5, d=16, p=3, nu=0.1, beta=1.0, output_scale=1.0)
        rng = np.random.default_rng(0)
        data = sample(problem, 3000, rng, dtype=np.float32)
        held_out = HeldOut(problem, 20_000)
        result = train(
            problem,
            *data,
            learning_rate=0.3,
            learning_rate_A=32.0,
            steps=100,
            rng=rng,
            held_out=held_out,
            record=[0, 50],
        )
        assert result.status is Status.COMPLETED
        assert result.history.association[0] < 0.2
        assert result.history.association[-1] == 1.0
        before = initial_weights(problem, np.random.default_rng(1))[0]
        control = held_out.error(before, result.v).error
        assert result.history.test_error[-1] < 0.6 * control


class TestStatus:
    def test_divergence_and_instability_are_statuses(self):
        diverged = run(200, learning_rate=1e4)
        assert diverged.status is Status.DIVERGED
        assert "at step" in diverged.message
        assert np.isfinite(diverged.history.loss).all()
        unstable = run(100, learning_rate=15.0)
        assert unstable.status is Status.UNSTABLE
        for result, where in ((diverged, "at the start"), (unstable, "at the end")):
            assert f"{where} the largest stable learning_rate is " in result.message
        assert unstable.stats["rise"] > 0.1
        A, v = initial_weights(PROBLEM, np.random.default_rng(0))
        assert run(5, initial=(A, v * 1e120)).status is Status.OVERFLOW
        assert run(60).status is Status.COMPLETED

    def test_progress_and_interrupt(self, monkeypatch):
        fractions = []
        monkeypatch.setattr("dynamics.positional.samples.training._SECONDS_BETWEEN_REPORTS", 0.0)
        run(20, progress=fractions.append)
        assert fractions[-1] == 1.0
        assert np.all(np.diff(fractions) >= 0)

        def interrupt(fraction):
            if fraction >= 0.5:
                raise KeyboardInterrupt

        with pytest.raises(TrainingInterrupted) as stop:
            run(20, progress=interrupt, record="linear")
        assert isinstance(stop.value, Interrupted)
        result = stop.value.result
        assert result.status is Status.INTERRUPTED
        assert stop.value.trajectory is result
        assert result.history.step[-1] == 9
        np.testing.assert_array_equal(result.v, run(10).v)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("learning_rate", 0.0),
            ("learning_rate", np.nan),
            ("learning_rate_A", -1.0),
            ("learning_rate_v", np.inf),
            ("steps", 0),
            ("steps", 2.5),
            ("momentum", 1.0),
            ("omega", -1.0),
            ("trainable", "w"),
            ("record", "sometimes"),
            ("record", [-1]),
            ("records", 1),
            ("rng", None),
            ("initial", (np.eye(3), np.ones(6))),
            ("partition", [[0]]),
            ("w_star", np.ones(6)),
            ("threads", 0),
            ("held_out", HeldOut(PROBLEM.replace(q=0.5), 10)),
        ],
    )
    def test_invalid_arguments_raise(self, name, value):
        expected = {"initial": "A.shape"}.get(name, name)
        with pytest.raises(ParameterError, match=expected) as error:
            run(**({"steps": 5} | {name: value}))
        assert "\n" not in str(error.value)


class TestCheckpoint:
    options = dict(  # noqa: RUF012
        steps=60, momentum=0.5, keep_states=True, held_out=HeldOut(PROBLEM, 300), record="linear"
    )

    def interrupted(self, path, step, **options):
        """Interrupt a run at a step."""

        def stop(fraction):
            if fraction >= step / 60:
                raise KeyboardInterrupt

        with pytest.raises(TrainingInterrupted):
            run(**(self.options | options), checkpoint=path, progress=stop)

    @pytest.mark.parametrize("trainable", ["both", "A", "v"])
    @pytest.mark.parametrize("step", [1, 37])
    def test_resumed_run_equals_uninterrupted_run(self, tmp_path, monkeypatch, trainable, step):
        monkeypatch.setattr("dynamics.positional.samples.training._SECONDS_BETWEEN_REPORTS", 0.0)
        path = tmp_path / "run.npz"
        whole = run(**self.options, trainable=trainable)
        self.interrupted(path, step, trainable=trainable)
        resumed = run(**self.options, trainable=trainable, checkpoint=path, resume=True)
        assert_same(resumed, whole)
        assert resumed.stats["evaluations"] == 61 - step
        again = run(**self.options, trainable=trainable, checkpoint=path, resume=True)
        assert_same(again, whole)
        assert again.stats["evaluations"] == 0
        assert os.listdir(tmp_path) == ["run.npz"]

    def test_resume_from_an_intermediate_checkpoint(self, tmp_path, monkeypatch):
        # A killed process leaves the last checkpoint that was written.
        monkeypatch.setattr("dynamics.positional.samples.training._SECONDS_BETWEEN_REPORTS", 0.0)
        path, checkpoints = tmp_path / "run.npz", []

        def store(fraction):
            if path.exists():
                checkpoints.append(path.read_bytes())

        whole = run(**self.options, checkpoint=path, checkpoint_seconds=0.0, progress=store)
        path.write_bytes(checkpoints[20])
        resumed = run(**self.options, checkpoint=path, resume=True)
        assert_same(resumed, whole)
        assert 10 < resumed.stats["evaluations"] < 50

    def test_missing_file_is_created_and_old_file_overwritten(self, tmp_path):
        path = tmp_path / "new" / "run.npz"
        first = run(**self.options, checkpoint=path, resume=True)
        assert path.exists()
        assert_same(run(**self.options, checkpoint=path), first)

    def test_diverged_run_is_stored(self, tmp_path):
        path = tmp_path / "run.npz"
        first = run(200, learning_rate=1e4, checkpoint=path)
        assert_same(run(200, learning_rate=1e4, checkpoint=path, resume=True), first)

    @pytest.mark.parametrize("seed", range(12))
    def test_damaged_file_raises_or_gives_the_same_result(self, tmp_path, seed):
        path = tmp_path / "run.npz"
        whole = run(**self.options, checkpoint=path)
        content, rng = bytearray(path.read_bytes()), np.random.default_rng(seed)
        if seed % 3 == 0:
            content = content[: rng.integers(0, len(content))]
        elif seed % 3 == 1:
            content[rng.integers(0, len(content))] ^= 1 << int(rng.integers(0, 8))
        else:
            content = rng.bytes(500)
        path.write_bytes(bytes(content))
        try:
            again = run(**self.options, checkpoint=path, resume=True)
        except ParameterError as error:
            message = str(error)
        else:
            message = "damaged"
            assert seed % 3 == 1  # for example a flipped bit of a date in the archive
            assert_same(again, whole)
        assert "damaged" in message
        assert "\n" not in message

    @pytest.mark.parametrize(
        "change",
        [
            {"learning_rate": 0.2},
            {"steps": 61},
            {"seed": 4},
            {"momentum": 0.4},
            {"held_out": None},
            {"record": [3]},
            {"w_star": np.eye(6)[1]},
            {"partition": np.arange(8).reshape(2, 4).T},
        ],
    )
    def test_checkpoint_of_another_run_raises(self, tmp_path, change):
        path = tmp_path / "run.npz"
        run(**self.options, checkpoint=path)
        with pytest.raises(ParameterError, match="another run"):
            run(**(self.options | change), checkpoint=path, resume=True)

    def test_pickled_object_is_not_loaded(self, tmp_path):
        path = tmp_path / "run.npz"
        np.savez(path, mark=np.array({"a": 1}, dtype=object))
        with pytest.raises(ParameterError, match="damaged"):
            run(**self.options, checkpoint=path, resume=True)

    def test_unwritable_path_raises(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(FileError, match="cannot write"):
            run(5, checkpoint=tmp_path / "file" / "run.npz")


class TestFlow:
    def test_descent_converges_to_the_flow(self):
        A, v = initial_weights(PROBLEM, np.random.default_rng(1), omega=0.1)
        flow = train_by_flow(
            PROBLEM,
            X,
            Y,
            horizon=8.0,
            initial=(A, v),
            rtol=1e-8,
            atol=1e-10,
            keep_states=True,
            held_out=HeldOut(PROBLEM, 500),
        )
        assert flow.status is Status.COMPLETED
        assert flow.history.time[-1] == 8.0
        np.testing.assert_array_equal(flow.history.A[0], A)
        errors = []
        for steps in (100, 200, 400):
            descent = run(steps, learning_rate=8.0 / steps, initial=(A, v))
            errors.append(np.abs(descent.v - flow.v).max() + np.abs(descent.A - flow.A).max())
        ratios = np.array(errors[:-1]) / errors[1:]
        within(ratios, 2.0, 0.1)  # first order in the learning rate
        assert flow.to_dataset().attrs["solver"] == "flow"

    def test_invalid_arguments_overflow_and_interrupt(self):
        with pytest.raises(ParameterError, match="horizon"):
            train_by_flow(PROBLEM, X, Y, horizon=0.0, rng=np.random.default_rng(0))
        big = Problem(D=64, C=2, q=0.1, d=4)
        data = sample(big, 3, np.random.default_rng(0))
        with pytest.raises(ParameterError, match="at most 2000 for a flow"):
            train_by_flow(big, *data, horizon=1.0, rng=np.random.default_rng(0))
        A, v = initial_weights(PROBLEM, np.random.default_rng(0))
        overflow = train_by_flow(PROBLEM, X, Y, horizon=1.0, initial=(A, 1e120 * v))
        assert overflow.status is Status.OVERFLOW

        def stop(fraction):
            if fraction > 0.3:
                raise KeyboardInterrupt

        with pytest.raises(TrainingInterrupted) as interrupt:
            train_by_flow(PROBLEM, X, Y, horizon=50.0, rng=np.random.default_rng(0), progress=stop)
        assert interrupt.value.result.status is Status.INTERRUPTED
        assert 0 < interrupt.value.result.history.time[-1] < 50.0
