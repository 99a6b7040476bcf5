"""One-pass SGD on overlaps: second moments, mean steps, and runs on vectors."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erf, expit

import patchdyn
from dynamics import ParameterError
from simulations.stated import examples
from simulations.stated.overlaps import UserOverlapTheory
from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Size, Vectors, sqrt
from symbolic.theory import TheoryError
from tests.closeness import within

FOLDER = Path(examples.__file__).parent
COMMITTEE = patchdyn.load_theory(FOLDER / "saad_solla.py")
STATE = np.array([0.6, 0.2, 0.4, 0.1])


def gated():
    """Return a theory with two data, one with a mean, a sigmoid and an explicit overlap."""
    space = Euclidean("coordinate", Size("d"))
    w, u = Vectors("w", space), Directions("u", space)
    x, y = Normal("x", space, variance=0.5, mean=(1.5, u)), Normal("y", space)

    def loss(w, u, x, y):
        return ((w @ x).sigmoid() * (w @ y) - u @ y) ** 2 / 2 + 0.3 * (w @ w) * (w @ x) ** 2

    return UserOverlapTheory(
        OverlapTheory(
            "gated", "test", sizes=(Size("d"),), parameters=(w,), directions=(u,), data=(x, y),
            loss=loss, start={"w.w": 0.8, "w.u": 0.3},
        )
    )  # fmt: skip


def nodes(rank, step, end):
    """Return nodes (rank, n) and weights (n,) for the standard normal distribution."""
    line = np.arange(-end, end + step / 2, step)
    weight = step * np.exp(-(line**2) / 2) / np.sqrt(2 * np.pi)
    grid = np.array(list(product(line, repeat=rank))).T
    weights = np.ones(1)
    for _ in range(rank):
        weights = np.outer(weights, weight).ravel()
    return grid, weights


@pytest.mark.parametrize("d", [2, 9])
def test_second_moments_are_those_of_the_gradient_of_a_datum(d):
    """E |g|^2 of the gated theory agrees with quadrature in the plane and its complement."""
    risk = gated().one_pass(learning_rate=0.1, d=d)
    w, u = np.array([0.3, np.sqrt(0.8 - 0.09)]), np.array([1.0, 0.0])
    z, weights = nodes(2, 0.3, 9.0)
    own, own_weights = np.polynomial.hermite_e.hermegauss(5)  # exact: y occurs in polynomials
    y = np.array(list(product(own, repeat=2))).T
    y, x = np.tile(y, z.shape[1]), np.repeat(1.5 * u[:, None] + np.sqrt(0.5) * z, 25, axis=1)
    weights = np.outer(weights, np.outer(own_weights, own_weights) / (2 * np.pi)).ravel()
    a, b, s = w @ x, w @ y, expit(w @ x)
    error = s * b - u @ y
    of_x, of_y = error * s * (1 - s) * b + 0.6 * (w @ w) * a, error * s
    plane = of_x * x + of_y * y + 0.6 * w[:, None] * a**2
    outside = (d - 2) * (0.5 * of_x**2 + of_y**2)
    expected = weights @ (np.sum(plane**2, axis=0) + outside)
    moments = dict(zip(risk.order_parameters, risk.second_moments(risk.problem.initial_state)))
    assert moments["w.w"] == pytest.approx(expected, rel=1e-11, abs=0)
    assert moments["w.u"] == 0.0


@pytest.mark.slow
def test_second_moments_of_two_exchangeable_units():
    """Saad and Solla's machine: the same and other pairs, both parts, agree with quadrature."""
    full = COMMITTEE.one_pass(learning_rate=0.1, K=2, d=50)
    limit = COMMITTEE.one_pass(learning_rate=0.1, K=2, d=50, correction=False)
    gram = np.array(
        [[0.6, 0.2, 0.4, 0.1], [0.2, 0.6, 0.1, 0.4], [0.4, 0.1, 1, 0], [0.1, 0.4, 0, 1]]
    )
    values, rows = np.linalg.eigh(gram)
    vectors = rows * np.sqrt(values)
    z, weights = nodes(4, 0.5, 6.5)
    h = vectors @ z
    error = erf(h[0] / np.sqrt(2)) + erf(h[1] / np.sqrt(2))
    error -= erf(h[2] / np.sqrt(2)) + erf(h[3] / np.sqrt(2))
    slopes = error * np.sqrt(2 / np.pi) * np.exp(-(h[:2] ** 2) / 2)
    for k, pair in enumerate([(0, 0), (0, 1)]):
        leading = weights @ (slopes[pair[0]] * slopes[pair[1]])
        squares = np.sum(z**2, axis=0) - 4
        rest = weights @ (slopes[pair[0]] * slopes[pair[1]] * squares)
        assert limit.second_moments(STATE)[k] == pytest.approx(50 * leading, rel=1e-9, abs=0)
        total = 50 * leading + rest
        assert full.second_moments(STATE)[k] == pytest.approx(total, rel=1e-9, abs=0)
        assert abs(rest / leading) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
def test_the_mean_of_one_step_is_that_of_many_runs(batch):
    """After one step in eight dimensions the mean of 1500 runs is within 4 standard errors."""
    for theory, constants in ((COMMITTEE, {"K": 2}), (gated(), {})):
        risk = theory.one_pass(learning_rate=0.5, batch=batch, d=8, **constants)
        start = STATE if constants else np.array(list(risk.problem.start.values()))
        runs = theory.stochastic_runs(
            learning_rate=0.5, steps=1, batch=batch, runs=1500, initial=start, d=8, **constants
        )
        errors = runs.deviation[-1] / np.sqrt(1500)
        moved = risk.step(start, 0.5)
        assert np.all(np.abs(moved - runs.mean[-1]) < 4 * errors)
        without = super(type(risk), risk).step(start, 0.5)
        assert np.any(np.abs(without - runs.mean[-1]) > 6 * errors) or batch > 1


@pytest.mark.parametrize("batch", [1, 4])
def test_the_jacobian_is_the_derivative_of_the_gradient(batch):
    """Each column agrees with a central difference."""
    for theory, start in ((COMMITTEE, STATE), (gated(), np.array([0.8, 0.3]))):
        risk = theory.one_pass(learning_rate=0.2, batch=batch, d=20)
        columns = [
            (risk.gradient(start + 1e-5 * e) - risk.gradient(start - 1e-5 * e)) / 2e-5
            for e in np.eye(len(start))
        ]
        jacobian = risk.jacobian(start)
        within(np.array(columns).T, jacobian, 1e-8 * np.abs(jacobian).max())


@pytest.mark.slow
def test_the_flow_follows_runs_only_with_noise():
    """At d = 200 the flow with noise stays within 2.5 standard deviations of eight runs."""
    options = {"K": 2, "d": 200}
    start = [0.25, 0.0, 0.1, 0.05]
    runs = COMMITTEE.stochastic_runs(
        learning_rate=1 / 200, steps=4000, records=5, runs=8, initial=start, **options
    )
    noisy = COMMITTEE.one_pass(learning_rate=1 / 200, correction=False, **options)
    distances = []
    for risk in (noisy, COMMITTEE.risk(**options)):
        flow = patchdyn.gradient_flow(risk, horizon=20.0, initial=start, rtol=1e-5)
        distances.append(np.max(runs.distance(np.array([flow.at(t) for t in runs.time]))))
    assert distances[0] < 2.5
    assert distances[1] > 5.0


def test_bounds_contain_the_floats():
    """The bounds of the gradient with noise are certified, and small."""
    risk = COMMITTEE.one_pass(learning_rate=0.1, K=2, d=50)
    value = risk.evaluate(STATE)
    within(value.gradient, risk.gradient(STATE), 0.0)
    assert np.all(value.gradient_bound < 1e-13)
    assert np.all(value.gradient_bound > 0.0)


def test_runs_are_reproducible():
    """The seed determines a run, and other seeds give other runs."""
    options = {"learning_rate": 0.1, "steps": 3, "runs": 2, "K": 2, "d": 6}
    first, again = (COMMITTEE.stochastic_runs(**options, seed=1) for _ in range(2))
    assert np.array_equal(first.states, again.states)
    assert not np.array_equal(first.states, COMMITTEE.stochastic_runs(**options, seed=2).states)


@pytest.mark.slow
def test_the_noise_of_sigmoids_of_three_fields_is_an_estimate():
    """The loss of two fields has a bound; three fields in the noise have none."""
    space = Euclidean("coordinate", Size("d"))
    a, b, u, x = *(Vectors(n, space) for n in "ab"), Directions("u", space), Normal("x", space)
    theory = OverlapTheory(
        "two sigmoids", "test", sizes=(Size("d"),), parameters=(a, b), directions=(u,), data=(x,),
        loss=lambda a, b, u, x: ((a @ x).sigmoid() + (b @ x).sigmoid() - (u @ x) / sqrt(2)) ** 2,
    )  # fmt: skip
    assert UserOverlapTheory(theory).one_pass(learning_rate=0.1, d=5).order_parameters
    loss = lambda a, b, u, x: ((a @ x).sigmoid() + (b @ x).sigmoid() - (u @ x).sigmoid()) ** 2  # noqa: E731
    theory = OverlapTheory(
        "three sigmoids", "test", sizes=(Size("d"),), parameters=(a, b), directions=(u,),
        data=(x,), loss=loss,
    )  # fmt: skip
    three = UserOverlapTheory(theory)
    noisy = three.one_pass(learning_rate=0.1, d=5)
    assert noisy.is_estimate
    assert not three.risk(d=5).is_estimate
    value = noisy.evaluate(noisy.problem.initial_state)
    assert 0.0 < value.bound < 1e-12
    assert np.isinf(value.gradient_bound).any()


@pytest.mark.slow
@pytest.mark.traced
def test_vectors_on_spheres_and_other_steps_are_rejected():
    """The mean of a normalized step has no closed form; a risk has one learning rate."""
    location = patchdyn.load_theory(FOLDER / "single_location.py")
    with pytest.raises(TheoryError, match="one-pass SGD of k, v is not allowed"):
        location.one_pass(learning_rate=0.1)
    with pytest.raises(TheoryError, match="none of them on a sphere"):
        location.stochastic_runs(learning_rate=0.1, steps=1)
    risk = COMMITTEE.one_pass(learning_rate=0.1)
    with pytest.raises(ParameterError, match=r"learning_rate = 0\.2 is not allowed"):
        patchdyn.gradient_descent(risk, learning_rate=0.2, steps=1)
    with pytest.raises(ParameterError, match="without weight decay"):
        patchdyn.gradient_descent(risk, learning_rate=0.1, steps=1, optimizer="momentum")
    with pytest.raises(ParameterError, match="a run diverges"):
        gated().stochastic_runs(learning_rate=100.0, steps=400, runs=2, d=6)


@pytest.mark.slow
def test_three_units_have_the_published_plateau_and_escape():
    """At rate 0.1 the loss rests at .0219, and units that differ by 1e-12 escape after 6000."""
    risk = COMMITTEE.one_pass(learning_rate=1e-7, correction=False, K=3, d=10**6)
    run = patchdyn.gradient_flow(risk, horizon=700, initial=[0.25, 0.0, 1e-12, 0.0])
    loss = np.interp([4000.0, 6000.0, 7000.0], run.time / 0.1, run.loss)
    assert loss[0] == pytest.approx(0.0219, rel=2e-3, abs=0)
    assert loss[1] > 0.02
    assert loss[2] < 1e-3
