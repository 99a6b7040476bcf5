"""Bounds for families of curves P + S delta: each contribution, with known numbers."""

import numpy as np
import pytest
from flint import arb, arb_mat

from dynamics.core.balls.series import Series
from dynamics.core.tube.clocks import Flow
from dynamics.core.tube.coordinates import Frame
from dynamics.core.tube.family import FamilyPart
from dynamics.core.tube.piece import Piece, Proved, _Curve, prove_piece


def column(*numbers):
    return arb_mat(len(numbers), 1, [arb(x) for x in numbers])


def close(interval, expected):
    assert interval[0] <= expected[0]
    assert interval[1] >= expected[1]
    assert interval == pytest.approx(expected, rel=1e-7, abs=0)


def test_functional_and_rate_of_a_family():
    """S = 1 + 2u: |S| <= 3 and S' = 2 * 2/length = 1; J S + g - S' in 3 + u +- 1/4."""
    slopes = [[column(1.0, 0.0), column(2.0, 0.0)]]
    deviations = [([column(3.0, 7.0), column(1.0, 7.0)], column(arb(0, 0.25), arb(0, 9.0)))]
    part = FamilyPart(2, slopes, arb(4), arb(1), arb(0), deviations)
    value, rate = part.enlarged(np.array([1.0, 0.0]), (-0.5, 0.5), (10.0, 20.0))
    close(value, (-3.5, 3.5))
    close(rate, (10.0 - 5.25, 20.0 + 5.25))
    assert [float(x) for x in part.spread()] == pytest.approx([3.0, 0.0], rel=1e-7, abs=0)


class Still:
    """A system of one coordinate that does not move, with two constants without an effect."""

    def velocity(self, theta):
        return Series(0.0 * theta.mid, 0.0 * theta.rad)

    jacobian = velocity

    def sensitivity(self, theta):
        return Series(np.zeros((len(theta.mid), 2)), np.zeros((len(theta.mid), 2)))

    def neglected(self, box):
        return np.zeros(1)


def constant(x):
    """A constant, as a polynomial of degree 1."""
    return np.array([[x], [0.0]])


def piece(*slopes):
    return Piece(0.0, 1.0, constant(1.0), tuple(map(constant, slopes)))


def test_jumps_of_the_slopes_widen_the_tube():
    """From .25 and -.5 before to .125 and .125: |.125| + |.625|, and .0625 of the curve."""
    curve, slopes = constant(1.0625), (constant(0.25), constant(-0.5))
    nothing, unit = Frame(np.eye(1), [0.0]), np.ones(1)
    proved = prove_piece(Still(), Flow(), piece(0.125, 0.125), unit, nothing, curve, unit, slopes)
    assert isinstance(proved, Proved)
    assert 0.8125 <= proved.frame.reach()[0] < 0.8126


def test_jacobian_is_enclosed_for_all_curves():
    curve = _Curve(Still(), Flow(), piece(0.125, -0.5))
    assert 0.725 <= curve.around_curve([0.1])[0] < 0.7251
