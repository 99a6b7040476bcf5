"""Ball arithmetic of emitted kernels: enclosures, and proved digits of floats.

Trusts: mpmath, for the functions and for the emitted expression in 60 digits.
"""

import math

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dynamics.core.balls.exact import exact
from dynamics.theory import reference
from dynamics.theory.data import Orbits, orbits
from dynamics.theory.kernel import compiled, mean, mean_function
from simulations.stated import digits as module
from simulations.stated.digits import along_flow, digits
from simulations.stated.law import Balls, law
from symbolic.theory import load_theory
from symbolic.theory import theory as theory_module
from symbolic.theory.source import source
from tests.closeness import close
from tests.dynamics.theory.high_precision import high_precision_mean
from tests.dynamics.theory.test_late import FILES, GROWTH, RANDOM_STATE, SIZES, emitted

HEAD = "def mean(_theta, _out, _constants, _weight):\n"
#: No shrinking, because failures are slow to shrink.
PHASES = (Phase.explicit, Phase.generate)


def as_mpf(x):
    """Return an exact ball as a number of mpmath."""
    mantissa, exponent = x.man_exp()
    return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))


def contains(ball, number):
    """Return whether a ball contains a number of mpmath, up to the rounding of that number."""
    slack = abs(number) * mpmath.mpf(10) ** (5 - mpmath.mp.dps)
    return as_mpf(ball.lower()) - slack <= number <= as_mpf(ball.upper()) + slack


POINTS = (-745.0, -40.0, -1.0, -1e-9, 0.0, 1e-300, 1e-9, 0.5, 1.0, 36.0, 800.0, 1e5)
FUNCTIONS = {
    "_sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "_softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "exp": mpmath.exp,
    "tanh": mpmath.tanh,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", POINTS)
def test_functions_of_balls_contain_the_exact_values(name, x):
    result = reference.RULES.get(name) or getattr(reference.RULES["_math"], name)
    with ctx.workprec(200), mpmath.workprec(800):
        wanted = FUNCTIONS[name](mpmath.mpf(x))
        narrow, wide = result(exact(x)), result(exact(x) + arb(0, 1) * exact(1e-3))
        assert contains(narrow, wanted)
        assert narrow.rad() <= abs(narrow) * 2.0**-150 or name == "tanh"
        for moved in (x - 1e-3, x, x + 1e-3):
            assert contains(wide, FUNCTIONS[name](mpmath.mpf(moved)))


@pytest.mark.parametrize(
    ("name", "point", "hull"),
    [("_modulus", 0, (0, 3)), ("_relu", 0, (0, 3)), ("_sign", 0, (-1, 1)), ("_step", 0, (0, 1))],
)
def test_balls_around_a_kink_give_the_hull(name, point, hull):
    function = reference.RULES[name]
    assert function(exact(float(point))) == point
    around = function(arb(1, 2))  # from -1 to 3
    assert all(around.contains(arb(end)) for end in hull)
    assert around.rad() < 1.01 * (hull[1] - hull[0])
    left = {"_modulus": 2, "_relu": 0, "_sign": -1, "_step": 0}[name]
    right = {"_modulus": 2, "_relu": 2, "_sign": 1, "_step": 1}[name]
    assert (function(arb(-2)), function(arb(2))) == (left, right)


@pytest.mark.parametrize("x", [-2.5, -1e-30, 0.0, 1e-30, 0.3, 7.0])
@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, 3.0, 7.0, -1.0, -4.0, 0.5, 2.5, -1.5])
def test_powers(x, power):
    with ctx.workprec(200), mpmath.workprec(400):
        result = reference.power(exact(x), exact(power))
        if (x == 0.0 and power < 0.0) or (x <= 0.0 and not power.is_integer()):
            assert not result.is_finite() or (x == 0.0 and result.contains(0))
            return
        assert contains(result, mpmath.mpf(x) ** mpmath.mpf(power))
        assert result.rad() <= abs(result) * 2.0**-150 or x == 0.0
        around = reference.power(exact(x) + arb(0, 1) * exact(0.1), exact(power))
        if power.is_integer() and power >= 0.0:
            assert around.is_finite()
            for moved in (x - 0.1, x, x + 0.1):
                assert contains(around, mpmath.mpf(moved) ** int(power))


def test_largest_score_of_an_element():
    none = -reference.RULES["_math"].inf
    largest = reference.highest(arb(1), arb(3), none)
    assert largest == 3
    assert reference.highest(arb(2), arb(5), largest) == 5
    assert reference.highest(arb(0), arb(9), largest) == 3
    assert reference.highest(2, arb(-1e6), none) == -1e6


def test_literals_are_rationals():
    text = HEAD + "    _out[0] = 0.1 * _theta[0]\n    return 1.0 / 3.0\n"
    result = mean_function(text, "theory")([3.0], [0.0], [], [1.0])
    with ctx.workprec(300):
        third, tenth = reference.enclosed(text, "theory", _no_data(), [3.0], [])
        assert third.contains(arb(1) / 3)
        assert tenth.contains(3 * exact(0.1))  # a decimal in a file is its float
    rows = reference.proved(text, "theory", (result, [0.1 * 3.0]), _no_data, [3.0], [])
    close(rows[0].bound, 2.0**-54, rel=1e-9)
    assert rows[0].digits == 16


def _no_data():
    return Orbits(np.ones(1), (), ())


def _given(name, others=()):
    theory, text = emitted(name)
    values = theory.checked(SIZES[name] | dict(others))
    return theory, text, values


#: Theories with many data orbits, which take seconds in balls.
LARGE = {"masked", "positional"}
logits = st.floats(-30.0, 30.0)
STATES = {
    "positional": st.tuples(st.floats(0.01, 0.6), logits, logits).map(list),
    "look_up": st.tuples(logits, logits).map(list),
    "teacher": st.tuples(st.floats(0.1, 4.0), logits, logits).map(list),
    "masked": st.lists(logits, min_size=12, max_size=12),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.slow if x in LARGE else ()) for x in STATES],
)
def test_floats_are_within_their_proved_errors(name):
    """Balls contain the values of mpmath, both with float probabilities of the data.

    The proved errors of the floats refer to exact probabilities.
    """
    theory, text, values = _given(name)
    constants, data = list(values.values()), orbits(law(theory, values))

    @settings(max_examples=6, phases=PHASES)
    @given(state=STATES[name])
    def check(state):
        risk, slopes = high_precision_mean(text, constants, state, data, 60)
        with ctx.workprec(200):
            balls = reference.enclosed(text, name, data, state, constants)
        for ball, wanted in zip(balls, [risk, *slopes], strict=True):  # rounded to a float
            assert abs(ball - exact(wanted)) <= abs(exact(wanted)) * 2.0**-52 + 1e-320
        with ctx.workprec(200):
            true = reference.enclosed(text, name, _balls(theory, values), state, constants)
        result = mean(compiled(text, name), data, state, constants)
        rows = digits(theory, values, state)
        assert rows.failure == ""
        assert rows.bound["risk"] <= 1e-10  # a sum of positive terms; slopes may cancel
        for value, ball, bound in zip(
            [result[0], *result[1]], true, rows.bound.values(), strict=True
        ):
            if abs(ball) > 1e-290:
                error = abs(exact(value) - ball.mid())  # the radius is far below the error
                assert error <= exact(bound) * abs(ball.mid()) * exact(1.0 + 1e-9)

    check()


def test_probabilities_in_balls_sum_to_1():
    for name in FILES:
        theory, _, values = _given(name)
        if not len(orbits(law(theory, values)).weight) > 1:
            continue
        with ctx.workprec(200):
            balls = orbits(law(theory, values, Balls(values))).weight
            assert abs(sum(balls, arb(0)) - 1) < 2.0**-150
        floats = orbits(law(theory, values)).weight
        assert [float(x.mid()) for x in balls] == pytest.approx(floats.tolist(), rel=1e-14, abs=0)


@pytest.mark.slow
def test_lost_digits_are_not_proved(monkeypatch):
    """Masked theory, late: 1 - a instead of the sum of the other attention weights."""
    theory, text, values = _given("masked")
    monkeypatch.setattr(theory_module, "centred", lambda loss: loss)
    worse = source(load_theory(FILES["masked"]))
    constants, data = list(values.values()), orbits(law(theory, values))
    for late, least in ((2.0, 10), (20.0, 0)):
        state = [*(RANDOM_STATE + late * GROWTH)]
        floats = mean(mean_function(worse, "theory"), data, state, constants)
        every = [
            reference.proved(x, "theory", floats, lambda: _balls(theory, values), state, constants)
            for x in (worse, text)
        ]
        assert [x.digits for x in every[0]] == [x.digits for x in every[1]]
        lost = min(x.digits for x in every[0])
        assert lost >= least if late < 10.0 else lost < 9
    good = digits(theory, values, state)
    assert min(good.proved.values()) >= 13


def _balls(theory, values):
    return orbits(law(theory, values, Balls(values)))


@pytest.mark.parametrize(
    ("result", "expected"),
    [(1.0, 16), (1.0 + 2e-12, 11), (1.1, 0), (1.09, 1), (-1.0, 0), (0.0, 0), (math.nan, 0),
     (math.inf, 0)],
)  # fmt: skip
def test_digits_follow_from_the_relative_error(result, expected):
    text = HEAD + "    _out[0] = _theta[0] - _theta[0]\n    return 1.0\n"
    risk, slope = reference.proved(text, "theory", (result, [0.0]), _no_data, [3.0], [])
    assert risk.digits == expected
    assert (slope.bound, slope.digits) == (0.0, 16)  # exactly 0
    _, wrong = reference.proved(text, "theory", (1.0, [1e-300]), _no_data, [3.0], [])
    assert (wrong.bound, wrong.digits) == (math.inf, 0)


def test_value_indistinguishable_from_0_has_no_digits(monkeypatch):
    monkeypatch.setattr(reference, "MOST_BITS", 256)
    text = (
        "import math as _math\ndef mean(_theta, _out, _constants, _weight):\n"
        "    _out[0] = _math.exp(_math.log(_theta[0])) - _theta[0]\n    return 1.0\n"
    )
    _, slope = reference.proved(text, "theory", (1.0, [0.0]), _no_data, [3.0], [])
    assert (slope.bound, slope.digits) == (math.inf, 0)


def test_wrong_function_of_balls_is_detected(monkeypatch):
    theory, _, values = _given("positional")
    monkeypatch.setitem(reference.RULES, "_sigmoid", lambda x: 1 / (1 + x.exp()))
    reference._function.cache_clear()
    try:
        result = digits(theory, values, [0.3, 1.0, -0.5])
    finally:
        monkeypatch.undo()
        reference._function.cache_clear()
    assert result.proved["risk"] >= 14
    assert result.proved["gamma"] == 0
    assert digits(theory, values, [0.3, 1.0, -0.5]).proved["gamma"] >= 13


class TestSummary:
    def test_start_and_end_of_the_flow(self):
        theory, _, values = _given("look_up")
        start, end = along_flow(theory, values)
        assert (start.time, end.time) == (0.0, module.HORIZON)
        assert start.state == {"A": 0.0, "B": 0.0}
        assert end.state["A"] > 1.0
        assert (
            start.sentence == "digits proved at time 0: at least 15 of the risk and of every slope"
        )
        assert end.sentence.startswith("digits proved at time 1000: at least 1")

    def test_lost_digits(self):
        result = module.Digits(
            5.0, {}, {"risk": 9, "a": 0, "b": 0, "c": 0, "d": 0}, dict.fromkeys("abcd", math.inf)
        )
        assert result.sentence == (
            "digits proved at time 5: none of a, b, c, 1 more; of the others at least 9"
        )

    def test_too_many_data_orbits(self, monkeypatch):
        theory, _, values = _given("look_up")
        monkeypatch.setattr(module, "MOST_ORBITS", 3)
        (result,) = along_flow(theory, values)
        assert result.sentence == (
            "digits proved at time 0: none, more than 3 data orbits are too many in balls"
        )

    def test_fewer_digits_near_a_tie(self):
        """Positional theory: if beta, gamma and rho differ by 1e-7, slopes are sums that cancel."""
        theory, _, values = _given("positional")
        far, near = (digits(theory, values, [0.3, 1.0 + x, 1.0 - x]).proved for x in (1e-1, 1e-7))
        assert min(far.values()) >= 13
        assert 6 <= min(near["gamma"], near["rho"]) <= 11
