"""The two-equation model: reference values, integration of the equations, limits."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynamics import ParameterError
from dynamics.shallow.concentration import (
    attention_along,
    final_attention,
    final_gap,
    stopping_time,
    stopping_time_for_small_alpha,
)
from tests.closeness import close, within

#: Mapping from (alpha, rho) to the final attention.
REFERENCE = {(0.1, 10): 0.8066068965, (0.1, 30): 0.9275351784, (0.4, 2): 0.6576247508}


@pytest.mark.parametrize("case", REFERENCE)
def test_reference_values(case):
    within(final_attention(*case), REFERENCE[case], 6e-11)


def test_reference_value_truncated_after_seven_digits():
    within(final_attention(0.05, 100) - 0.5e-7, 0.9784999, 0.5e-7)


@pytest.mark.parametrize(("alpha", "rho"), [(0.1, 10), (0.4, 2), (0.01, 300), (0.3, 0.0)])
def test_solutions_of_the_equations_reach_the_final_state(alpha, rho):
    """Integrate h and l until p h = 1."""
    c_h = 0.7

    def attention(logit):
        return 1.0 / (1.0 + (1.0 / alpha - 1.0) * math.exp(-logit))

    def velocity(_, y):
        p = attention(y[1])
        return [c_h * p, rho * c_h * p * (1.0 - p) * y[0]]

    def stopped(_, y):
        return attention(y[1]) * y[0] - 1.0

    stopped.terminal = True
    run = solve_ivp(
        velocity, (0.0, 1e9), [0.0, 0.0], method="LSODA", rtol=1e-11, atol=1e-13, events=stopped
    )
    close(run.t[-1], stopping_time(alpha, rho, c_h), 1e-7)
    close(run.y[0, -1], final_gap(alpha, rho), 1e-7)
    close(attention(run.y[1, -1]), final_attention(alpha, rho), 1e-7)
    expected = np.array([attention(logit) for logit in run.y[1]])
    within(attention_along(run.y[0], alpha, rho), expected, 1e-7)


def test_first_integral():
    for alpha, rho in [(0.001, 1e4), (0.2, 5.0), (0.9, 0.1)]:
        g = lambda p: math.log(p / (1.0 - p)) + 1.0 / (1.0 - p)  # noqa: E731
        p = final_attention(alpha, rho)
        close(g(p) - g(alpha), rho / (2.0 * p * p), 1e-9)


def test_limits():
    close(stopping_time(0.03, 0.0, 2.0), 1.0 / (2.0 * 0.03**2), 1e-12)
    errors = [abs((1.0 - final_attention(0.1, rho)) * rho / 2.0 - 1.0) for rho in (1e3, 1e5, 1e7)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-4


@pytest.mark.parametrize("rho", [1.0, 10.0, 100.0])
def test_time_for_small_alpha(rho):
    times = (stopping_time, stopping_time_for_small_alpha)
    pairs = [[time(alpha, rho, 3.0) for time in times] for alpha in (1e-2, 1e-3, 1e-4, 1e-6)]
    ratios = np.divide(*np.transpose(pairs))
    assert np.all(np.diff(np.abs(ratios - 1.0)) < 0.0)
    within(ratios[-1], 1.0, 2e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1.0), "alpha = 0"),
        ((1.0, 1.0), "alpha = 1"),
        ((0.1, -1.0), "rho = -1"),
        ((math.nan, 1.0), "alpha = nan"),
        ((0.1, "x"), "rho = 'x'"),
    ],
)
def test_invalid_arguments(arguments, message):
    with pytest.raises(ParameterError, match=message):
        final_attention(*arguments)
    with pytest.raises(ParameterError, match="c_h = -1"):
        stopping_time(0.1, 1.0, -1)
    with pytest.raises(ParameterError, match="rho = 0"):
        stopping_time_for_small_alpha(0.1, 0.0)
