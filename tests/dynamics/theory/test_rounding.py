"""Rules of running error bounds: each bound is valid, and each of its terms is necessary.

Trusts: the ball arithmetic of FLINT.
"""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx

from dynamics.core.balls.exact import above, exact
from dynamics.theory import reference, rounding

SOURCE = Path(rounding.__file__).read_text(encoding="utf-8")
U, INF = 2.0**-53, math.inf
EXACT = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "negate": lambda x: -x,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "sqrt": lambda x: x.sqrt(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": reference.sigmoid,
    "softplus": reference.softplus,
    "modulus": abs,
    "relu": lambda x: x if x > 0 else arb(0),
    "sign": lambda x: arb(int(x > 0) - int(x < 0)),
    "step": lambda x: arb(int(x > 0)),
    "shifted_log": lambda norm, top: top + norm.log(),
    "power": reference.power,
}


def some(low, high, count=40, seed=0):
    """Return pairs without errors, and with small and large errors."""
    points = np.random.default_rng(seed).uniform(low, high, count).tolist()
    return [(x, e * abs(x)) for x in points for e in (0.0, 1e-12, 0.1, 0.24)]


def pairs(low, high, seed):
    """Return arguments of binary rules, some of them without errors."""
    left, right = some(low, high, seed=seed), some(low, high, seed=seed + 1)
    without = [((x, 0.0), (y, 0.0)) for (x, _), (y, _) in zip(left, right)]
    return [*without[::4], *zip(left, right[::-1])]


KINKS = [((0.0, 0.0),), ((0.0, 1e-300),), ((0.5, 0.5),), ((-0.5, 0.6),), ((0.5, 0.6),)]
#: Cases in which a single term dominates, and random ones.
CASES = {
    "add": [((1.0, 0.0), (U, 0.0)), ((1.0, 0.5), (-1.0, 0.0)), ((1.0, 0.0), (-1.0, 0.5)),
            *pairs(-3.0, 3.0, 0)],
    "subtract": [((1.0, 0.0), (-U, 0.0)), ((1.0, 0.5), (1.0, 0.0)), ((1.0, 0.0), (1.0, 0.5)),
                 *pairs(-3.0, 3.0, 2)],
    "negate": [((x, 0.5),) for x in (-2.0, 0.0, 3.0)],
    "multiply": [((0.0, 0.5), (0.0, 0.25)), ((2.0, 0.0), (0.0, 0.5)), ((0.0, 0.5), (2.0, 0.0)),
                 ((1e-200, 0.0), (1.3e-120, 0.0)), ((1.0, 0.3), (1.0, 0.3)), *pairs(-3.0, 3.0, 4)],
    "divide": [((0.0, 0.5), (2.0, 0.0)), ((1.0, 0.0), (2.0, 0.5)), ((1.0, 0.0), (1.0, 0.26)),
               ((1.0, 0.0), (1.0, 2.0)),
               ((1e-200, 0.0), (1.3e120, 0.0)), ((3.0, 0.0), (1.0, 0.25)), *pairs(0.1, 3.0, 6)],
    "exp": [((-746.0, 0.0),), ((-745.2, 0.9),), ((0.0, 0.9),), ((-20.0, 15.0),), ((-800.0, 400.0),),
            *((x,) for x in some(-30.0, 30.0))],
    "log": [((1.0, 0.4),), ((1.0, 0.0),), *((x,) for x in some(0.1, 9.0))],
    "sqrt": [((1.0, 1.0),), ((4.0, 3.0),), ((0.0, 0.0),), *((x,) for x in some(0.1, 9.0))],
    "tanh": [((0.0, 0.01),), ((2.0, 0.4),), ((2.0, 3.0),), ((19.0, 0.0),), ((1e-310, 0.0),),
             *((x,) for x in some(-6.0, 6.0))],
    "sigmoid": [((-800.0, 0.0),), ((-745.5, 0.9),), ((-30.0, 0.9),), ((-30.0, 20.0),),
                ((-800.0, 300.0),), *((x,) for x in some(-30.0, 30.0))],
    "softplus": [((-800.0, 0.0),), ((-745.5, 0.9),), ((-30.0, 0.9),), ((-30.0, 20.0),),
                 ((30.0, 0.9),), ((30.0, 20.0),), *((x,) for x in some(-30.0, 30.0))],
    **{rule: [*KINKS, *((x,) for x in some(-3.0, 3.0))]
       for rule in ("modulus", "relu", "sign", "step")},
    "shifted_log": [((1.0, 0.4), (3.0, 0.0)), ((1.0, 0.0), (1e3, 0.0)), ((1.7, 0.0), (1e3, 0.0)),
                    *((x, (y, 0.0)) for x, (y, _) in zip(some(0.5, 9.0), some(-9.0, 9.0)))],
    "power": [((0.0, 0.5), (3.0, 0.0)), ((2.0, 1.9), (4.0, 0.0)), ((-1.5, 0.3), (3.0, 0.0)),
              ((1e-200, 0.0), (2.0, 0.0)), ((1.3e-154, 0.0), (-2.0, 0.0)), ((2.0, 0.0), (0.5, 0.1)),
              ((2.0, 0.3), (0.5, 0.0)), ((1.7, 0.05), (9.0, 0.0)), ((0.0, 0.0), (0.5, 0.0)),
              ((0.3, 0.0), (2.5, 0.2)), ((1.0, 0.2), (12.0, 0.0)), ((1.1, 0.0), (40.0, 0.0)),
              *(((x, 0.0), (p, 0.0)) for x in np.linspace(0.5, 2.0, 40) for p in (-9.0, 6.0, 2.7))],
}  # fmt: skip


def violations(module, rule):
    """Return the cases in which the exact result is not within the bound."""
    cases = []
    for case in CASES[rule]:
        value, error = module[rule](*case)
        bound = module["final"](error)
        if not bound < INF:
            continue
        for shares in product((-1, 0, 1), repeat=len(case)):
            with ctx.workprec(400):
                points = [exact(x) + share * exact(e) for (x, e), share in zip(case, shares)]
                wanted = EXACT[rule](*points)
                if abs(wanted - exact(value)) > exact(bound):
                    cases.append((case, shares))
    return cases


def plain(text):
    """Return the names of a module of rules, without compilation."""
    module = {}
    exec(text.replace("from dynamics.core.jit import kernel", "kernel = lambda f: f"), module)
    return module


@pytest.mark.parametrize("rule", EXACT)
def test_the_exact_result_is_within_the_bound(rule):
    assert violations(vars(rounding), rule) == []


@pytest.mark.parametrize("rule", EXACT)
def test_the_bound_is_a_few_times_the_largest_error(rule):
    """Only cases with small errors above rounding are compared."""
    for case in CASES[rule]:
        if any(e not in (0.0, 1e-12 * abs(x)) for x, e in case) or not any(e for _, e in case):
            continue
        value, error = getattr(rounding, rule)(*case)
        with ctx.workprec(400):
            worst = max(
                above(
                    abs(
                        EXACT[rule](*(exact(x) + s * exact(e) for (x, e), s in zip(case, row)))
                        - exact(value)
                    )
                )
                for row in product((-1, 1), repeat=len(case))
            )
        assert error <= 3.0 * worst + 20.0 * U * max(abs(value), abs(case[0][0]))


#: Rule, a part of its source, and the same without a term.
MUTANTS = [
    ("add", "value, x[1] + y[1] + UNIT * abs(value)", "value, y[1] + UNIT * abs(value)"),
    ("add", "value, x[1] + y[1] + UNIT * abs(value)", "value, x[1] + UNIT * abs(value)"),
    ("add", "value, x[1] + y[1] + UNIT * abs(value)", "value, x[1] + y[1]"),
    ("negate", "return -x[0], x[1]", "return -x[0], 0.0"),
    ("modulus", "return abs(x[0]), x[1]", "return abs(x[0]), 0.0"),
    ("relu", "x[0] + OUTWARD * x[1] < 0.0", "x[0] < 0.0"),
    ("shifted_log", "return value, logarithm[1] + UNIT * abs(value)", "return value, logarithm[1]"),
    ("shifted_log", "logarithm[1] + UNIT * abs(value)", "UNIT * abs(value)"),
    ("multiply", "abs(x[0]) * y[1] + x[1] * (abs(y[0]) + y[1])", "x[1] * (abs(y[0]) + y[1])"),
    ("multiply", "x[1] * (abs(y[0]) + y[1])", "x[1] * abs(y[0])"),
    ("multiply", "x[1] * (abs(y[0]) + y[1])", "x[1] * y[1]"),
    ("multiply", "value, carried + UNIT * abs(value) + TINY", "value, carried + TINY"),
    ("multiply", "value, carried + UNIT * abs(value) + TINY", "value, carried"),
    ("divide", "(x[1] + abs(value) * y[1])", "(abs(value) * y[1])"),
    ("divide", "(x[1] + abs(value) * y[1])", "(x[1])"),
    ("divide", "(abs(y[0]) - OUTWARD * y[1])", "abs(y[0])"),
    ("divide", "not 4.0 * y[1] <= abs(y[0])", "False"),
    ("divide", "UNIT * abs(value)", "0.0"),
    ("divide", "+ TINY", ""),
    ("exp", "(_growth(x[1]) + FUNCTION)", "FUNCTION"),
    ("exp", "(_growth(x[1]) + FUNCTION)", "_growth(x[1])"),
    (
        "exp",
        "(value + TINY) * (_growth(x[1]) + FUNCTION) + TINY",
        "value * (_growth(x[1]) + FUNCTION)",
    ),
    ("exp", "t * (1.0 + t)", "t"),
    ("exp", "math.exp(x[0] + OUTWARD * x[1]) * OUTWARD + TINY", "value"),
    ("log", "t * (1.0 + t) + FUNCTION", "t + FUNCTION"),
    ("log", "t * (1.0 + t) + FUNCTION", "FUNCTION"),
    ("log", "FUNCTION * abs(value)", "0.0"),
    ("sqrt", "x[1] / value", "0.5 * x[1] / value"),
    ("sqrt", "UNIT * value", "0.0"),
    ("tanh", "value, carried = math.tanh(x[0]), x[1]", "value, carried = math.tanh(x[0]), 0.0"),
    ("tanh", "(1.0 + _growth(2.0 * x[1]))", "1.0"),
    ("tanh", "FUNCTION * abs(value)", "0.0"),
    ("sigmoid", "carried + own * value", "own * value"),
    ("sigmoid", "carried + own * value", "carried"),
    ("sigmoid", "min(value + TINY, 1.0 - value + own)", "min(value, 1.0 - value) * 0.5"),
    ("sigmoid", "functions.sigmoid(x[0] + OUTWARD * x[1]) * OUTWARD + TINY", "value"),
    ("softplus", "(2.0 * FUNCTION + UNIT) * value", "0.0"),
    ("softplus", "min(x[1], (value + TINY) * _growth(x[1]))", "0.0"),
    ("softplus", "if x[1] < largest else largest", "if False else value"),
    ("power", "t = degree * x[1] / (size - OUTWARD * x[1])", "t = 0.0"),
    ("power", "t += exponent[1] * (abs(math.log(size)) + 1.0)", "pass"),
    ("power", "(_growth(t) + own)", "_growth(t)"),
    ("power", "degree * largest * x[1] * OUTWARD", "0.0"),
    ("power", "power_of(size + OUTWARD * x[1]", "power_of(size"),
    ("power", "(abs(value) + TINY) * (_growth(t) + own) + TINY", "abs(value) * (_growth(t) + own)"),
]


@pytest.mark.parametrize(("rule", "right", "wrong"), MUTANTS)
def test_each_term_is_necessary(rule, right, wrong):
    mark = "def _growth(" if right == "t * (1.0 + t)" else f"def {rule}("
    head, own = SOURCE.split(mark)
    assert right in own.split("@kernel")[0]
    text = head + mark + own.replace(right, wrong, 1)
    unchanged = plain(head + mark + own)
    assert violations(unchanged, rule) == []
    assert violations(plain(text), rule) != []


class TestSoftmax:
    """Softmax weights: the exact weights are within their bounds for any subtracted score."""

    @staticmethod
    def is_violated(module, scores, exact_scores):
        """Return whether the weights of elements with these scores exceed their bounds."""
        top = (-INF, 0.0)
        for score in scores:
            top = module["highest"]((1.0, 0.0), score, top)
        excesses = []
        for score, number in zip(scores, exact_scores):
            value, error = module["raised"](score, top)
            with ctx.workprec(200):
                wanted = (exact(number) - exact(top[0])).exp()
                excesses.append(abs(wanted - exact(value)) > exact(module["final"](error)))
        return any(excesses)

    CASES = (
        ([(0.0, 0.0), (-3.3, 0.0)], [0.0, -3.3]),
        ([(0.0, 0.5), (-3.3, 0.0)], [0.5, -3.3]),
        ([(0.0, 0.0), (-3.3, 0.7)], [0.0, -2.6]),
        ([(0.0, 0.0), (-30.0, 20.0)], [0.0, -10.0]),
        *(([(0.1, 0.0), (x, 0.0)], [0.1, x]) for x in np.linspace(-301.0, -299.0, 20).tolist()),
        *(([(0.0, 0.0), (x, 0.0)], [0.0, x]) for x in np.linspace(-0.1, 0.0, 99).tolist()),
    )

    def test_bounds_are_valid(self):
        assert not any(self.is_violated(vars(rounding), *case) for case in self.CASES)

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("error = score[1] + UNIT * abs(excess)", "error = UNIT * abs(excess)"),
            ("error = score[1] + UNIT * abs(excess)", "error = score[1]"),
            ("(_growth(error) + FUNCTION)", "_growth(error)"),
            ("math.exp(below + OUTWARD * error) * OUTWARD", "value"),
        ],
    )
    def test_each_term_is_necessary(self, right, wrong):
        assert right in SOURCE
        changed = SOURCE[SOURCE.index("def raised(") :].replace(right, wrong)
        module = plain(SOURCE[: SOURCE.index("def raised(")] + changed)
        assert any(self.is_violated(module, *case) for case in self.CASES)

    def test_score_above_the_largest_by_rounding(self):
        """Computed in another order, a score and its exact value may exceed the largest one."""
        top = rounding.highest((1.0, 0.0), (1.0, 0.3), (-INF, 0.0))
        assert top == (1.0, 0.3)
        value, error = rounding.raised((1.0 + U * 4, 0.1), top)
        assert value == 1.0
        assert error >= math.expm1(0.3)

    def test_scores_without_elements_have_no_weight(self):
        assert rounding.highest((0.0, 0.0), (9.0, 0.0), (1.0, 0.1)) == (1.0, 0.1)
        assert rounding.highest((0.0, 1.0), (9.0, 0.0), (1.0, 0.1)) == (1.0, INF)
        value, error = rounding.raised((800.0, 0.0), (1.0, 0.1))
        assert rounding.multiply((0.0, 0.0), (value, error))[0] == 0.0
        assert rounding.multiply((0.0, 0.0), (value, error))[1] < 1e-200


@pytest.mark.parametrize("x", [math.nan, INF, -INF])
@pytest.mark.parametrize("rule", EXACT)
def test_arguments_that_are_not_finite_have_no_bound(rule, x):
    """The only exception is sigmoid(inf) = 1, which has a trivial bound."""
    binary = rule in ("add", "subtract", "multiply", "divide", "shifted_log")
    arguments = [(x, INF), (0.0, 0.0)] if binary else [(x, INF)]
    if rule == "power":
        arguments.append((3.0, 0.0))
    value, error = getattr(rounding, rule)(*arguments)
    bound = rounding.final(error)
    assert bound == INF or (rule == "sigmoid" and x == INF and value == 1.0 and bound > 1.0)


@pytest.mark.parametrize("error", [math.nan, INF])
def test_final(error):
    assert rounding.final(error) == INF
    assert 1.0 < rounding.final(1.0) < 1.0 + 1e-5


def test_integers_are_exact():
    unit, half = (1.0, 0.0), (0.5, 0.0)
    for result, x, y, expected in (
        ((3.0, 1.0), (2.0, 0.0), unit, 0.0),
        ((1.5, 1.0), unit, half, 1.0),
        ((3.0, 1.0), (2.0, 0.1), unit, 1.0),
        ((3.0, 1.0), unit, (2.0, 0.1), 1.0),
        ((2.0**53, 1.0), (2.0**53 - 1.0, 0.0), unit, 1.0),
    ):
        assert rounding.if_whole(result, x, y) == (result[0], expected)


def test_given():
    assert rounding.given(3.0, 0.0) == (3.0, 0.0)
    value, error = rounding.given(-3.0, 1e-10)
    assert (value, error) == (-3.0, 3e-10)
    assert rounding.given(0.0, 1e-10)[1] > 0.0


def test_total_of_families():
    """In the first of two configurations, 1 + u is rounded."""
    first = np.array([0, 2, 4])
    values = np.array([1.0, U, 2.0, -3.0]), np.array([0.0, 0.25, 0.5, 0.0])
    result, error = rounding.total(values, first, np.array([0, 1, 3]))
    assert result.tolist() == [1.0, -1.0, -1.0]
    assert error[0] >= 0.25 + U
    assert error[1] >= 0.5
    assert arb(error[1]) <= 0.5 + 1e-14


@pytest.mark.parametrize("rule", ["sign", "step"])
@pytest.mark.parametrize(
    ("x", "known"),
    [((0.0, 0.0), True), ((0.0, 1e-300), False), ((0.5, 0.5), False), ((-0.5, 0.4), True)],
)
def test_slope_at_a_kink_is_known_if_the_sign_is(rule, x, known):
    value, error = getattr(rounding, rule)(x)
    assert error == (0.0 if known else INF)
    if x == (0.0, 0.0):
        assert value == 0.0  # the chosen subgradient
