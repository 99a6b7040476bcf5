"""The Fourier expectation compared with enumeration, mpmath and sampling, and its bounds."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.core.jit import plain_python
from dynamics.positional.population.fourier import FourierExpectation
from dynamics.positional.population.fourier.goals import Target, prepare
from dynamics.positional.population.fourier.lines import Lines
from dynamics.positional.population.fourier.node_sums import node_sums
from dynamics.positional.population.fourier.set_law import _probability_of_sum
from dynamics.positional.population.fourier.tables import Model, Tables
from dynamics.positional.population.fourier.tilts import TILTS, exponentials
from dynamics.positional.population.fourier.windows import mean_power
from dynamics.positional.problem import Problem, State
from tests.closeness import close, within

PAPER = Problem(D=8, C=2, q=0.3, p=3, nu=0.01, beta=1.0, temperature=1.3)
PAPER_STATE = State(0.37, 0.2, -0.03)
FLOW_STATES = [State(0.0634, 0, 0), State(0.05, 1, -0.06), State(0.0215, 12.1, -0.744)]


class Oracle:
    """Expectation over given patterns of sets, from the definition of the model: no shared code.

    ``plus``, ``minus``: numbers of +1 and -1 in each of the L - 1 random sets, one row per pattern;
    ``weight``: its probability.
    """

    def __init__(self, problem, plus, minus, weight):
        self.problem, self.weight = problem, weight
        signal = np.full((len(weight), 1), problem.C)
        self.plus = np.hstack([signal, plus]).astype(float)
        self.minus = np.hstack([0 * signal, minus]).astype(float)

    def moments(self, state):
        """Return F, dF/d(alpha, gamma, rho) and the sizes of the terms of all four, by pattern."""
        pr, (alpha, gamma, rho) = self.problem, state
        C, D, tau = pr.C, pr.D, pr.tau
        top = max(pr.beta, gamma, rho)
        b, g, r = (math.exp((v - top) / tau) for v in (pr.beta, gamma, rho))
        Z = b + (C - 1) * g + (D - C) * r
        Lam, Gam, Xi = b / Z, g / Z, r / Z
        n = self.plus - self.minus
        T = n.sum(axis=1, keepdims=True)
        F, dF, size = 0.0, np.zeros((3, len(self.weight))), np.zeros((4, len(self.weight)))
        self.blur = np.zeros(len(self.weight))  # rounding of F where c cancels, all attention equal
        for s, count in ((1, self.plus), (-1, self.minus), (0, C - self.plus - self.minus)):
            same, other = n - s, T - n
            c = Lam * s + Gam * same + Xi * other
            out = pr.kappa * alpha * c
            slope = pr.p * out ** (pr.p - 1) + pr.nu
            F = F + (count * (out**pr.p + pr.nu * out)).sum(axis=1)
            entries = abs(Lam * s) + np.abs(Gam * same) + np.abs(Xi * other)
            self.blur += 1e-15 * (count * slope * pr.kappa * abs(alpha) * entries).sum(axis=1)
            c_gamma = Gam / tau * (same - (C - 1) * c)
            c_rho = Xi / tau * (other - (D - C) * c)
            for k, dO in enumerate((c, alpha * c_gamma, alpha * c_rho)):
                dF[k] += (count * slope * pr.kappa * dO).sum(axis=1)
            g_terms = alpha * Gam / tau * (np.abs(same) + (C - 1) * np.abs(c))
            r_terms = alpha * Xi / tau * (np.abs(other) + (D - C) * np.abs(c))
            size[0] += (count * np.abs(out**pr.p + pr.nu * out)).sum(axis=1)
            for k, terms in enumerate((np.abs(c), np.abs(g_terms), np.abs(r_terms))):
                size[1 + k] += (count * slope * pr.kappa * terms).sum(axis=1)
        return F, dF, size

    def value(self, state):
        """Return (loss, mean sigmoid, d ell / d state)."""
        F, dF, _ = self.moments(state)
        s = np.exp(-np.logaddexp(0, F))
        w = self.weight
        return w @ np.logaddexp(0, -F), w @ s, -(dF * s) @ w

    def signs(self, state):
        """Return P[F < -b], P[F <= b] and P[|F| <= b] for a band b larger than rounding.

        Exact arithmetic determines which of the last are ties (``test_balls``).
        """
        F, _, size = self.moments(state)
        wide = 1e-11 * size[0] + self.blur
        probability = [wide < -F, wide >= F, wide >= np.abs(F)]
        return [self.weight @ event for event in probability]


@lru_cache(maxsize=4)
def all_patterns(problem):
    """Return every pattern of the D - C random patches, 3^(D - C) of them."""
    signs = np.array(list(itertools.product((-1, 0, 1), repeat=problem.D - problem.C)))
    sets = signs.reshape(len(signs), problem.L - 1, problem.C)
    nonzero = (signs != 0).sum(axis=1)
    weight = (problem.q / 2) ** nonzero * (1 - problem.q) ** (problem.D - problem.C - nonzero)
    return Oracle(problem, (sets > 0).sum(axis=2), (sets < 0).sum(axis=2), weight)


@lru_cache(maxsize=4)
def all_multisets(problem, most=None):
    """Return every multiset of set types with at most ``most`` features, and the remainder."""
    C, q, sets = problem.C, problem.q, problem.L - 1
    types = sorted(
        ((a, b) for a in range(C + 1) for b in range(C + 1 - a)), key=lambda t: (t[0] + t[1], t)
    )
    most = C * sets if most is None else most
    rows = []

    def extend(chosen, start, allowed):
        rows.append(chosen)
        for i in range(start, len(types)):
            size = sum(types[i])
            if size > allowed:
                break
            if len(chosen) < sets:
                extend([*chosen, i], i, allowed - size)

    extend([], 1, most)
    index = np.zeros((len(rows), sets), dtype=int)
    for row, chosen in zip(index, rows):
        row[: len(chosen)] = chosen
    log_p = np.array(
        [
            math.log(math.comb(C, a) * math.comb(C - a, b))
            + (a + b) * math.log(q / 2)
            + (C - a - b) * math.log1p(-q)
            for a, b in types
        ]
    )
    log_weight = np.full(len(rows), math.lgamma(sets + 1))
    for i in range(len(types)):
        count = (index == i).sum(axis=1)
        log_weight += count * log_p[i] - np.array([math.lgamma(k + 1) for k in count])
    plus, minus = np.array(types)[:, 0][index], np.array(types)[:, 1][index]
    weight = np.exp(log_weight)
    return Oracle(problem, plus, minus, weight), 1.0 - weight.sum()


@lru_cache(maxsize=4)
def sampled(problem, count, seed):
    """Return random patterns as an oracle with equal weights."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    half = problem.q / 2
    shape = (count, problem.L - 1)
    plus = rng.binomial(problem.C, half, shape)
    minus = rng.binomial(problem.C - plus, half / (1 - half))
    return Oracle(problem, plus, minus, np.full(count, 1.0 / count))


def assert_certified(problem, state, oracle, tolerance, slack=1e-12):
    """Check that the error is below the certified bound, and the bound below the tolerance.

    ``slack``: rounding of the oracle's own sums, relative to the terms that it adds.
    """
    value = FourierExpectation(problem, tolerance).evaluate(state)
    loss, mean, derivative = oracle.value(state)
    F, _, terms = oracle.moments(state)
    size = terms[1:] @ (oracle.weight * np.exp(-np.logaddexp(0, F)))
    assert abs(value.loss - loss) <= value.loss_bound + slack * loss
    assert abs(value.mean_sigmoid - mean) <= value.mean_sigmoid_bound + slack * mean
    error = np.abs(np.array(value.derivatives) - derivative)
    assert np.all(error <= np.array(value.derivative_bound) + slack * size)
    assert value.loss_bound <= tolerance * max(1.0, value.loss)
    limit = tolerance * np.maximum(1.0, value.magnitude[1:4])
    limit[0] = max(limit[0], tolerance / max(abs(state.alpha), 1e-300))
    assert np.all(np.array(value.derivative_bound) <= limit)
    np.testing.assert_allclose(
        np.array(value.gradient) * problem.multiplicity, value.derivatives, rtol=1e-14, atol=1e-300
    )
    wrong, wrong_or_tie, near = oracle.signs(state)
    allowed = value.test_error_bound + slack
    assert wrong - allowed <= value.test_error <= wrong_or_tie + allowed
    assert value.ties <= near + allowed
    return value


class TestAllPatterns:
    """Full enumeration of the random patches, without exchangeability."""

    def test_values_equal_30_digit_reference(self):
        value = FourierExpectation(PAPER, 1e-12).evaluate(PAPER_STATE)
        assert value.loss == pytest.approx(0.19523298425368842, abs=1e-14)
        expected = (-0.23712811189972516, -0.003931929555507072, 0.001489724841890816)
        close(value.gradient, expected, rel=1e-12)

    @pytest.mark.parametrize(("D", "C"), [(8, 2), (9, 3), (12, 4)])
    @pytest.mark.parametrize("q", [0.05, 0.4, 0.9, 1.0])
    def test_many_features_are_certified(self, D, C, q):
        problem = Problem(D=D, C=C, q=q, nu=0.05)
        oracle = all_patterns(problem)
        for state in (State(0.3, 0.4, -0.1), State(0.15, 0.0, 0.0), State(0.2, -1.0, 0.5)):
            assert_certified(problem, state, oracle, 1e-11)

    @pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-7, 1e-9, 1e-11])
    def test_every_tolerance_is_met(self, tolerance):
        assert_certified(PAPER, PAPER_STATE, all_patterns(PAPER), tolerance)

    @pytest.mark.parametrize("p", [3, 5, 7])
    @pytest.mark.parametrize("scale", [None, 1.0])
    def test_degrees_and_output_scales_are_certified(self, p, scale):
        problem = Problem(D=8, C=2, q=0.5, p=p, nu=0.02, output_scale=scale)
        oracle = all_patterns(problem)
        alpha = 0.25 if scale is None else 2.0
        assert_certified(problem, State(alpha, 0.3, -0.2), oracle, 1e-10)

    @pytest.mark.parametrize(
        "state",
        [
            State(0.3, 20.0, -3.0),
            State(0.3, 1.0, 9.0),
            State(0.5, -8.0, -8.0),
            State(1e-12, 0.3, 0.1),
            State(0.0, 0.3, 0.1),
            State(-0.4, 0.5, 0.1),
            State(1.5, 0.5, 0.1),
            State(-1e-3, 0.0, 0.0),
        ],
        ids=str,
    )
    def test_extreme_states_are_certified(self, state):
        problem = Problem(D=8, C=2, q=0.5, nu=0.02)
        assert_certified(problem, state, all_patterns(problem), 1e-9)

    def test_two_sets_are_certified(self):
        problem = Problem(D=8, C=4, q=0.7)
        assert_certified(problem, State(0.2, 0.4, -0.3), all_patterns(problem), 1e-11)


class TestMultisets:
    @pytest.mark.parametrize(
        "state", [State(0.2, 0.0, 0.0), State(0.12, 0.8, -0.08), State(0.05, 3.4, -0.2)], ids=str
    )
    @pytest.mark.parametrize("qD", [0.5, 2.0])
    def test_few_features_agree_with_enumeration(self, qD, state):
        problem = Problem(D=32, C=4, q=qD / 32)
        oracle, left = all_multisets(problem, most=14)
        assert left < 1e-9
        value = FourierExpectation(problem, 1e-11).evaluate(state)
        loss, _, derivative = oracle.value(state)
        # the patterns left out carry at most their probability times the largest |F|, |dF|
        F, dF, _ = oracle.moments(state)
        allowed = 10 * left
        assert value.loss == pytest.approx(loss, abs=1e-11 + allowed * np.abs(F).max())
        within(value.derivatives, derivative, 1e-10 + allowed * np.abs(dF).max())

    def test_sixteen_features_are_certified(self):
        problem = Problem(D=24, C=4, q=16 / 24)
        oracle, left = all_multisets(problem)
        assert abs(left) < 1e-12
        for state in FLOW_STATES:
            assert_certified(problem, state, oracle, 1e-10)

    def test_large_sets_are_certified(self):
        problem = Problem(D=32, C=8, q=0.1)
        oracle, _ = all_multisets(problem, most=24)
        assert_certified(problem, State(0.1, 0.5, -0.05), oracle, 1e-9)


class TestBounds:
    @pytest.mark.slow
    @settings(max_examples=60, deadline=None)
    @given(
        shape=st.sampled_from([(8, 2), (12, 3), (16, 4), (12, 2), (10, 5)]),
        q=st.floats(0.01, 1.0),
        p=st.sampled_from([3, 5, 7]),
        nu=st.floats(1e-3, 0.5),
        beta=st.floats(-1.0, 4.0),
        tau=st.floats(0.5, 3.0),
        size=st.floats(-2.0, 1.0),
        sign=st.sampled_from([1.0, 1.0, -1.0]),
        gamma=st.floats(-3.0, 8.0),
        rho=st.floats(-3.0, 3.0),
        tolerance=st.sampled_from([1e-3, 1e-6, 1e-9, 1e-11]),
    )
    def test_errors_are_within_their_bounds(
        self, shape, q, p, nu, beta, tau, size, sign, gamma, rho, tolerance
    ):
        D, C = shape
        problem = Problem(D=D, C=C, q=min(q, 1 - 1e-9), p=p, nu=nu, beta=beta, temperature=tau)
        state = State(sign * 10**size, gamma, rho)
        oracle, _ = all_multisets(problem)
        F, _, _ = oracle.moments(state)
        if np.abs(F).max() > 1e4:
            state = state._replace(alpha=state.alpha * (1e4 / np.abs(F).max()) ** (1 / p))
        try:
            assert_certified(problem, state, oracle, tolerance, slack=1e-11)
        except ToleranceError as error:
            assert not error.reachable <= tolerance  # noqa: PT017

    def test_named_parts_add_up_to_the_bound(self):
        value = FourierExpectation(PAPER, 1e-9).evaluate(PAPER_STATE)
        assert set(value.parts) == {
            "truncation in R",
            "truncation in t",
            "aliasing in t",
            "aliasing in R",
            "rounding",
        }
        close(sum(part[0] for part in value.parts.values()), value.loss_bound, rel=1e-12)

    def test_saddle_point_with_oscillating_newton_steps(self):
        """Newton's method without bisection misses the saddle point of one total."""
        problem = Problem(D=64, C=4, q=0.125, nu=1.0)
        state = State(0.06284641073426832, 3.126338232060838, -0.19719875846725607)
        result = FourierExpectation(problem, 1e-7).gradient(state)
        close(result, FourierExpectation(problem, 1e-9).gradient(state), rel=1e-5)

    def test_error_contains_the_reachable_bound(self):
        problem = Problem(D=64, C=4, q=0.25)
        with pytest.raises(ToleranceError, match="certified relative error") as error:
            FourierExpectation(problem, 1e-9).evaluate(State(30.0, 0.1, -0.1))
        assert error.value.reachable > 1e-9

    @pytest.mark.parametrize("tolerance", [0.0, 1.0, 1e-20, math.nan])
    def test_invalid_tolerance_raises(self, tolerance):
        with pytest.raises(ParameterError, match="tolerance"):
            FourierExpectation(PAPER, tolerance)


class TestSampling:
    @pytest.mark.parametrize("state", FLOW_STATES, ids=str)
    @pytest.mark.parametrize("qD", [16, 32])
    def test_values_are_within_error_bars_of_samples(self, qD, state):
        problem = Problem(D=64, C=4, q=qD / 64)
        oracle = sampled(problem, 20_000, seed=qD)
        value = FourierExpectation(problem, 1e-9).evaluate(state)
        F, dF, _ = oracle.moments(state)
        s = np.exp(-np.logaddexp(0, F))
        for exact, terms, bound in [
            (value.loss, np.logaddexp(0, -F), value.loss_bound),
            (value.mean_sigmoid, s, value.mean_sigmoid_bound),
            *zip(value.derivatives, -s * dF, value.derivative_bound),
            (value.test_error, F <= 1e-10, value.test_error_bound),
        ]:
            # five standard deviations of the mean: 36 comparisons, false alarm about 2e-5
            bar = 5 * np.std(terms) / math.sqrt(len(terms))
            assert abs(np.mean(terms) - exact) < bar + bound


class TestLargeD:
    def test_values_converge_at_fixed_number_of_features(self):
        values = []
        for D in (10**3, 10**4, 10**5, 10**6):
            # F = D ((alpha T)^3 + nu alpha T) up to terms of order 1 / D
            problem = Problem(D=D, C=4, q=16 / D, nu=1.0 / D ** (2 / 3))
            state = State(0.2 / D ** (1 / 3), 0.0, 0.0)
            values.append(FourierExpectation(problem, 1e-9).evaluate(state).loss)
        steps = np.abs(np.diff(values))
        assert np.all(steps[1:] < 0.5 * steps[:-1])

    def test_attention_derivatives_are_accurate_at_large_D(self):
        """A smaller tolerance does not change the derivatives at D = 10^6."""
        problem = Problem(D=10**6, C=4, q=16e-6)
        state = State(3.3e-4, 0.5, 0.0)
        coarse = FourierExpectation(problem, 1e-8).evaluate(state)
        fine = FourierExpectation(problem, 1e-11).evaluate(state)
        error = np.abs(np.array(coarse.derivatives) - np.array(fine.derivatives))
        assert np.all(error <= np.array(coarse.derivative_bound))
        assert np.all(np.array(fine.derivative_bound) <= 1e-10 * np.array(fine.magnitude[1:4]))

    def test_gradient_is_the_derivative_of_the_loss(self):
        problem = Problem(D=10**6, C=4, q=16e-6)
        state, expectation = State(3.3e-4, 0.5, -0.1), FourierExpectation(problem, 1e-11)
        derivatives = expectation.evaluate(state).derivatives
        for k, (h, rel) in enumerate(((3.3e-7, 1e-6), (0.05, 3e-4), (0.05, 3e-4))):
            loss = [
                expectation.evaluate(state._replace(**{state._fields[k]: state[k] + m * h})).loss
                for m in (-2, -1, 1, 2)
            ]
            slope = (8 * (loss[2] - loss[1]) - (loss[3] - loss[0])) / (12 * h)
            # the loss moves by 1e-9 only with gamma, and plans at the five points differ by 1e-14
            close(slope, derivatives[k], rel=rel)

    def test_totals_added_in_a_later_iteration_are_tilted_finely(self):
        """F has a large range: a lower goal adds totals, whose lines need the fine tilts too."""
        expectation = FourierExpectation(Problem(D=10**5, C=4, q=4e-5), 1e-8)
        state = State(0.02290262560713433, 4.2407836161713925, -0.00014663085086078965)
        h = 1e-6 * state.alpha
        up, down = (
            expectation.gradient(state._replace(alpha=state.alpha + step)).alpha for step in (h, -h)
        )
        close(expectation.jacobian(state)[0, 0], (up - down) / (2 * h), rel=1e-2)


class TestEffort:
    @pytest.mark.parametrize(
        ("D", "state", "operations"),
        [
            (64, FLOW_STATES[2], 20),  # x, x^2, x^3: 8; x^14 = (x^3)^4 x^2: 12
            (1024, State(0.0206, 0.5, -0.01), 59),  # 254 = 3332 in base 4: 11 + 3 (10 + 6)
            (10**6, State(3.3e-4, 0.5, 0.0), 55),  # 23 + 4 * 8, 2^8 being near 8 * 2 * 16
        ],
    )
    def test_operation_counts_equal_manual_counts(self, D, state, operations):
        effort = FourierExpectation(Problem(D=D, C=4, q=16 / D), 1e-8).effort(state)
        assert effort.points >= 4 * effort.nodes >= 32 * effort.totals
        at_four = 32 + 52 + 4 * operations
        # levels, waves and weights: 5 x 8 arithmetic operations a type and node, 8 k a total
        rest = effort.operations - effort.points // 4 * at_four
        assert 0 < rest < 500 * effort.nodes + 16_000 * effort.totals


class TestJacobian:
    @pytest.mark.parametrize(
        ("problem", "state"),
        [
            (PAPER, PAPER_STATE),
            (Problem(D=8, C=4, q=0.7), State(0.2, 0.4, -0.3)),
            (Problem(D=64, C=4, q=0.25), FLOW_STATES[1]),
            (Problem(D=64, C=4, q=0.25), FLOW_STATES[2]),
            (Problem(D=1024, C=4, q=16 / 1024, p=5), State(0.04, 0.7, -0.1)),
            (Problem(D=10**6, C=4, q=16e-6), State(3.3e-4, 0.5, -0.1)),
            (Problem(D=64, C=4, q=0.1), State(-0.05, 0.3, 0.2)),
        ],
    )
    def test_jacobian_equals_differences_of_the_gradient(self, problem, state):
        expectation = FourierExpectation(problem, 1e-10)
        jacobian = expectation.jacobian(state)
        scale = np.array([abs(state.alpha), 1.0, 1.0])
        largest = np.abs(jacobian * scale).max(axis=1)
        for k, name in enumerate(State._fields):
            h = 1e-3 * abs(state.alpha) if k == 0 else 1e-3
            at = [
                np.array(expectation.gradient(state._replace(**{name: state[k] + m * h})))
                for m in (-2, -1, 1, 2)
            ]
            column = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * h)
            # the differences carry 1e-10 / h = 1e-7 of their terms
            assert np.all(np.abs(jacobian[:, k] - column) * scale[k] <= 3e-6 * largest)

    def test_gradient_equals_gradient_of_evaluate(self):
        expectation = FourierExpectation(PAPER, 1e-10)
        close(
            expectation.gradient(PAPER_STATE), expectation.evaluate(PAPER_STATE).gradient, rel=1e-9
        )


class TestNodes:
    @pytest.mark.parametrize("sets", [4, pytest.param(40, marks=pytest.mark.slow)])
    def test_sums_equal_30_digit_reference(self, sets):
        """E[e^{-wF} 1{R=r}] at each node from exact polynomial powers in 30-digit arithmetic."""
        C, r, base, eta, step, nodes = 2, 1, 0.7, 0.3, 0.4, 8
        n = np.array([1.0, -1.0, 0.0, 2.0])
        x = np.array([0.8, -2.1, 0.3, 5.5])
        p = np.array([0.3, 0.25, 0.1, 0.15]) / (1 if sets == 4 else 8)
        empty = 1 - p.sum()
        column = np.zeros(1)
        lines = Lines(**dict.fromkeys(Lines._fields, column))._replace(
            treatment=column.astype(int),
            eta=np.array([eta]),
            step=np.array([step]),
            share=p[None],
            empty=np.array([empty]),
            logs=np.zeros((1, 5)),
            nodes=np.array([nodes]),
            angles=np.array([2 * sets * C + 4]),
        )
        tables = Tables(r, x[:, None], np.empty((3, 4, 1)), np.full((5, 1), base))
        result = node_sums(n, C, sets, tables, lines, lines.nodes, False)
        sums, loss = result.by_type, result.loss[0]
        weights = [result.size[0], result.size_over_w[0], result.size_times_t[0]]
        with mpmath.workdps(30):
            expected, expected_loss, expected_weights = self.exact(
                r, base, x, n, p, empty, C, sets, eta, step, nodes
            )
        within(sums[0], expected, 1e-15)
        assert loss == pytest.approx(expected_loss, abs=1e-15)
        close(weights, expected_weights, rel=1e-14)

    @staticmethod
    def exact(r, base, x, n, p, empty, C, sets, eta, step, nodes):
        sums, loss, weights = [mpmath.mpf(0)] * (len(x) + 1), mpmath.mpf(0), [mpmath.mpf(0)] * 3
        for k in range(nodes):
            w = mpmath.mpc(mpmath.mpf(eta), (k + mpmath.mpf(1) / 2) * mpmath.mpf(step))
            turn = mpmath.mpc(0, -w.imag)
            set_law = [mpmath.mpc(0)] * (2 * C + 1)
            set_law[C] += mpmath.mpf(empty)
            terms = [mpmath.mpf(q) * mpmath.exp(turn * mpmath.mpf(v)) for q, v in zip(p, x)]
            for m, term in zip(n, terms):
                set_law[int(m) + C] += term
            power = [mpmath.mpc(1)]
            for _ in range(sets - 2):
                power = convolve(power, set_law)
            shift = C * (sets - 2)
            weighted = mpmath.mpf(step) * mpmath.exp(turn * base) / mpmath.sin(mpmath.pi * w)
            weight = mpmath.mpf(step) / abs(mpmath.sin(mpmath.pi * w))
            weights = [a + weight * b for a, b in zip(weights, (1, 1 / abs(w), w.imag))]
            for i, (m, term) in enumerate(zip([*n, 0], [*terms, mpmath.mpf(empty)])):
                j = r - int(m) + shift
                value = weighted * term * (power[j] if 0 <= j < len(power) else 0)
                sums[i] += value.real
                loss += (value / w).real
        return [float(v) for v in sums], float(loss), [float(v) for v in weights]


def convolve(a, b):
    result = [mpmath.mpc(0)] * (len(a) + len(b) - 1)
    for i, u in enumerate(a):
        for j, v in enumerate(b):
            result[i + j] += u * v
    return result


class TestMeanPower:
    """The mean of |f|^power over half-shifted angles, at any t, is below its bound."""

    @settings(max_examples=60, deadline=None)
    @given(
        seed=st.integers(0, 10**6),
        power=st.sampled_from([0, 1, 2, 7, 14, 250, 24_998, 10**9]),
        rarity=st.floats(0.0, 9.0),
        angles=st.sampled_from([4, 12, 40, 120]),
        t=st.floats(0.0, 50.0),
    )
    def test_mean_power_is_within_its_bound(self, seed, power, rarity, angles, t):
        random = np.random.default_rng(seed)
        C = 3
        n = np.array([a - b for m in range(1, C + 1) for a in range(m + 1) for b in [m - a]])
        share = random.dirichlet(np.ones(len(n))) * 10**-rarity
        empty = 1.0 - share.sum()
        theta = (np.arange(angles) + 0.5) * 2 * np.pi / angles
        x = random.normal(size=len(n))
        f = empty + (share * np.exp(-1j * t * x)) @ np.exp(1j * np.outer(n, theta))
        level = np.bincount(np.append(n, 0) + C, np.append(share, empty), 2 * C + 1)
        bound = plain_python(mean_power)(power, level, angles)
        assert np.mean(np.abs(f) ** power) <= bound * (1 + 1e-9)
        assert bound <= 1.0

    def test_mean_power_is_small_for_many_sets(self):
        bound = plain_python(mean_power)(24_998, np.array([3e-4, 1 - 6e-4, 3e-4]), 40)
        assert bound < 0.2


class TestManyTotals:
    """Computations for all totals at once; ``test_balls`` tests their tables."""

    def test_exponentials_equal_numpy(self):
        exponents = np.concatenate([np.linspace(-707, 709, 3001), [0.0, -1e-300, -1e4, -math.inf]])
        values = exponents.copy()
        plain_python(exponentials)(values, np.empty_like(values))
        close(values, np.exp(np.maximum(exponents, -708)), rel=5e-16)

    def test_bounds_of_all_totals_hold(self):
        """Chernoff bounds of E[e^(-lam F)] for all tilts and totals, compared with all patterns."""
        problem, state = Problem(D=12, C=3, q=0.4), State(0.3, 0.5, -0.2)
        expectation = FourierExpectation(problem, 1e-6)
        model = Model.at(problem, state)
        goals = prepare(expectation._law, model, expectation._crude(model, state), Target.of(1e-6))
        reach, logs = -goals.tables.first, goals.bounds.logs
        oracle = all_patterns(problem)
        F, dF, _ = oracle.moments(state)
        total = (oracle.plus - oracle.minus)[:, 1:].sum(axis=1)
        known = 0
        for r in range(-reach, reach + 1):
            for lam, bounds in zip(TILTS, logs[r + reach]):
                if bounds[4] == math.inf:
                    continue
                known += 1
                weight = oracle.weight * (total == r) * np.exp(-lam * F)
                exact = [*(np.abs(dF) @ weight), weight.sum()]
                assert np.all(exact <= np.exp(bounds[1:]) * (1 + 1e-12))
                if r == 0:  # and not by much
                    assert weight.sum() > 0.05 * math.exp(bounds[4])
        assert known > 20


class TestLawOfTheTotal:
    """P[R = r] compared with exact integers, and for a recurrence that starts inside the range."""

    @pytest.mark.parametrize("q", [1e-12, 0.05, 0.3, 0.97, 1 - 1e-14, 1.0])
    @pytest.mark.parametrize("patches", [0, 1, 6, 60])
    def test_probabilities_equal_exact_integers(self, patches, q):
        top, bottom = q.as_integer_ratio()
        law = [1]
        for _ in range(patches):  # in units of (2 bottom)^-patches
            wide = [0, 0, *law, 0, 0]
            law = [
                top * (wide[i] + wide[i + 2]) + 2 * (bottom - top) * wide[i + 1]
                for i in range(len(wide) - 2)
            ]
        values, accuracy, noise = _probability_of_sum(patches, q, patches + 3)
        assert accuracy < 1e-14
        for result, count in zip(values[3 : len(values) - 3], law, strict=True):
            exact = Fraction(count, (2 * bottom) ** patches)
            allowed = Fraction(accuracy) * exact + Fraction(noise) + Fraction(1, 10**300)
            assert abs(Fraction(float(result)) - exact) <= allowed

    @pytest.mark.parametrize("q", [1e-300, 16e-6, 1e-3])
    def test_sum_and_variance_for_many_patches(self, q):
        """The recurrence uses both starting values."""
        patches = 10**6
        values, accuracy, noise = _probability_of_sum(patches, q, 400)
        r = np.arange(-400, 401)
        assert noise < 1e-60
        close(values.sum(), 1.0, rel=10 * accuracy)
        close(values @ r**2, patches * q, rel=1e-13)


@pytest.mark.parametrize(("D", "C", "q"), [(32, 2, 0.5), (60, 3, 0.02), (24, 4, 1.0)])
def test_tails_of_the_total_are_within_their_bounds(D, C, q):
    """Chernoff bounds of log P[|R| >= r] are sharp for large R."""
    law = FourierExpectation(Problem(D=D, C=C, q=q))._law
    for r, bound in enumerate(law.log_tail.tolist()):
        tail = 2.0 * math.fsum(law.p_total[law.center + max(r, 1) :])
        tail += law.p_total[law.center] if r == 0 else 0.0
        assert math.log(max(tail, 1e-300)) <= bound + 1e-12
        assert bound <= math.log(max(tail, 1e-300)) + 5.0


def test_q_that_underflows_raises():
    with pytest.raises(ParameterError, match="q = 5e-324 is not allowed"):
        FourierExpectation(Problem(D=8, C=2, q=5e-324))
