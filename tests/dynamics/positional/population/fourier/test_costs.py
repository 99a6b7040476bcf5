"""Costs of the Fourier method: predictions, limits, and numbers of iterations."""

import numpy as np
import pytest

from dynamics.core.errors import ToleranceError
from dynamics.positional.population.fourier import FourierExpectation, assemble, method
from dynamics.positional.population.fourier.operation_count import operation_bound
from dynamics.positional.population.fourier.set_law import set_law, totals_of
from dynamics.positional.population.fourier.signs import sign, sign_law
from dynamics.positional.problem import Problem, State

LARGE_TEMPERATURE = Problem(D=2048, C=8, q=0.755, temperature=440.0, output_scale=2e-53)


def test_unreachable_goal_needs_one_iteration(monkeypatch):
    """Totals outside the tables contribute 1e-98 to a derivative of 1e-172."""
    designs = []

    def counted(*arguments):
        designs.append(chosen(*arguments))
        return designs[-1]

    chosen = assemble.design
    monkeypatch.setattr(assemble, "design", counted)
    monkeypatch.setattr(assemble, "at_once", lambda *arguments: (None, False))
    expectation = FourierExpectation(LARGE_TEMPERATURE)
    expectation.gradient(LARGE_TEMPERATURE.initial_state)
    assert len(designs) == 1
    assert expectation.effort(LARGE_TEMPERATURE.initial_state).operations < 5e9


def test_distant_saddle_points_are_reached():
    """F and u are of the order 1e5: poor bounds would need too many nodes."""
    problem = Problem(D=128, C=2, q=4 / 128, p=5, nu=128 ** (-2 / 3))
    state = State(0.068, 7.1, -0.7)
    expectation = FourierExpectation(problem, 1e-4)
    assert 0 < expectation.effort(state).nodes < 2e4
    assert np.all(np.isfinite(expectation.jacobian(state)))


@pytest.mark.parametrize(("D", "C", "q"), [(64, 4, 0.1), (10**6, 4, 16e-6), (48, 16, 1e-20)])
def test_chernoff_bounds_of_the_total_are_sharp(D, C, q):
    law = set_law(Problem(D=D, C=C, q=q))
    limit = len(law.log_tail) - 1
    p = law.p_total[law.center - limit : law.center + limit + 1]
    apart = (law.log_probability - np.log(np.maximum(p, 1e-320)))[p > 1e-290]
    assert len(apart) > 4
    assert np.all(apart > -1e-9)
    assert np.all(apart < 6.0)


def test_too_many_operations_raise_before_integration(monkeypatch):
    monkeypatch.setattr(assemble, "MOST_OPERATIONS", 10**6)
    monkeypatch.setattr(assemble, "_integrate", None)  # it must not be called
    with pytest.raises(ToleranceError, match=r"needs \S+e\+\d+ operations a gradient"):
        FourierExpectation(LARGE_TEMPERATURE).gradient(LARGE_TEMPERATURE.initial_state)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-10])
def test_computation_in_parts_is_identical(monkeypatch, tolerance):
    expectation = FourierExpectation(Problem(D=64, C=4, q=0.1), tolerance)
    whole = expectation._run(State(0.3, 0.4, -0.1))
    monkeypatch.setattr(assemble, "OPERATIONS_AT_ONCE", 10**4)
    for first, second in zip(whole, expectation._run(State(0.3, 0.4, -0.1)), strict=True):
        assert np.array_equal(first, second)


@pytest.mark.parametrize(("D", "C", "q"), [(64, 4, 0.1), (1024, 16, 0.02), (4096, 2, 1e-3)])
def test_operation_bound_exceeds_the_count(monkeypatch, D, C, q):
    seen, count = [], method.effort
    monkeypatch.setattr(
        method, "effort", lambda *a: seen.append(operation_bound(*a[:-1])) or count(*a)
    )
    problem = Problem(D=D, C=C, q=q)
    counted = FourierExpectation(problem, 1e-8).effort(problem.initial_state).operations
    assert counted <= seen[0] <= 20 * counted


@pytest.mark.parametrize(("D", "C", "q"), [(2048, 512, 0.5), (10**9, 4, 0.3), (10**6, 10**5, 1)])
def test_too_large_tables_raise_before_they_are_made(monkeypatch, D, C, q):
    monkeypatch.setattr(method, "set_law", None)
    with pytest.raises(ToleranceError, match=r"tables of \S+ numbers \(\S+ totals\)"):
        FourierExpectation(Problem(D=D, C=C, q=q))


def test_predicted_number_of_totals_is_an_upper_bound():
    for D, C, q in ((64, 4, 2 / 64), (10**6, 8, 1e-2), (2048, 8, 0.9), (10**5, 2, 1e-300)):
        problem = Problem(D=D, C=C, q=q)
        assert totals_of(problem) >= 2 * len(set_law(problem).log_tail) - 1


def test_too_many_visits_enlarge_the_bound(monkeypatch):
    problem, state = Problem(D=64, C=4, q=0.1), State(0.3, 0.4, -0.1)
    known = FourierExpectation(problem, 1e-6).evaluate(state)
    monkeypatch.setattr(sign, "_MOST_VISITS", 10)
    unknown = FourierExpectation(problem, 1e-6).evaluate(state)
    assert unknown.test_error_bound > 1e-4 > 1e-6 > known.test_error_bound
    assert abs(unknown.test_error - known.test_error) <= unknown.test_error_bound
    assert unknown.loss == known.loss


def test_too_large_table_of_lone_patches_uses_halves(monkeypatch):
    """The test errors of both algorithms agree."""
    problem = Problem(D=32, C=4, q=0.1)
    reference = FourierExpectation(problem, 1e-6).evaluate(problem.initial_state)
    sign_law.sign_law.cache_clear()
    monkeypatch.setattr(sign_law, "_MOST_NUMBERS", 100)
    other = FourierExpectation(problem, 1e-6).evaluate(problem.initial_state)
    sign_law.sign_law.cache_clear()
    apart = abs(other.test_error - reference.test_error)
    assert apart <= other.test_error_bound + reference.test_error_bound < 1e-4


def test_gradient_needs_no_iteration_for_the_loss(monkeypatch):
    """At this state the loss misses its goal at first; the derivatives do not."""
    passes, assembled = [], assemble.assemble
    monkeypatch.setattr(assemble, "assemble", lambda *a: passes.append(1) or assembled(*a))
    monkeypatch.setattr(assemble, "at_once", lambda *arguments: (None, False))
    expectation = FourierExpectation(Problem(D=64, C=4, q=0.0887, nu=0.022), 1e-6)
    state = State(0.0857, 3.22, -0.0302)
    gradient = expectation.gradient(state)
    assert len(passes) == 1
    expectation.certified_loss(state)
    assert len(passes) == 3
    gap = np.subtract(gradient, expectation.evaluate(state).gradient)
    assert np.all(np.abs(gap) <= 2e-6)
