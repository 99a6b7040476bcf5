"""Softmax over tokens in theories in overlaps: two tokens, many tokens, vectors and sampling."""

from pathlib import Path

import numpy as np
import pytest

import patchdyn
from simulations.cli import main
from simulations.stated import examples
from simulations.stated.overlap_check import TOLERANCE
from simulations.stated.overlaps import UserOverlapTheory
from simulations.stated.overlaps import risk as risk_of
from simulations.stated.system import UserTheorySystem
from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Size, Vectors, softmax
from symbolic.theory import Exchangeable, TheoryError
from tests.closeness import within

FILE = Path(examples.__file__).parent / "softmax_location.py"
LOCATION = patchdyn.load_theory(FILE)
OVERLAPS = {"kappa": 0.3, "nu": 0.4, "theta": 0.2, "eta": -0.1, "rho": 0.15}

d, L = Size("d"), Size("L")
space, token = Euclidean("coordinate", d), Exchangeable("token", L)
w, p, u = Vectors("w", space), Directions("p", space), Directions("u", space)
a, b = Normal("a", space), Normal("b", space, variance=0.5, mean=(0.7, p))
y = Normal("y", (token, space))


def theory(loss):
    """Return a theory of the vectors and data above with this loss."""
    return OverlapTheory(
        "tokens", "test", sizes=(d, L), parameters=(w,), directions=(p, u), data=(a, b, y),
        loss=loss,
    )  # fmt: skip


def squared(a, b, u, first, second):
    """Half the squared error of attention to two tokens."""
    label = 0.75 * (u @ a) + 0.25 * (u @ b)
    return (first * (u @ a) + second * (u @ b) - label) ** 2 / 2


def soft(w, p, u, a, b):
    """Attention to two tokens by softmax."""
    return squared(a, b, u, *softmax(w @ a + w @ p, w @ b - w @ p))


def sigmoid(w, p, u, a, b):
    """The same attention by the sigmoid of the difference of the scores."""
    difference = w @ a - w @ b + 2 * (w @ p)
    return squared(a, b, u, difference.sigmoid(), (-difference).sigmoid())


@pytest.mark.parametrize("state", [(1.3, 0.4, -0.3), (4.0, -1.5, 0.2), (0.0, 0.0, 0.0)])
def test_softmax_of_two_tokens_is_the_certified_sigmoid(state):
    """Loss, gradient and Jacobian agree with the rule that has a bound."""
    estimate, certified = (risk_of(theory(x), {"d": 5, "L": 3}) for x in (soft, sigmoid))
    assert estimate.order_parameters == certified.order_parameters == ("w.w", "w.p", "w.u")
    assert certified.evaluate(state).bound < 1e-11
    within(estimate.loss(state), certified.loss(state), 1e-12)
    within(estimate.gradient(state), certified.gradient(state), 1e-12)
    within(estimate.jacobian(state), certified.jacobian(state), 1e-11)


@pytest.mark.parametrize(("tokens", "power"), [(1, 1), (2, 1), (10**6, 1), (1, 3), (10**6, 3)])
def test_weights_of_many_tokens_sum_to_one(tokens, power):
    """The mean of powers of the sum of all weights is 1, with derivative 0, for any number."""

    def total(w, a, y):
        first, others = softmax(w @ a, w @ y["l"])
        return (first + others.sum("l")) ** power

    risk = risk_of(theory(total), {"d": 5, "L": tokens})
    for square in (0.01, 1.0, 16.0):
        state = [square, 0.0, 0.0]
        within(risk.loss(state), 1.0, 1e-14)
        within(risk.gradient(state), 0.0, 1e-13)
        within(risk.jacobian(state), 0.0, 1e-12)


def test_descent_agrees_with_vectors():
    """Two steps on three tokens, with integrals over scores instead of the integral over t."""
    check = LOCATION.check()
    assert check.values["L"] == 3
    assert check.loss < 1e-13
    assert check.overlaps < 1e-13 < TOLERANCE


def location(**values):
    """Return the risk of the example and a state."""
    risk = LOCATION.risk(**values)
    return risk, np.array([OVERLAPS[name] for name in risk.order_parameters])


def test_the_loss_of_ten_tokens_is_the_mean_over_sampled_prompts():
    """The scores and values of 200,000 prompts, within four standard errors."""
    risk, state = location(L=10, d=8)
    rng, prompts = np.random.default_rng(1), 200_000
    kappa, nu, theta, eta, rho = OVERLAPS.values()
    gram = np.array([[1.0, rho, eta], [rho, 1.0, nu], [eta, nu, 1.0]])  # k, v, v*
    fields = rng.standard_normal((10, prompts, 3)) @ np.linalg.cholesky(gram).T
    fields[0] = 0.7 * fields[0] + 2.0 * np.array([kappa, theta, 0.0])
    weights = np.exp(fields[..., 0])
    predicted = np.sum(weights * fields[..., 1], axis=0) / np.sum(weights, axis=0)
    losses = (predicted - fields[0, :, 2]) ** 2
    error = np.std(losses) / np.sqrt(prompts)
    within(risk.loss(state), np.mean(losses), 4.0 * error)
    assert error < 4e-3 * risk.loss(state)


def test_softmax_is_an_estimate():
    """It has no bound, and its Jacobian is the derivative of its gradient."""
    risk, state = location(L=10)
    assert risk.is_estimate
    assert "rule for softmax over tokens" in risk.reason
    assert UserTheorySystem.estimates[risk.method] == "an estimate of softmax over tokens"
    assert risk.evaluate(state).bound == np.inf
    assert np.all(risk.evaluate(state).gradient_bound == np.inf)
    columns = [
        (risk.gradient(state + 1e-5 * e) - risk.gradient(state - 1e-5 * e)) / 2e-5
        for e in np.eye(state.size)
    ]
    jacobian = risk.jacobian(state)
    within(np.array(columns).T, jacobian, 1e-7 * np.max(np.abs(jacobian)))


@pytest.mark.slow
def test_attention_learns_the_informative_token():
    """Values are learned before attention, and the other overlaps remain 0."""
    run = patchdyn.gradient_flow(LOCATION.risk(), horizon=4)
    final = dict(zip(run.order_parameters, run.final))
    assert run.loss[-1] < 0.01 * run.loss[0]
    assert final["nu"] > 0.99 > 0.5 > final["kappa"] > 0.4
    within([final[name] for name in ("rho", "theta", "eta")], 0.0, 1e-12)


def test_the_loss_for_all_numbers_of_tokens_is_exported():
    """As an integral over t; not as a module."""
    theory = UserOverlapTheory(LOCATION.statement)
    assert "Integral(E1*E2**(L - 1)/t, (t, 0, oo))" in theory.export("text")
    assert r"E_{2}^{L - 1}" in theory.export("latex")
    with pytest.raises(TheoryError, match="export = jax is not allowed for a softmax over tokens"):
        theory.export("jax")


REJECTED = {
    "no score": (lambda w: softmax(), "give the score of each token"),
    "no linear combination": (lambda w, a: softmax((w @ a).erf()), "a linear combination of"),
    "no field": (lambda w, p, a: softmax(w @ a, w @ p)[0], "fields of one token"),
    "two tokens in a score": (lambda w, a, y: softmax(w @ a + w @ y["l"]), "fields of one token"),
    "a token twice": (lambda w, u, a: softmax(w @ a, u @ a)[0], "must be independent"),
    "method": (lambda w, a: (w @ a).softmax(), r"write softmax\(x\)"),
    "another function": (
        lambda w, u, a, b: softmax(w @ a, w @ b)[0] * (u @ a).tanh(),
        "times another function of fields of the same tokens",
    ),
    "two normalizations": (
        lambda w, u, a, b: softmax(w @ a, w @ b)[0] * softmax(u @ a, u @ b)[0],
        "over different scores",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_softmax_that_is_rejected(name):
    """One sentence that states what is allowed."""
    loss, message = REJECTED[name]
    with pytest.raises(TheoryError, match=message) as caught:
        theory(loss).reduced  # noqa: B018
    assert "\n" not in str(caught.value)


def test_sgd_of_softmax_is_rejected():
    """Neither its mean motion nor its runs are available."""
    statement = theory(soft)
    with pytest.raises(TheoryError, match="softmax over tokens is not allowed in one-pass SGD"):
        statement.noise  # noqa: B018
    with pytest.raises(TheoryError, match="softmax over tokens is not allowed in one-pass SGD"):
        UserOverlapTheory(statement).stochastic_runs(learning_rate=0.1, steps=1, d=5, L=3)


def test_too_many_nodes_for_vectors_are_rejected():
    """Scores with a large spread cannot be compared with vectors."""
    steep = theory(lambda w, a, y: softmax(10 * (w @ a), 10 * (w @ y["l"]))[0])
    with pytest.raises(TheoryError, match="needs too many nodes for the comparison with vectors"):
        UserOverlapTheory(steep).check()


@pytest.mark.slow
def test_the_command_runs_the_example(capsys):
    """Exit code 0 and a table of overlaps."""
    assert main(["run", "--theory", str(FILE), "--L", "5", "--horizon", "0.5"]) == 0
    assert "kappa" in capsys.readouterr().out
