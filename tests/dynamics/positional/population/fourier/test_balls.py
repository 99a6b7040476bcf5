"""Certified values of the Fourier method compared with exact evaluation in balls, without slack.

``python -m tests.dynamics.positional.population.fourier.test_balls 10000`` tests 10000 random
problems.
"""

import argparse
import math
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamics import Problem, State
from dynamics.core.errors import ToleranceError
from dynamics.core.jit import kernel
from dynamics.positional.population.fourier import FourierExpectation
from dynamics.positional.population.fourier.errors import WeightErrors, table_errors
from dynamics.positional.population.fourier.set_law import set_law
from dynamics.positional.population.fourier.tables import Model, tabulate
from tests.closeness import close
from tests.dynamics.positional.ball_reference import contains, reference

SHAPES = [(4, 2), (6, 2), (8, 2), (10, 2), (6, 3), (9, 3), (8, 4), (12, 4), (10, 5)]
TOLERANCES = [1e-3, 1e-6, 1e-9, 1e-11]


def random_case(seed):
    """Return a random problem, state and tolerance, with extremes of every parameter."""
    random = np.random.default_rng(seed)
    D, C = SHAPES[random.integers(len(SHAPES))]

    def one_of(*values):
        return values[random.integers(len(values))]

    def size(low, high):
        return 10.0 ** random.uniform(low, high)

    def logit():
        return one_of(0.0, random.normal(), random.uniform(-40, 40), one_of(-1e3, 1e3))

    beta, tau = one_of(1.0, logit()), one_of(1.0, size(-2, 2))
    problem = Problem(
        D=D,
        C=C,
        q=one_of(random.uniform(0, 1), size(-3, 0), 1e-12, 1 - 1e-14, 1.0),
        p=one_of(3, 3, 5, 7, 9, 21),
        nu=one_of(size(-3, 1), size(-300, 1)),
        beta=beta,
        temperature=tau,
        output_scale=one_of(None, 1.0, size(-1, 2)),
    )
    scale = one_of(1.0, problem.tau)
    gamma, rho = (one_of(scale * logit(), beta, 0.0) for _ in range(2))
    gamma = one_of(gamma, gamma, rho, rho + 1e-9)
    alpha = one_of(1.0, 1.0, -1.0) * one_of(size(-14, 1), size(-2, 0.5), size(-2, 0.5) / D)
    return problem, State(float(alpha), float(gamma), float(rho)), one_of(*TOLERANCES)


def outside(problem, state, value, exact=None):
    """Return the names of all results whose exact value is not within its bound."""
    exact = reference(problem, state) if exact is None else exact
    claims = [
        ("loss", exact.loss, value.loss, value.loss_bound),
        ("mean sigmoid", exact.mean_sigmoid, value.mean_sigmoid, value.mean_sigmoid_bound),
        ("test error", exact.test_error, value.test_error, value.test_error_bound),
        ("ties", exact.ties, value.ties, value.ties_bound),
        *zip(State._fields, exact.derivatives, value.derivatives, value.derivative_bound),
        *zip(State._fields, exact.gradient, value.gradient, value.gradient_bound),
    ]
    return [name for name, *claim in claims if not contains(*claim)]


def verdict(seed, relative=False):
    """Return "held", "out of reach", "overflow", or the results outside their bounds.

    An error contains the reachable tolerance: twice that is reached if it is below 0.05.
    """
    problem, state, tolerance = random_case(seed)
    try:
        value = FourierExpectation(problem, tolerance, relative=relative).evaluate(state)
    except ToleranceError as error:
        assert str(error).startswith(f"tolerance = {tolerance:g} cannot be met")  # noqa: PT017
        reachable = error.reachable
        assert not reachable <= tolerance
        if not reachable < 0.05:
            return "out of reach"
        tolerance = 2.0 * reachable
        value = FourierExpectation(problem, tolerance, relative=relative).evaluate(state)
    except OverflowError:
        return "overflow"
    result = outside(problem, state, value)
    if relative:
        errors = np.array([value.loss_bound, *value.derivative_bound])
        sizes = np.abs([value.loss, *value.derivatives])
        result += ["tolerance"] if np.any(errors > tolerance * sizes) else []
    return (
        "held" if not result else f"outside: {', '.join(result)}: {problem}, {state}, {tolerance}"
    )


class TestBounds:
    @pytest.mark.slow
    @settings(max_examples=100, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1))
    def test_all_values_are_within_their_bounds(self, seed):
        assert verdict(seed) in ("held", "out of reach", "overflow")

    @settings(max_examples=60, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1))
    @example(seed=2825684)  # a loss that is all but 0
    def test_relative_tolerances_are_met(self, seed):
        assert verdict(seed, relative=True) in ("held", "out of reach", "overflow")

    @pytest.mark.parametrize(
        ("relative", "least"), [pytest.param(False, 145, marks=pytest.mark.slow), (True, 105)]
    )
    def test_most_cases_are_evaluated(self, relative, least):
        """F beyond 1e10 has no accurate digits, nor has a loss of 1e-300 relative to itself."""
        verdicts = [verdict(seed, relative) for seed in range(150)]
        assert set(verdicts) <= {"held", "out of reach", "overflow"}
        assert verdicts.count("held") >= least

    @pytest.mark.parametrize(
        ("problem", "state"),
        [
            (Problem(D=8, C=2, q=1, p=7, nu=0.000904, beta=34.58), State(0.07177, 36.41, 0)),
            (Problem(D=4, C=2, q=1, nu=0.0507, beta=52.27), State(0.1649, 0, 0)),
        ],
    )
    @pytest.mark.parametrize("tolerance", [1e-6, 1e-10])
    def test_values_with_cancellation_inside_a_set(self, problem, state, tolerance):
        """-5.522e-17 for -5.610e-17 and a wrong sign, both with bounds far below the error."""
        value = FourierExpectation(problem, tolerance).evaluate(state)
        assert outside(problem, state, value) == []


@kernel
def tabulated(law, model, weight_errors, reach):
    """Return the tables of all totals up to a reach, with the bounds of their errors."""
    tables = tabulate(law, model, reach)
    return tables, table_errors(law, model, weight_errors, tables)


class TestTables:
    @pytest.mark.parametrize(("D", "p"), [(16, 3), (16, 9), (4096, 3), (10**6, 5)])
    @pytest.mark.parametrize(
        "state", [State(0.3, 1.7, -0.9), State(0.3, 1.0, 1.0), State(-0.2, 1.0, 1.0 - 1e-9)]
    )
    def test_table_entries_are_within_their_bounds(self, D, p, state):
        """The reference has 60 digits; with uniform attention empty sets dominate ``base``."""
        problem, reach = Problem(D=D, C=4, q=2 / D, p=p, nu=0.37, beta=1.0, temperature=0.7), 9
        law, model = set_law(problem), Model.at(problem, state)
        tables, errors = tabulated(law, model, WeightErrors.of(problem, state, model), reach)
        with mpmath.workdps(60):
            x, y, base = exact_tables(problem, state, law, reach)
            slack = mpmath.mpf(10) ** -45  # of these digits: some entries are exactly 0
            missed = [
                *(abs(tables.x - x) > errors.dx + slack).ravel(),
                *(abs(tables.y - y) > errors.dy + slack).ravel(),
                *(abs(tables.base[:4] - base) > errors.dbase + slack).ravel(),
            ]
        assert not any(missed)
        assert np.all(errors.dbase <= 1e-12 * np.maximum(abs(tables.base[:4]), 1.0))


def exact_tables(problem, state, law, reach):
    """x, y and base by their definitions: a patch's activation, and its derivatives by chain rule.

    Those in gamma and rho are in excess of the slope at an empty set's patch, since the attention
    weights of a row add up to 1.
    """
    C, D, p = problem.C, problem.D, problem.p
    nu, kappa, tau = map(mpmath.mpf, (problem.nu, problem.kappa, problem.tau))
    alpha, *logits = map(mpmath.mpf, state)

    def attended(s, n, T, gamma, rho):
        weights = [mpmath.exp(logit / tau) for logit in (mpmath.mpf(problem.beta), gamma, rho)]
        whole = weights[0] + (C - 1) * weights[1] + (D - C) * weights[2]
        return (weights[0] * s + weights[1] * (n - s) + weights[2] * (T - n)) / whole

    def patch(s, n, T):
        c, empty = attended(s, n, T, *logits), attended(0, 0, T, *logits)
        O, O_empty = kappa * alpha * c, kappa * alpha * empty  # noqa: E741 - the paper's symbol
        slope = p * (O ** (p - 1) - O_empty ** (p - 1)) * kappa * alpha
        moves = [
            mpmath.diff(partial(attended, s, n, T), logits, order) for order in ((1, 0), (0, 1))
        ]
        by_alpha = (p * O ** (p - 1) + nu) * kappa * c
        return np.array([O**p + nu * O, by_alpha, slope * moves[0], slope * moves[1]])

    totals = range(-reach, reach + 1)
    x, y, base = [], [], []
    for r in totals:
        T = r + C
        empty = patch(0, 0, T)
        sets = []
        for k in range(len(law.n)):
            n, plus, minus = int(law.n[k]), int(law.plus[k]), int(law.minus[k])
            filled = [(many, s) for many, s in ((plus, 1), (minus, -1), (C - plus - minus, 0))]
            sets.append(sum(many * (patch(s, n, T) - empty) for many, s in filled if many))
        x.append([result[0] for result in sets])
        y.append([result[1:] for result in sets])
        base.append(C * patch(1, C, T) + (problem.L - 1) * C * empty)
    return np.array(x).T, np.transpose(np.array(y), (2, 1, 0)), np.array(base).T


class TestSigns:
    """Exact ties and tiny nonlinear parts: the sign of F is that of T, or of a sum of powers."""

    @pytest.mark.parametrize(
        ("problem", "states", "error", "ties"),
        [
            (Problem(D=8, C=2, q=0.5), [State(1e-10, 0.2, -0.03)], 0.123535, 0.050537),
            (
                Problem(D=10, C=2, q=0.5187, p=5, nu=1e-15, beta=0, temperature=58),
                [State(0.1, 0.2, -0.03), State(1e-3, 5.0, -3.0)], 0.1626, None,
            ),
            (
                Problem(D=9, C=3, q=0.5, p=9, nu=10, beta=0, output_scale=71.2),
                [State(0.1, 0.2, -0.03), State(-0.1, 0.2, 0.0), State(1e-3, 0.0, 0.4)], None, None,
            ),
        ],
    )  # fmt: skip
    def test_exact_test_errors_and_ties(self, problem, states, error, ties):
        for state in states:
            value = FourierExpectation(problem, 1e-9).evaluate(state)
            assert outside(problem, state, value) == []
            assert value.test_error_bound < 1e-11
            if error is not None and state.alpha > 0:
                assert value.test_error == pytest.approx(error, abs=1e-4)
            if ties is not None:
                assert value.ties == pytest.approx(ties, abs=1e-6)

    @pytest.mark.parametrize("q", [0.05, 0.4, 1.0])
    @pytest.mark.parametrize(
        ("beta", "state"),
        [
            (1.0, State(0.3, 0.2, 0.2)),  # gamma = rho: T = 0 ties
            (0.2, State(0.3, 0.2, -0.1)),  # beta = gamma: sums of n^p
            (-0.1, State(0.3, 0.2, -0.1)),  # beta = rho: sums of (n - s)^p
            (0.2, State(-0.3, 0.2, 0.2)),  # all equal: the sign of T
            (1.0, State(-0.3, 0.2, -0.1)),
            (1.0, State(0.0, 0.2, -0.1)),
        ],
    )
    def test_signs_at_equal_logits(self, q, beta, state):
        for D, C in ((8, 2), (12, 4), (10, 5)):
            problem = Problem(D=D, C=C, q=q, nu=1e-12, beta=beta, p=5)
            value = FourierExpectation(problem, 1e-9).evaluate(state)
            assert outside(problem, state, value) == []
            assert value.test_error_bound < 1e-10
            assert value.ties_bound < 1e-10


class TestRelative:
    def test_small_losses_are_relatively_accurate(self):
        """Late in training the loss is far below the absolute tolerance."""
        problem = Problem(D=8, C=2, q=1e-12, nu=0.5)
        for alpha, most in ((0.2, 1e-4), (0.24, 1e-6), (0.28, 1e-10)):
            state = State(alpha, 6.0, -1.0)
            value = FourierExpectation(problem, 1e-6, relative=True).evaluate(state)
            assert value.loss < most
            assert outside(problem, state, value) == []
            assert value.loss_bound <= 1e-6 * value.loss
            for entry, bound in zip(value.gradient, value.gradient_bound):
                assert bound <= 1e-6 * abs(entry)

    def test_exact_zeros_raise_no_error(self):
        value = FourierExpectation(Problem(D=8, C=2, q=0.3), 1e-9, relative=True).evaluate(
            State(0.0, 0.3, -0.1)
        )
        assert value.gradient[1:] == (0.0, 0.0)
        assert value.gradient_bound[1:] == (0.0, 0.0)
        close(value.loss, math.log(2), rel=1e-9)

    def test_unreachable_tolerance_reports_the_reachable_one(self):
        expectation = FourierExpectation(Problem(D=8, C=2, q=0.3), 1e-15, relative=True)
        with pytest.raises(ToleranceError, match="certified relative error") as error:
            expectation.evaluate(State(0.3, 0.2, -0.1))
        assert 1e-15 < error.value.reachable < 1e-10

    def test_tolerance_of_1e_15_is_met(self):
        value = FourierExpectation(Problem(D=8, C=2, q=0.3), 5e-12).evaluate(State(0.3, 0.2, -0.1))
        assert value.bound <= 5e-12


def main():
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("draws", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--relative", action="store_true")
    given = parser.parse_args()
    counts = {}
    for i in range(given.draws):
        seed = given.seed * 10**6 + i
        result = verdict(seed, given.relative)
        outcome = result.split(":")[0]
        counts[outcome] = counts.get(outcome, 0) + 1
        if outcome == "outside":
            print(f"seed {seed} {result}", flush=True)
        if (i + 1) % 500 == 0:
            print(i + 1, counts, flush=True)
    print(f"{given.draws} draws from seed {given.seed}: {counts}")


if __name__ == "__main__":
    main()
