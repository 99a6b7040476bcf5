"""Bounds of risk and gradient of theory files, and their use in runs.

Trusts: the ball arithmetic of FLINT, for the emitted source and for the probabilities of the data.
"""

from dataclasses import replace
from functools import cache
from math import comb
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx

import symbolic
from dynamics import Status, gradient_descent, gradient_flow
from dynamics.core.balls.exact import exact
from dynamics.theory import reference
from dynamics.theory.data import Larger, Law, orbits, relative_errors, ways
from dynamics.theory.risk import TheoryRisk
from simulations.cli import main
from simulations.commands import FAILED
from simulations.stated import runs
from simulations.stated.law import Balls, law
from simulations.stated.system import UserTheorySystem
from symbolic.theory import load_theory
from tests.closeness import close
from tests.example_files import EXAMPLES, enumerated

PACKAGE = Path(symbolic.__file__).parent
PATHS = (*sorted(PACKAGE.glob("*/stated.py")), *enumerated())
FILES = {x.stem if x.parent == EXAMPLES else x.parent.name: x for x in PATHS}
#: Files whose bounds take seconds in balls.
LARGE = {
    "bigram", "causal_structure", "in_context_heads", "induction_head", "markov_chain", "masked",
    "statistical_induction",
}  # fmt: skip
NAMES = [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in FILES]
#: Parameters for which F is a difference of powers near 1e16 at `START`; the exact rho is constant.
CANCELS = {
    "D": 4, "C": 2, "q": 0.9341491900494792, "nu": 0.02729762587532414,
    "beta": -2.3399164081679213, "p": 9, "kappa": 99.8274957070645, "tau": 0.1303155721216529,
}  # fmt: skip
START = [0.5802300446692483, -4.490668982752463, -2.633285240038948]


@cache
def prepared(name):
    """Return a theory, its default problem, its risk, and its data in balls."""
    system = UserTheorySystem(FILES[name])
    problem = system.build({}).problem
    with ctx.workprec(300):
        data = orbits(law(system.theory, problem.values, Balls(problem.values)))
    return system.theory, problem, runs.risk_of(system.theory, problem), data


def enclosed(theory, problem, data, state, bits=2000):
    with ctx.workprec(bits):
        text = runs.source_of(theory)
        return reference.enclosed(text, theory.name, data, state, list(problem.values.values()))


def is_within(value, ball, bound):
    """Return whether a float is certainly within a bound of a narrow ball."""
    if bound == np.inf:
        return True
    with ctx.workprec(2000):
        return bool(abs(exact(float(value)) - ball) <= exact(float(bound)))


@pytest.mark.parametrize("name", NAMES)
def test_risk_and_gradient_are_within_their_bounds(name):
    """At states near the start, late in training, near 0, near ties and with overflow."""
    theory, problem, risk, data = prepared(name)
    rng = np.random.default_rng(list(name.encode()))
    n, finite = len(problem.start), 0
    states = [problem.initial_state + spread * rng.normal(size=n)
              for spread in (1e-9, 0.1, 1.0, 1.0, 8.0, 40.0, 300.0, 1e6, 1e60)]  # fmt: skip
    states += [np.full(n, 1.0) + 1e-7 * rng.normal(size=n), np.zeros(n), 1e-200 * np.ones(n)]
    for state in states:
        try:
            value = risk.evaluate(state)
        except OverflowError:
            continue
        balls = enclosed(theory, problem, data, state)
        if not all(ball.is_finite() for ball in balls):
            continue  # numbers beyond the range of the reference decide nothing
        result = [(value.loss, value.bound), *zip(value.gradient, value.gradient_bound)]
        assert all(bound >= 0.0 for _, bound in result)
        assert all(is_within(*(x, ball, bound)) for (x, bound), ball in zip(result, balls))
        finite += sum(bound < np.inf for _, bound in result)
    assert finite >= 0.5 * len(states) * (n + 1)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_are_small_at_ordinary_states(name):
    """At most 1e-12 of the loss and of the largest slope."""
    _, problem, risk, _ = prepared(name)
    rng = np.random.default_rng(0)
    for _ in range(10):
        state = problem.initial_state + 0.3 * rng.normal(size=len(problem.start))
        value = risk.evaluate(state)
        assert value.bound <= 1e-12 * value.loss
        assert value.gradient_bound.max() <= 1e-12 * np.abs(value.gradient).max()


def test_powers_that_cancel():
    theory = load_theory(FILES["positional"])
    risk = runs.risk(theory, **CANCELS)
    value = risk.evaluate(START)
    assert abs(value.gradient[2]) > 0.02
    assert value.gradient_bound[2] > abs(value.gradient[2])
    with ctx.workprec(300):
        data = orbits(law(theory, risk.problem.values, Balls(risk.problem.values)))
    balls = enclosed(theory, risk.problem, data, START)
    assert abs(balls[3]) < 1e-6
    assert is_within(value.gradient[2], balls[3], value.gradient_bound[2])


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["flow", "gd"])
def test_run_ends_when_it_is_driven_by_rounding(solver):
    risk = runs.risk(load_theory(FILES["positional"]), **CANCELS)
    if solver == "gd":
        run = gradient_descent(risk, learning_rate=0.1, steps=1000, initial=START)
    else:
        run = gradient_flow(risk, horizon=100.0, initial=START)
    assert run.status is Status.INACCURATE
    assert "the gradient in rho is below the bound of its rounding error from time" in run.message
    assert np.abs(run.states - START).max() <= 1e-10 + 1e-7 * 5.0


def test_command_reports_an_inaccurate_run(capsys):
    options = [f"--{name}={value!r}" for name, value in CANCELS.items()]
    options += [f"--{name}0={x!r}" for name, x in zip(("alpha", "gamma", "rho"), START)]
    code = main(["run", "--theory", str(FILES["positional"]), *options, "--solver", "gd",
                 "--learning-rate", ".1", "--steps", "1000"])  # fmt: skip
    text = capsys.readouterr().out
    assert code == FAILED
    assert "inaccurate: the gradient in rho is below the bound of its rounding error" in text
    assert "largest error of a gradient entry (certified)" in text


def test_run_that_converges_is_complete():
    """At the end, slopes are below their bounds and the state is constant."""
    theory = load_theory(FILES["teacher"])
    run = gradient_flow(runs.risk(theory, D=16, K=4, nu=1.0), horizon=1e6)
    assert run.status is Status.COMPLETED
    assert run.gradient_bound.shape == run.states.shape
    close(run.to_dataset()["gradient_bound"], run.gradient_bound.max(axis=1), rel=1e-15)


@pytest.mark.parametrize("part", ["weight", "array"])
def test_errors_of_data_are_part_of_the_bound(part):
    """Relative errors of 1e-9 of probabilities, or of values of the data."""
    theory, problem, risk, _ = prepared("positional")
    data = orbits(law(theory, problem.values))
    known = list(runs._errors(theory, problem, law(theory, problem.values)))
    known[0 if part == "weight" else -1] = 1e-9
    if part == "weight":
        changed = replace(data, weight=data.weight * (1.0 + 1e-9), errors=tuple(known))
    else:
        arrays = (*data.arrays[0][:-1], data.arrays[0][-1] * (1.0 + 1e-9))
        changed = replace(data, arrays=(arrays,), errors=tuple(known))
    other = TheoryRisk(problem, risk.kernels, changed)
    state = [0.4, 0.6, -0.3]
    right, off = risk.evaluate(state), other.evaluate(state)
    moved = abs(off.loss - right.loss)
    assert 1e-12 < moved <= off.bound <= 1e-7
    assert np.all(np.abs(off.gradient - right.gradient) <= off.gradient_bound)
    assert right.bound < 1e-13


def test_error_of_the_fast_kernel_is_part_of_the_bound():
    """It may reorder sums: the bounds are those of the strict kernel plus the difference."""
    theory, problem, risk, _ = prepared("look_up")

    def off(*arguments):
        loss = risk.kernels.mean(*arguments)
        arguments[1][:] += 1e-6
        return loss + 1e-7

    off.__globals__.pop("rows", None)
    known = law(theory, problem.values)
    other = TheoryRisk(problem, risk.kernels._replace(mean=off), orbits(known))
    value = other.evaluate([0.3, -0.2])
    close(value.bound, 1e-7, rel=1e-5)
    close(value.gradient_bound, np.full(2, 1e-6), rel=1e-5)


def test_relative_errors_of_probabilities():
    """Three types with probabilities that are not floats."""

    def law_of(number, probabilities):
        values = np.array([[number(1)], [number(0)], [number(1) / 3]])
        return Law(
            (Larger(40, values, np.array(probabilities), np.zeros((3, 0), int), ()),), (), ()
        )

    with ctx.workprec(200):
        thirds = [arb(1) / 3, arb(1) / 7, 1 - arb(1) / 3 - arb(1) / 7]
        balls = law_of(arb, thirds)
        floats = law_of(float, [float(x) for x in thirds])
        errors = relative_errors(floats, balls)
        off = [abs(exact(float(x)) / y - 1) for x, y in
               zip(orbits(floats).weight, orbits(balls).weight)]  # fmt: skip
        assert all(x <= exact(errors[0]) for x in off)
        assert errors[0] < 1e-13
        assert errors[1] == 0.0
        assert abs(exact(1 / 3) * 3 - 1) <= exact(errors[2]) < 1e-15
        wrong = law_of(float, [1e-9 + float(x) for x in thirds])
        assert relative_errors(wrong, balls)[0] > 40e-9
        none = law_of(float, [0.0, *map(float, thirds[1:])])
        assert relative_errors(none, balls)[0] == np.inf


@pytest.mark.parametrize(("size", "count", "probability"), [(1000, 500, 0.2), (3000, 1500, 0.5)])
def test_factors_outside_the_range_of_floats(size, count, probability):
    result = ways(size, count, probability)
    assert isinstance(result, arb)
    with ctx.workprec(300):
        wanted = comb(size, count) * exact(probability) ** count
        assert abs(result / wanted - 1) < 1e-13
