"""Intervals of means and of exponents; the limit of local exponents."""

import math

import numpy as np
import pandas as pd
import pytest

from simulations.reproduction import intervals
from simulations.reproduction.fits import allows, exponent, resolves
from simulations.reproduction.intervals import mean_of, of_mean
from tests.closeness import close


def test_without_convergence_the_drift_is_the_uncertainty() -> None:
    """Local exponents 1, 1.1, 1.3: the last change, doubled either way."""
    sizes = np.array([1.0, 10.0, 100.0, 1000.0])
    fit = exponent(sizes, 10.0 ** np.cumsum([0.0, 1.0, 1.1, 1.3]))
    close(fit.local, [1.0, 1.1, 1.3], rel=1e-9)
    assert fit.low <= 1.3 - 2 * 0.2 + 1e-6
    assert fit.high >= 1.3 + 2 * 0.2 - 1e-6


def row_of(low: float, high: float, predicted: float) -> pd.DataFrame:
    return pd.DataFrame({"exponent_low": [low], "exponent_high": [high], "predicted": [predicted]})


@pytest.mark.parametrize(("predicted", "allowed"), [(0.89, False), (1.0, True), (1.11, False)])
def test_an_exponent_allows_what_its_interval_contains(predicted: float, allowed: bool) -> None:
    row = row_of(0.9, 1.1, predicted)
    assert allows(row).tolist() == [allowed]
    assert resolves(row, 0.095).tolist() == [predicted > 1.1]


def test_a_mean_has_students_interval() -> None:
    values = [0.2, 0.4, 0.6]
    mean, low, high = mean_of(values)
    close(mean, 0.4, rel=1e-12)
    close((low + high) / 2, 0.4, rel=1e-12)
    close((high - low) / 2, 4.302652729911275 * 0.2 / math.sqrt(3.0), rel=1e-9)
    assert of_mean(values, 0.5)[1] < high


class TestOfRuns:
    def test_coverage_of_the_interval_of_the_mean(self):
        rng = np.random.default_rng(0)
        ends = [intervals.of_mean(rng.normal(2.0, 3.0, 5)) for _ in range(500)]
        assert np.mean([low < 2.0 < high for low, high in ends]) == pytest.approx(0.95, abs=0.02)

    def test_interval_of_the_exponent(self):
        x = np.array([10.0, 20.0, 40.0])
        rng = np.random.default_rng(0)
        exact = np.repeat(x[:, None] ** 1.5, 4, axis=1)
        close(intervals.exponent(x, exact), 1.5, rel=1e-12)
        close(intervals.of_exponent(x, exact), (1.5, 1.5), rel=1e-12)
        runs = np.exp(rng.normal(0.0, 0.3, 6))
        low, high = intervals.of_exponent(x, exact[:, :1] * runs, paired=True)
        close(low, high, rel=1e-12)  # a factor common to a run does not change its exponent
        low, high = intervals.of_exponent(x, exact[:, :1] * runs)
        assert high - low > 0.1
