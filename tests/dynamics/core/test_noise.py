"""Covariance of the gradient of one sample, and runs of one-pass SGD on order parameters."""

import math
from pathlib import Path

import numpy as np
import pytest

import symbolic
from dynamics import ParameterError, Population, Problem, gradient_descent
from dynamics.core.noise import stochastic_descent
from dynamics.shallow import ShallowPopulation, ShallowProblem
from dynamics.shallow import oracle as shallow_oracle
from simulations.stated.full import FullModel
from simulations.stated.runs import risk as risk_of
from symbolic.theory import (
    Choice,
    Data,
    Exchangeable,
    Gaussian,
    Signed,
    Size,
    Tensor,
    Theory,
    load_theory,
)
from tests.closeness import close, within

ROOT = Path(symbolic.__file__).parent
MASKED = {"G": 3, "C": 2, "N": 2, "M": 3, "z": 1.2}


@pytest.fixture(scope="module")
def masked():
    """Return the theory of masked images, its risk and a state."""
    theory = load_theory(ROOT / "masked" / "stated.py")
    risk = risk_of(theory, **MASKED)
    return theory, risk, np.random.default_rng(0).normal(size=len(risk.order_parameters))


def samples_of(theory, risk, state):
    """Return probabilities and gradients of all samples of the full model, entries averaged."""
    full = FullModel(theory, theory.checked(MASKED))
    tensors = full.embed(dict(zip(risk.order_parameters, state)))
    weights, rows = full.dense.weight.ravel().copy(), []
    for number in range(weights.size):
        full.dense.weight = np.eye(weights.size)[number].reshape(full.dense.weight.shape)
        means = full.mean(full.dense.evaluate(tensors)[1])
        rows.append([means[name][0] for name in risk.order_parameters])
    return weights, np.array(rows)


class TestCovariance:
    @pytest.mark.slow
    def test_it_is_that_of_all_samples_of_the_full_model(self, masked):
        theory, risk, state = masked
        weights, gradients = samples_of(theory, risk, state)
        covariance = risk.gradient_covariance(state)
        assert 1 < risk.sample_weights.size < weights.size
        centred = gradients - weights @ gradients
        within(covariance, (centred.T * weights) @ centred, absolute=1e-14)
        np.testing.assert_allclose(covariance, covariance.T, rtol=0, atol=1e-16)
        assert np.linalg.eigvalsh(covariance).min() > -1e-14
        assert np.trace(covariance) > 1e-3

    def test_it_is_that_of_random_samples(self, masked):
        """Each variance of 20,000 samples is within five standard errors."""
        theory, risk, state = masked
        weights, gradients = samples_of(theory, risk, state)
        chosen = gradients[np.random.default_rng(1).choice(weights.size, 20_000, p=weights)]
        squares = (chosen - chosen.mean(axis=0)) ** 2
        error = squares.std(axis=0) / math.sqrt(len(chosen))
        difference = np.abs(squares.mean(axis=0) - np.diag(risk.gradient_covariance(state)))
        assert (difference <= 5.0 * error + 1e-15).all()

    def test_it_is_0_where_each_gradient_vanishes(self):
        """Every margin exceeds 1, so that no sample has a hinge loss."""
        problem = ShallowProblem(M=4, L=4, alpha_relevant=0.5, alpha_confusion=0.0, neurons=8)
        population = ShallowPopulation(problem)
        run = gradient_descent(population, learning_rate=0.05, steps=3000)
        assert run.least_margin[-1] > 1.0
        assert not population.gradient_covariance(run.final).any()
        assert population.gradient_covariance(problem.initial_state).any()

    def test_of_the_shallow_network(self):
        """One sample of each cell by the network on tokens, entries of each number averaged."""
        problem = ShallowProblem(M=4, L=4, alpha_relevant=0.5, alpha_confusion=0.0, neurons=8,
                                 xi=0.1, key_query=0.7, attention_rate=3.0)  # fmt: skip
        population, layout = ShallowPopulation(problem), problem.layout
        _, V, K, Q = problem.matrices(problem.initial_state)
        W, a = problem.all_neurons(problem.initial_state)
        weights, rows = shallow_oracle.FullWeights(W, V, K, Q, a), []
        cells = ([0, 0, 2, 2], [0, 0, 2, 3])  # background tokens 2 2 or 3 3, and 2 3 or 3 2
        for tokens in cells:
            _, gradient, _ = shallow_oracle.forward(weights, np.eye(4)[:, tokens], range(4))
            speed = problem.attention_rate
            parts = gradient.W_O, gradient.W_V, speed * gradient.W_K, speed * gradient.W_Q
            rows.append(-layout.pack(*parts))
        half = np.array(rows[0]) - np.array(rows[1])
        assert population.cells == 2
        within(
            population.gradient_covariance(problem.initial_state),
            np.outer(half, half) / 4.0,
            absolute=1e-15,
        )


class TestDescent:
    def test_the_first_step_has_the_covariance(self, masked):
        """The mean over runs is within five standard errors; the band is that of the samples."""
        _, risk, state = masked
        rate, runs = 0.1, 2000
        band = stochastic_descent(
            risk, learning_rate=rate, steps=1, runs=runs, initial=state, seed=3
        )
        deviation = np.sqrt(np.diag(risk.gradient_covariance(state)))
        expected = state - rate * risk.gradient(state)
        error = rate * deviation / math.sqrt(runs)
        assert (np.abs(band.mean[-1] - expected) <= 5.0 * error + 1e-15).all()
        steps = state - rate * np.array(
            [risk.weighted_gradient(state, row) for row in np.eye(risk.sample_weights.size)]
        )
        assert (band.low[-1] >= steps.min(axis=0) - 1e-15).all()
        assert (band.high[-1] <= steps.max(axis=0) + 1e-15).all()
        assert (band.high[-1] - band.low[-1]).max() > 0.1 * rate * deviation.max()

    @pytest.mark.slow
    def test_large_batches_follow_descent_on_the_risk(self, masked):
        _, risk, state = masked
        options = {"learning_rate": 0.05, "steps": 40, "initial": state}
        descent = gradient_descent(risk, **options)
        widths = []
        for batch in (10, 100_000):
            band = stochastic_descent(risk, runs=20, batch=batch, **options)
            widths.append((band.high - band.low)[-1].max())
        within(band.mean[-1], descent.final, absolute=1e-3)
        close(widths[0] / widths[1], 100.0, rel=0.5)

    def test_the_same_seed_repeats_the_runs(self, masked):
        _, risk, _ = masked
        options = {"learning_rate": 0.05, "steps": 5, "runs": 3}
        first, again, other = (stochastic_descent(risk, seed=seed, **options) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first.mean, again.mean)
        assert (first.mean != other.mean).any()

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"runs": 1}, "runs = 1 is not allowed"),
            ({"batch": 0}, "batch = 0 is not allowed"),
            ({"learning_rate": 0.0}, "learning_rate = 0.0 is not allowed"),
            ({"record": "all"}, "record = all is not allowed"),
            ({"learning_rate": 1e101}, r"learning_rate = 1e\+101 is not allowed"),
        ],
    )
    def test_bad_arguments_are_rejected(self, masked, options, sentence):
        with pytest.raises(ParameterError, match=sentence):
            stochastic_descent(masked[1], **{"learning_rate": 0.1, "steps": 2} | options)


def test_a_diverging_run_is_rejected():
    """The gradient of half the squared distance from a random mark is linear."""
    n = Size("n", "tokens")
    token = Exchangeable("token", n)
    theory = Theory(
        "mark",
        "this test",
        sizes=(n,),
        parameters=(Tensor("w", token, start=0),),
        data=Data(Choice("mark", token)),
        loss=lambda w, mark: 0.5 * ((w["i"] - mark["i"]) ** 2).sum("i"),
    )
    with pytest.raises(ParameterError, match=r"learning_rate = 5 is not allowed: a run diverges"):
        stochastic_descent(risk_of(theory, n=4), learning_rate=5.0, steps=2000, runs=2)


def test_risks_without_enumerated_samples_are_rejected():
    problem = Problem(D=4, C=2, q=0.5)
    with pytest.raises(ParameterError, match=r"enumeration is not allowed here: .* in a file"):
        Population(problem, "enumeration").gradient_covariance(problem.initial_state)
    n = Size("n", "coordinates")
    coordinate = Signed("coordinate", n)
    gaussian = Theory(
        "gaussian",
        "this test",
        sizes=(n,),
        parameters=(Tensor("W", (coordinate, coordinate), start=0),),
        data=Data(Gaussian("x", coordinate)),
        loss=lambda W, x: 0.5 * (((W["i", "j"] * x["j"]).sum("j") - x["i"]) ** 2).sum("i"),
    )
    with pytest.raises(ParameterError, match=r"gaussian is not allowed here: .* Gaussian data"):
        stochastic_descent(risk_of(gaussian, n=3), learning_rate=0.1, steps=2)
