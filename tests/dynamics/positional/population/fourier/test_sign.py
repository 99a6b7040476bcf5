"""Test error and ties: both algorithms compared with enumeration, each other and samples."""

import math

import pytest

from dynamics import Problem, State
from dynamics.positional.population.fourier import FourierExpectation
from dynamics.positional.population.fourier.signs import sign_law
from tests.dynamics.positional.ball_reference import contains, reference
from tests.dynamics.positional.population.fourier.test_fourier import all_patterns, sampled

LATE = State(0.0215, 12.1, -0.744)
STATES = [
    State(0.3, 0.0, 0.0),  # all attention equal: F has few values, each with many multisets
    State(0.3, 0.4, -0.1),
    State(0.3, 1e-9, 0.0),  # nearly equal: clusters tighter than a bucket, wider than rounding
    State(0.2, -1.0, 0.5),
    State(-0.2, 6.0, 1.0),
]


@pytest.fixture
def by_halves(monkeypatch):
    """Use the algorithm with halves."""
    monkeypatch.setattr(sign_law, "ENOUGH", -1.0)
    monkeypatch.setattr(sign_law, "_crowded_law", lambda *_: (None, 1.0))
    monkeypatch.setattr(sign_law, "halves_law", lambda *given: halves_law(*given[:2], 1e-12))


halves_law = sign_law.halves_law


@pytest.fixture(autouse=True)
def clear_cache():
    """Tests replace parts of the enumerations, which are cached between problems."""
    sign_law.sign_law.cache_clear()
    yield
    sign_law.sign_law.cache_clear()


class TestHalves:
    @pytest.mark.parametrize(
        ("D", "C"), [(12, 4), pytest.param(12, 2, marks=pytest.mark.slow), (8, 4)]
    )
    @pytest.mark.parametrize("q", [0.05, 0.4, 0.9, 1.0])
    def test_errors_agree_with_all_patterns(self, by_halves, D, C, q):
        problem = Problem(D=D, C=C, q=q, nu=0.05)
        oracle, expectation = all_patterns(problem), FourierExpectation(problem, 1e-9)
        for state in STATES:
            value = expectation.evaluate(state)
            wrong, wrong_or_tie, near = oracle.signs(state)
            # attention so nearly equal that rounding leaves some signs open: they are in the bound
            open_ = 0.05 if state.gamma == 1e-9 else 1e-9
            assert value.test_error_bound <= open_
            allowed = value.test_error_bound + 1e-13
            assert wrong - allowed <= value.test_error <= wrong_or_tie + allowed
            assert value.ties <= near + allowed

    def test_bound_covers_pruned_halves(self, monkeypatch):
        """With a coarse enumeration the error is below the bound, and the bound is of its size."""
        problem = Problem(D=12, C=2, q=0.4, nu=0.05)
        oracle = all_patterns(problem)
        monkeypatch.setattr(sign_law, "_crowded_law", lambda *_: (None, 1.0))
        monkeypatch.setattr(sign_law, "halves_law", lambda *given: halves_law(*given[:2], 0.05))
        expectation = FourierExpectation(problem, 1e-9)
        for state in STATES:
            value = expectation.evaluate(state)
            wrong, wrong_or_tie, _ = oracle.signs(state)
            assert value.test_error_bound < 0.05
            if state.gamma != state.rho:  # else all of T = 0 ties, enumerated or not
                assert value.test_error_bound > 1e-4
            assert wrong - value.test_error_bound <= value.test_error
            assert value.test_error <= wrong_or_tie + value.test_error_bound

    @pytest.mark.parametrize("state", [State(0.1, 0.0, 0.0), State(0.05, 1.0, -0.06)], ids=str)
    def test_halves_and_crowded_sets_agree(self, monkeypatch, state):
        problem = Problem(D=64, C=2, q=0.5)
        crowded = FourierExpectation(problem, 1e-9)
        first = crowded.evaluate(state)
        sign_law.sign_law.cache_clear()
        monkeypatch.setattr(sign_law, "_crowded_law", lambda *_: (None, 1.0))
        halves = FourierExpectation(problem, 1e-9)
        other = halves.evaluate(state)
        assert crowded._signs.halves is None
        assert halves._signs.halves is not None
        allowed = first.test_error_bound + other.test_error_bound
        assert allowed < 1e-8
        assert abs(first.test_error - other.test_error) <= allowed
        assert abs(first.ties - other.ties) <= allowed


class TestCoarseSigns:
    def test_bound_covers_totals_decided_by_chernoff_bounds(self):
        """With a fine enumeration and a coarse tolerance these totals are the main error."""
        most = 0.0
        for problem in (Problem(D=12, C=2, q=0.4), Problem(D=12, C=4, q=0.9, nu=0.5)):
            expectation = FourierExpectation(problem, 1e-3)
            fine = sign_law.sign_law(problem.D, problem.C, problem.q, 1e-9)
            expectation._signs = fine._replace(tolerance=1.0)
            for state in STATES:
                signs = expectation.signs(state)
                exact = reference(problem, state).test_error
                assert contains(exact, signs.error, signs.error_bound)
                most = max(most, abs(signs.error - float(exact.mid())) / signs.error_bound)
        assert most > 0.1


class TestManyFeaturesInFewSets:
    """Cases without rare types: crowded sets alone leave 1e-3 to 0.4 of the probability."""

    @pytest.mark.parametrize(("C", "qD"), [(4, 24), (8, 32)])
    def test_test_error_is_within_error_bars_of_samples(self, C, qD):
        problem = Problem(D=64, C=C, q=qD / 64)
        value = FourierExpectation(problem, 1e-6).evaluate(LATE)
        # at T = 0 up to 1.2e-5 of the images cancel to third order in the weights: left open
        assert value.test_error_bound < 1e-5
        samples = 60_000
        F, _, _ = sampled(problem, samples, seed=qD).moments(LATE)
        bar = 5 * math.sqrt(value.test_error / samples)
        assert abs((F <= 1e-10).mean() - value.test_error) < bar
