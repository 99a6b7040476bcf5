"""Bounds of velocities on boxes, against velocities in floats and exact polynomials."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dynamics import Population, Problem
from dynamics.positional.validated import faces
from dynamics.positional.validated.all_images import all_images
from dynamics.positional.validated.faces import Constants
from dynamics.positional.validated.system import ReducedSystem

PROBLEMS = {
    "D = 16": Problem(16, 2, 0.125, nu=0.02),
    "D = 9": Problem(9, 3, 0.4, nu=0.3, beta=0.7, temperature=0.8),
    "two sets": Problem(8, 4, 0.3, output_scale=5.0),
    "p = 5": Problem(8, 2, 0.2, p=5, nu=0.05),
}
STATES = [(0.3, 0.4, -0.2), (0.05, 2.5, -1.0), (0.2, 0.0, 0.0), (0.15, -0.3, -0.5)]
SLOPES = (-0.7, -0.7)


@pytest.fixture(params=PROBLEMS.values(), ids=PROBLEMS)
def problem(request):
    return request.param


def constants(problem, nu=None, q=None):
    sizes = problem.D, problem.C, problem.p
    nu, q = nu or (problem.nu, problem.nu), q or (problem.q, problem.q)
    return Constants(*sizes, problem.kappa, problem.tau, problem.beta, nu, q)


def velocities(problem, state):
    """Return alpha' + 0.7 gamma', and rho' without its positive factors."""
    D, C, p = problem.D, problem.C, problem.p
    alpha, gamma, rho = ReducedSystem(problem).truncated(D - C).velocity_at(np.array(state))
    same, other = (math.exp((x - problem.beta) / problem.tau) for x in state[1:])
    Xi = other / (1.0 + (C - 1) * same + (D - C) * other)
    factor = p * (problem.kappa * state[0]) ** p * Xi / (problem.tau * D * (D - C))
    return alpha + 0.7 * gamma, rho / factor


def bounds(problem, state, radii=(0.0, 0.0, 0.0), nu=None, q=None):
    """Return the upper bounds of both on a box."""
    alpha, gamma, rho = ((x - r, x + r) for x, r in zip(state, radii))
    given = constants(problem, nu, q), all_images(problem)
    return (
        faces.alpha_bound(gamma, rho, alpha, SLOPES, *given),
        faces.rho_bound(gamma, rho, alpha, *given),
    )


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_bounds_at_a_point_are_the_velocities(problem, state):
    """The reference sums the images in the order of other tables, with other formulas."""
    for bound, value in zip(bounds(problem, state), velocities(problem, state)):
        assert value < bound < value + 1e-8 * max(1.0, abs(value))


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES[:3])
def test_bounds_on_a_box_are_bounds(problem, state):
    """At corners and points inside; the excess is less than 25 times the variation."""
    radii, nu = (0.02, 0.05, 0.04), (0.9 * problem.nu, 1.1 * problem.nu)
    q = (0.95 * problem.q, 1.02 * problem.q)
    bound = bounds(problem, state, radii, nu, q)
    rng, largest = np.random.default_rng(0), [-math.inf, -math.inf]
    corners = [np.array(c) for c in itertools.product((-1.0, 1.0), repeat=5)]
    for u in corners + list(rng.uniform(-1.0, 1.0, (8, 5))):
        point = np.array(state) + np.array(radii) * u[:3]
        inside = problem.replace(nu=np.interp(u[3], (-1, 1), nu), q=np.interp(u[4], (-1, 1), q))
        values = velocities(inside, tuple(point))
        assert all(value < x for value, x in zip(values, bound))
        largest = [max(x, y) for x, y in zip(largest, values)]
    centre = velocities(problem, state)
    for x, y, z in zip(bound, largest, centre):
        assert x < y + 25.0 * (y - z)


@pytest.mark.slow
@pytest.mark.parametrize("wide", range(5), ids=["alpha", "gamma", "rho", "nu", "q"])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_bounds_where_one_number_varies(problem, wide, sign):
    """The bound is at least the velocity at each end, by nothing else than rounding."""
    share = np.zeros(5)
    share[wide] = sign
    state = np.array([0.15, 0.4, -0.3])
    radii = np.array([0.1, 0.3, 0.2, 0.8 * problem.nu, 0.5 * problem.q])
    ends = [tuple(sorted((x, x + s * r))) for x, s, r in zip(state, share, radii)]
    nu, q = (
        tuple(sorted((x, x + s * r)))
        for x, s, r in zip((problem.nu, problem.q), share[3:], radii[3:])
    )
    alpha, gamma, rho = ends
    given = constants(problem, nu, q), all_images(problem)
    bound = (
        faces.alpha_bound(gamma, rho, alpha, SLOPES, *given),
        faces.rho_bound(gamma, rho, alpha, *given),
    )
    for u in np.linspace(0.0, 1.0, 5):
        numbers = np.concatenate([state, (problem.nu, problem.q)]) + u * share * radii
        inside = problem.replace(nu=numbers[3], q=numbers[4])
        assert all(x < y for x, y in zip(velocities(inside, tuple(numbers[:3])), bound))


@pytest.mark.slow
def test_range_of_the_output_is_attained(problem):
    """Points of the box are inside, and both ends are values at corners."""
    given, rng = constants(problem), np.random.default_rng(1)
    gamma, rho = (-0.4, 0.9), (-1.0, 0.2)
    rows = faces.corners(gamma, rho, given)
    for s, n, T in ((1.0, 1.0, 3.0), (-1.0, -2.0, 4.0), (0.0, 1.0, -2.0)):
        low, high = faces.output_range(rows, s, n, T)
        values = [
            output(problem, g, r, s, n, T)
            for g, r in [*itertools.product(gamma, rho), *rng.uniform(*zip(gamma, rho), (50, 2))]
        ]
        assert low <= min(values)
        assert max(values) <= high
        assert min(values) - low < 1e-12
        assert high - max(values) < 1e-12


def output(problem, gamma, rho, s, n, T):
    """Attention output: the patch itself, the others of its set, all other patches."""
    weights = np.exp(np.array([0.0, *((x - problem.beta) / problem.tau for x in (gamma, rho))]))
    own = weights @ [s, n - s, T - n]
    return own / (weights @ [1.0, problem.C - 1, problem.D - problem.C])


@pytest.mark.parametrize("p", [3, 5])
def test_range_of_slopes(p):
    rng = np.random.default_rng(2)
    for _ in range(200):
        low, high = np.sort(rng.normal(size=2))
        a, b = rng.normal() * 3.0, rng.uniform(0.5, 20.0)
        y = np.linspace(low, high, 2001)
        values = y ** (p - 1) * (a - b * y)
        least, most = faces.slope_range(low, high, a, b, p)
        tolerance = 1e-4 * (abs(a) + b) * max(abs(low), abs(high), 1.0) ** p
        assert least <= values.min() < least + tolerance
        assert most - tolerance < values.max() <= most


@pytest.mark.slow
def test_polynomial_in_bernstein_form():
    """The largest value of polynomials with rational coefficients, at exact points."""
    rng = np.random.default_rng(3)
    for n in (1, 3, 8, 14):
        b = rng.normal(size=n + 1)
        for low, high in ((0.1, 0.13), (0.2, 0.2), (0.01, 0.9), (0.5, 1.0)):
            bound = faces.most_on_interval(b, low, high)
            points = [
                Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(k, 20)
                for k in range(21)
            ]
            values = [
                sum(
                    math.comb(n, k) * x**k * (1 - x) ** (n - k) * Fraction(c)
                    for k, c in enumerate(b)
                )
                for x in points
            ]
            assert max(values) <= bound
            if high - low < 0.05:
                assert bound <= float(max(values)) + 0.05 * np.ptp(b) + 1e-12


@pytest.mark.slow
def test_loss(problem):
    """The bound is above the loss, and close to it where the outputs are small."""
    small = problem.replace(nu=0.01 * problem.nu)
    alpha = 0.3 / problem.kappa
    loss = Population(small, tolerance=1e-10).certified_loss((alpha, 0.0, 0.0)).loss
    given = constants(small), all_images(small)
    assert loss < faces.loss_bound((alpha, alpha), *given) < loss + 1e-4
    assert loss < faces.loss_bound((0.5 * alpha, 2.0 * alpha), *given)


@pytest.mark.slow
@pytest.mark.parametrize("is_rho", [pytest.param(True, marks=pytest.mark.slow), False])
def test_faces_are_covered(is_rho):
    """A proved face has no point with a positive velocity; a higher or lower one is not proved."""
    problem = Problem(16, 2, 0.125, nu=0.01)
    given = constants(problem, q=(0.124, 0.126)), all_images(problem)
    heights = {True: (0.31, 0.3), False: (0.32, 0.315)}[is_rho]
    ends = 0.25, 0.5
    assert faces.boxes_of_face(is_rho, ends, heights, -1.0, 1e-3, 5000, *given) > 1
    for share, x, y in itertools.product(np.linspace(0.0, 1.0, 5), repeat=3):
        gamma = 0.25 + 0.25 * share
        height = heights[0] + share * (heights[1] - heights[0])
        state = (x * height or 1e-3, gamma, 0.0) if is_rho else (height, gamma, -y)
        alpha, rho = velocities(problem, state)
        assert (rho if is_rho else alpha) < 0.05 * (not is_rho)
    wrong = {True: (0.4, 0.39), False: (0.29, 0.28)}[is_rho]
    assert faces.boxes_of_face(is_rho, ends, wrong, -1.0, 1e-3, 5000, *given) == 0
    assert faces.boxes_of_face(is_rho, ends, heights, -1.0, 1e-3, 3, *given) == 0


@pytest.mark.slow
def test_steep_boundaries():
    """alpha' - A' gamma' for A' from -60 to -20, where gamma' decides: bounds at all corners."""
    problem, given = Problem(8, 2, 0.125), all_images(Problem(8, 2, 0.125))
    state, radii = np.array([0.4, 0.4, -0.2]), np.array([0.01, 0.02, 0.02])
    ends = [tuple(x) for x in np.array([state - radii, state + radii]).T]
    alpha, gamma, rho = ends
    bound = faces.alpha_bound(gamma, rho, alpha, (-60.0, -20.0), constants(problem), given)
    field, values = ReducedSystem(problem).truncated(6), []
    for point in itertools.product(*ends):
        velocity = field.velocity_at(np.array(point))
        values += [velocity[0] + slope * velocity[1] for slope in (20.0, 60.0)]
    assert max(values) <= bound <= 2.0 * max(values)


@pytest.mark.parametrize("is_rho", [True, False])
def test_boxes_cover_the_face(is_rho, monkeypatch):
    """Every point of the face is in a box that is accepted: here each box that is small."""
    accepted = []

    def small(gamma, rho, alpha, *_):
        other = alpha if is_rho else rho
        if max(gamma[1] - gamma[0], other[1] - other[0]) > 0.2:
            return 1.0
        accepted.append((gamma, other))
        return -1.0

    monkeypatch.setattr(faces, "rho_bound", small)
    monkeypatch.setattr(faces, "alpha_bound", small)
    segment = (-0.5, 0.5), (1.0, 0.5)
    count = faces.boxes_of_face.py_func(is_rho, *segment, -1.5, 1e-3, 999, None, None)
    assert count >= len(accepted) > 10
    for gamma, share in np.random.default_rng(0).uniform((-0.5, 0.0), (0.5, 1.0), (400, 2)):
        other = share * (0.75 - 0.5 * gamma) if is_rho else -1.5 + share * (min(gamma, 0.0) + 1.5)
        assert any(
            x[0] <= gamma <= x[1] and y[0] - 1e-9 <= other <= y[1] + 1e-9 for x, y in accepted
        )


@pytest.mark.slow
def test_nothing_is_proved_after_overflow():
    problem = Problem(8, 2, 0.125)
    given = constants(problem), all_images(problem)
    point = (-0.1, -0.1)
    for wide in ((0.0, 2000.0), (0.0, 699.0), (2000.0, 2000.0)):
        assert faces.rho_bound(wide, point, (0.1, 0.1), *given) == math.inf
        assert faces.alpha_bound(wide, point, (0.1, 0.1), SLOPES, *given) == math.inf
    assert faces.rho_bound((0.0, 0.1), (-800.0, 0.0), (0.1, 0.1), *given) < math.inf


def test_all_images_are_complete():
    problem = Problem(9, 3, 0.4)
    images = all_images(problem)
    N = problem.D - problem.C
    sums = np.bincount(images.features, images.weight, N + 1)
    np.testing.assert_allclose(sums, 1.0, rtol=1e-12, atol=0)
    own = [images.copies[a:b].sum() for a, b in itertools.pairwise(images.start)]
    assert set(own) == {problem.L - 1}
