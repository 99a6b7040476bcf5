"""Requirements on every system, and on the solvers for every system.

Each system is one line of ``SYSTEMS``: a risk, a state different from its initial one, a fixed
point (``None`` if none is available), a learning rate at which it diverges or is unstable
(``None``: there is none), and a horizon over which the state changes.
Reference: the gradient of the theory, as the right-hand side of the flow.
"""

import dataclasses
import io
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from dynamics import (
    Interrupted,
    ParameterError,
    Population,
    Problem,
    Risk,
    Status,
    gradient_descent,
    gradient_flow,
)
from dynamics.core.compiled_gradients import gradient_of
from dynamics.core.crossing import first_passage
from dynamics.core.invariants import loss_non_increasing
from dynamics.core.jit import kernel
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.positional.diagonal import DiagonalPopulation
from dynamics.shallow import ShallowPopulation, ShallowProblem
from tests.closeness import close, within


@dataclass(frozen=True)
class Bowl:
    """The problem of the plain and of the compiled toy."""

    curvature: tuple[float, ...]
    initial_state: tuple[float, ...]


class Quadratic(Risk):
    """``sum_k c_k theta_k^2 / 2``, the smallest theory: plain Python, arrays as states."""

    tolerance, method = 1e-15, "exact"

    def __init__(self, curvature, start):
        self.problem = Bowl(tuple(curvature), tuple(start))
        self.order_parameters = tuple(f"x{k}" for k in range(len(curvature)))
        self.evaluations = 0

    def gradient(self, state):
        self.evaluations += 1
        with np.errstate(over="ignore"):
            return np.multiply(self.problem.curvature, state)

    def jacobian(self, state):
        return np.diag(self.problem.curvature)

    def evaluate(self, state):
        with np.errstate(over="ignore"):
            return Loss(0.5 * float(np.dot(self.gradient(state), state)), 0.0)


class Loss(NamedTuple):
    loss: float
    bound: float


class BowlData(NamedTuple):
    curvature: np.ndarray


@gradient_of(BowlData)
@kernel
def bowl_gradient(data, theta, out):
    for k in range(theta.size):
        out[k] = data.curvature[k] * theta[k]
    return True


class CompiledQuadratic(Quadratic):
    """The same with a gradient that the compiled loop can use."""

    def gradient_plan(self, state):
        return BowlData(np.array(self.problem.curvature))


class System(NamedTuple):
    risk: Risk
    elsewhere: tuple[float, ...]
    fixed: tuple[float, ...] | None
    too_fast: float | None
    horizon: float


SMALL = Problem(D=8, C=2, q=0.3, p=3, nu=0.01, beta=1.0, temperature=1.3)
SHALLOW = ShallowProblem(
    M=4,
    L=6,
    alpha_relevant=0.5,
    alpha_confusion=1 / 6,
    neurons=16,
    xi=0.1,
    key_query=0.7,
    attention_rate=3.0,
)
CURVED, START = (1.0, 0.3, 0.1, 2.0), (1.0, -1.0, 0.5, 2.0)


def beyond_the_hinge(problem):
    """Return a start with such large lucky neurons that no margin is below 1."""
    lucky = [name.startswith("P_") for name in problem.order_parameters]
    return tuple(np.where(lucky, 1e3, 1.0) * problem.initial_state)


SYSTEMS = {
    "positional, enumeration": lambda: System(
        Population(SMALL, tolerance=1e-12), (0.2, 0.1, -0.05), None, 30.0, 2.0
    ),
    "positional, fourier": lambda: System(
        Population(SMALL, "fourier", 1e-10), (0.2, 0.1, -0.05), None, 30.0, 1.0
    ),
    "positional, trained diagonal": lambda: System(
        DiagonalPopulation(Population(SMALL, tolerance=1e-12)),
        (0.2, 0.1, -0.05, 0.9),
        None,
        30.0,
        2.0,
    ),
    "masked, enumeration": lambda: System(
        MaskedPopulation(MaskedProblem(P=8, partitions=(((0, 1, 2, 3), (4, 5), (6, 7)),), query=4)),
        (0.1, 0.3, -0.1, 0.05, 0.1, 0.0, -0.1),
        None,
        None,
        20.0,
    ),
    "shallow, enumeration": lambda: System(
        ShallowPopulation(SHALLOW),
        tuple(1.1 * SHALLOW.initial_state),
        beyond_the_hinge(SHALLOW),
        None,
        0.5,
    ),
    "quadratic, plain": lambda: System(
        Quadratic(CURVED, START), (0.1, 0.2, 0.3, 0.4), (0.0,) * 4, 30.0, 2.0
    ),
    "quadratic, compiled": lambda: System(
        CompiledQuadratic(CURVED, START), (0.1, 0.2, 0.3, 0.4), (0.0,) * 4, 30.0, 2.0
    ),
}


#: The loop of the compiled toy is compiled by its first test.
PARAMS = [
    pytest.param(name, marks=pytest.mark.slow if name == "quadratic, compiled" else ())
    for name in SYSTEMS
]


@pytest.fixture(scope="module", params=PARAMS)
def system(request):
    return SYSTEMS[request.param]()


def tight_flow(system, horizon, initial=None):
    return gradient_flow(system.risk, horizon=horizon, initial=initial, rtol=1e-10, atol=1e-13)


def test_first_record_is_the_initial_state(system):
    start = np.array(system.risk.problem.initial_state, float)
    for run in (
        gradient_descent(system.risk, learning_rate=1e-3, steps=2),
        gradient_flow(system.risk, horizon=1e-3),
    ):
        assert run.time[0] == 0.0
        np.testing.assert_array_equal(run.states[0], start)
        assert run.states.shape == (run.time.size, len(run.order_parameters))
        assert run.order_parameters == tuple(system.risk.order_parameters)


def test_step_is_minus_learning_rate_times_gradient(system):
    start = np.array(system.elsewhere)
    gradient = np.array(system.risk.gradient(system.risk.state(start)))
    run = gradient_descent(system.risk, learning_rate=0.01, steps=1, initial=system.elsewhere)
    np.testing.assert_allclose(run.final, start - 0.01 * gradient, rtol=1e-15, atol=1e-17)


def test_restarted_descent_is_identical(system):
    whole = gradient_descent(system.risk, learning_rate=0.01, steps=50)
    half = gradient_descent(system.risk, learning_rate=0.01, steps=20)
    rest = gradient_descent(system.risk, learning_rate=0.01, steps=30, initial=half.final)
    np.testing.assert_array_equal(rest.final, whole.final)


def test_restarted_flow_has_the_same_end(system):
    whole = tight_flow(system, system.horizon)
    half = tight_flow(system, 0.4 * system.horizon)
    rest = tight_flow(system, 0.6 * system.horizon, half.final)
    within(rest.final, whole.final, 1e-8)
    within(whole.at(0.4 * system.horizon), half.final, 1e-7)


def test_descent_converges_to_the_flow_at_first_order(system):
    exact = np.array(tight_flow(system, system.horizon, system.elsewhere).final)
    steps = np.array([100, 200, 400])
    errors = [
        np.abs(
            np.subtract(
                gradient_descent(
                    system.risk, learning_rate=system.horizon / n, steps=n, initial=system.elsewhere
                ).final,
                exact,
            )
        ).max()
        for n in steps.tolist()
    ]
    assert np.polyfit(-np.log(steps), np.log(errors), 1)[0] == pytest.approx(1.0, abs=0.06)


def test_fixed_point_is_constant(system):
    if system.fixed is None:
        pytest.skip("no state of this theory is known to stay")
    assert not np.any(system.risk.gradient(system.risk.state(np.array(system.fixed))))
    for run in (
        gradient_descent(system.risk, learning_rate=0.1, steps=20, initial=system.fixed),
        gradient_flow(system.risk, horizon=10.0, initial=system.fixed),
    ):
        np.testing.assert_array_equal(run.final, system.fixed)


def test_jacobian_is_the_derivative_of_the_gradient(system):
    here, step = np.array(system.elsewhere), 1e-5
    for k, row in enumerate(np.eye(here.size)):
        ahead = system.risk.gradient(system.risk.state(here + step * row))
        behind = system.risk.gradient(system.risk.state(here - step * row))
        column = system.risk.jacobian(system.risk.state(here))[:, k]
        slope = np.subtract(ahead, behind) / (2 * step)
        np.testing.assert_allclose(slope, column, rtol=1e-5, atol=2e-6)


def test_unstable_rate_is_reported_by_the_status(system):
    if system.too_fast is None:
        pytest.skip("its loss is bounded and falls at any learning rate tried")
    run = gradient_descent(system.risk, learning_rate=system.too_fast, steps=2000)
    assert run.status in (Status.DIVERGED, Status.UNSTABLE)
    assert "lower the learning rate" in run.message
    assert "at step" in run.message
    assert "largest stable one" in run.message
    assert np.isfinite(run.states).all()


def test_invariants_have_names_and_hold(system):
    run = gradient_flow(system.risk, horizon=system.horizon)
    names = [invariant.name for invariant in run.invariants]
    assert len(names) == len(set(names)) > 0
    assert loss_non_increasing.name in names
    assert run.violations() == dict.fromkeys(names, 0.0)
    assert all(invariant.statement and invariant.source for invariant in run.invariants)


def test_state_of_wrong_shape_raises(system):
    names = ", ".join(system.risk.order_parameters)
    for wrong in ((1.0,), 3.0, (*system.elsewhere, 0.0), "9" * 5000):
        with pytest.raises(ParameterError) as caught:
            gradient_flow(system.risk, horizon=1.0, initial=wrong)
        assert names in str(caught.value)
        assert len(str(caught.value)) < 200 + len(names)
    with pytest.raises(ParameterError, match=f"^{system.risk.order_parameters[0]} = nan"):
        gradient_descent(
            system.risk, learning_rate=0.1, steps=1, initial=(np.nan, *system.elsewhere[1:])
        )


def test_ctrl_c_returns_the_completed_records(system):
    def stop(fraction):
        raise KeyboardInterrupt

    for solve in (
        lambda: gradient_descent(system.risk, learning_rate=0.01, steps=10, progress=stop),
        lambda: gradient_flow(system.risk, horizon=1.0, progress=stop),
    ):
        with pytest.raises(Interrupted) as caught:
            solve()
        assert caught.value.trajectory.status is Status.INTERRUPTED
        assert caught.value.trajectory.time.size == 2


def test_first_passage_is_a_crossing(system):
    run = tight_flow(system, system.horizon)
    name = run.order_parameters[0]
    level = float(run.column(name)[[0, -1]].mean())
    sign = np.sign(run.column(name)[-1] - level)
    time = first_passage(run, lambda state: sign * state[0], sign * level)
    close(run.at(time)[0], level, rel=1e-5)
    assert run.at(0.9 * time)[0] * sign < level * sign
    assert np.isnan(first_passage(run, lambda state: 0.0, 1.0))


SOLVERS = {
    "flow": lambda system: gradient_flow(system.risk, horizon=system.horizon, records=20),
    "descent": lambda system: gradient_descent(system.risk, learning_rate=0.01, steps=50),
}


def contained_objects(obj):
    """Yield all objects contained in an object, through fields, mappings and sequences."""
    yield obj
    if isinstance(obj, Mapping):
        inside = obj.values()
    elif isinstance(obj, (tuple, list)):
        inside = obj
    else:
        inside = vars(obj).values() if hasattr(obj, "__dict__") else ()
    for part in inside:
        if not isinstance(part, (type, ModuleType)):
            yield from contained_objects(part)


class Reader(pickle.Unpickler):
    """Unpickler that records the imported names."""

    def find_class(self, module, name):
        self.imported = [*vars(self).get("imported", []), super().find_class(module, name)]
        return self.imported[-1]


@pytest.mark.parametrize("solver", SOLVERS)
class TestRecords:
    def test_trajectory_is_pickled_without_its_risk(self, system, solver):
        run = SOLVERS[solver](system)
        text = pickle.dumps(run)
        reader = Reader(io.BytesIO(text))
        back = reader.load()
        for name in ("time", "states", "loss", "bound"):
            np.testing.assert_array_equal(getattr(back, name), getattr(run, name))
        assert set(back.observed) == set(run.observed)
        for name, values in run.observed.items():
            np.testing.assert_array_equal(back.observed[name], values)
        for time in np.linspace(0.0, run.time[-1], 7):
            np.testing.assert_array_equal(back.at(time), run.at(time))
            assert type(back.at(time)) is type(run.at(time))
        assert back.violations() == run.violations()
        assert (back.status, back.message) == (run.status, run.message)
        assert (back.problem, back.settings, back.stats) == (run.problem, run.settings, run.stats)
        assert not any(
            isinstance(item, type) and issubclass(item, Risk) for item in reader.imported
        )
        names = [getattr(item, "__name__", "") for item in reader.imported]
        assert not {"_again", "_unpickle"} & set(names)
        assert len(text) < 20_000 + 4_000 * run.stats["steps"]

    def test_trajectory_contains_no_risk_or_function(self, system, solver):
        parts = list(contained_objects(SOLVERS[solver](system)))
        assert len(parts) > 20
        assert not any(
            isinstance(part, Risk) or callable(getattr(part, "table", None)) for part in parts
        )
        assert not any(isinstance(part, (FunctionType, MethodType)) for part in parts)

    def test_observation_evaluates_each_record_once(self, system, solver):
        run = dataclasses.replace(SOLVERS[solver](system), observed={})
        observed = system.risk.observe(run)
        assert set(observed.observed) == set(run.observables)
        assert observed.is_observed
        value = system.risk.evaluate(run.state(run.states[-1]))
        for name in run.observables:
            np.testing.assert_array_equal(observed.observed[name][-1], getattr(value, name))


def test_descent_counts_gradients(system):
    run = gradient_descent(system.risk, learning_rate=0.01, steps=50)
    assert run.stats == {"evaluations": 50, "steps": 50}


def test_trajectory_ends_where_the_loss_raises():
    class Overflowing(Quadratic):
        def evaluate(self, state):
            if abs(state[0]) < 0.5:
                raise OverflowError("too small")
            return super().evaluate(state)

    run = gradient_flow(Overflowing(CURVED, START), horizon=2.0)
    assert run.status is Status.OVERFLOW
    assert run.message == "too small"
    assert (run.column("x0") >= 0.5).all()
    assert run.time.size > 2


@pytest.mark.parametrize("method", ["LSODA", "Radau", "BDF"])
def test_jacobian_that_is_not_finite_is_reported_by_the_status(method):
    """A theory whose second derivatives overflow before its gradient does."""

    class Bent(Quadratic):
        def jacobian(self, state):
            return np.full((len(state), len(state)), np.nan)

    run = gradient_flow(Bent(CURVED, START), horizon=1e6, method=method)
    assert run.status in (Status.OVERFLOW, Status.COMPLETED)
    assert np.isfinite(run.states).all()
    if method != "LSODA":  # LSODA uses the Jacobian for stiff problems only
        assert run.status is Status.OVERFLOW


def test_no_stable_learning_rate_after_overflow():
    class Bent(Quadratic):
        def jacobian(self, state):
            return np.full((len(state), len(state)), np.nan)

    assert np.isnan(Bent(CURVED, START).largest_stable_learning_rate(START))
