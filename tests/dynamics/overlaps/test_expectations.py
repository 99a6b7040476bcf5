"""Normal expectations: closed forms and the trapezoidal rule compute the same numbers."""

import math

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from dynamics.core.balls.exact import exact
from dynamics.overlaps.functions import derivative, largest, values
from dynamics.overlaps.moments import BALLS, FLOATS, Moments, Normal, _Closed
from dynamics.overlaps.trapezoid import Grid, cholesky

COVARIANCES = {
    "regular": [[0.6, 0.2], [0.2, 0.5]],
    "degenerate": [[0.5, 0.5], [0.5, 0.5]],
    "no variance": [[0.0, 0.0], [0.0, 0.7]],
    "large": [[40.0, 11.0], [11.0, 30.0]],
}
PRODUCTS = [
    ((0, 1, 0), (0, 1, 0)),
    ((0, 0, 1), (0, 0, 1)),
    ((1, 0, 1), (0, 1, 0)),
    ((2, 0, 2), (1, 1, 1)),
]


def law(covariance, number):
    rows = [[number(x) for x in row] for row in covariance]
    return Normal([number(0.0)] * 2, rows, (True, True))


@pytest.mark.parametrize("name", COVARIANCES)
@pytest.mark.parametrize("monomials", PRODUCTS)
def test_the_rule_agrees_with_the_closed_form_within_its_bound(name, monomials):
    """The bound of the rule contains the closed form, computed in balls, and is small."""
    grid = Grid.of(("erf", "erf"), np.zeros(2), np.array(COVARIANCES[name]))
    closed = _Closed(("erf", "erf"), law(COVARIANCES[name], exact), BALLS).of(monomials)
    error, bound = abs(exact(grid.integral(monomials)) - closed), grid.error(monomials)
    assert error <= arb(bound)
    assert bound < 1e-10 * max(1.0, 10.0 ** sum(i for i, _, _ in monomials))


@pytest.mark.parametrize("family", ["erf", "sigmoid", "tanh"])
@pytest.mark.parametrize("entry", ["mean 0", "mean 1", "covariance 0", "covariance 1"])
def test_the_bound_includes_uncertain_means_and_covariances(family, entry):
    """A change of one entry moves the integral by at most the bound for that uncertainty."""
    mean, covariance, monomials = (
        np.array([0.3, -0.2]),
        np.array([[0.6, 0.2], [0.2, 0.5]]),
        ((0, 1, 0),) * 2,
    )
    means, covariances = np.zeros(2), np.zeros((2, 2))
    of, k = entry.split()
    change = means if of == "mean" else covariances
    change[(int(k),) * change.ndim] = 1e-3
    before = Grid.of((family, family), mean, covariance)
    after = Grid.of((family, family), mean + means, covariance + covariances)
    moved = abs(after.integral(monomials) - before.integral(monomials))
    assert moved > 1e-6
    assert moved <= before.error(monomials, (means, covariances))


@pytest.mark.parametrize("coarser", [2.0, 3.0, 4.0])
@pytest.mark.parametrize("monomials", PRODUCTS)
def test_the_bound_of_a_coarse_rule_contains_its_error(coarser, monomials):
    """With too large a step the error is far above rounding and the bound follows it."""
    fine = Grid.of(("erf", "erf"), np.zeros(2), np.array(COVARIANCES["regular"]))
    steps = tuple(coarser * h for h in fine.steps)
    nodes = tuple(h * np.arange(-40, 41) for h in steps)
    weights = tuple(h * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) for h, x in zip(steps, nodes))
    strips = tuple(a / coarser for a in fine.strips)
    coarse = fine._replace(steps=steps, nodes=nodes, weights=weights, strips=strips)
    error = abs(coarse.integral(monomials) - fine.integral(monomials))
    assert error <= coarse.error(monomials) + fine.error(monomials)
    if coarser == 4.0:
        assert error > 1e-9


@pytest.mark.parametrize(("mean", "variance"), [(0.3, 0.5), (-2.0, 9.0), (1.0, 0.0)])
@pytest.mark.parametrize("family", ["sigmoid", "tanh"])
def test_the_rule_agrees_with_independent_quadrature(family, mean, variance):
    """Means of a product of y, f and f^2 agree with mpmath within the bound."""
    function = mpmath.tanh if family == "tanh" else lambda y: 1 / (1 + mpmath.exp(-y))
    grid = Grid.of((family,), np.array([mean]), np.array([[variance]]))
    with mpmath.workdps(30):
        scale = mpmath.sqrt(variance)

        def density(x):
            y = mean + scale * x
            return y * function(y) ** 3 * mpmath.npdf(x)

        expected = mpmath.quad(density, np.linspace(-14.0, 14.0, 57).tolist())
        difference = abs(mpmath.mpf(grid.integral(((1, 3, 0),))) - expected)
    assert difference <= grid.error(((1, 3, 0),))
    assert grid.error(((1, 3, 0),)) < 1e-10


def test_powers_of_variables_without_function_are_removed():
    """E[y1^2 y2^2] = C11 C22 + 2 C12^2, and E[y1 erf(y2)] is its closed form."""
    moments = Moments(("", ""), law(COVARIANCES["regular"], float), FLOATS)
    assert moments.of(((2, 0, 0), (2, 0, 0))) == pytest.approx(0.38, rel=1e-15, abs=0)
    moments = Moments(("", "erf"), law(COVARIANCES["regular"], float), FLOATS)
    expected = 0.2 * 2.0 / math.sqrt(math.pi * 2.0)
    assert moments.of(((1, 0, 0), (0, 1, 0))) == pytest.approx(expected, rel=1e-15, abs=0)


@pytest.mark.parametrize(("family", "monomial"), [("erf", (2, 1, 2)), ("sigmoid", (1, 3, 0)),
                                              ("tanh", (0, 3, 0)), ("", (4, 0, 0))])  # fmt: skip
def test_derivatives_are_those_of_the_functions(family, monomial):
    """The derivative of a monomial agrees with a central difference."""
    y, h = np.array([-1.3, 0.2, 0.9]), 1e-5
    difference = (values(family, monomial, y + h) - values(family, monomial, y - h)) / (2 * h)
    terms = derivative(family, {monomial: 1}).items()
    total = sum(c * values(family, x, y) for x, c in terms)
    assert total == pytest.approx(difference, rel=1e-8, abs=0)


@pytest.mark.parametrize(("family", "most"), [("erf", 2.5), ("sigmoid", 3.1), ("tanh", 1.5)])
def test_bounds_on_the_strip_contain_the_function(family, most):
    """|f| and |g| on lines of the strip are at most their bounds."""
    functions = {"erf": mpmath.erf, "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
                 "tanh": mpmath.tanh}  # fmt: skip
    for b in np.linspace(0.0, most, 7):
        for x in np.linspace(-6.0, 6.0, 49):
            assert (
                abs(functions[family](mpmath.mpc(x, b))) <= largest(family, (0, 1, 0), b) * 1.0001
            )


def test_factors_of_degenerate_covariances():
    """L L^T is the covariance, also of perfectly correlated variables."""
    for covariance in map(np.array, COVARIANCES.values()):
        factor = cholesky(covariance)
        assert factor @ factor.T == pytest.approx(covariance, rel=1e-14, abs=1e-300)


def relu_moment(first, second, covariance):
    """Return E[relu(y1) relu(y2)] of a centred normal distribution by its angle."""
    scale = math.sqrt(first * second)
    angle = math.acos(covariance / scale)
    return scale / (2 * math.pi) * (math.sin(angle) + (math.pi - angle) * math.cos(angle))


@pytest.mark.parametrize("covariance", [0.0, 0.2, -0.35, 0.5])
def test_products_of_relu_are_the_kernel_of_their_angle(covariance):
    """y step(y) twice has the closed form with the angle, in floats and in balls."""
    rows = [[0.6, covariance], [covariance, 0.5]]
    expected = relu_moment(0.6, 0.5, covariance)
    for arithmetic, number in ((FLOATS, float), (BALLS, exact)):
        moments = Moments(("step", "step"), law(rows, number), arithmetic)
        value = float(moments.of(((1, 1, 0), (1, 1, 0))))
        assert value == pytest.approx(expected, rel=1e-14, abs=0)


def test_moments_of_three_steps_and_their_derivatives():
    """Orthants of three fields by sampling; derivatives of a step by differences of means."""
    rows = [[0.6, 0.2, -0.1], [0.2, 0.5, 0.15], [-0.1, 0.15, 0.9]]
    moments = Moments(("step",) * 3, Normal([0.0] * 3, rows, (True,) * 3), FLOATS)
    sample = np.random.default_rng(0).multivariate_normal(np.zeros(3), rows, 400_000).T
    inside = np.all(sample > 0.0, axis=0)
    for monomials, sampled in (
        (((0, 1, 0),) * 3, inside),
        (((1, 1, 0), (0, 1, 0), (2, 1, 0)), inside * sample[0] * sample[2] ** 2),
    ):
        error = sampled.std() / math.sqrt(sampled.size)
        assert abs(sampled.mean() - moments.of(monomials)) < 4 * error

    def mean(shift):  # E[step(y1 + shift) relu(y2)], by quadrature over y1
        x = np.linspace(-shift, 8.0, 200_001)
        density = np.exp(-(x**2) / 1.2) / math.sqrt(1.2 * math.pi)
        centre, spread = x * 0.2 / 0.6, math.sqrt(0.5 - 0.04 / 0.6)
        z = centre / spread
        normal = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        relu = centre * (1 + np.vectorize(math.erf)(z / math.sqrt(2))) / 2 + spread * normal
        return np.trapezoid(density * relu, x)

    h = 1e-2
    slopes = [(mean(h) - mean(-h)) / (2 * h), (mean(h) - 2 * mean(0.0) + mean(-h)) / h**2]
    for b, slope in enumerate(slopes, start=1):
        value = moments.of(((0, 0, b), (1, 1, 0), (0, 0, 0)))
        assert value == pytest.approx(slope, rel=1e-3, abs=0)


@pytest.mark.parametrize("name", ["regular", "degenerate"])
def test_the_rule_in_three_dimensions_agrees_with_lower_ones(name):
    """A mean is that of two dimensions where a variable is independent or equal to another."""
    covariance = np.zeros((3, 3))
    covariance[:2, :2] = COVARIANCES[name]
    covariance[2, 2] = 0.8
    mean, monomials = np.array([0.3, -0.2, 0.1]), ((0, 1, 0), (1, 2, 0), (0, 2, 0))
    families = ("sigmoid", "erf", "tanh")
    grid = Grid.of(families, mean, covariance)
    pair = Grid.of(families[:2], mean[:2], covariance[:2, :2]).integral(monomials[:2])
    single = Grid.of(families[2:], mean[2:], covariance[2:, 2:]).integral(monomials[2:])
    assert grid.integral(monomials) == pytest.approx(pair * single, rel=1e-12, abs=0)
    assert grid.error(monomials) == math.inf
    copies = covariance[np.ix_([0, 1, 1], [0, 1, 1])]
    equal = Grid.of(("sigmoid", "erf", "erf"), mean[[0, 1, 1]], copies)
    expected = Grid.of(families[:2], mean[:2], covariance[:2, :2]).integral(((0, 1, 0), (1, 3, 0)))
    split = equal.integral(((0, 1, 0), (1, 1, 0), (0, 2, 0)))
    assert split == pytest.approx(expected, rel=1e-12, abs=0)


def test_too_many_nodes_in_three_dimensions_are_rejected():
    """Large variances in all dimensions need more points than are allowed."""
    covariance = np.diag([3e3, 3e3, 3e3])
    with pytest.raises(OverflowError, match="too many nodes"):
        Grid.of(("tanh",) * 3, np.zeros(3), covariance)


@pytest.mark.parametrize("name", ["regular", "degenerate", "large"])
@pytest.mark.parametrize("mean", [(0.3, -0.2), (0.0, 0.5), (0.0, -0.5), (0.0, 0.0), (2.0, 1.0),
                                  (-3.0, -0.1), (1e-12, 0.0)])  # fmt: skip
def test_owens_function_agrees_with_the_rule_and_with_balls(mean, name):
    """Two error functions of fields with means: floats, balls and the certified rule."""
    monomials = ((0, 1, 0), (1, 1, 1))
    rows = COVARIANCES[name]
    grid = Grid.of(("erf", "erf"), np.array(mean), np.array(rows))
    values = []
    for arithmetic, number in ((FLOATS, float), (BALLS, exact)):
        shifted = [[number(x) for x in row] for row in rows]
        shifted_law = Normal([number(x) for x in mean], shifted, (False, False))
        with ctx.workprec(106):
            values.append(Moments(("erf", "erf"), shifted_law, arithmetic).of(monomials))
            values.append(Moments(("erf", "erf"), shifted_law, arithmetic).of(((0, 1, 0),) * 2))
    for value, ball, own in zip(values[:2], values[2:], (monomials, ((0, 1, 0),) * 2)):
        assert abs(exact(value) - ball) <= arb(4e-15)
        assert ball.rad() < 1e-27
        assert abs(exact(grid.integral(own)) - ball) <= arb(grid.error(own))
