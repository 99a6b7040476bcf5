"""Velocity and Jacobian along a curve contain the values of an independent Arb reference."""

import numpy as np
import pytest
from flint import arb, arb_series
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Problem
from dynamics.core.balls.series import Series
from dynamics.positional.validated.field import Field
from dynamics.positional.validated.images import images
from tests.dynamics.core.balls.reference import holds, inside, number, precise
from tests.dynamics.positional.validated.reference import curve, velocity

SHAPES = [(4, 2), (6, 2), (6, 3), (8, 4)]
STEPS = st.floats(-0.3, 0.3)


@st.composite
def problems(draw):
    D, C = draw(st.sampled_from(SHAPES))
    return Problem(
        D=D,
        C=C,
        q=draw(st.floats(0.01, 1.0)),
        p=draw(st.sampled_from([3, 5])),
        nu=draw(st.floats(1e-3, 1.0)),
        beta=draw(st.floats(-2.0, 3.0)),
        temperature=draw(st.sampled_from([1.0, 1.3, 0.4])),
        output_scale=draw(st.sampled_from([None, 1.0])),
    )


@st.composite
def curves(draw, order):
    start = [draw(st.floats(0.05, 0.5)), draw(st.floats(-2.0, 3.0)), draw(st.floats(-2.0, 1.0))]
    rest = [[draw(STEPS) * 0.1**k for _ in range(3)] for k in range(order)]
    return np.array([start, *rest])


def complete(problem):
    N = problem.D - problem.C
    return Field(problem, images(problem, N), N)


def evaluated(series, u, lane):
    """Return the value of a polynomial with ball coefficients at u, as an Arb ball."""
    return sum(
        (
            (number(mid) + arb(0, 1) * number(rad)) * u**k
            for k, (mid, rad) in enumerate(zip(series.mid[:, lane], series.rad[:, lane]))
        ),
        arb(0),
    )


class TestVelocity:
    @pytest.mark.slow
    @settings(max_examples=25)
    @given(problem=problems(), coefficients=curves(4))
    def test_taylor_coefficients_are_enclosed(self, problem, coefficients):
        series = complete(problem).velocity(Series.exact(coefficients))
        assert series.is_finite
        with precise():
            exact = velocity(problem, curve(coefficients))
            for i in range(3):
                for k in range(5):
                    assert holds(series.mid[k, i], series.rad[k, i], exact[i][k])

    @settings(max_examples=10)
    @given(
        problem=problems(),
        coefficients=curves(0),
        radius=st.floats(0.0, 0.02),
        positions=st.tuples(*[st.sampled_from([-1.0, 1.0]) | st.floats(-1.0, 1.0)] * 3),
    )
    def test_values_at_points_of_a_box_are_enclosed(self, problem, coefficients, radius, positions):
        box = Series(coefficients, np.full((1, 3), radius))
        series = complete(problem).velocity(box)
        point = [[inside(m, radius, position) for m, position in zip(coefficients[0], positions)]]
        with precise():
            exact = velocity(problem, curve(point))
            for i in range(3):
                assert holds(series.mid[0, i], series.rad[0, i], exact[i][0])

    def test_radii_are_of_the_order_of_rounding(self):
        theta = Series.exact(np.array([[0.3, 0.2, 0]]))
        series = complete(Problem(D=8, C=2, q=0.3)).velocity(theta)
        assert np.all(series.rad < 1e-11 * np.abs(series.mid))

    def test_box_with_alpha_zero_gives_no_finite_enclosure(self):
        box = Series(np.array([[0.01, 0.2, 0.0]]), np.array([[0.02, 0.0, 0.0]]))
        assert not complete(Problem(D=6, C=2, q=0.3)).velocity(box).is_finite


class TestJacobian:
    @settings(max_examples=12)
    @given(
        problem=problems(),
        coefficients=curves(2),
        radius=st.sampled_from([0.0, 1e-3]),
        position=st.floats(-1.0, 1.0),
    )
    def test_directional_derivatives_are_enclosed(self, problem, coefficients, radius, position):
        """Each direction is tested at a point of a box."""
        theta = Series(coefficients, np.vstack([np.full((1, 3), radius), np.zeros((2, 3))]))
        jacobian = complete(problem).jacobian(theta)
        assert jacobian.is_finite
        with precise():
            for j in range(3):
                direction = [[inside(m, radius, position)] for m in coefficients[0]]
                direction = [
                    arb_series([number(x[0]), arb(1 if i == j else 0)], prec=2)
                    for i, x in enumerate(direction)
                ]
                exact = velocity(problem, direction)
                for i in range(3):
                    lane = 3 * i + j
                    assert holds(jacobian.mid[0, lane], jacobian.rad[0, lane], exact[i][1])

    @pytest.mark.slow
    @settings(max_examples=10)
    @given(problem=problems(), coefficients=curves(3))
    def test_series_of_the_jacobian_satisfies_the_chain_rule(self, problem, coefficients):
        """d f(theta(u)) / du = J(theta(u)) theta'(u) tests all coefficients of J."""
        jacobian = complete(problem).jacobian(Series.exact(coefficients))
        with precise():
            theta = curve(coefficients)
            exact = velocity(problem, theta)
            for i in range(3):
                chain = [arb(0)] * 3
                for j in range(3):
                    entry = [
                        number(jacobian.mid[k, 3 * i + j])
                        + arb(0, 1) * number(jacobian.rad[k, 3 * i + j])
                        for k in range(3)
                    ]
                    slope = [(k + 1) * theta[j][k + 1] for k in range(3)]
                    for k in range(3):
                        chain[k] += sum((entry[m] * slope[k - m] for m in range(k + 1)), arb(0))
                for k in range(3):
                    assert chain[k].contains((k + 1) * exact[i][k + 1].mid())


class TestTruncation:
    def test_field_on_first_images_equals_smaller_enumeration(self):
        problem = Problem(D=12, C=3, q=0.2)
        theta = Series.exact(np.array([[0.2, 0.5, -0.1], [0.1, 0.0, 0.02]]))
        short = Field(problem, images(problem, 3), 3).velocity(theta)
        cut = Field(problem, images(problem, 6), 3).velocity(theta)
        assert np.all(np.abs(short.mid - cut.mid) <= short.rad + cut.rad)

    @pytest.mark.parametrize("name", ["x", "Xi", "Gamma_minus_Xi"])
    def test_reference_detects_a_relative_error_of_1e_12(self, name, monkeypatch):
        """The test itself can fail."""
        from dynamics.positional.validated import field

        correct = field.Attention.along

        def wrong(problem, theta):
            weights = correct(problem, theta)
            object.__setattr__(weights, name, getattr(weights, name).times(1.0 + 1e-12))
            return weights

        monkeypatch.setattr(field.Attention, "along", wrong)
        problem, coefficients = Problem(D=6, C=2, q=0.4), np.array([[0.3, 0.4, -0.2]])
        series = complete(problem).velocity(Series.exact(coefficients))
        with precise():
            exact = velocity(problem, curve(coefficients))
            assert not all(holds(series.mid[0, i], series.rad[0, i], exact[i][0]) for i in range(3))
