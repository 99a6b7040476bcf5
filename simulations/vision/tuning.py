"""Learning rates chosen on validation images: ``python -m simulations.vision.tuning [DATA ...]``.

For each data set of Figures 5 to 7 and each kind of model, at the budget of the full report: the
rate with the least mean error on the validation part of runs with seeds of their own, which no
claim uses. :data:`simulations.vision.runs.RATES` holds what was chosen; digits with and without
shifts share a rate, of the least sum of both errors.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from simulations.vision.runs import STEPS_OF_CNN, Plan, image_set, photographs, plans_of_comparison
from simulations.vision.training import train

#: Rates that are tried, a factor of two apart.
TRIED = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
#: Numbers of the runs on which they are tried.
SEEDS = (100, 101, 102)


class Tried(NamedTuple):
    """Errors on validation images (seeds,) of one kind of attention at one rate."""

    data: str
    kind: str
    rate: float
    errors: np.ndarray


def plans() -> dict[str, tuple[Plan, ...]]:
    """Return the plans of the full report by data set."""
    found: dict[str, tuple[Plan, ...]] = dict(plans_of_comparison(quick=False, long=False))
    found["masked photographs"] += (photographs("cnn", STEPS_OF_CNN),)
    return found


def tune(
    data: Sequence[str] = (), rates: Sequence[float] = TRIED, seeds: Sequence[int] = SEEDS
) -> Iterator[Tried]:
    """Yield what every rate leads to on these data sets (none: on all of the full report).

    A run whose loss is no longer finite has the error infinity.
    """
    for name, some in plans().items():
        for plan in some if not data or name in data else ():
            for rate in rates:
                errors = np.array([_error(plan, rate, seed) for seed in seeds])
                yield Tried(name, plan.model.kind, rate, errors)


def _error(plan: Plan, rate: float, seed: int) -> float:
    images = image_set(plan.data, 0, seed)
    settings = replace(plan.settings, rate=rate)
    try:
        found = train(images, plan.model, settings, (seed,), tested="validation")
    except RuntimeError:
        return np.inf
    return float(found.error[0])


if __name__ == "__main__":
    for one in tune(sys.argv[1:]):
        errors = " ".join(f"{error:.4f}" for error in one.errors)
        print(
            f"{one.data:22s} {one.kind:9s} {one.rate:7.4f} {one.errors.mean():.4f} ({errors})",
            flush=True,
        )
