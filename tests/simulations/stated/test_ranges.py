"""Bounds of loss and slopes of a single datum, and of the contribution of omitted orbits.

Trusts: the derived kernel, evaluated at single data orbits.
"""

import math
from pathlib import Path

import numpy as np
import pytest

import symbolic
from dynamics.core.balls.intervals import Interval
from dynamics.theory.data import Orbits, orbits
from dynamics.theory.kernel import mean, mean_function
from dynamics.theory.risk import TheoryRisk
from simulations.stated import examples, ranges
from simulations.stated.law import law
from simulations.stated.ranges import bounds
from simulations.stated.runs import risk
from symbolic.theory import load_theory
from symbolic.theory.source import source
from tests.closeness import close
from tests.symbolic.theory import statements

PACKAGE, EXAMPLES = Path(symbolic.__file__).parent, Path(examples.__file__).parent
POSITIONAL = {"D": 8, "C": 2, "q": 0.3, "nu": 0.01, "beta": 1.0, "p": 3, "kappa": 8, "tau": 1.3}
#: File, sizes, and largest ratio of the bound to the largest loss of a datum.
CASES = {
    "positional": (PACKAGE / "positional" / "stated.py", POSITIONAL, 200.0),
    "masked": (PACKAGE / "masked" / "stated.py", {"G": 3, "C": 2, "N": 2, "M": 3, "z": 1.3}, 10.0),
    "look_up": (EXAMPLES / "look_up.py", {"K": 4, "N": 5}, 4.0),
    "teacher": (EXAMPLES / "teacher.py", {"D": 8, "K": 2, "nu": 1.0}, 200.0),
    "colours": (None, {"n": 2, "m": 3, "p": 0.7}, 1e6),
}


def prepared(name, folder):
    path, values, slack = CASES[name]
    if path is None:
        path = folder / f"{name}.py"
        path.write_text(getattr(statements, name.upper()))
    theory = load_theory(path)
    return theory, theory.checked(values), slack


def function_and_data(theory, values):
    """Return the function ``mean`` of a theory, and all data orbits."""
    return mean_function(source(theory), theory.name), orbits(law(theory, values))


def losses_and_slopes(function, data, values, state):
    """Return losses (orbits,) and slopes (orbits, n) of single data orbits."""
    result = []
    for b in range(len(data.weight)):
        first = tuple(np.array([0, f[b + 1] - f[b]]) for f in data.first)
        rows = tuple(
            tuple(x[f[b] : f[b + 1]] for x in own) for f, own in zip(data.first, data.arrays)
        )
        result.append(mean(function, Orbits(np.ones(1), first, rows), state, list(values.values())))
    return np.array([loss for loss, _ in result]), np.array([slope for _, slope in result])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_datum_exceeds_the_bound(name, tmp_path):
    theory, values, slack = prepared(name, tmp_path)
    largest, (function, data) = bounds(theory, values), function_and_data(theory, values)
    rng = np.random.default_rng(0)
    for spread in (0.1, 1.0, 5.0):
        state = spread * rng.normal(size=len(theory.orders))
        losses, slopes = losses_and_slopes(function, data, values, state)
        loss, steep = largest(state)
        assert np.abs(losses).max() <= loss <= slack * np.abs(losses).max() + 3.0
        assert np.all(np.abs(slopes) <= steep)
        assert np.all(np.isfinite(steep))


@pytest.mark.parametrize("name", ["positional", "look_up"])
@pytest.mark.parametrize("remainder", [1e-2, 1e-5])
def test_contribution_of_omitted_orbits_is_within_the_bound(name, remainder, tmp_path):
    theory, values, _ = prepared(name, tmp_path)
    every, some = risk(theory, **values), risk(theory, remainder=remainder, **values)
    assert every.left_out(every.problem.initial_state)[0] == 0.0
    rng = np.random.default_rng(1)
    for _ in range(5):
        state = rng.normal(size=len(theory.orders))
        loss, slopes = some.left_out(state)
        missed = every.evaluate(state).loss - some.evaluate(state).loss
        assert abs(missed) <= loss
        assert np.all(np.abs(every.gradient(state) - some.gradient(state)) <= slopes)
        assert loss <= 100.0 * remainder or name == "positional"
        close(some.evaluate(state).bound, loss, rel=1e-6)
    assert some.remainder > 0.0


def test_infinite_bounds(tmp_path):
    """For a logarithm of a number that may be 0, and for a risk without a bound of the loss."""
    path = tmp_path / "unbounded.py"
    path.write_text(
        statements.POSITIONAL.replace(
            "model(A, v, s).softplus_of_minus()", "(model(A, v, s) ** 2).log()"
        )
    )
    theory = load_theory(path)
    values = theory.checked({"D": 4, "C": 2, "q": 0.5, "nu": 0.1, "beta": 1.0})
    loss, slopes = bounds(theory, values)(np.array([0.3, 0.1, 0.2]))
    assert loss == math.inf
    assert np.all(slopes == math.inf)
    known = risk(load_theory(CASES["look_up"][0]), K=4, N=5, remainder=1e-2)
    blind = TheoryRisk(known.problem, known.kernels, known_data(known))
    assert blind.left_out([0.0, 0.0])[0] == math.inf
    assert blind.evaluate([0.0, 0.0]).bound == math.inf


def known_data(known):
    _, weight, first, *arrays = known.columns
    return Orbits(weight, (first,), (tuple(arrays),), known.remainder)


@pytest.mark.parametrize(
    ("owner", "what", "wrong"),
    [
        (ranges, "FUNCTIONS", {**ranges.FUNCTIONS, "softplus": lambda x: Interval(0.4, 0.4)}),
        (
            Interval,
            "__mul__",
            lambda x, y: Interval(x.low * y.low, x.high * y.low),
        ),
        (ranges, "UNIT", Interval(0.0, 0.0)),
    ],
)
def test_wrong_rule_is_detected(owner, what, wrong, monkeypatch, tmp_path):
    theory, values, _ = prepared("positional", tmp_path)
    state = np.array([0.5, 0.2, -0.1])
    losses, slopes = losses_and_slopes(*function_and_data(theory, values), values, state)

    def is_valid():
        loss, steep = bounds(theory, values)(state)
        return np.abs(losses).max() <= loss and bool(np.all(np.abs(slopes) <= steep))

    assert is_valid()
    monkeypatch.setattr(owner, what, wrong)
    assert not is_valid()


def test_small_values_of_functions():
    """At -40, (1 + tanh) / 2 has no correct digit of the logistic function."""
    for name, value in (("sigmoid", math.exp(-40.0)), ("softplus", math.exp(-40.0))):
        result = ranges.FUNCTIONS[name](Interval(-40.0, -40.0))
        close([result.low, result.high], [value, value], rel=1e-14)
    with np.errstate(under="ignore"):
        assert ranges.FUNCTIONS["exp"](Interval(-800.0, -800.0)).high > 0.0
