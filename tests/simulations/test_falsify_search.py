"""A search reports the simplest violation that a more precise run confirms.

The runs have a closed form, so that these tests are fast.
"""

from types import SimpleNamespace

from simulations.falsify import Result, falsify
from simulations.falsify import search as searching
from tests.simulations.test_falsify import known_system, run_of


def search_of(*violations):
    """Return a search with these violations, of which the last is the simplest."""
    search = object.__new__(searching._Search)
    search.violations, search.confirmed = list(violations), violations[0]
    return search


def test_the_simplest_violation_is_reported():
    large, small = SimpleNamespace(name="large"), SimpleNamespace(name="small")
    search = search_of(large, small)
    search._confirm = lambda trial: trial
    assert search._simplest_confirmed() is small
    search._confirm = lambda trial: None if trial is small else trial
    assert search._simplest_confirmed() is large


def test_unconfirmed_violation_is_noise():
    """gamma - rho is -1e7 times the tolerance: below -1e-3 at the default tolerance only."""
    system = known_system(lambda case: run_of(case, lambda t: -1e7 * case.settings["rtol"] * t))
    report = falsify("gamma >= -1e-3", system=system, budget=60, most=5)
    assert not report.falsified
    assert report.results == {Result.NOISE: 5}
    assert report.unconfirmed == 5


def test_first_violation_is_simplified_before_it_is_reported():
    violations = []

    def solve(case):
        violated = case.problem.D % 3 == 0 and case.problem.q < 0.2345
        if violated:
            violations.append(case.problem)
        return run_of(case, lambda t: -t if violated else t)

    report = falsify("gamma >= rho", system=known_system(solve), budget=600)
    problem = report.counterexample.case.problem
    assert report.shrinks > 0
    assert problem != violations[0]
    assert problem.D == min(violation.D for violation in violations) == 6
    assert (problem.p, problem.tau) == (3, 1.0)
