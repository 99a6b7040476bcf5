"""Learning rates chosen on validation images: ``python -m simulations.vision.tuning``.

For each data set of Figures 6 and 7 and each kind of attention, at the budget of the full report:
the rate with the least mean error on the validation part of runs with seeds of their own, which no
claim uses. :data:`simulations.vision.runs.RATES` holds what was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simulations.vision.runs import image_set, plans_of_comparison

if TYPE_CHECKING:
    from simulations.vision.runs import Plan

#: Rates that are tried, a factor of two apart.
TRIED = (0.0025, 0.005, 0.01, 0.02, 0.04)
#: Numbers of the runs on which they are tried.
SEEDS = (100, 101, 102)


class Tried(NamedTuple):
    """Errors on validation images (seeds,) of one kind of attention at one rate."""

    data: str
    kind: str
    rate: float
    errors: np.ndarray


def tune(rates: Sequence[float] = TRIED, seeds: Sequence[int] = SEEDS) -> Iterator[Tried]:
    """Yield what every rate leads to on every data set of the full report.

    A run whose loss is no longer finite has the error infinity.
    """
    for name, pair in plans_of_comparison(quick=False, long=False).items():
        for plan in pair:
            for rate in rates:
                errors = np.array([_error(plan, rate, seed) for seed in seeds])
                yield Tried(name, plan.model.kind, rate, errors)


def _error(plan: Plan, rate: float, seed: int) -> float:
    from simulations.vision.training import train

    images = image_set(plan.data, 0, seed)
    settings = replace(plan.settings, rate=rate)
    try:
        found = train(images, plan.model, settings, (seed,), tested="validation")
    except RuntimeError:
        return np.inf
    return float(found.error[0])


if __name__ == "__main__":
    for one in tune():
        errors = " ".join(f"{error:.4f}" for error in one.errors)
        print(f"{one.data:22s} {one.kind:9s} {one.rate:7.4f} {one.errors.mean():.4f} ({errors})",
              flush=True)  # fmt: skip
