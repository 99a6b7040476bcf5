"""Order parameters and expectations that are derived from a loss, and rejected theories."""

import pytest
import sympy as sp

from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Size, Vectors, sqrt
from symbolic.theory import Exchangeable, TheoryError

d, K = Size("d"), Size("K")
space, unit = Euclidean("coordinate", d), Exchangeable("unit", K)
x, y, z = (Normal(name, space) for name in "xyz")
w, u = Vectors("w", space), Directions("u", space)


def theory(loss, parameters=(w,), directions=(u,), data=(x, y, z), sizes=(d, K)):
    return OverlapTheory(
        "example", "test", sizes=sizes, parameters=parameters, directions=directions, data=data,
        loss=loss,
    )  # fmt: skip


def committee():
    J, B = Vectors("J", (unit, space)), Directions("B", (unit, space))

    def loss(J, B, x):
        student = (J["k"] @ x / sqrt(2)).erf().sum("k")
        return (student - (B["m"] @ x / sqrt(2)).erf().sum("m")) ** 2 / 2

    return theory(loss, (J,), (B,), (x,))


def test_order_parameters_are_orbits_of_pairs():
    """Student and teacher share one set: same and other pairs, with their numbers."""
    expected = {
        "J.J[same]": K.symbol,
        "J.J[other]": K * (K - 1) / 2,
        "J.B[same]": K.symbol,
        "J.B[other]": K * (K - 1),
    }
    derived = committee().order_parameters
    assert list(derived) == list(expected)
    assert all(sp.expand(derived[name] - expected[name]) == 0 for name in expected)


def test_sums_are_expanded_by_patterns_of_equal_indices():
    """The loss has six expectations, whose multiplicities sum to those of all pairs."""
    reduced = committee().reduced
    n = K.symbol
    assert len(reduced.components) == len(reduced.terms) == 6
    counts = sorted((sp.factor(2 * abs_) for abs_, _ in reduced.terms), key=str)
    expected = [n, n * (n - 1), -2 * n, -2 * n * (n - 1), n, n * (n - 1)]
    assert sp.expand(sum(counts) - sum(expected)) == 0
    assert {sp.expand(c) for c in counts} == {sp.expand(c) for c in expected}


def test_separate_sets_have_one_overlap():
    """Without a common set, student and teacher have a single overlap."""
    J = Vectors("J", (unit, space))
    B = Directions("B", (Exchangeable("teacher unit", Size("M")), space))
    other = theory(
        lambda J, B, x: (J["k"] @ x).erf().sum("k") * (B["m"] @ x).erf().sum("m"),
        (J,), (B,), sizes=(d, K, Size("M")),
    )  # fmt: skip
    assert list(other.order_parameters) == ["J.J[same]", "J.J[other]", "J.B"]


def test_independent_data_factorize():
    """A product over two data is a product of two expectations."""
    reduced = theory(lambda w, u, x, y: (w @ x).erf() * (w @ y).erf() * (u @ y)).reduced
    assert len(reduced.components) == 2
    assert [len(numbers) for _, numbers in reduced.terms] == [2]


def test_equal_arguments_merge_into_one_function():
    """The square of a function needs one variable."""
    (component,) = theory(lambda w, x: (w @ x).sigmoid() ** 2).reduced.components
    assert component.functions == (("sigmoid", (0, 2, 0)),)


REJECTED = {
    "unclosed": (lambda w, u, x: ((w @ x).erf() * (u @ x)).erf(), "linear combination of fields"),
    "coordinate": (lambda w, x: w["i"] * x["i"], "rotations mix"),
    "two data": (lambda w, x, y: x @ y, "inner products of two data"),
    "softmax": (lambda w, x: (w @ x).softmax(over="l"), "write softmax"),
    "division": (lambda w, u, x: (w @ x) / (u @ x), "division by an expression"),
    "power": (lambda w, x: (w @ x) ** 0.5, "whole number from 1 to 6"),
    "no expression": (lambda w: 3, "must be an expression"),
    "name": (lambda q: q, "neither a vector nor data"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_losses_that_are_rejected(name):
    """One sentence with the line of the file."""
    loss, message = REJECTED[name]
    with pytest.raises(TheoryError, match=message) as caught:
        theory(loss)
    assert "test_language.py, line" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_four_functions_in_one_expectation_are_rejected():
    """Three different arguments on the same datum are integrated, four are sampled."""
    a, b, c = (Vectors(name, space) for name in "abc")

    def three(a, b, w, x):
        return (a @ x).erf() * (b @ x).sigmoid() * (w @ x).tanh()

    assert len(theory(three, (a, b, w)).reduced.components) == 1
    four = theory(lambda a, b, w, c, x: three(a, b, w, x) * (c @ x).tanh(), (a, b, w, c))
    with pytest.raises(TheoryError, match=r"functions of 4 different fields .*; sample the data"):
        four.reduced  # noqa: B018


def test_an_orthant_of_four_fields_is_rejected():
    """Steps of three fields have a closed form, of four none."""
    a, b, c = (Vectors(name, space) for name in "abc")
    four = theory(
        lambda a, b, c, w, x: (a @ x).step() * (b @ x).step() * (c @ x).relu() * (w @ x).relu(),
        (a, b, c, w),
    )
    with pytest.raises(TheoryError, match=r"step of 4 different fields .* use erf, or runs"):
        four.reduced  # noqa: B018


def test_steps_of_trained_fields_have_no_noise():
    """The loss of a datum jumps where trained vectors move, but not at a step of a direction."""
    with pytest.raises(TheoryError, match="step of a field of w is not allowed in one-pass SGD"):
        theory(lambda w, u, x: ((w @ x).step() - u @ x) ** 2).noise  # noqa: B018
    assert theory(lambda w, u, x: ((u @ x).step() - w @ x) ** 2).noise
    assert theory(lambda w, u, x: ((w @ x).relu() - u @ x) ** 2).noise


@pytest.mark.parametrize(
    "loss",
    [
        lambda w, x: (w @ x).relu() * (w @ x).sigmoid(),
        lambda w, x: (w @ x + 1).relu(),
    ],
)
def test_relu_with_a_mean_or_another_function_is_rejected(loss):
    """Such expectations have no closed form."""
    with pytest.raises(TheoryError, match="relu or step of a field with a mean, or times another"):
        theory(loss).reduced  # noqa: B018


def test_a_variance_by_coordinate_is_rejected():
    with pytest.raises(TheoryError, match="variance by coordinate"):
        Normal("x", space, variance=[1, 2])


def test_free_indices_and_unknown_names_are_rejected():
    J = Vectors("J", (unit, space))
    with pytest.raises(TheoryError, match="free index k"):
        theory(lambda J, x: (J["k"] @ x) ** 2, (J,))
    with pytest.raises(TheoryError, match=r"'w\.v' is no order parameter"):
        OverlapTheory(
            "example", "test", sizes=(d,), parameters=(w,), data=(x,),
            loss=lambda w, x: (w @ x) ** 2, names={"w.v": "m"},
        )  # fmt: skip
