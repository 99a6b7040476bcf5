"""Optimizers on order parameters against the same optimizers on every entry of the full model."""

import math

import numpy as np
import pytest

from dynamics import ParameterError, Population, Problem, Status, gradient_descent
from dynamics.full import population_gradient
from dynamics.masked.oracle import FullMaskedModel
from dynamics.masked.population import MaskedPopulation
from dynamics.masked.problem import MaskedProblem
from dynamics.shallow import ShallowPopulation, ShallowProblem
from dynamics.shallow import oracle as shallow_oracle
from simulations.masked.runs import columns_of
from simulations.stated.full import FullModel
from simulations.stated.runs import risk as risk_of
from symbolic.theory import load_theory
from tests.closeness import within

TEACHER = "simulations/stated/examples/teacher.py"
VALUES = {"D": 6, "K": 2, "nu": 0.7}
RULES = [
    ("gd", {}),
    ("gd", {"weight_decay": 0.05}),
    ("momentum", {}),
    ("momentum", {"momentum": 0.5, "weight_decay": 0.02}),
    ("adam", {}),
    ("adam", {"momentum": 0.8, "weight_decay": 0.1}),
    ("sign", {"weight_decay": 0.3}),
]
ISOTROPIC = ("gd", "momentum")
#: Rules with the default constants are left to CI where the same rule is tested with others.
CASES = [pytest.param(*x, marks=() if x[1] else pytest.mark.slow) for x in RULES]


class Entrywise:
    """The update rules as their papers state them, for one array of entries."""

    def __init__(self, name, rate, momentum=0.9, weight_decay=0.0):
        self.name, self.rate, self.momentum, self.decay = name, rate, momentum, weight_decay
        self.first, self.second, self.count = 0.0, 0.0, 0

    def update(self, x, gradient):
        self.count += 1
        if self.name == "sign":
            direction = np.sign(gradient)
        elif self.name == "gd":
            direction = gradient
        elif self.name == "momentum":
            direction = self.first = self.momentum * self.first + gradient
        else:
            b, c = self.momentum, 0.999
            self.first = b * self.first + (1 - b) * gradient
            self.second = c * self.second + (1 - c) * gradient**2
            size = np.sqrt(self.second / (1 - c**self.count))
            direction = self.first / (1 - b**self.count) / (size + 1e-8)
        return x - self.rate * (direction + self.decay * x)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "constants"), CASES)
def test_every_entry_of_a_stated_theory_follows_its_order_parameter(name, constants):
    theory = load_theory(TEACHER)
    full, rate, steps = FullModel(theory, theory.checked(VALUES)), 0.01, 1000
    start = {"v": 0.3, "c_in": 0.2, "c_out": -0.1}
    run = gradient_descent(
        risk_of(theory, **VALUES), learning_rate=rate, steps=steps, initial=list(start.values()),
        optimizer=name, **constants,
    )  # fmt: skip
    tensors = full.embed(start)
    rules = {tensor: Entrywise(name, rate, **constants) for tensor in tensors}
    for _ in range(steps):
        _, gradient = full.dense.evaluate(tensors)
        tensors = {key: rules[key].update(x, gradient[key]) for key, x in tensors.items()}
    expected = full.mean(tensors)
    for order, value in zip(run.order_parameters, run.states[-1]):
        mean, spread, _ = expected[order]
        within(value, mean, absolute=1e-12)
        within(spread, 0.0, absolute=1e-12)
    assert abs(run.states[-1] - run.states[0]).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "constants"), CASES)
def test_every_entry_of_the_positional_model_follows_its_order_parameter(name, constants):
    """Adam and sign descent need w* along a coordinate axis.

    They would scale the rounding of the other entries of v up, so that these are set to 0.
    """
    problem = Problem(D=4, C=2, q=0.5, nu=0.1, beta=1.0)
    population, steps = Population(problem, "enumeration"), 1000
    rate = 0.0005 if name == "sign" else 0.01  # later gradients are rounding, and so their signs
    run = gradient_descent(population, learning_rate=rate, steps=steps, optimizer=name, **constants)
    w_star = np.eye(problem.D)[0]  # d = D
    if name in ("gd", "momentum"):
        w_star = np.array([0.1, -0.7, 0.5, 0.5])
    along = np.outer(w_star, w_star) if name in ("adam", "sign") else np.eye(problem.D)
    alpha, gamma, rho = problem.initial_state
    same = np.kron(np.eye(2), np.ones((2, 2))) > 0
    off = ~np.eye(4, dtype=bool)
    A, v = np.where(same, gamma, rho), alpha * w_star
    rules = Entrywise(name, rate, **constants), Entrywise(name, rate, **constants)
    for _ in range(steps):
        _, dA, dv = population_gradient(problem, A * off + problem.beta * ~off, v, w_star)
        A, v = rules[0].update(A, dA), rules[1].update(v, along @ dv)
    final = run.states[-1]
    within(v, final[0] * w_star, absolute=1e-12)
    within(A[same & off], final[1], absolute=1e-12)
    within(A[~same], final[2], absolute=1e-12)
    assert final[0] > alpha + 0.1
    assert final[1] > 0.005


@pytest.mark.parametrize(("name", "constants"), [rule for rule in RULES if rule[0] in ISOTROPIC])
def test_every_entry_of_the_masked_model_follows_its_correlation(name, constants):
    problem = MaskedProblem.from_sizes([3, 2], query=3)
    model, population = FullMaskedModel(problem), MaskedPopulation(problem)
    rate, steps, columns = 0.1, 1000, columns_of(problem)
    run = gradient_descent(population, learning_rate=rate, steps=steps, optimizer=name, **constants)
    Q, rule = np.zeros((model.dimension,) * 2), Entrywise(name, rate, **constants)
    for _ in range(steps):
        Q = rule.update(Q, model.evaluate(Q)[1])
    within(Q[problem.patch], run.states[-1][columns], absolute=1e-12)
    assert abs(run.states[-1]).max() > 0.1


@pytest.mark.parametrize(("name", "constants"), [x for x in CASES if x.values[0] in ISOTROPIC])
def test_every_entry_of_the_shallow_network_follows_its_number(name, constants):
    """Two samples contain all cells: tokens 0 0 1 2 with label 1, and 1 1 0 2 with label -1."""
    problem = ShallowProblem(M=3, L=4, alpha_relevant=0.5, alpha_confusion=0.25, neurons=6, xi=0.1,
                             key_query=0.7, attention_rate=3.0, background="single")  # fmt: skip
    rate, steps, start = 0.01, 1000, problem.initial_state
    run = gradient_descent(
        ShallowPopulation(problem), learning_rate=rate, steps=steps, optimizer=name, **constants
    )
    _, V, K, Q = problem.matrices(start)
    W, a = problem.all_neurons(start)
    entries = {"W_O": W, "W_V": V, "W_K": K, "W_Q": Q}
    rules = {key: Entrywise(name, rate, **constants) for key in entries}
    for _ in range(steps):
        total = {key: np.zeros_like(x) for key, x in entries.items()}
        for tokens, y in (([0, 0, 1, 2], 1.0), ([1, 1, 0, 2], -1.0)):
            weights = shallow_oracle.FullWeights(**entries, a=a)
            F, gradient, _ = shallow_oracle.forward(weights, np.eye(3)[:, tokens], range(4))
            for key in entries:
                total[key] -= 0.5 * y * (y * F < 1.0) * getattr(gradient, key)
        for key in entries:
            speed = problem.attention_rate if key in ("W_K", "W_Q") else 1.0
            entries[key] = rules[key].update(entries[key], speed * total[key])
    _, V, K, Q = problem.matrices(run.final)
    for key, values in zip(entries, (problem.all_neurons(run.final)[0], V, K, Q)):
        within(entries[key], values, absolute=1e-12)
    assert abs(run.final - start).max() > 0.1


def test_fixed_order_parameters_do_not_decay():
    fixed = ShallowProblem(train_value=False, attention="frozen")
    options = {"learning_rate": 0.01, "steps": 5, "weight_decay": 0.5}
    run = gradient_descent(ShallowPopulation(fixed), **options)
    for before, after in zip(fixed.matrices(run.states[0])[1:], fixed.matrices(run.final)[1:]):
        np.testing.assert_array_equal(before, after)
    assert (run.final != run.states[0]).any()
    problem = MaskedProblem.rows_and_columns(2)
    population = MaskedPopulation(problem, moving="features")
    start, phi = np.ones(len(problem.order_parameters)), problem.layout.phi_slots
    end = gradient_descent(population, initial=start, **options).final
    np.testing.assert_array_equal(end[phi:], start[phi:])
    assert (end[:phi] < start[:phi]).all()


@pytest.mark.slow
def test_interrupting_progress_does_not_change_the_moments():
    """Reports of progress cut the run into chunks; the optimizer goes on with its moments."""
    theory = load_theory(TEACHER)
    options = {"learning_rate": 0.01, "steps": 300, "optimizer": "adam"}
    plain = gradient_descent(risk_of(theory, **VALUES), **options)
    reports = []
    run = gradient_descent(risk_of(theory, **VALUES), progress=reports.append, **options)
    assert len(reports) > 3
    np.testing.assert_array_equal(run.states, plain.states)


@pytest.mark.slow
@pytest.mark.traced
def test_the_run_records_its_optimizer_and_may_raise_the_loss():
    risk = risk_of(load_theory(TEACHER), **VALUES)
    run = gradient_descent(risk, learning_rate=0.5, steps=50, optimizer="sign")
    assert run.status is Status.COMPLETED
    assert np.diff(run.loss).max() > 0.0
    assert run.settings["optimizer"] == "sign"
    plain = gradient_descent(risk, learning_rate=0.01, steps=5)
    assert "optimizer" not in plain.settings


def test_optimizers_that_do_not_commute_with_rotations_are_rejected():
    population = MaskedPopulation(MaskedProblem.rows_and_columns(2))
    for name in ("adam", "sign"):
        with pytest.raises(ParameterError, match=f"optimizer = {name} is not allowed: .* rotated"):
            gradient_descent(population, learning_rate=0.01, steps=2, optimizer=name)
    run = gradient_descent(population, learning_rate=0.01, steps=2, optimizer="momentum")
    assert run.status is Status.COMPLETED


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"optimizer": "lion"}, "optimizer = lion is not allowed"),
        ({"momentum": 0.5}, "momentum is not allowed with optimizer = gd"),
        ({"optimizer": "adam", "momentum": 1.0}, "momentum = 1.0 is not allowed"),
        ({"weight_decay": -1.0}, "weight_decay = -1.0 is not allowed"),
        ({"weight_decay": math.inf}, "weight_decay = inf is not allowed"),
        ({"optimizer": "sign", "beta": 0.5}, "beta is not allowed with optimizer = sign"),
    ],
)
def test_bad_options_are_rejected(options, sentence):
    risk = risk_of(load_theory(TEACHER), **VALUES)
    with pytest.raises(ParameterError, match=sentence):
        gradient_descent(risk, learning_rate=0.01, steps=2, **options)
