"""Predicates of claims at low < threshold < high, each quantity alone, and with no rows."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from simulations.positional.claims import (
    theorem_4_2,
    theorem_5_1,
    theorem_5_2,
    transfer_partial,
)
from simulations.positional.partial_transfer import Shared
from simulations.positional.transfer_statistics import Interval
from simulations.reproduction.fits import allows, exponent, resolves
from simulations.reproduction.predicates import Verdict
from tests.closeness import close

HOLDS, FAILS, FINDING = Verdict.HOLDS, Verdict.FAILS, Verdict.FINDING


def at(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high)


def verdict_5_1(**changes: Any) -> Verdict:
    good = theorem_5_1.Judged(
        "pre-trained A", 32, 3, 100, at(0.01, 0.02), at(0.0, 0.01), 0.01, 0.1, 0.001, at(0.0, 0.01)
    )
    return theorem_5_1.judge([good._replace(**changes)], [], {})[0]


def verdict_5_2(**changes: Any) -> Verdict:
    log = math.log(64) ** 2
    good = theorem_5_2.Need(
        "a learner", 16.0, 64, 0.025, at(2 * log, 4 * log), at(0.5, 1.0), 0.1, int(log), ()
    )
    return theorem_5_2.judge([good._replace(**changes)])[0]


def verdict_4_2(within: bool = False, **changes: Any) -> Verdict:
    """Judge a setting that misses its control, and one that is changed."""
    good = theorem_4_2.Ending(
        5, True, 5, 5, (30.0,) * 5, (math.inf,) * 5, 600, 1.0, 0.005, 0.1, 1.5, 0.006, 0.1, 0.1
    )
    other = good._replace(within=within, **changes)
    return theorem_4_2.judge([("a", good), ("b", other)], True, (0.7, 0.5, 0.9))[0]


def verdict_partial(first: Interval, none: Interval) -> Verdict:
    rest = (at(1, 2), at(1, 2), at(0.0, 0.01), 0.1, 0.05)
    points = [Shared(1.0, first, *rest), Shared(0.5, first, *rest), Shared(0.0, none, *rest)]
    return transfer_partial.judge(points)[0]


@pytest.mark.parametrize(
    ("judged", "wanted"),
    [
        (lambda: verdict_5_1(), HOLDS),
        (lambda: verdict_5_1(error=at(0.01, 0.03)), FINDING),
        (lambda: verdict_5_1(more=at(0.02, 0.03)), HOLDS),
        (lambda: verdict_5_1(more=at(0.026, 0.03)), FAILS),
        (lambda: theorem_5_1.judge([], [], {})[0], FINDING),
        (lambda: verdict_5_2(), HOLDS),
        (lambda: verdict_5_2(least=50, samples=at(40.0, 60.0)), HOLDS),
        (lambda: verdict_5_2(least=70, samples=at(40.0, 60.0)), FAILS),
        (lambda: verdict_4_2(), FINDING),
        (lambda: verdict_4_2(once=0), FINDING),
        (lambda: verdict_4_2(disagreement=1.0), FINDING),
        (lambda: verdict_4_2(within=True, once=3), FINDING),
        (lambda: verdict_4_2(within=True, once=2), FAILS),
        (lambda: verdict_partial(at(0.01, 0.02), at(0.03, 0.04)), HOLDS),
        (lambda: verdict_partial(at(0.01, 0.02), at(0.02, 0.03)), FINDING),
        (lambda: verdict_partial(at(0.01, 0.02), at(0.01, 0.02)), FAILS),
        (lambda: verdict_partial(at(0.026, 0.03), at(0.03, 0.04)), FAILS),
    ],
)
def test_verdict(judged: Callable[[], Verdict], wanted: Verdict) -> None:
    assert judged() is wanted


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
