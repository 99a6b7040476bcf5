"""Bounds of the contribution of images with more than K features."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Problem
from dynamics.core.balls.series import Series
from dynamics.positional.validated.field import Field
from dynamics.positional.validated.images import images
from dynamics.positional.validated.tail import Tail


@settings(max_examples=40)
@given(
    shape=st.sampled_from([(8, 2), (12, 3), (10, 5)]),
    q=st.floats(0.02, 1.0),
    K=st.integers(0, 7),
    p=st.sampled_from([3, 5]),
    beta=st.floats(-2.0, 3.0),
    alpha=st.floats(0.05, 0.6),
    gamma=st.floats(-3.0, 3.0),
    rho=st.floats(-3.0, 3.0),
    radius=st.floats(0.0, 0.3),
    positions=st.tuples(*[st.floats(-1.0, 1.0)] * 3),
)
def test_bounds_hold_at_points_of_a_box(shape, q, K, p, beta, alpha, gamma, rho, radius, positions):
    """The reference is the difference of the velocities of all images and of the first ones."""
    problem = Problem(D=shape[0], C=shape[1], q=q, p=p, beta=beta)
    N = problem.D - problem.C
    K = min(K, N)
    box = Series(np.array([[alpha, gamma, rho]]), np.full((1, 3), min(radius, 0.9 * alpha)))
    bound = Tail(problem).bounds(box)[K, 1:]
    point = Series.exact(box.mid + box.rad * np.array([positions]) * (1 - 1e-12))
    whole = Field(problem, images(problem, N), N).velocity(point)
    part = Field(problem, images(problem, N), K).velocity(point)
    difference = (whole - part).mid[0], (whole - part).rad[0]
    assert np.all(np.abs(difference[0]) <= bound + difference[1])
    if K == N:
        assert np.all(bound == 0.0)


def test_probabilities_are_sharp_upper_bounds():
    problem = Problem(D=64, C=4, q=2 / 64)
    mass, q = Tail(problem).groups.mass, Fraction(problem.q)
    for k in (0, 5, 30):
        exact = math.comb(60, k) * q**k * (1 - q) ** (60 - k)
        assert exact <= Fraction(mass[k]) <= exact * (1 + Fraction(1, 2**50))
    rest = 1 - sum(math.comb(60, k) * q**k * (1 - q) ** (60 - k) for k in range(mass.size - 1))
    assert rest <= Fraction(mass[-1])


def test_box_without_finite_weights_gives_no_finite_bound():
    box = Series(np.array([[0.1, 800.0, 0.0]]), np.zeros((1, 3)))
    assert not np.isfinite(Tail(Problem(D=12, C=3, q=0.2)).bounds(box)[0]).all()
