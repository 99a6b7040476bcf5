"""SGD on counts: reference values, comparison with the oracle, symmetries, invalid arguments."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import ParameterError, Status
from dynamics.shallow import oracle, train_on_counts
from tests.closeness import within
from tests.dynamics.shallow.cases import (
    COUNTS,
    LABELS,
    random_start,
    reduced,
    reference_start,
    tokens,
)

#: Loss, attention, F_0, A_00, H_00 and |H| by number of steps.
REFERENCE = {
    0: (0.9930276482, 0.4457348066, -0.0155203821, 1.1142799130, 0.1549961440, 1.3326914232),
    1: (0.9825943397, 0.4492431219, -0.0026144577, 1.1109354166, 0.1712896292, 1.3358757939),
    10: (0.8785322873, 0.5093300454, 0.1090128082, 1.2741284642, 0.3378776459, 1.4955863156),
    30: (0.1918102125, 0.7799062059, 0.6147957878, 2.7213697847, 1.3969788937, 3.7317968452),
}
#: Loss without attention by number of steps.
WITHOUT_ATTENTION = {0: 0.9928762708, 1: 0.9837419028, 10: 0.9147569728, 30: 0.7136374518}


class TestReferenceValues:
    @pytest.mark.parametrize("steps", REFERENCE)
    def test_with_attention(self, steps):
        end = train_on_counts(COUNTS, LABELS, **reference_start(), steps=steps)
        values = (
            end.hinge,
            end.attention,
            end.F[0],
            end.A[0, 0],
            end.H[0, 0],
            np.linalg.norm(end.H),
        )
        within(values, REFERENCE[steps], 1e-10)

    @pytest.mark.parametrize("steps", WITHOUT_ATTENTION)
    def test_without_attention(self, steps):
        end = train_on_counts(COUNTS, LABELS, **reference_start(), steps=steps, attention=False)
        within(end.hinge, WITHOUT_ATTENTION[steps], 1e-10)
        within(end.attention, 0.4, 1e-15)

    def test_history_has_the_values_of_shorter_runs(self):
        run = train_on_counts(
            COUNTS,
            LABELS,
            **reference_start(),
            steps=30,
            records=[1, 10],
            test=(COUNTS[:3], LABELS[:3]),
        )
        assert run.history.step.tolist() == [0, 1, 10, 30]
        within(run.history.hinge, [row[0] for row in REFERENCE.values()], 1e-10)
        within(run.history.attention, [row[1] for row in REFERENCE.values()], 1e-10)
        within(run.history.test_hinge[-1], np.maximum(0, 1 - run.F[:3]).mean(), 1e-15)
        assert run.history.test_error[-1] == 0.0


class TestOracle:
    @pytest.mark.parametrize("attention", [True, False])
    @pytest.mark.parametrize(("M", "d", "m", "L", "B"), [(5, 10, 40, 20, 4), (4, 7, 16, 12, 5)])
    def test_500_steps_equal_the_oracle(self, M, d, m, L, B, attention):
        rng = np.random.default_rng(M)
        weights, patterns = random_start(rng, M, d, m)
        N, steps = 12, 500
        labels = np.where(np.arange(N) % 2, 1, -1)
        counts = rng.multinomial(L - 2, np.full(M, 1.0 / M), N)
        counts[np.arange(N), (labels < 0).astype(int)] += 2
        queried = np.minimum(counts, rng.integers(0, 4, counts.shape))
        queried[:, 0] = np.maximum(queried[:, 0], (queried.sum(axis=1) == 0) & (counts[:, 0] > 0))
        queried[queried.sum(axis=1) == 0] = counts[queried.sum(axis=1) == 0]
        batches = rng.integers(0, N, (steps, B))
        rates = 0.05, 0.1
        end = train_on_counts(
            counts,
            labels,
            **reduced(weights, patterns),
            steps=steps,
            learning_rate=rates[0],
            learning_rate_KQ=rates[1],
            batches=batches,
            attention=attention,
            queried=queried,
        )
        data = []
        for row, query, y in zip(counts, queried, labels):
            first = np.cumsum(row) - row
            S = [first[i] + k for i in range(M) for k in range(query[i])]
            data.append((tokens(patterns, row), float(y), S))
        start = weights
        for batch in batches:
            weights = oracle.step(weights, [data[n] for n in batch], rates, attention=attention)
        tolerance = 1e-11
        within(end.H, weights.W_O @ weights.W_V @ patterns, tolerance)
        within(end.A, patterns.T @ weights.W_K.T @ weights.W_Q @ patterns, tolerance)
        within(end.W_O, weights.W_O, tolerance)
        within(end.F, [oracle.forward(weights, X, S, attention)[0] for X, _, S in data], tolerance)
        assert np.linalg.norm(weights.W_O - start.W_O) > 0.5  # the weights change
        assert not attention or (labels * end.F > 1.0).any()  # and the hinge acts

    def test_gradient_of_the_oracle_equals_difference_quotients(self):
        rng = np.random.default_rng(1)
        weights, patterns = random_start(rng, 4, 6, 5)
        X = tokens(patterns, [3, 1, 2, 1]) + 0.1 * rng.normal(size=(6, 7))
        S, width = [0, 3, 5], 1e-6
        _, gradient, p = oracle.forward(weights, X, S)
        within(p.sum(axis=0), np.ones(3), 1e-14)
        for name in ("W_O", "W_V", "W_K", "W_Q"):
            direction = rng.normal(size=getattr(weights, name).shape)
            values = []
            for sign in (1.0, -1.0):
                shifted = dict(vars(weights))
                shifted[name] = shifted[name] + sign * width * direction
                values.append(oracle.forward(oracle.FullWeights(**shifted), X, S)[0])
            slope = (values[0] - values[1]) / (2.0 * width)
            within(np.sum(getattr(gradient, name) * direction), slope, 1e-8)


class TestOptions:
    def test_weights_equal_repeated_samples(self):
        times = [3, 1, 2, 1, 4, 1]
        weighted = train_on_counts(COUNTS, LABELS, **reference_start(), steps=20, weights=times)
        repeated = train_on_counts(
            np.repeat(COUNTS, times, axis=0),
            np.repeat(LABELS, times),
            **reference_start(),
            steps=20,
        )
        within(weighted.H, repeated.H, 1e-13)
        within(weighted.hinge, repeated.hinge, 1e-13)

    def test_frozen_value_matrix_is_constant(self):
        end = train_on_counts(COUNTS, LABELS, **reference_start(), steps=5, train_value=False)
        assert np.array_equal(end.V, reference_start()["V"])
        assert not np.array_equal(end.W_O, reference_start()["W_O"])

    def test_arguments_are_not_modified(self):
        start = reference_start()
        train_on_counts(COUNTS, LABELS, **start, steps=5)
        assert all(np.array_equal(x, start[name]) for name, x in reference_start().items())

    def test_parallel_threads_return_the_same_results(self):
        def run(rate):
            return train_on_counts(
                COUNTS, LABELS, **reference_start(), steps=50, learning_rate=rate
            ).H

        rates = [0.05, 0.1, 0.15, 0.2]
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(run, rates))
        assert all(np.array_equal(result, run(rate)) for result, rate in zip(results, rates))


class TestSymmetry:
    @settings(max_examples=25)
    @given(st.permutations([2, 3, 4]), st.booleans(), st.integers(0, 2**20))
    def test_permutations_and_exchange(self, order, exchange, seed):
        """Irrelevant patterns permuted; discriminative ones exchanged with y -> -y, a -> -a."""
        order = [1, 0, *order] if exchange else [0, 1, *order]
        sign = -1 if exchange else 1
        start = reference_start()
        start["W_O"] = start["W_O"] + 0.1 * np.random.default_rng(seed).normal(size=(8, 5))
        end = train_on_counts(COUNTS, LABELS, **start, steps=20)
        for name in ("V", "K", "Q"):
            start[name] = start[name][:, order]
        start["a"] = sign * start["a"]
        other = train_on_counts(COUNTS[:, order], sign * LABELS, **start, steps=20)
        within(other.F, sign * end.F, 1e-11)
        within(other.A, end.A[np.ix_(order, order)], 1e-11)
        within(other.H, end.H[:, order], 1e-11)
        within(other.attention, end.attention, 1e-12)

    @settings(max_examples=15)
    @given(st.integers(0, 2**20))
    def test_attention_to_all_patterns_sums_to_one(self, seed):
        """Shifted logits have no effect; with equal columns of H the output has a closed form."""
        start = reference_start()
        shift = np.random.default_rng(seed).normal(size=5)
        original = train_on_counts(COUNTS, LABELS, **start, steps=0)
        start["K"] = np.vstack([start["K"], np.ones(5)])
        start["Q"] = np.vstack([start["Q"], shift])
        shifted = train_on_counts(COUNTS, LABELS, **start, steps=0)
        within(shifted.F, original.F, 1e-13)
        constant = np.zeros((8, 5)) + np.where(reference_start()["a"] > 0, 0.3, 0.1)[:, None]
        flat = train_on_counts(COUNTS, LABELS, **(start | dict(W_O=constant, V=np.eye(5))), steps=0)
        within(flat.F, 4 * (0.3 - 0.1) / np.sqrt(8), 1e-14)

    def test_large_logits_of_absent_keys_do_not_overflow(self):
        start = reference_start()
        start["K"] = start["K"].copy()
        start["K"][:, 4] *= 1e4
        end = train_on_counts([[4, 1, 2, 3, 0]], [1], **start, steps=0)
        assert np.isfinite(end.F).all()


class TestInvalidArguments:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (dict(counts=COUNTS[:, :2]), "M = 2 is not allowed"),
            (dict(counts=-COUNTS), "counts"),
            (dict(counts=COUNTS + 0.5), "whole numbers"),
            (dict(counts=COUNTS[:, 0]), "shape of counts"),
            (dict(counts="x"), "counts"),
            (dict(labels=2 * LABELS), "labels"),
            (dict(labels=LABELS[:3]), "shape of labels"),
            (dict(queried=COUNTS + np.eye(6, 5, dtype=int)), "at most the 4 there are"),
            (dict(queried=0 * COUNTS), "at least one token"),
            (dict(learning_rate=-0.1), "learning_rate = -0.1"),
            (dict(learning_rate_KQ=-1), "learning_rate_KQ = -1"),
            (dict(learning_rate=np.nan), "learning_rate = nan"),
            (dict(steps=-1), "steps = -1"),
            (dict(steps=2.5), "steps = 2.5"),
            (dict(batches=[[0, 6], [1, 2]]), "indices from 0 to 5"),
            (dict(batches=[[0, 1]]), "shape of batches"),
            (dict(weights=[-1, 1, 1, 1, 1, 1]), "weights"),
            (dict(weights=np.ones(6), batches=[[0], [1]]), "weights = given with batches"),
            (dict(W_O=np.ones((7, 5))), "shape of W_O"),
            (dict(V=np.full((5, 5), np.inf)), "finite"),
            (dict(Q=np.ones((4, 5))), "shape of Q"),
            (dict(W_O=np.zeros((8, 5))), "perturb the rows of W_O"),
            (dict(W_O=np.eye(8, 5), V=np.eye(5)), "at the kink of its ReLU"),
            (dict(records=[3]), "records = 3"),
            (dict(test=(COUNTS[:, :4], LABELS)), "patterns in test = 4"),
        ],
    )
    def test_message_has_one_line(self, changes, message):
        arguments = dict(counts=COUNTS, labels=LABELS, **reference_start(), steps=2) | changes
        with pytest.raises(ParameterError) as error:
            train_on_counts(arguments.pop("counts"), arguments.pop("labels"), **arguments)
        assert message in str(error.value)
        assert "\n" not in str(error.value)

    def test_divergence_is_reported(self):
        end = train_on_counts(COUNTS, LABELS, **reference_start(), steps=200, learning_rate=1e200)
        assert end.status is Status.DIVERGED
        assert end.history.step[-1] < 200
