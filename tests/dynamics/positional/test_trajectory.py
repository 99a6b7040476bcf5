"""Invariants, observables, datasets and provenance of trajectories."""

import dataclasses
import json

import numpy as np
import pytest

from dynamics import (
    ParameterError,
    Population,
    Problem,
    State,
    Status,
    ToleranceError,
    gradient_descent,
    gradient_flow,
)
from dynamics.core.invariants import Violation
from dynamics.positional.trajectory import REDUCED_INVARIANTS, patch_association_fails
from simulations.falsify.check import case_of
from simulations.theories import load
from tests.closeness import close, within


@pytest.fixture(scope="module")
def run():
    return gradient_flow(Population(Problem(D=8, C=2, q=0.3), tolerance=1e-9), horizon=100.0)


def with_states(run, **columns):
    states = run.states.copy()
    for name, values in columns.items():
        states[:, ("alpha", "gamma", "rho").index(name)] = values
    return dataclasses.replace(run, states=states)


class TestViolations:
    def test_invariants_have_names(self, run):
        assert set(run.violations()) == {invariant.name for invariant in REDUCED_INVARIANTS}
        assert all(value == 0.0 for value in run.violations().values())

    def test_gamma_below_rho_is_a_violation(self, run):
        broken = with_states(run, gamma=0.2, rho=np.linspace(0.0, 0.5, run.time.size))
        close(broken.violations()["gamma >= rho"], 0.3, rel=1e-12)
        assert broken.violations()["patch association"] == 1.0

    def test_solver_errors_are_not_violations(self, run):
        assert with_states(run, gamma=0.2, rho=0.2 + 1e-14).violations()["gamma >= rho"] == 0.0

    def test_rising_loss_is_a_violation(self, run):
        loss = run.loss.copy()
        loss[3:] += 0.25
        broken = dataclasses.replace(run, loss=loss)
        rise = loss[3] - loss[2] - run.bound[2] - run.bound[3]
        close(broken.violations()["loss non-increasing"], rise, rel=1e-12)

    def test_rise_is_measured_beyond_the_bounds_of_both_losses(self, run):
        """A rise by 2.5 bounds is a violation of half a bound, a rise by 1.9 bounds is none."""
        bound = np.full(run.time.size, 1e-3)
        for factor, violation in ((2.5, 5e-4), (1.9, 0.0)):
            loss = np.full(run.time.size, 0.5)
            loss[4:] += factor * 1e-3
            broken = dataclasses.replace(run, loss=loss, bound=bound)
            within(broken.violations()["loss non-increasing"], violation, 1e-15)

    def test_resolution_of_a_flow_is_ten_absolute_tolerances(self, run):
        """A difference of 10 to 1000 absolute tolerances is a violation."""
        flow = gradient_flow(Population(run.problem, tolerance=1e-9), horizon=1.0, atol=1e-9)
        for factor, is_violated in ((9.0, False), (11.0, True)):
            broken = with_states(flow, gamma=0.2, rho=0.2 + factor * 1e-9)
            assert (broken.violations()["gamma >= rho"] > 0.0) is is_violated

    def test_resolution_of_descent_is_rounding(self, run):
        population = Population(run.problem, tolerance=1e-9)
        steps = gradient_descent(population, learning_rate=0.01, steps=5)
        for factor, is_violated in ((0.9, False), (1.1, True)):
            broken = with_states(steps, gamma=0.2, rho=0.2 + factor * 1e-13)
            assert (broken.violations()["gamma >= rho"] > 0.0) is is_violated

    def test_times_of_violations_are_reported(self, run):
        """Six records: rho - gamma is 0, 0.1, 0.3, -0.1, 0.2, -0.4, and the first is a tie."""
        run = run.at_records([0, 1, 2, 3, 4, 5])
        rho = np.array([0.0, 0.1, 0.3, -0.1, 0.2, -0.4])
        broken = with_states(run, gamma=0.0, rho=rho)
        result, time = broken.violated(), run.time.tolist()
        assert result["gamma >= rho"] == Violation(0.3, time[2], time[1], time[4], time[0], time[5])
        # about t > 0: the tie at time 0 counts neither way
        assert result["patch association"] == Violation(
            1.0, time[1], time[1], time[4], time[3], time[5]
        )
        assert set(result) == {name for name, worst in broken.violations().items() if worst}

    def test_violations_until_the_end_or_throughout(self, run):
        run = run.at_records([0, 1, 2])
        end = with_states(run, gamma=0.0, rho=np.array([-1.0, -1.0, 1.0])).violated()
        assert (end["gamma >= rho"].begins, end["gamma >= rho"].for_good) == (0.0, None)
        always = with_states(run, gamma=0.0, rho=1.0).violated()["gamma >= rho"]
        assert (always.begins, always.for_good) == (None, None)
        assert (always.first, always.last) == (0.0, run.time[-1])

    def test_known_counterexample_is_a_violation(self):
        """A known counterexample to gamma >= rho, far outside q D <= C."""
        problem = Problem(D=16, C=2, q=0.5, nu=0.001, beta=0.5)
        run = gradient_flow(Population(problem, tolerance=1e-8), horizon=1e5)
        assert run.violations()["gamma >= rho"] == pytest.approx(1.394, abs=2e-3)
        assert run.violations()["patch association"] == 1.0


@pytest.mark.parametrize(
    ("beta", "gamma", "rho", "fails"),
    [
        (1.0, 0.5, 0.1, False),
        (1.0, 0.1, 0.1, True),  # a tie
        (1.0, 0.0, 0.1, True),
        (0.1, 0.5, 0.2, True),  # the patch itself is not among its own Top_C
        (-1.0, 0.5, -2.0, False),
    ],
)
def test_patch_association_uses_exact_comparison(beta, gamma, rho, fails):
    assert bool(patch_association_fails(beta, np.array(gamma), np.array(rho))) is fails
    row = np.array([beta, gamma, gamma, rho, rho, rho])  # the row of A, sorted as Top_3 would
    top = set(np.argsort(-row, kind="stable")[:3])
    reversed_ties = {5 - i for i in np.argsort(-row[::-1], kind="stable")[:3]}
    assert (top == reversed_ties == {0, 1, 2}) is not fails


class TestObserving:
    """Expensive observables are evaluated on request, in one pass over the records."""

    def test_fourier_trajectory_has_no_test_errors(self):
        population = Population(Problem(D=64, C=4, q=8 / 64), "fourier", tolerance=1e-6)
        run = gradient_flow(population, horizon=10.0, records=12)
        assert population.expectation._signs is None
        with pytest.raises(AttributeError, match="the trajectory does not contain test_error"):
            _ = run.test_error
        assert "test_error" not in run.to_dataset()
        observed, last = population.observe(run), population.evaluate(run.final)
        assert observed.test_error.shape == observed.mean_sigmoid.shape == (12,)
        assert observed.test_error[-1] == last.test_error
        assert observed.mean_sigmoid[-1] == last.mean_sigmoid
        assert (run.loss[-1], run.bound[-1]) == (last.loss, last.bound)
        np.testing.assert_array_equal(observed.loss, run.loss)
        np.testing.assert_array_equal(observed.to_dataset()["test_error"], observed.test_error)
        assert population.observe(run.at_records([0, -1])).test_error.shape == (2,)

    def test_enumeration_trajectory_has_test_errors(self, run):
        population = Population(run.problem, tolerance=1e-9)
        assert population.observe(run) is run
        errors = [population.evaluate(run.state(row)).test_error for row in run.states]
        np.testing.assert_array_equal(run.test_error, errors)
        np.testing.assert_array_equal(run.at_records([0, -1]).test_error, [errors[0], errors[-1]])
        again = population.observe(dataclasses.replace(run, observed={}))
        np.testing.assert_array_equal(again.test_error, errors)

    def test_changed_states_have_other_observables(self, run):
        changed = dataclasses.replace(with_states(run, alpha=-0.3), observed={})
        population = Population(run.problem, tolerance=1e-9)
        assert population.observe(changed).test_error[-1] != run.test_error[-1]

    def test_trajectory_of_another_problem_raises(self, run):
        with pytest.raises(ParameterError, match=r"^run = a run on Problem.* is not allowed"):
            Population(Problem(D=8, C=2, q=0.2), tolerance=1e-9).observe(run)


class TestSettings:
    """The settings of a trajectory determine its expectation."""

    @pytest.mark.parametrize(
        "options",
        [
            {"tolerance": 1e-7},
            {"tolerance": 1e-4, "relative": True},
            {"method": "sampling", "samples": 500, "seed": 3},
        ],
    )
    def test_settings_reproduce_the_expectation(self, options):
        problem = Problem(D=8, C=2, q=0.3)
        run = gradient_flow(Population(problem, **options), horizon=1.0, records=5)
        theory = load("positional")
        again = theory.population(case_of(run, theory))
        value = again.certified_loss(run.final)
        assert (value.loss, value.bound) == (run.loss[-1], run.bound[-1])


class TestDataset:
    def test_dataset_has_labels_and_provenance(self, run):
        data = run.to_dataset()
        assert data.sizes == {"time": run.time.size}
        for name in ("alpha", "gamma", "rho", "loss", "test_error", "Lambda", "Gamma", "Xi", "G"):
            assert data[name].dims == ("time",)
            assert data[name].attrs["long_name"]
        np.testing.assert_array_equal(data["alpha"], run.alpha)
        assert json.loads(data.attrs["problem"])["D"] == 8
        assert "numpy" in json.loads(data.attrs["provenance"])
        assert data.attrs["status"] == "completed"

    def test_dataset_is_preserved_by_netcdf(self, run, tmp_path):
        import xarray

        path = tmp_path / "run.nc"
        run.to_dataset().to_netcdf(path, engine="h5netcdf")
        with xarray.open_dataset(path, engine="h5netcdf") as back:
            np.testing.assert_array_equal(back["gamma"], run.gamma)
            assert json.loads(back.attrs["settings"])["expectation"] == "enumeration"


def test_descent_is_interpolated_between_records():
    population = Population(Problem(D=8, C=2, q=0.3), tolerance=1e-9)
    run = gradient_descent(population, learning_rate=0.01, steps=100, record="linear", records=101)
    middle = run.at(0.505)
    close(middle.alpha, (run.alpha[50] + run.alpha[51]) / 2, rel=1e-12)
    assert run.status is Status.COMPLETED
    assert isinstance(run.final, State)


def test_trajectory_without_a_state_reports_overflow():
    """The loss overflows at the initial state."""
    population = Population(Problem(D=8, C=2, q=0.3), tolerance=1e-6)
    run = gradient_flow(population, horizon=1.0, initial=(3e80, 7e17, 1.4))
    assert run.time.size == 0
    with pytest.raises(ToleranceError, match="the trajectory contains no state: tolerance = 1e-06"):
        _ = run.final
