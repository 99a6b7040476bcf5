"""Local exponents and the interval of their limit; intervals of means."""

import math

import numpy as np
import pandas as pd
import pytest

from simulations.reproduction.fits import allows, exponent, resolves
from simulations.reproduction.intervals import mean_of, of_mean
from tests.closeness import close


def test_without_convergence_the_drift_is_the_uncertainty() -> None:
    """Local exponents 1, 1.1, 1.3: the last change, doubled either way."""
    sizes = np.array([1.0, 10.0, 100.0, 1000.0])
    found = exponent(sizes, 10.0 ** np.cumsum([0.0, 1.0, 1.1, 1.3]))
    close(found.local, [1.0, 1.1, 1.3], rel=1e-9)
    assert found.low <= 1.3 - 2 * 0.2 + 1e-6
    assert found.high >= 1.3 + 2 * 0.2 - 1e-6


def intervals(low: float, high: float, predicted: float) -> pd.DataFrame:
    return pd.DataFrame({"exponent_low": [low], "exponent_high": [high], "predicted": [predicted]})


@pytest.mark.parametrize(("predicted", "allowed"), [(0.89, False), (1.0, True), (1.11, False)])
def test_an_exponent_allows_what_its_interval_contains(predicted: float, allowed: bool) -> None:
    row = intervals(0.9, 1.1, predicted)
    assert allows(row).tolist() == [allowed]
    assert resolves(row, 0.095).tolist() == [predicted > 1.1]


def test_a_mean_has_students_interval() -> None:
    values = [0.2, 0.4, 0.6]
    mean, low, high = mean_of(values)
    close(mean, 0.4, rel=1e-12)
    close((low + high) / 2, 0.4, rel=1e-12)
    close((high - low) / 2, 4.302652729911275 * 0.2 / math.sqrt(3.0), rel=1e-9)
    assert of_mean(values, 0.5)[1] < high
