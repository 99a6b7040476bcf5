"""SGD on noisy tokens, compared with the oracle and with SGD on counts; sparsification."""

import numpy as np
import pytest

from dynamics import ParameterError, Status
from dynamics.shallow import ShallowProblem, oracle, train_on_counts
from dynamics.shallow.tokens import _Distinct, draw_tokens, sparsified, train_on_tokens
from tests.closeness import within
from tests.dynamics.shallow.cases import random_start, reduced

PROBLEM = ShallowProblem(M=4, L=10, alpha_relevant=0.4, alpha_confusion=0.1, neurons=16)


def start_and_tokens(noise, N=8, problem=PROBLEM, d=6):
    """Return random weights, patterns (d, M) and N samples."""
    rng = np.random.default_rng(0)
    weights, patterns = random_start(rng, problem.M, d, problem.neurons)
    return weights, patterns, draw_tokens(problem, N, rng, patterns=patterns, noise=noise)


@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("queried", [None, 4])
def test_steps_equal_the_oracle(attention, queried):
    weights, _, tokens = start_and_tokens(0.5, problem=PROBLEM.replace(queried=queried))
    batches = np.random.default_rng(1).integers(0, 8, (60, 3))
    rates = 0.3, 0.6
    end = train_on_tokens(
        tokens,
        **vars(weights),
        steps=60,
        learning_rate=rates[0],
        learning_rate_KQ=rates[1],
        batches=batches,
        attention=attention,
    )
    data = [(X.T, y, np.flatnonzero(S)) for X, y, S in zip(tokens.X, tokens.labels, tokens.queried)]
    start = weights
    for batch in batches:
        weights = oracle.step(weights, [data[n] for n in batch], rates, attention=attention)
    for name in ("W_O", "W_V", "W_K", "W_Q"):
        within(getattr(end, name), getattr(weights, name), 1e-12)
    assert np.abs(weights.W_O - start.W_O).max() > 0.1
    F = [oracle.forward(weights, X, S, attention)[0] for X, _, S in data]
    within(end.F, F, 1e-12)


def test_training_without_noise_equals_training_on_counts():
    weights, patterns, tokens = start_and_tokens(0.0)
    counts = np.array([np.bincount(row, minlength=4) for row in tokens.pattern])
    options = dict(steps=80, learning_rate=0.3, learning_rate_KQ=0.5, records=[40])
    end = train_on_tokens(tokens, **vars(weights), **options, test=tokens)
    on_counts = train_on_counts(
        counts,
        tokens.labels,
        **reduced(weights, patterns),
        **options,
        test=(counts, tokens.labels),
    )
    within(end.F, on_counts.F, 1e-11)
    for column, expected in zip(end.history, on_counts.history):
        within(column, expected, 1e-12)


def test_identical_tokens_are_merged():
    """Tokens without noise are merged; negligible noise, with which none is, changes nothing."""
    norms = np.random.default_rng(4).uniform(0.0, 2.0, (8, 10))
    norms[:, :6] = 0.0
    weights, _, tokens = start_and_tokens(norms, problem=PROBLEM.replace(queried=6))
    tokens.X[:, 3] += 0.1  # no longer the vector of its pattern
    apart = tokens._replace(noise=np.maximum(norms, 1e-300))
    assert _Distinct.of(tokens).X.shape[1] < _Distinct.of(apart).X.shape[1] == 10
    ends = [
        train_on_tokens(x, **vars(weights), steps=40, attention=attention, test=tokens)
        for attention in (True, False)
        for x in (tokens, apart)
    ]
    for merged, expected in (ends[:2], ends[2:]):
        within(merged.F, expected.F, 1e-12)
        within(merged.W_K, expected.W_K, 1e-12)
        for column, values in zip(merged.history, expected.history):
            within(column, values, 1e-12)


def test_training_ends_at_the_first_record_below_a_level():
    weights, patterns, tokens = start_and_tokens(0.0)
    options = dict(learning_rate=0.01, learning_rate_KQ=0.02, records=range(0, 81, 10))
    hinge = train_on_tokens(tokens, **vars(weights), steps=80, **options).history.hinge
    level = hinge[4:6].mean()
    assert hinge[4] > level > hinge[5]
    end = train_on_tokens(tokens, **vars(weights), steps=80, **options, until=level)
    assert end.history.step.tolist() == [0, 10, 20, 30, 40, 50]
    short = train_on_tokens(tokens, **vars(weights), steps=50, **options | dict(records=()))
    assert np.array_equal(end.W_O, short.W_O)
    counts = np.array([np.bincount(row, minlength=4) for row in tokens.pattern])
    on_counts = train_on_counts(
        counts, tokens.labels, **reduced(weights, patterns), steps=80, **options, until=level
    )
    assert on_counts.history.step.tolist() == [0, 10, 20, 30, 40, 50]
    within(on_counts.F, end.F, 1e-11)


def test_noise_has_the_given_norm():
    norms = np.random.default_rng(2).uniform(0.0, 2.0, (8, 10))
    _, patterns, tokens = start_and_tokens(norms)
    noise = tokens.X - patterns.T[tokens.pattern]
    within(np.linalg.norm(noise, axis=2), norms, 1e-14)
    assert tokens.relevant.sum(axis=1).tolist() == [4] * 8


class TestSparsification:
    def test_removed_tokens(self):
        rng = np.random.default_rng(3)
        _, _, tokens = start_and_tokens(rng.uniform(0.0, 2.0, (8, 10)))
        sparse = sparsified(tokens, 3, "irrelevant", rng)
        assert sparse.X.shape == (8, 7, 6)
        assert np.all(sparse.relevant.sum(axis=1) == 4)
        assert np.all((sparse.pattern >= 2).sum(axis=1) == 2)
        sparse = sparsified(tokens, 2, "relevant", rng)
        assert np.all(sparse.relevant.sum(axis=1) == 2)
        sparse = sparsified(tokens, 4, "noisiest", rng)
        assert np.array_equal(np.sort(sparse.noise), np.sort(tokens.noise)[:, :6])
        sparse = sparsified(tokens, 4, "random", rng)
        assert sparse.pattern.shape == (8, 6)

    @pytest.mark.parametrize(
        ("number", "which", "message"),
        [
            (6, "irrelevant", "at most 5, the irrelevant tokens"),
            (5, "relevant", "at most 4"),
            (10, "random", "number = 10"),
            (1, "all", "which = 'all'"),
            (-1, "random", "number = -1"),
        ],
    )
    def test_invalid_arguments(self, number, which, message):
        tokens = start_and_tokens(0.0)[2]
        with pytest.raises(ParameterError, match=message):
            sparsified(tokens, number, which, np.random.default_rng(0))


class TestInvalidArguments:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (dict(patterns=np.ones((6, 4))), "orthonormal"),
            (dict(noise=-1.0), "noise"),
            (dict(noise=np.zeros(3)), "shape of noise"),
            (dict(N=0), "N = 0"),
        ],
    )
    def test_draw_tokens(self, changes, message):
        arguments = dict(N=8) | changes
        with pytest.raises(ParameterError, match=message):
            draw_tokens(PROBLEM, arguments.pop("N"), np.random.default_rng(0), **arguments)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (dict(learning_rate=-1.0), "learning_rate = -1"),
            (dict(learning_rate_KQ=-1.0), "learning_rate_KQ = -1"),
            (dict(W_V=np.ones((3, 3))), "shape of W_V"),
            (dict(W_O=np.zeros((16, 6))), "perturb the rows of W_O"),
            (dict(batches=[[9], [0]]), "indices from 0 to 7"),
            (dict(steps=0.5), "steps = 0.5"),
        ],
    )
    def test_train_on_tokens(self, changes, message):
        weights, _, tokens = start_and_tokens(0.0)
        with pytest.raises(ParameterError, match=message):
            train_on_tokens(tokens, **(vars(weights) | dict(steps=2) | changes))

    def test_divergence_is_reported(self):
        weights, _, tokens = start_and_tokens(0.0)
        end = train_on_tokens(tokens, **vars(weights), steps=50, learning_rate=1e200)
        assert end.status is Status.DIVERGED
