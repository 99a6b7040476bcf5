"""Population descent in order parameters, compared with full matrices and the Gram form."""

from collections import Counter

import numpy as np
import pytest

from dynamics import ParameterError, Status, gradient_descent, gradient_flow
from dynamics.shallow import (
    ShallowPopulation,
    ShallowProblem,
    cells,
    oracle,
    sample,
    train_on_counts,
)
from dynamics.shallow.data import cell_number, representatives
from dynamics.shallow.trajectory import gram, gram_step
from tests.closeness import close, within
from tests.dynamics.shallow.cases import tokens

SMALL = ShallowProblem(
    M=4,
    L=6,
    alpha_relevant=0.5,
    alpha_confusion=1 / 6,
    neurons=16,
    xi=0.1,
    key_query=0.7,
    attention_rate=3.0,
)
PROBLEMS = {
    "plain": SMALL,
    "two blocks": SMALL.replace(overlap=0.4),
    "three patterns": SMALL.replace(M=3, neurons=12),
    "single background": SMALL.replace(background="single", M=6, neurons=24),
    "queried": SMALL.replace(queried=2),
    "frozen": SMALL.replace(attention="frozen", train_value=False),
    "none": SMALL.replace(attention="none"),
}


def full_weights(population, state):
    """Return the weights of all neurons, as arguments of `train_on_counts`."""
    _, V, K, Q = population.problem.matrices(state)
    W, a = population.problem.all_neurons(state)
    return dict(W_O=W, V=V, K=K, Q=Q, a=a)


@pytest.mark.parametrize("name", PROBLEMS)
def test_descent_equals_training_on_all_cells(name):
    problem = PROBLEMS[name]
    population, samples = ShallowPopulation(problem), cells(problem)
    rate, steps = 0.3, 40
    run = gradient_descent(population, learning_rate=rate, steps=steps)
    rate_KQ = rate * problem.attention_rate * (problem.attention == "trained")
    end = train_on_counts(
        samples.counts,
        samples.labels,
        **full_weights(population, problem.initial_state),
        steps=steps,
        learning_rate=rate,
        learning_rate_KQ=rate_KQ,
        weights=samples.probability,
        queried=samples.queried,
        attention=problem.attention != "none",
        train_value=problem.train_value,
    )
    final = full_weights(population, run.final)
    for key in ("W_O", "V", "K", "Q"):
        within(final[key], getattr(end, key), 1e-13)
    value = population.evaluate(run.final)
    within((value.loss, value.attention), (end.hinge, end.attention), 1e-13)
    assert np.abs(run.final - problem.initial_state).max() > 0.02
    assert value.loss < population.evaluate(problem.initial_state).loss


def test_step_equals_the_mean_step_of_the_oracle():
    """The expectation is the sum of gradients of the oracle over all cells."""
    problem = SMALL.replace(L=5, alpha_relevant=0.4, alpha_confusion=0.2, overlap=0.5)
    population, samples = ShallowPopulation(problem), cells(problem)
    start = full_weights(population, problem.initial_state)
    weights = oracle.FullWeights(start["W_O"], start["V"], start["K"], start["Q"], start["a"])
    names = {"W_O": "W_O", "W_V": "V", "W_K": "K", "W_Q": "Q"}
    total = {name: np.zeros_like(getattr(weights, name)) for name in names}
    for counts, y, probability in zip(samples.counts, samples.labels, samples.probability):
        F, gradient, _ = oracle.forward(weights, tokens(np.eye(4), counts), range(5))
        assert y * F < 1.0
        for name in names:
            total[name] += probability * y * getattr(gradient, name)
    rate = 0.1
    after = full_weights(
        population,
        problem.initial_state - rate * population.gradient(problem.initial_state),
    )
    for name, reduced_name in names.items():
        factor = rate * (problem.attention_rate if name in ("W_K", "W_Q") else 1.0)
        within(after[reduced_name], getattr(weights, name) + factor * total[name], 1e-15)


class TestGramForm:
    @pytest.mark.parametrize("name", ["plain", "two blocks"])
    def test_steps_equal_descent_of_the_order_parameters(self, name):
        problem = PROBLEMS[name]
        population, layout = ShallowPopulation(problem), problem.layout
        state, rate, M = problem.initial_state, 0.3, problem.M
        keys, values = self.grams(population, state)
        for _ in range(60):
            D, G = population.descent(state)
            zero = np.zeros((problem.layout.K.shape[0], M))
            mean_D, mean_G, _, _ = layout.unpack(layout.pack(D, G, zero, zero))
            mean_D = np.repeat(mean_D, problem.neurons // (2 * M), axis=0)
            keys = gram_step(keys, mean_G, rate * problem.attention_rate)
            values = gram_step(values, mean_D, rate)
            state = state - rate * population.gradient(state)
        for matrix, gamma in zip((keys, values), self.grams(population, state)):
            within(matrix, gamma, 60 * 5e-15 * np.abs(gamma).max())

    @staticmethod
    def grams(population, state):
        _, V, K, Q = population.problem.matrices(state)
        W, _ = population.problem.all_neurons(state)
        return gram(K, Q), gram(W.T, V)

    def test_steps_do_not_depend_on_the_width(self):
        """Both factors of the pair have the same learning rate."""
        rng = np.random.default_rng(0)
        K, Q = rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
        gamma = gram(K, Q)
        for _ in range(200):
            G = rng.normal(size=(4, 3))
            K, Q = K + 0.01 * Q @ G.T, Q + 0.01 * K @ G
            gamma = gram_step(gamma, G, 0.01)
        within(gamma, gram(K, Q), 200 * 5e-15 * np.abs(gamma).max())


class TestConserved:
    def test_drift_is_of_first_order_in_the_rate(self):
        population, start = ShallowPopulation(SMALL), SMALL.initial_state
        names = population.order_parameters
        start[names.index("K_11")] += 0.2  # for K = Q some drifts are of higher order
        start[names.index("Q_1k")] += 0.1
        drifts = []
        for rate, steps in ((0.0125, 640), (0.00625, 1280)):
            run = gradient_descent(
                population, learning_rate=rate, steps=steps, initial=start, records=2
            )
            conserved = run.conserved()
            drifts.append(conserved[-1] - conserved[0])
        assert np.abs(drifts[0]).min() > 1e-7
        within(drifts[0] / drifts[1], np.full(4, 2.0), 0.1)

    def test_flow_conserves_them(self):
        run = gradient_flow(ShallowPopulation(SMALL), horizon=0.5)
        assert run.status is Status.COMPLETED
        conserved = run.conserved()
        within(conserved, np.broadcast_to(conserved[0], conserved.shape), 1e-8)
        assert np.abs(run.final - SMALL.initial_state).max() > 0.01


def test_descent_tends_to_the_flow():
    population = ShallowPopulation(SMALL)
    exact = gradient_flow(population, horizon=0.5).final
    errors = []
    for steps in (25, 50, 100):
        run = gradient_descent(population, learning_rate=0.5 / steps, steps=steps)
        errors.append(np.abs(run.final - exact).max())
    within(np.array(errors[:-1]) / np.array(errors[1:]), [2.0, 2.0], 0.1)


def test_jacobian_equals_difference_quotients_of_the_gradient():
    population, state = ShallowPopulation(SMALL), SMALL.initial_state
    direction = np.random.default_rng(0).normal(size=state.size)
    upper, lower = (population.gradient(state + sign * 1e-5 * direction) for sign in (1.0, -1.0))
    within(population.jacobian(state) @ direction, (upper - lower) / 2e-5, 1e-7)


def test_run_learns_with_consistent_observables():
    run = gradient_descent(ShallowPopulation(SMALL), learning_rate=0.2, steps=600)
    assert run.test_error[-1] == 0.0
    assert run.loss[-1] < 0.05
    assert run.attention[0] < run.attention[-1] <= SMALL.plateau + 1e-12
    assert np.all(run.least_margin <= run.margin + 1e-15)
    data = run.to_dataset()
    assert {"attention", "margin", "test_error", "P_1", "K_kl"} <= set(data)


class TestCells:
    @pytest.mark.parametrize("name", PROBLEMS)
    def test_probabilities_sum_to_one(self, name):
        problem = PROBLEMS[name]
        every, unordered = cells(problem), representatives(problem)
        for samples in (every, unordered):
            within(samples.probability.sum(), 1.0, 1e-14)
            assert np.all(samples.counts.sum(axis=1) == problem.L)
            assert np.all(samples.queried <= samples.counts)
        if problem.queried is None:
            assert len(unordered.counts) == cell_number(problem)
            assert len(every.counts) == 2 * cell_number(problem, ordered=True)
        else:
            assert len(unordered.counts) <= cell_number(problem)

    @pytest.mark.parametrize("name", ["plain", "single background", "queried"])
    def test_random_samples_have_these_probabilities(self, name):
        """A chi-squared test at five standard deviations."""
        problem, N = PROBLEMS[name], 20_000

        def key(counts, label, queried):
            return *counts.astype(int), int(label), *queried.astype(int)

        numbers = Counter(key(*row) for row in zip(*sample(problem, N, np.random.default_rng(3))))
        probabilities = {key(*row): probability for *row, probability in zip(*cells(problem))}
        assert set(numbers) <= set(probabilities)
        expected = N * np.array(list(probabilities.values()))
        observed = np.array([numbers[cell] for cell in probabilities])
        square, size = np.sum((observed - expected) ** 2 / expected), len(expected)
        assert square < size + 5.0 * np.sqrt(2.0 * size)

    def test_too_many_cells_are_rejected_without_enumeration(self):
        problem = ShallowProblem(M=60, L=1000, alpha_relevant=0.2, alpha_confusion=0.0, neurons=120)
        with pytest.raises(ParameterError, match="L = 1000 is not allowed"):
            ShallowPopulation(problem)


class TestInvalidArguments:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (dict(alpha_relevant=0.9, alpha_confusion=0.2), "at most 1"),
            (dict(alpha_relevant=0.2, alpha_confusion=0.2), "greater than alpha_confusion"),
            (dict(alpha_relevant=0.1, alpha_confusion=0.2), "greater than alpha_confusion"),
            (dict(alpha_relevant=0.33), "whole number"),
            (dict(alpha_confusion=-0.1), "in [0, 1]"),
            (dict(queried=21), "queried = 21"),
            (dict(queried=0), "queried = 0"),
            (dict(M=2), "M = 2"),
            (dict(neurons=12), "a multiple of 2 M = 10"),
            (dict(attention_rate=-1.0), "attention_rate = -1"),
            (dict(xi=0.0), "perturb"),
            (dict(spread=0.0), "perturb"),
            (dict(overlap=1.5), "overlap = 1.5"),
            (dict(key_query=-1.0), "key_query = -1"),
            (dict(background="x"), "tokens or single"),
            (dict(attention=True), "one of trained, frozen, none"),
            (dict(train_value=1), "True or False"),
            (dict(output_scale=float("nan")), "finite"),
        ],
    )
    def test_message_has_one_line(self, changes, message):
        with pytest.raises(ParameterError) as error:
            ShallowProblem(**changes)
        assert message in str(error.value)
        assert "\n" not in str(error.value)

    def test_initial_state_at_a_kink_is_rejected(self):
        population = ShallowPopulation(SMALL)
        start = SMALL.initial_state
        names = population.order_parameters
        for name in ("I_1", "I_2", "I_other"):
            start[names.index(name)] = 0.0
        with pytest.raises(ParameterError, match=r"kink of its ReLU.*perturb"):
            gradient_descent(population, learning_rate=0.1, steps=1, initial=start)
        with pytest.raises(ParameterError, match="28 numbers"):
            gradient_descent(population, learning_rate=0.1, steps=1, initial=start[:5])

    def test_number_of_order_parameters(self):
        assert len(ShallowProblem().order_parameters) == 28
        assert len(ShallowProblem(overlap=0.5).order_parameters) == 40

    def test_plateau(self):
        close(ShallowProblem(alpha_relevant=0.5, alpha_confusion=0.05).plateau, 0.5 / 0.55, 1e-15)

    def test_initial_overlap(self):
        problem = SMALL.replace(overlap=0.4)
        _, _, K, Q = problem.matrices(problem.initial_state)
        within(K.T @ Q, 0.4 * 0.7 * np.eye(4), 1e-15)
        within(K.T @ K, 0.7 * np.eye(4), 1e-15)
        within(Q.T @ Q, 0.7 * np.eye(4), 1e-15)


def test_overflow_of_the_logits_raises():
    """A ReLU replaces nan by 0, so that loss and gradient are finite nevertheless."""
    population = ShallowPopulation(SMALL)
    state = np.array(population.problem.initial_state)
    names = list(population.order_parameters)
    state[[names.index(name) for name in names if name.startswith(("K", "Q"))]] = 1e200
    for evaluate in (population.evaluate, population.gradient, population.descent):
        with pytest.raises(OverflowError):
            evaluate(state)
