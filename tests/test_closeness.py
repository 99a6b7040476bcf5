"""The comparisons allow only the given tolerance, and no test relies on default tolerances."""

import ast
import math
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.closeness import close, within

TESTS = Path(__file__).parent
UP = math.nextafter(1.0, 2.0)


class Pair(NamedTuple):
    first: float
    second: float


class TestClose:
    @pytest.mark.parametrize("scale", [1.0, -1.0, 1e-300, 1e300, 5e-15])
    def test_the_tolerance_is_relative_at_every_size(self, scale):
        close(scale * (1 + 0.9e-9), scale, rel=1e-9)
        for sign in (1, -1):
            with pytest.raises(AssertionError):
                close(scale * (1 + sign * 1.1e-9), scale, rel=1e-9)

    def test_no_absolute_allowance_is_left(self):
        assert pytest.approx(0.0, rel=1e-15) == 1e-13  # what this is here to replace
        with pytest.raises(AssertionError, match="largest relative error inf"):
            close(1e-320, 0.0, rel=1e-3)
        with pytest.raises(AssertionError):
            close(1e-13, 2e-13, rel=1e-15)
        close(0.0, -0.0, rel=0.0)

    def test_zero_requires_equality(self):
        close(0.1, 0.1, rel=0.0)
        with pytest.raises(AssertionError):
            close(UP, 1.0, rel=0.0)

    def test_it_is_the_reference_that_scales(self):
        close(1.1, 1.0, rel=0.1000001)
        with pytest.raises(AssertionError):
            close(1.0, 1.1, rel=0.0909)

    def test_the_message_contains_the_worst_entry(self):
        with pytest.raises(AssertionError) as caught:
            close([[1.0, 2.0], [3.3, 4.1]], [[1.0, 2.0], [3.0, 4.0]], rel=1e-3)
        assert str(caught.value) == (
            "2 of 4 differ; largest relative error 0.1 > 0.001 at [1, 0]: 3.3 is not 3.0"
        )


class TestWithin:
    @pytest.mark.parametrize("reference", [0.0, 1e6, -3.0])
    def test_the_tolerance_is_absolute_at_every_size(self, reference):
        within(reference + 0.9e-3, reference, 1e-3)
        for sign in (1, -1):
            with pytest.raises(AssertionError, match="largest absolute error"):
                within(reference + sign * 1.1e-3, reference, 1e-3)

    def test_one_for_each_entry(self):
        within([1.0, 2.05], [1.0, 2.0], np.array([0.0, 0.1]))
        with pytest.raises(AssertionError, match=r"1 of 2 differ.* > 0 at \[0\]"):
            within([1.01, 2.05], [1.0, 2.0], np.array([0.0, 0.1]))


@pytest.mark.parametrize("compare", [close, within])
class TestBoth:
    """Whatever is compared, in either way."""

    @pytest.mark.parametrize(
        ("value", "reference"),
        [(math.nan, math.nan), (math.nan, 1.0), (1.0, math.nan), ([1.0, math.nan], [1.0, 1.0])],
    )
    def test_nan_equals_nothing(self, compare, value, reference):
        with pytest.raises(AssertionError):
            compare(value, reference, 1e300)

    @pytest.mark.parametrize("value", [0.0, 1e308, -math.inf, math.nan])
    def test_infinity_equals_itself_alone(self, compare, value):
        compare(math.inf, math.inf, 0.0)
        with pytest.raises(AssertionError):
            compare(value, math.inf, 0.5)
        with pytest.raises(AssertionError):
            compare(math.inf, value, 0.5)

    @pytest.mark.parametrize(
        ("value", "reference"),
        [
            ([1.0, 2.0], [1.0, 2.0, 3.0]),
            ([[1.0, 2.0]], [1.0, 2.0]),
            (1.0, [1.0]),
            ([], []),
            ([], 1.0),
            ({}, {}),
            ({"a": 1.0}, {"a": 1.0, "b": 1.0}),
            (1.0, {"a": 1.0}),
        ],
    )
    def test_other_shapes_and_empty_arrays_are_rejected(self, compare, value, reference):
        with pytest.raises(AssertionError):
            compare(value, reference, 1.0)

    def test_containers(self, compare):
        compare(np.full(3, 2.0), 2.0, 0.0)
        compare((1, 2), Pair(1.0, 2.0), 0.0)
        compare({"a": [1.0, 2.0], "b": Pair(0.0, 1.0)}, {"b": (0, 1), "a": (1, 2)}, 0.0)
        compare(1.0 + 2.0j, 1.0 + 2.0j, 0.0)
        compare(Fraction(1, 2), 0.5, 0.0)
        with pytest.raises(AssertionError, match=r"at \['a'\]\[1\]"):
            compare({"a": [1.0, 2.0]}, {"a": [1.0, 3.0]}, 1e-3)
        with pytest.raises(AssertionError):
            compare(1.0 + 2.0j, 1.0 + 2.1j, 1e-3)
        with pytest.raises(AssertionError):
            compare(Pair(1.0, 2.0), Pair(1.0, 2.1), 1e-3)

    @pytest.mark.parametrize("tolerance", [-1e-3, math.nan])
    def test_a_tolerance_that_is_none_is_an_error(self, compare, tolerance):
        with pytest.raises(ValueError, match="a tolerance is 0 or more"):
            compare(1.0, 1.0, tolerance)


#: Keyword arguments that each comparison must set, so that no default tolerance applies.
MUST_NAME = {
    "approx": {"abs"},
    "assert_allclose": {"rtol", "atol"},
    "allclose": {"rtol", "atol"},
    "isclose": {"rtol", "atol"},
    "math.isclose": {"rel_tol"},
}


def hidden_tolerances(source):
    """Return the lines of comparisons that leave a default tolerance in force."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            needed = MUST_NAME.get(name, MUST_NAME.get(name.rpartition(".")[2], set()))
            if needed - {keyword.arg for keyword in node.keywords}:
                lines.append(node.lineno)
    return lines


class TestNoTestHidesATolerance:
    @pytest.mark.parametrize(
        "call",
        [
            "pytest.approx(x, rel=2e-15)",
            "approx(x, 1e-9)",
            "pytest.approx(x)",
            "np.testing.assert_allclose(a, b, atol=1e-9)",
            "assert_allclose(a, b, rtol=1e-9)",
            "np.allclose(a, b)",
            "np.isclose(a, b, atol=0)",
            "math.isclose(a, b)",
        ],
    )
    def test_the_search_finds(self, call):
        assert hidden_tolerances(f"x = 1\nassert {call}\n") == [2]

    @pytest.mark.parametrize(
        "call",
        [
            "pytest.approx(x, abs=1e-9)",
            "approx(x, rel=1e-9, abs=1e-12)",
            "np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)",
            "math.isclose(a, b, rel_tol=1e-9)",
            "close(a, b, rel=1e-9)",
        ],
    )
    def test_and_lets_pass(self, call):
        assert not hidden_tolerances(f"assert {call}\n")

    def test_in_all_tests(self):
        uses = {
            str(path.relative_to(TESTS)): lines
            for path in sorted(TESTS.rglob("*.py"))
            if (lines := hidden_tolerances(path.read_text(encoding="utf-8")))
            and path.name != Path(__file__).name
        }
        assert not uses, "name the whole tolerance: close, within, or approx with abs="
