"""Theories in overlaps: published numbers, the dense check, exact steps and bounds."""

import json
from pathlib import Path

import numpy as np
import pytest
from flint import ctx

import patchdyn
from dynamics import ParameterError
from dynamics.core.balls.exact import exact
from dynamics.overlaps.moments import BALLS
from simulations.cli import main
from simulations.stated import examples, overlap_check, overlap_findings
from simulations.stated.overlaps import UserOverlapTheory
from simulations.stated.overlaps import risk as risk_of
from simulations.stated.system import UserTheorySystem
from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Size, Vectors, sqrt
from symbolic.theory import Exchangeable, TheoryError
from tests.closeness import close, within

FOLDER = Path(examples.__file__).parent
NAMES = ("saad_solla", "single_location", "semantic_positional")
THEORIES = {name: patchdyn.load_theory(FOLDER / f"{name}.py") for name in NAMES}
STATES = {
    "saad_solla": {"Q": 0.6, "C": 0.2, "R": 0.4, "S": 0.1},
    "single_location": {"kappa": 0.3, "nu": 0.4, "theta": 0.2, "eta": -0.1, "rho": 0.15},
    "semantic_positional": {"q": 0.9, "semantic": 0.5, "positional": 0.3, "r": 0.2},
}


def reduced(name, **values):
    """Return the risk of an example and the state of its check value."""
    statement = THEORIES[name].statement
    given = {k: x for k, x in statement.defaults.items() if k != "horizon"}
    risk = risk_of(statement, statement.checked({**given, **values}))
    return risk, np.array([STATES[name][x] for x in risk.order_parameters])


def two_units():
    """Return Saad and Solla's machine with two units that are not exchangeable."""
    space = Euclidean("coordinate", Size("d"))
    x = Normal("x", space)
    a, b = Vectors("a", space), Vectors("b", space)
    u, v = Directions("u", space), Directions("v", space)

    def loss(a, b, u, v, x):
        def unit(w):
            return (w @ x / sqrt(2)).erf()

        return (unit(a) + unit(b) - unit(u) - unit(v)) ** 2 / 2

    theory = OverlapTheory(
        "two units", "test", sizes=(Size("d"),), parameters=(a, b), directions=(u, v), data=(x,),
        loss=loss,
    )  # fmt: skip
    return risk_of(theory, {"d": 100})


def test_loss_and_step_of_two_units_are_the_published_ones():
    """Loss and one step of descent of Saad and Solla's machine, computed outside the package."""
    risk = two_units()
    start = {"a.a": 0.6, "a.b": 0.2, "b.b": 0.5, "a.u": 0.4, "a.v": 0.1, "b.u": 0.15, "b.v": 0.3}
    state = [start[name] for name in risk.order_parameters]
    assert risk.evaluate(state).loss == pytest.approx(0.3010816536177, rel=2e-13, abs=0)
    assert risk.evaluate(state).bound < 1e-15
    after = dict(zip(risk.order_parameters, risk.step(state, 0.7)))
    expected = {
        "a.a": 0.5651729778, "a.b": 0.1343613635, "b.b": 0.4806907593, "a.u": 0.5196721459,
        "a.v": 0.2393811853, "b.u": 0.2548036112, "b.v": 0.4573862422,
    }  # fmt: skip
    assert {k: float(x) for k, x in after.items()} == pytest.approx(expected, rel=3e-10, abs=0)


@pytest.mark.parametrize("K", [2, 3, 7, 1000])
def test_the_symmetric_plateau_is_a_fixed_point_with_the_published_escape_rate(K):
    """Q = C = 1/(2K-1), R = S = 1/sqrt(K(2K-1)); the escape rate is a formula in K."""
    risk, _ = reduced("saad_solla", K=K, d=2 * K)
    q, r = 1.0 / (2 * K - 1), 1.0 / np.sqrt(K * (2 * K - 1))
    state = np.array([dict(Q=q, C=q, R=r, S=r)[name] for name in risk.order_parameters])
    within(risk.gradient(state), 0.0, 1e-15)
    rates = -np.linalg.eigvals(risk.jacobian(state)).real
    formula = 2 / np.pi * K / (np.sqrt(2 * K - 1) * (2 * K + 1) ** 1.5)
    assert rates.max() == pytest.approx(formula, rel=1e-9, abs=0)
    if K == 2:
        assert risk.evaluate(state).loss == pytest.approx(0.0116108403127, rel=3e-12, abs=0)


def test_single_location_has_the_numbers_computed_outside():
    """Risk and a coefficient of the gradient of Marion et al., and the risk of the solution."""
    risk, state = reduced("single_location", gamma=0.5**0.5)
    assert risk.evaluate(state).loss == pytest.approx(2.6605423700517, rel=1e-13, abs=0)
    slopes = dict(zip(risk.order_parameters, risk._at(state).gradient))
    assert slopes["kappa"] == pytest.approx(10.6947436516, rel=1e-11, abs=0)
    solution = np.array([dict(kappa=1, nu=1).get(name, 0) for name in risk.order_parameters], float)
    assert risk.evaluate(solution).loss == pytest.approx(0.1134980829647, rel=1e-12, abs=0)


def test_projected_descent_on_the_sphere_has_the_numbers_computed_outside():
    """On the invariant manifold the other overlaps stay 0 and nu comes first."""
    risk, _ = reduced("single_location", gamma=0.5**0.5)
    start = [dict(kappa=0.3, nu=0.4).get(name, 0.0) for name in risk.order_parameters]
    run = patchdyn.gradient_descent(risk, learning_rate=4e-3, steps=500, initial=start)
    final = dict(zip(risk.order_parameters, run.final))
    assert final["rho"] == final["theta"] == final["eta"] == 0.0
    assert final["nu"] > final["kappa"] > 0.3
    assert run.loss[-1] < run.loss[0]


def test_semantic_attention_has_the_numbers_computed_outside():
    """Loss and coefficients of the gradient of softmax attention of two tokens."""
    risk, state = reduced("semantic_positional")
    value = risk.evaluate(state)
    assert value.loss == pytest.approx(0.0976229666696, rel=1e-12, abs=0)
    assert value.bound < 1e-11
    expected = [0.0951390983, -0.0593891408, -0.0288975384, 0.0402822969]
    within(risk.coefficients(state)[:4], expected, 1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_contain_the_balls_and_are_small(name):
    """Loss and gradient lie within the certified bounds."""
    risk, state = reduced(name)
    value = risk.evaluate(state)
    assert 0.0 < value.bound < 1e-11
    assert np.all(value.gradient_bound < 1e-8)
    with ctx.workprec(200):
        gram = [*map(exact, state.tolist()), *risk._fixed]
        certified = risk._balls.at(gram, len(state), BALLS)[0].value
        assert abs(certified - exact(value.loss)) <= exact(value.bound) + certified.rad()


@pytest.mark.parametrize("name", NAMES)
def test_the_jacobian_is_the_derivative_of_the_gradient(name):
    """Each column agrees with a central difference."""
    risk, state = reduced(name)
    step = 1e-5
    columns = [
        (risk.gradient(state + step * e) - risk.gradient(state - step * e)) / (2 * step)
        for e in np.eye(len(state))
    ]
    jacobian = risk.jacobian(state)
    within(np.array(columns).T, jacobian, 1e-8 * max(1.0, np.abs(jacobian).max()))


SMALL = {
    "saad_solla": {"K": 2, "d": 5},
    "single_location": {"L": 3, "d": 5, "lam": 0.4},
    "semantic_positional": {"d": 5, "c": 0.5},
}


def vectors_and_overlaps(name):
    """Return a small risk, the dense model, random vectors and the function to overlaps."""
    statement = THEORIES[name].statement
    risk, _ = reduced(name, **SMALL[name])
    numbers = dict(risk.problem.values)
    dense = overlap_check.dense_model(statement, numbers)
    vectors = overlap_check.random_vectors(statement, numbers, np.random.default_rng(3))
    positions = list(overlap_check.orbits(statement, numbers).values())
    return risk, dense, vectors, lambda x: overlap_check.state_of(x, positions)


@pytest.mark.parametrize("name", SMALL)
def test_descent_on_overlaps_is_descent_on_vectors(name):
    """Two large steps agree with vectors in five dimensions to 1e-12."""
    risk, dense, vectors, overlaps = vectors_and_overlaps(name)
    state = overlaps(vectors)
    for _ in range(2):
        loss, vectors, _ = dense.step(vectors, 0.5)
        assert risk.loss(state) == pytest.approx(loss, rel=1e-12, abs=0)
        state = risk.step(state, 0.5)
        within(state, overlaps(vectors), 1e-12)


OPTIMIZERS = [
    {"weight_decay": 0.2},
    {"optimizer": "momentum", "momentum": 0.7},
    {"optimizer": "momentum", "momentum": 0.6, "weight_decay": 0.3},
]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("options", OPTIMIZERS)
def test_momentum_and_weight_decay_are_those_of_the_vectors(name, options):
    """Three steps of the solver agree with vectors and velocities to 1e-12."""
    risk, dense, vectors, overlaps = vectors_and_overlaps(name)
    run = patchdyn.gradient_descent(
        risk, learning_rate=0.4, steps=3, initial=overlaps(vectors), record="linear", **options
    )
    constants = {key: value for key, value in options.items() if key != "optimizer"}
    velocity = np.zeros_like(vectors)
    for row in run.states[1:]:
        _, vectors, velocity = dense.step(vectors, 0.4, velocity=velocity, **constants)
        within(row, overlaps(vectors), 1e-12)
    plain = patchdyn.gradient_descent(
        risk, learning_rate=0.4, steps=3, initial=run.states[0], record="linear"
    )
    assert np.abs(plain.final - run.final).max() > 1e-3


def test_the_step_is_quadratic_in_the_learning_rate():
    """Third differences vanish, second ones do not; the slope is minus the gradient."""
    risk, state = reduced("saad_solla")
    steps = [risk.step(state, 0.5 * k) for k in range(4)]
    within(steps[3] - 3 * steps[2] + 3 * steps[1] - steps[0], 0.0, 1e-15)
    curvature = steps[2] - 2 * steps[1] + steps[0]
    assert curvature.max() > 1e-3
    close(steps[0], state, 1e-15)
    slope = (steps[1] - steps[0]) / 0.5 - curvature / (2 * 0.5)
    within(slope, -risk.gradient(state), 1e-14)


def test_gradient_descent_takes_exact_steps():
    """The solver and repeated steps agree; the linear step does not."""
    risk, state = reduced("saad_solla")
    run = patchdyn.gradient_descent(risk, learning_rate=0.7, steps=20, initial=state)
    linear = state
    for _ in range(20):
        state, linear = risk.step(state, 0.7), linear - 0.7 * risk.gradient(linear)
    within(run.final, state, 1e-13)
    assert np.abs(linear - state).max() > 1e-3


def test_the_flow_is_the_limit_of_small_steps():
    """Descent with a small rate ends near the flow."""
    risk, state = reduced("saad_solla")
    flow = patchdyn.gradient_flow(risk, horizon=1.0, initial=state)
    run = patchdyn.gradient_descent(risk, learning_rate=1e-3, steps=1000, initial=state)
    within(run.final, flow.final, 2e-3)


@pytest.mark.parametrize("optimizer", ["adam", "sign"])
def test_other_optimizers_are_rejected(optimizer):
    """Adam and sign descent do not commute with rotations."""
    risk, _ = reduced("saad_solla")
    with pytest.raises(ParameterError, match="commute with rotations"):
        patchdyn.gradient_descent(risk, learning_rate=0.1, steps=1, optimizer=optimizer)


def test_impossible_overlaps_are_rejected():
    """No vectors have an overlap larger than their norms."""
    risk, _ = reduced("saad_solla")
    with pytest.raises(ParameterError, match="negative eigenvalue"):
        patchdyn.gradient_flow(risk, horizon=1.0, initial=[0.1, 0.0, 0.9, 0.0])


def test_too_few_dimensions_are_rejected():
    """Four vectors need four dimensions."""
    with pytest.raises(TheoryError, match="3 dimensions for 4 vectors"):
        reduced("saad_solla", d=3)


def test_a_single_unit_has_no_overlaps_of_others():
    """At K = 1 the overlaps of different units do not exist."""
    risk, _ = reduced("saad_solla", K=1)
    assert risk.order_parameters == ("Q", "R")
    run = patchdyn.gradient_flow(risk, horizon=300.0, initial=[0.1, 0.1])
    within(run.final, 1.0, 1e-6)


def test_a_theory_in_overlaps_has_one_sentence_where_it_is_not_supported():
    """The loader of index sets names the alternative."""
    from symbolic.theory import load_theory

    with pytest.raises(TheoryError, match="theory in overlaps"):
        load_theory(FOLDER / "saad_solla.py")


def test_run_on_the_command_line(capsys):
    """`run --theory` reads a theory in overlaps, with sizes and initial overlaps as options."""
    file = str(FOLDER / "saad_solla.py")
    options = "--K 3 --Q0 0.5 --C0 0 --R0 0.1 --S0 0.05 --solver gd --learning-rate 0.5 --steps 4"
    assert main(["run", "--theory", file, *options.split(), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    risk, _ = reduced("saad_solla", K=3)
    state = np.array([0.5, 0.0, 0.1, 0.05])
    for _ in range(4):
        state = risk.step(state, 0.5)
    assert result["outcomes"]["loss"] == pytest.approx(risk.loss(state), rel=1e-13, abs=0)


def relu_units():
    """Return a machine of rectified linear units, student and teacher over one set."""
    d, K = Size("d"), Size("K")
    space, unit = Euclidean("coordinate", d), Exchangeable("unit", K)
    x = Normal("x", space, variance=0.7)
    J, B = Vectors("J", (unit, space)), Directions("B", (unit, space))

    def loss(J, B, x):
        return ((J["k"] @ x).relu().sum("k") - (B["m"] @ x).relu().sum("m")) ** 2 / 2

    return UserOverlapTheory(
        OverlapTheory(
            "rectified units", "test", sizes=(d, K), parameters=(J,), directions=(B,), data=(x,),
            loss=loss, defaults={"K": 2, "d": 9},
        )
    )  # fmt: skip


def test_rectified_units_agree_with_vectors_and_have_bounds():
    """Loss, gradient and Jacobian of relu: closed forms against vectors and differences."""
    theory = relu_units()
    assert theory.check().overlaps < 1e-13
    risk, state = theory.risk(), np.array([0.6, 0.2, 0.4, 0.1])
    value = risk.evaluate(state)
    assert 0.0 < value.bound < 1e-15
    columns = [
        (risk.gradient(state + 1e-5 * e) - risk.gradient(state - 1e-5 * e)) / 2e-5
        for e in np.eye(4)
    ]
    within(np.array(columns).T, risk.jacobian(state), 1e-9)
    run = patchdyn.gradient_flow(risk, horizon=200.0, initial=state)
    assert run.final[2] > 0.99


def test_the_noise_of_one_rectified_unit_is_that_of_runs():
    """With one unit two fields suffice; for many units the orthant of four fields is rejected."""
    space = Euclidean("coordinate", Size("d"))
    w, u, x = Vectors("w", space), Directions("u", space), Normal("x", space)
    theory = UserOverlapTheory(
        OverlapTheory(
            "one rectified unit", "test", sizes=(Size("d"),), parameters=(w,), directions=(u,),
            data=(x,), loss=lambda w, u, x: ((w @ x).relu() - (u @ x).relu()) ** 2 / 2,
        )
    )  # fmt: skip
    start = np.array([0.6, 0.4])
    risk = theory.one_pass(learning_rate=0.3, d=6)
    runs = theory.stochastic_runs(learning_rate=0.3, steps=1, runs=1500, initial=start, d=6)
    errors = runs.deviation[-1] / np.sqrt(1500)
    assert np.all(np.abs(risk.step(start, 0.3) - runs.mean[-1]) < 4 * errors)
    without = super(type(risk), risk).step(start, 0.3)
    assert np.any(np.abs(without - runs.mean[-1]) > 6 * errors)
    with pytest.raises(TheoryError, match="orthant of four normal variables"):
        relu_units().one_pass(learning_rate=0.3)


def one_field(loss):
    """Return a theory of one trained vector, one direction and one datum."""
    space = Euclidean("coordinate", Size("d"))
    w, u, x = Vectors("w", space), Directions("u", space), Normal("x", space)
    return UserOverlapTheory(
        OverlapTheory(
            "one field", "test", sizes=(Size("d"),), parameters=(w,), directions=(u,), data=(x,),
            loss=loss, start={"w.w": 0.6, "w.u": 0.3},
        )
    )  # fmt: skip


def test_the_loss_of_two_perceptrons_is_their_angle():
    """Descent on steps agrees with vectors; its rate follows from the angle over pi."""
    theory = one_field(lambda w, u, x: ((w @ x).step() - (u @ x).step()) ** 2)
    assert theory.check().overlaps < 1e-12
    risk = theory.risk(d=5)
    cosine = 0.3 / np.sqrt(0.6)
    assert risk.loss([0.6, 0.3]) == pytest.approx(np.arccos(cosine) / np.pi, rel=1e-14, abs=0)
    assert 0.0 < risk.evaluate([0.6, 0.3]).bound < 1e-15
    slope = 1.0 / (np.pi * np.sqrt(1.0 - cosine**2) * np.sqrt(0.6))  # of w u, minus w u / q at w w
    expected = [0.0, -slope * (1.0 - 0.3**2 / 0.6)]
    order = [risk.order_parameters.index(name) for name in ("w.w", "w.u")]
    within(risk.gradient([0.6, 0.3])[order], expected, 1e-14)


def test_runs_on_labels_that_jump():
    """The labels of a perceptron allow one-pass SGD, a student that jumps does not."""
    theory = one_field(lambda w, u, x: ((w @ x) - (u @ x).step()) ** 2 / 2)
    start = np.array([0.6, 0.3])
    risk = theory.one_pass(learning_rate=0.2, d=6)
    runs = theory.stochastic_runs(learning_rate=0.2, steps=1, runs=1500, initial=start, d=6)
    errors = runs.deviation[-1] / np.sqrt(1500)
    assert np.all(np.abs(risk.step(start, 0.2) - runs.mean[-1]) < 4 * errors)
    jumps = one_field(lambda w, u, x: ((w @ x).step() - (u @ x).step()) ** 2)
    with pytest.raises(TheoryError, match="step of a field of w is not allowed in one-pass SGD"):
        jumps.stochastic_runs(learning_rate=0.2, steps=1, d=6)


def test_three_functions_are_an_estimate():
    """They agree with vectors and differences, and have no certified digits."""
    theory = one_field(
        lambda w, u, x: (w @ x).sigmoid() * (u @ x).tanh() * (w @ x + u @ x).erf() + (w @ x) ** 2
    )
    assert theory.check().overlaps < 1e-12
    risk, state = theory.risk(d=5), np.array([0.6, 0.3])
    assert risk.is_estimate
    assert "without a bound" in risk.reason
    assert risk.evaluate(state).bound == np.inf
    digits = overlap_findings.digits(risk, state)
    assert digits.proved["risk"] == 0
    assert "none, the risk is an estimate without a bound" in digits.sentence
    assert UserTheorySystem.estimates[risk.method].startswith("an estimate")
    columns = [
        (risk.gradient(state + 1e-5 * e) - risk.gradient(state - 1e-5 * e)) / 2e-5
        for e in np.eye(2)
    ]
    within(np.array(columns).T, risk.jacobian(state), 1e-9)
