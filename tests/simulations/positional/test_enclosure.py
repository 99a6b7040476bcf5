"""Bounds on boxes contain the proved formula at every point.

The reference are the SymPy expressions of `symbolic.positional.symmetric_line`, evaluated exactly
or to 200 digits.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import pytest
import sympy as sp
from flint import arb
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mpmath import mp

from dynamics.core.balls.exact import exact as ball
from simulations.positional.invariance.balls import least_value, outputs, state_terms
from simulations.positional.invariance.box import Box, Witness, exact, read_box, written
from simulations.positional.invariance.certified import bounds
from simulations.positional.symmetric_line import most_features
from symbolic.core.zero import evaluate, rationalize
from symbolic.positional import symbols as sym
from symbolic.positional import symmetric_line as line

SIZES = ((4, 2), (6, 2), (6, 3), (8, 2), (8, 4), (9, 3))
DIGITS = 200
ARGUMENTS = (
    sym.D,
    sym.C,
    sym.p,
    sym.Gamma,
    sym.alpha,
    sym.kappa,
    sym.nu,
    line.N_PLUS,
    line.N_MINUS,
)


@cache
def proved_terms():
    """Return the sum over s of one image, and F, as functions of mpmath numbers."""
    return sp.lambdify(ARGUMENTS, [line.FACTORS, line.F_ON_LINE], "mpmath")


def drift(point):
    """Return sign(1 - D r) B / N^2 at a point, summed over all images, to `DIGITS` digits."""
    D, C, p = point.D, point.C, point.p
    N = D - C
    contrast = float((point.beta - point.x) / point.tau)
    lost = -2 * min(math.log10(abs(contrast) or 1e-323), 0.0)  # in 1 - D r, and in y_1 - y_s
    lost += 2 * abs(contrast) / math.log(10.0)  # in r, and next to 1
    with mp.workdps(DIGITS + int(lost)):
        q, nu, beta, x, tau, kappa, alpha = (
            mp.mpf(number.numerator) / number.denominator
            for number in (
                point.q,
                point.nu,
                point.beta,
                point.x,
                point.tau,
                point.kappa,
                point.alpha,
            )
        )
        r = 1 / (mp.expm1((beta - x) / tau) + D)
        total = mp.mpf(0)
        for plus, minus in itertools.product(range(N + 1), repeat=2):
            zero = N - plus - minus
            if zero >= 0:
                ways = math.comb(N, zero) * math.comb(N - zero, plus)
                factors, F = proved_terms()(D, C, p, r, alpha, kappa, nu, plus, minus)
                law = ways * (q / 2) ** (plus + minus) * (1 - q) ** zero
                total += law * factors / (1 + mp.exp(F))
        return total / N**2 * (1 if point.beta > point.x else -1)


def numbers(low, high):
    """Return a strategy for exact numbers: floats, short decimals, ratios."""
    return st.one_of(
        st.floats(low, high).map(Fraction),
        st.decimals(low, high, places=3).map(lambda number: exact(str(number))),
        st.fractions(Fraction(low), Fraction(high), max_denominator=64),
    )


def pair(ends):
    return st.tuples(ends, ends).map(lambda ends: (min(ends), max(ends)))


#: Fractions of an interval, including its ends.
PARTS = st.one_of(st.sampled_from((0.0, 1.0)), st.floats(0.0, 1.0)).map(Fraction)


@st.composite
def boxes_and_points(draw):
    (D, C), wide = draw(st.sampled_from(SIZES)), draw(st.booleans())
    intervals = {
        "alpha": draw(pair(numbers(0, draw(st.sampled_from((1, 10)))))),
        "q": draw(pair(st.one_of(numbers(0, 1), st.sampled_from((exact("1e-12"), Fraction(1)))))),
        "x": draw(pair(numbers(-3, 3))),
        "nu": draw(pair(st.one_of(numbers(0, 10), st.just(exact("1e-300"))))),
        "beta": draw(pair(numbers(*((-1000, 1000) if wide else (-3, 3))))),
        "tau": draw(pair(numbers(*((1, 100) if wide else (0.25, 4))))),
        "kappa": draw(pair(numbers(0.5, 16))),
    }
    if draw(st.booleans()):  # a point, or thin where ends are equal
        intervals = {name: (low, low) for name, (low, _) in intervals.items()}
    assume(intervals["q"][1] > 0 and intervals["nu"][1] > 0)
    box = Box(D, C, **intervals, p=draw(st.sampled_from((3, 3, 5, 7, 21))))
    point = {name: low + draw(PARTS) * (high - low) for name, (low, high) in intervals.items()}
    return box, Witness(D, C, box.p, **point)


def contains_value(box, point, precision=96):
    """Return whether the bounds of each cell that contains a point contain the value at it."""
    value, cells = drift(point), 0
    for cell in box.cells():
        if all(low <= x <= high for (low, high), (x, _) in zip(cell, point.cell)):
            low, high, _ = bounds(box, cell, precision)
            if not low <= value <= high:
                return False
            cells += 1
    return cells > 0


def written_box(text, **values):
    """Return a box and the point at its lower ends or the given values."""
    box = read_box(text)
    names = ("q", "nu", "beta", "tau", "kappa", "alpha", "x")
    point = {name: box.ends(name)[0] for name in names}
    return box, Witness(box.D, box.C, box.p, **point | values)


class TestEnclosure:
    @pytest.mark.slow
    @settings(max_examples=100)
    @given(boxes_and_points(), st.sampled_from((40, 96, 96)))
    @example(written_box("D=6, C=2, q=.3, alpha=.1, x=.207, beta=.462, tau=1.443"), 96)
    @example(written_box("D=6, C=2, q=.1..1, alpha=0..10, nu=1e-300, kappa=1..16, p=21"), 96)
    @example(written_box("D=6, C=3, q=1, alpha=0..0.2, x=0, nu=1e-300, beta=442, kappa=.5..8"), 96)
    def test_bounds_contain_the_points_of_a_box(self, box_and_point, precision):
        box, point = box_and_point
        assert box.contains(point)
        assume(point.beta != point.x)
        assert contains_value(box, point, precision)

    @pytest.mark.slow
    @settings(max_examples=50)
    @given(boxes_and_points())
    def test_cells_contain_the_points_of_a_box(self, box_and_point):
        """The comparison is exact."""
        box, point = box_and_point
        assert any(
            all(low <= x <= high for (low, high), (x, _) in zip(cell, point.cell))
            for cell in box.cells()
        )

    def test_cells_have_exact_ends(self):
        """(beta - x)/tau of these floats differs by more than one unit from its rounded value."""
        beta, x, tau = 0.462, 0.207, 1.443
        exactly = (Fraction(beta) - Fraction(x)) / Fraction(tau)
        rounded = (beta - x) / tau
        assert not math.nextafter(rounded, -1) <= exactly <= math.nextafter(rounded, 1)
        box = Box(6, 2, (0, 1), (0, 1), x=(x, x), beta=(beta, beta), tau=(tau, tau))
        (cell,) = box.cells()
        assert cell.contrast == (exactly, exactly)
        decimals = read_box("D=6, C=2, q=.3, alpha=.1, x=.207, beta=.462, tau=1.443")
        assert next(decimals.cells()).contrast == (Fraction(255, 1443),) * 2

    @pytest.mark.parametrize("wrong", ["factor", "shift"])
    def test_broken_formula_is_detected(self, wrong, monkeypatch):
        def broken(D, C, k, plus, powers):
            M, g = state_terms(D, C, k, plus, powers)
            return (M, g * (1 + Fraction(1, 10**13)).numerator) if wrong == "factor" else (M + 1, g)

        monkeypatch.setattr("simulations.positional.invariance.balls.state_terms", broken)
        from simulations.positional.invariance.balls import coefficients

        coefficients.cache_clear()
        assert not contains_value(*written_box("D=6, C=2, q=.3, alpha=.1, beta=1"))
        coefficients.cache_clear()


class TestFormula:
    """The terms of the sum equal the proved expressions exactly at rational points."""

    @pytest.mark.parametrize("p", [3, 5, 7, 9])
    @pytest.mark.parametrize(("D", "C"), SIZES)
    def test_equals_the_proved_expressions(self, D, C, p):
        N, r = D - C, Fraction(3, 5 * D + 7)
        sizes = {sym.D: D, sym.C: C, sym.p: p, sym.Gamma: r}
        plain = [rationalize(x) for x in (line.FACTORS, line.SUM_OF_POWERS)]
        for k in range(N + 1):
            for plus in range(k + 1):
                M, g = state_terms(D, C, k, plus, outputs(D, C + 2 * plus - k, r, p))
                values = sizes | {line.N_PLUS: plus, line.N_MINUS: k - plus}
                values = {name: Fraction(value) for name, value in values.items()}
                assert [g, M] == [evaluate(expression, values) for expression in plain]


class TestNumbers:
    @given(st.fractions())
    def test_ball_contains_its_fraction(self, number):
        assert ball(number).contains(arb(number.numerator) / number.denominator) or (
            ball(number) * number.denominator
        ).contains(arb(number.numerator))

    @given(st.one_of(numbers(-1000, 1000), st.floats(-1e300, 1e300).map(Fraction)))
    def test_written_numbers_are_read_back_exactly(self, number):
        assume(number == 0 or abs(number) > Fraction(1, 10**300))
        assert exact(written(number)) == number

    @pytest.mark.parametrize("N", [40, 300, 3000])
    @pytest.mark.parametrize("mean", [1e-9, 0.01, 0.3, 2.0, 16.0])
    def test_probability_of_more_features_is_below_1e26(self, N, mean):
        q = mean / N
        cut = most_features(N, q)
        with mp.workdps(60):
            probability = mp.mpf(q)
            tail = mp.fsum(
                mp.binomial(N, k) * probability**k * (1 - probability) ** (N - k)
                for k in range(cut + 1, min(N, cut + 200) + 1)
            )
            assert tail <= mp.mpf("1e-26")

    @settings(max_examples=60)
    @given(st.lists(st.fractions(-3, 3), min_size=1, max_size=8), pair(numbers(0, 1)), PARTS)
    def test_lower_bound_of_a_polynomial(self, coefficients, ends, part):
        low, point = least_value(tuple(map(ball, coefficients)), *ends)
        degree, q = len(coefficients) - 1, ends[0] + part * (ends[1] - ends[0])
        value = sum(
            c * math.comb(degree, k) * q**k * (1 - q) ** (degree - k)
            for k, c in enumerate(coefficients)
        )
        assert low <= value
        assert ends[0] <= point <= ends[1]
