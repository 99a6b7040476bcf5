"""Optimizers on order parameters against the same optimizers on every entry of the full model."""

import math

import numpy as np
import pytest

from dynamics import ParameterError, Population, Problem, Status, gradient_descent
from dynamics.full import population_gradient
from dynamics.masked.population import MaskedPopulation
from dynamics.masked.problem import MaskedProblem
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


@pytest.mark.parametrize(("name", "constants"), RULES)
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


def test_adam_follows_the_full_positional_model_along_a_coordinate_axis():
    """Entries of v that must stay 0 are projected: Adam would scale their rounding up."""
    problem = Problem(D=4, C=2, q=0.5, nu=0.1, beta=1.0)
    population, rate, steps = Population(problem, "enumeration"), 0.01, 60
    run = gradient_descent(population, learning_rate=rate, steps=steps, optimizer="adam")
    w_star = np.eye(problem.D)[0]  # d = D
    alpha, gamma, rho = problem.initial_state
    same = np.kron(np.eye(2), np.ones((2, 2))) > 0
    A = np.where(same, gamma, rho)
    np.fill_diagonal(A, problem.beta)
    v = alpha * w_star
    rules = Entrywise("adam", rate), Entrywise("adam", rate)
    for _ in range(steps):
        _, dA, dv = population_gradient(problem, A, v, w_star)
        A, v = rules[0].update(A, dA), rules[1].update(v, dv * w_star)
    final = run.states[-1]
    off = ~np.eye(4, dtype=bool)
    within(v, final[0] * w_star, absolute=1e-12)
    within(A[same & off], final[1], absolute=1e-12)
    within(A[~same], final[2], absolute=1e-12)
    assert final[1] > 0.1


def test_interrupting_progress_does_not_change_the_moments():
    """Reports of progress cut the run into chunks; the optimizer goes on with its moments."""
    theory = load_theory(TEACHER)
    options = {"learning_rate": 0.01, "steps": 300, "optimizer": "adam"}
    plain = gradient_descent(risk_of(theory, **VALUES), **options)
    reports = []
    run = gradient_descent(risk_of(theory, **VALUES), progress=reports.append, **options)
    assert len(reports) > 3
    np.testing.assert_array_equal(run.states, plain.states)


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
