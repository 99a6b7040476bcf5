"""Continuation of curves with closed forms, folds, and errors."""

import numpy as np
import pytest

from dynamics.core.continuation import ContinuationError, folds, follow_curve


def circle(x):
    return np.array([x[0] ** 2 + x[1] ** 2 - 1.0])


def helix(x):
    return np.array([x[0] - np.cos(x[2]), x[1] - np.sin(x[2])])


def test_passes_the_folds_of_a_circle():
    points = follow_curve(circle, (0.9, 0.1), (0.0, 1.0), lambda x: x[1] > -0.5)
    assert np.abs(np.hypot(*points.T) - 1.0).max() < 1e-9
    turns = folds(points, 1)
    assert turns.size == 1
    assert points[turns[0]] == pytest.approx([0.0, 1.0], abs=0.03)
    assert points[-1][0] < 0.0
    assert points[-1][1] <= -0.5


def test_points_are_a_step_apart_and_in_order():
    points = follow_curve(helix, (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), lambda x: x[2] < 9.0, step=0.1)
    assert np.abs([helix(x) for x in points]).max() < 1e-9
    assert (np.diff(points[:, 2]) > 0.0).all()
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() <= 0.1 * 1.01


def test_direction_selects_the_sign_of_the_tangent():
    for sign in (1.0, -1.0):
        points = follow_curve(helix, (1.0, 0.0, 0.0), (0.0, 0.0, sign), lambda x: abs(x[2]) < 1.0)
        assert points[-1][2] * sign >= 1.0


def test_number_of_points_is_limited():
    assert len(follow_curve(circle, (1.0, 0.0), (0.0, 1.0), lambda _: True, most=7)) == 7


def test_equations_without_solution_raise():
    with pytest.raises(ContinuationError, match="converge"):
        follow_curve(
            lambda x: np.array([x[0] ** 2 + x[1] ** 2 + 1.0]),
            (1.0, 0.5),
            (0.0, 1.0),
            lambda _: True,
        )


def test_curve_that_ends_raises():
    with pytest.raises(ContinuationError, match="lost"):
        follow_curve(
            lambda x: np.array([x[1] - np.sqrt(1.0 - x[0]) if x[0] < 1.0 else np.nan]),
            (0.0, 1.0),
            (1.0, 0.0),
            lambda _: True,
        )
