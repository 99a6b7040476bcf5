"""The language of conjectures compared with Python, and the arithmetic of error bounds."""

import ast
import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from simulations.falsify.bounded import Bounded
from simulations.falsify.language import (
    ConjectureError,
    depends_on_the_whole_run,
    holds,
    number,
    parse,
    violation,
)
from symbolic.core.grammar import FUNCTIONS, names_in

NAMES = ("alpha", "gamma", "rho", "D")


@st.composite
def numbers(draw, depth=3):
    """Return the text of a number that has the same meaning in Python, with few parentheses."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from((*NAMES, "0", "1", "2", "3.5", ".5", "1e-3", "1.25E+1")))
    part = numbers(depth=depth - 1)
    match draw(st.integers(0, 4)):
        case 0:
            return f"({draw(part)})"
        case 1:
            return f"-{draw(part)}"
        case 2:
            return f"{draw(part)}**{draw(st.sampled_from(('0', '1', '2', '3', '-1')))}"
        case 3:
            return f"{draw(st.sampled_from(('min', 'max')))}({draw(part)}, {draw(part)})"
    return f"{draw(part)} {draw(st.sampled_from(('+', '-', '*', '/')))} {draw(part)}"


@st.composite
def statements(draw, depth=2):
    """Return the text of a statement that has the same meaning in Python."""
    if depth == 0 or draw(st.booleans()):
        signs = st.sampled_from(("<", "<=", ">", ">=", "==", "!="))
        chain = draw(st.lists(signs, min_size=1, max_size=2))
        return draw(numbers(depth=2)) + "".join(f" {s} {draw(numbers(depth=2))}" for s in chain)
    part = statements(depth=depth - 1)
    match draw(st.integers(0, 2)):
        case 0:
            return f"not {draw(part)}"
        case 1:
            return f"({draw(part)})"
    return f"{draw(part)} {draw(st.sampled_from(('and', 'or')))} {draw(part)}"


values = st.fixed_dictionaries({name: st.integers(-4, 4).map(float) for name in NAMES})


def in_python(text, values):
    """Return the value of a generated text in Python, the oracle; never use it on user text."""
    try:
        result = eval(text, {"__builtins__": {}, "min": min, "max": max}, dict(values))
    except (ZeroDivisionError, OverflowError, TypeError):  # TypeError: it compares complex numbers
        assume(False)
    assume(not isinstance(result, complex))
    return result


class TestMeaning:
    @pytest.mark.slow
    @given(numbers(), values)
    def test_numbers_agree_with_python(self, text, known):
        expected = in_python(text, known)
        assume(abs(expected) < 1e100)
        with np.errstate(all="ignore"):
            tree = parse(f"{text} == 0", NAMES).left
            result = number(tree, {name: Bounded.exact(x) for name, x in known.items()})
        assert float(result.value) == pytest.approx(expected, rel=1e-12, abs=1e-300)
        assert result.low <= expected <= result.high

    @pytest.mark.slow
    @given(statements(), values)
    def test_statements_agree_with_python(self, text, known):
        expected = in_python(text, known)
        exact = {name: Bounded.exact(x) for name, x in known.items()}
        with np.errstate(all="ignore"):
            tree = parse(text, NAMES)
            result = violation(tree, exact)
            opposite = violation(tree, exact, negated=True)
            assume(math.isfinite(result.value))  # Python also compares numbers that overflowed
            assume(abs(result.value) > 1e-9 or ("e" not in text and "/" not in text))
            assert holds(tree, exact) == expected
        assert (result.value > 0.0) == (not expected)
        assert (opposite.value > 0.0) == expected

    def test_powers_bind_before_signs_and_to_the_right(self):
        for text, value in (("-2^2", -4), ("2^3^2", 512), ("2^-1", 0.5), ("2**3", 8), ("+3", 3)):
            assert number(parse(f"{text} < 0", ()).left, {}).value == value

    def test_functions_of_the_whole_run(self):
        known = {
            "gamma": Bounded.exact(np.array([0.0, 2.0, 1.0])),
            "rho": Bounded.exact(np.array([0.0, -1.0, 0.5])),
            "D": Bounded.exact(4.0),
        }
        expected = {
            "min(rho) == -1": True,
            "max(gamma) == 2": True,
            "final(gamma) == 1 and at_start(gamma) == 0": True,
            "initial(gamma) < at_end(gamma)": True,
            "always(gamma >= rho)": True,
            "not always(gamma > rho)": True,
            "always(gamma > rho)": False,
            "eventually(gamma > 1.5 and rho < 0)": True,
            "not eventually(gamma > 3)": True,
            "always(eventually(gamma > 1.5))": True,
            "abs(min(rho)) + sqrt(D) == 3": True,
            "max(max(gamma, rho)) == 2": True,
            "exp(log(D)) < 4.1": True,
        }
        for text, truth in expected.items():
            assert holds(parse(text, known), known) == truth, text
        assert violation(parse("gamma <= D/4", known), known).value.tolist() == [-1, 1, 0]

    def test_violations_are_margins(self):
        known = {"alpha": Bounded.exact(3.0), "rho": Bounded.exact(1.0)}
        for text, margin in {
            "alpha <= 1": 2,
            "1 >= alpha": 2,
            "alpha == 5": 2,
            "alpha <= 1 and rho <= 0": 2,
            "alpha <= 1 or rho <= 0": 1,
            "0 <= alpha <= 2": 1,
            "alpha != 4": -1,
        }.items():
            assert violation(parse(text, known), known).value == margin, text

    def test_undefined_values_are_undecided(self):
        known = {"rho": Bounded.exact(0.0), "alpha": Bounded.exact(-1.0)}
        with np.errstate(all="ignore"):
            for text in (
                "1/rho > 0",
                "rho/rho == 1",
                "log(alpha) < 0",
                "sqrt(alpha) < 0",
                "alpha^0.5 < 0",
            ):
                result = violation(parse(text, known), known)
                assert math.isnan(result.value), text
                assert result.low <= 0.0, text
                assert result.high == math.inf, text
            both = violation(parse("alpha > 0 and 1/rho > 0", known), known)
            assert both.low > 0.9  # false for any value of the other part
            assert both.value > 0.9
            either = violation(parse("alpha < 0 or 1/rho > 0", known), known)
            assert either.high < 0.0
            assert either.value < 0.0
            for text in (
                "alpha < 0 and 1/rho > 0",
                "alpha > 0 or 1/rho > 0",
                "1/rho > alpha < 0",
                "not (alpha < 0 and 1/rho > 0)",
                "max(alpha, 1/rho) < 0",
            ):
                assert math.isnan(violation(parse(text, known), known).value), text
                assert not holds(parse(text, known), known), text

    def test_statements_that_depend_on_the_whole_run(self):
        for text, whole in {
            "gamma >= rho": False,
            "max(gamma, rho) > 0": False,
            "max(gamma) > 0": True,
            "at_end(gamma) > 0": True,
            "eventually(gamma > 1)": True,
            "D < 3": True,
            "at_start(gamma) <= gamma": False,
        }.items():
            assert depends_on_the_whole_run(parse(text, NAMES), {"D"}) == whole, text


OPERATIONS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "^": lambda x, y: x**y,
}
intervals = st.tuples(st.floats(-10, 10), st.floats(0, 1), st.floats(-1, 1))


class TestBounds:
    """The result for numbers in the intervals of the operands is in the interval of the result."""

    @given(intervals, intervals, st.sampled_from(sorted(OPERATIONS)))
    def test_arithmetic(self, left, right, operator):
        numbers = [Bounded.within(value, radius) for value, radius, _ in (left, right)]
        true = [value + radius * part for value, radius, part in (left, right)]
        true = [min(max(x, n.low), n.high) for x, n in zip(true, numbers)]
        try:
            expected = OPERATIONS[operator](*true)
        except (ZeroDivisionError, OverflowError):
            assume(False)
        assume(not isinstance(expected, complex))
        with np.errstate(all="ignore"):
            result = OPERATIONS[operator](*numbers)
        assert result.low <= expected <= result.high

    @given(intervals, intervals, st.sampled_from("+-*"), st.integers(0, 3))
    @example((0.3, 0.1, 0.0), (0.3, 0.7, 0.0), "-", 1)
    def test_ends_exactly(self, left, right, operator, corner):
        """The ends are rounded outwards, also if the value is 0."""
        numbers = [Bounded.within(value, radius) for value, radius, _ in (left, right)]
        at = [(n.low, n.high)[corner >> i & 1] for i, n in enumerate(numbers)]
        expected = OPERATIONS[operator](*map(Fraction, at))
        result = OPERATIONS[operator](*numbers)
        assert Fraction(float(result.low)) <= expected <= Fraction(float(result.high))

    @given(intervals, st.sampled_from(("abs", "exp", "log", "sqrt")))
    def test_functions(self, number_, function):
        value, radius, part = number_
        bounded = Bounded.within(value, radius)
        true = min(max(value + radius * part, bounded.low), bounded.high)
        assume(true > 0.0 or function in ("abs", "exp"))
        with np.errstate(all="ignore"):
            result = getattr(bounded, function)()
        assert result.low <= getattr(math, function.replace("abs", "fabs"))(true) <= result.high

    def test_underflow_and_overflow(self):
        """A result that is rounded to 0 or infinity has bounds that contain the exact number."""
        least, most = Bounded.exact(1e-200), Bounded.exact(1e200)
        with np.errstate(all="ignore"):
            for tiny in (least * least, least / most, least ** Bounded.exact(2.0), (-most).exp()):
                assert tiny.low <= 0.0 < tiny.high
            for large in (
                most * most,
                most**most,
                most.exp(),
                Bounded.exact(1.7e308) + most * most,
            ):
                assert large.low < math.inf == large.high
            known = {"alpha": least}
            for text, violated in (("alpha*alpha > 0", False), ("0*alpha > 0", True)):
                assert (violation(parse(text, known), known).low > 0.0) == violated, text


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "sentence", "at"),
        [
            ("", "the formula ends where a value is expected", 0),
            ("gamma", "a statement is needed here", 0),
            ("gama >= rho", "unknown name 'gama': did you mean gamma", 0),
            ("gamma >= zzzzz", "unknown name 'zzzzz': known are D, alpha, gamma, rho", 9),
            ("gamma >= rho +", "the formula ends where a value is expected", 14),
            ("gamma = rho", "'=' has no meaning here: equality is written ==", 6),
            ("gamma >= rho rho", "'rho' is not expected here", 13),
            ("(gamma >= rho", "this parenthesis is not closed", 0),
            ("(gamma >= rho 3)", "'3' is not expected here: an operator or ')' is", 14),
            ("gamma >= rho)", "')' is not expected here", 12),
            ("gamma and rho", "a statement is needed here", 0),
            ("gamma >= rho and D", "a statement is needed here", 17),
            ("1 + (gamma > 0) > 1", "a number is needed here, this is a statement", 5),
            ("-(gamma > 0) > 1", "a number is needed here", 2),
            ("not gamma", "a statement is needed here", 4),
            ("and gamma > 0", "'and' needs a statement before it", 0),
            ("always(gamma) > 0", "a statement is needed here", 7),
            ("sine(gamma) > 0", "unknown function 'sine'", 0),
            ("log(gamma, 2) > 0", "log takes one value, not 2", 0),
            ("max() > 0", "max takes at least one value, not 0", 0),
            ("max > 0", "max is a function: write max(...)", 0),
            ("gamma >= 1e999", "this number is too large", 9),
            ("gamma ≥ rho", "'≥' has no meaning here: write >=", 6),
            ("gamma.__class__ > 0", "unknown name 'gamma.__class__'", 0),
            ("gamma > 'a'", '"\'" has no meaning here', 8),
            ("gamma > not rho", "'not' is not expected here", 8),
            ("(gamma, rho) > 1", "',' is allowed only between the arguments of a function", 0),
            ("max(gamma,) > 1", "')' is not expected here: a value is", 10),
            ("max(*gamma) > 1", "'*' is not expected here: a value is", 4),
            ("1_000 > gamma", "'_000' is not expected here: an operator is", 1),
            ("gamma\n>= * rho", "'*' is not expected here: a value is", 9),
            ("(" * 60 + "gamma > 0" + ")" * 60, "more than 50 levels of nesting", 50),
            ("-" * 200 + "gamma > 0", "more than 50 levels of nesting", 50),
        ],
    )
    def test_point_at_the_character(self, text, sentence, at):
        with pytest.raises(ConjectureError) as error:
            parse(text, NAMES)
        first, shown, caret = str(error.value).split("\n")
        assert sentence in first
        assert shown == "  " + text.replace("\n", " ")
        assert caret == "  " + " " * at + "^"

    def test_names_and_numbers_that_python_does_not_allow(self):
        tree = parse("lambda + class.x < 007", ("lambda", "class.x"))
        known = {"lambda": Bounded.exact(2.0), "class.x": Bounded.exact(1.0)}
        assert names_in(tree) == set(known)
        assert violation(tree, known).value == -4.0

    def test_length_and_type(self):
        with pytest.raises(ValueError, match="longer than"):
            parse("gamma >= rho " * 200, NAMES)
        with pytest.raises(ValueError, match="it must be text"):
            parse(3, NAMES)

    @given(
        st.text(max_size=30)
        | st.lists(
            st.sampled_from(
                (*NAMES, "(", ")", "and", "not", "min", ",", "<", "^", "-", "1", "always", "?")
            ),
            max_size=12,
        ).map(" ".join)
    )
    def test_any_text_is_parsed_or_rejected(self, text):
        with contextlib.suppress(ConjectureError):
            tree = parse(text, NAMES)
            statements = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call)
            assert isinstance(tree, statements)
            assert names_in(tree) <= set(NAMES)
            nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
            assert all(0 <= node.col_offset < len(text) for node in nodes)

    def test_functions_are_documented_in_the_help(self):
        from simulations.commands.falsify import EPILOG

        assert all(f"{name}(" in EPILOG for name in FUNCTIONS)
