"""Velocity, probabilities, tail and floor for all constants of a box."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dynamics import Problem
from dynamics.core.balls.series import Series
from dynamics.positional.validated.field import Field
from dynamics.positional.validated.images import images
from dynamics.positional.validated.outcomes import floor
from dynamics.positional.validated.system import Box, ReducedSystem
from dynamics.positional.validated.tail import Tail, groups

SHARES = st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))


@pytest.mark.slow
@settings(max_examples=20)
@given(
    q=st.floats(0.05, 0.9),
    nu=st.floats(1e-3, 1.0),
    alpha=st.floats(0.05, 0.5),
    gamma=st.floats(-2.0, 3.0),
    width=st.sampled_from([1e-4, 1e-2]),
    shares=SHARES,
)
def test_a_member_obeys_the_mean_value_theorem(q, nu, alpha, gamma, width, shares):
    """f(c) - f(c_0) lies in delta g with the derivative g over the box, for each member c."""
    problem = Problem(D=8, C=2, q=q, nu=nu)
    box = Box(nu=width * nu, q=width * q)
    system = ReducedSystem(problem, box=box)
    theta = Series.exact(np.array([[alpha, gamma, -0.2]]))
    field = system.truncated(6)
    member = problem.replace(nu=nu + shares[0] * box.nu, q=q + shares[1] * box.q)
    exact = ReducedSystem(member).truncated(6)
    change = exact.velocity(theta) - field.velocity(theta)
    g = field.sensitivity(theta)
    delta = np.repeat([(member.nu - nu) / box.nu, (member.q - q) / box.q], 3)
    middle = (g.mid[0] * delta).reshape(2, 3).sum(axis=0)
    radius = (g.rad[0] * np.abs(delta)).reshape(2, 3).sum(axis=0)
    rounding = change.rad[0] + 1e-12 * np.abs(middle)
    assert np.all(np.abs(change.mid[0] - middle) <= radius + rounding)
    floats = field.sensitivity_at(theta.mid[0]).ravel()
    assert np.all(np.abs(floats - g.mid[0]) <= g.rad[0] + 1e-9 * np.max(np.abs(g.mid[0])))
    both, point = field.jacobian(theta), exact.jacobian(theta)
    assert np.all(np.abs(both.mid - point.mid) <= both.rad + point.rad)


@settings(max_examples=20)
@given(
    q=st.floats(0.05, 0.9),
    width=st.sampled_from([1e-3, 0.05]),
    share=st.floats(-1.0, 1.0),
    K=st.integers(0, 6),
)
def test_probabilities_tail_and_floor(q, width, share, K):
    problem, radius = Problem(D=8, C=2, q=q), width * q
    member = problem.replace(q=q + share * radius, nu=problem.nu * (1 + 0.9 * share * width))
    box, point = images(problem, K, radius), images(member, K)
    assert np.all(np.abs(box.weight - point.weight) <= box.error + point.error)
    assert floor(problem, radius) <= floor(member) * (1 + 1e-12)
    theta = Series(np.array([[0.2, 0.3, -0.1]]), np.full((1, 3), 0.01))
    wide = Tail(problem, q_radius=radius, nu_radius=problem.nu * width)
    assert np.all(Tail(member).bounds(theta)[K] <= wide.bounds(theta)[K] * (1 + 1e-12))


def test_tail_of_the_largest_nu():
    """Without a radius of q: the bound at the largest nu, and not that of the middle."""
    problem, theta = Problem(D=8, C=2, q=0.3, nu=0.5), Series.exact(np.array([[0.2, 0.3, -0.1]]))
    wide = Tail(problem, nu_radius=0.25).bounds(theta)[3]
    member = Tail(problem.replace(nu=0.75)).bounds(theta)[3]
    np.testing.assert_allclose(wide, member, rtol=1e-12, atol=0)
    assert np.any(Tail(problem).bounds(theta)[3] < 0.99 * member)


def test_mass_of_the_images_beyond_the_last_group():
    """The probability of N > k_max is that of the largest q, up to 1e-12."""
    problem, radius = Problem(D=400, C=2, q=0.01), 5e-4
    wide = groups(problem, radius).mass
    N, k_max = problem.D - problem.C, wide.size - 2
    assert k_max < N
    for q in (problem.q, problem.q + radius):
        beyond = stats.binom.sf(k_max, N, q)
        assert beyond <= wide[-1] * (1 + 1e-9)
    assert wide[-1] <= beyond * (1 + 1e-6) + 1e-30


def test_the_floor_decreases_with_the_radius():
    problem = Problem(D=8, C=2, q=0.3)
    assert 0.0 < floor(problem, 0.01) < floor(problem)


def test_derivative_by_nu_equals_a_difference():
    problem = Problem(D=8, C=2, q=0.3, nu=0.05)
    theta, step = Series.exact(np.array([[0.3, 0.4, -0.2], [0.1, 0.2, 0.0]])), 1e-5
    ends = [
        Field(problem.replace(nu=0.05 + sign * step), images(problem, 6), 6).velocity(theta).mid
        for sign in (1, -1)
    ]
    slope = Field(problem, images(problem, 6), 6).by_nu(theta)
    difference = (ends[0] - ends[1]) / (2 * step)
    assert np.all(np.abs(slope.mid - difference) <= 1e-6 * np.max(np.abs(difference)))
    assert np.all(slope.rad < 1e-9)
