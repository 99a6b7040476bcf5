"""Intervals of means and exponents."""

import numpy as np
import pytest

from simulations.reproduction import intervals
from tests.closeness import close


class TestIntervals:
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
