"""Choose learning rates on validation images: ``python -m simulations.vision.tuning [DATA ...]``.

For each data set of Figures 5 to 7 and each type of model, at the steps of the full report, print
the mean error of each rate on the validation part of runs with seeds that no claim uses.
:data:`simulations.vision.runs.RATES` contains the best rates. Digits with and without shifts share
the rate with the least sum of both errors.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from simulations.reproduction.claim import Context
from simulations.vision.runs import (
    STEPS_OF_CNN,
    TrainingConfig,
    configurations_of_comparison,
    image_set,
    photographs,
)
from simulations.vision.training import train

#: Rates that are tried, a factor of two apart.
TRIED = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
#: Numbers of the runs on which they are tried.
SEEDS = (100, 101, 102)


class Trial(NamedTuple):
    """Errors on validation images (seeds,) of one type of model at one learning rate."""

    data: str
    kind: str
    rate: float
    errors: np.ndarray


def configurations() -> dict[str, tuple[TrainingConfig, ...]]:
    """Return the configurations of the full report for each data set."""
    result: dict[str, tuple[TrainingConfig, ...]] = dict(
        configurations_of_comparison(Context(quick=False))
    )
    result["masked photographs"] += (photographs("cnn", STEPS_OF_CNN),)
    return result


def tune(
    data: Sequence[str] = (), rates: Sequence[float] = TRIED, seeds: Sequence[int] = SEEDS
) -> Iterator[Trial]:
    """Yield the errors at each rate on these data sets (default: all of the full report).

    The error of a run is infinite if its loss does not stay finite.
    """
    for name, entries in configurations().items():
        for configuration in entries if not data or name in data else ():
            for rate in rates:
                errors = np.array([_error(configuration, rate, seed) for seed in seeds])
                yield Trial(name, configuration.model.kind, rate, errors)


def _error(configuration: TrainingConfig, rate: float, seed: int) -> float:
    images = image_set(configuration.data, 0, seed)
    settings = replace(configuration.settings, rate=rate)
    try:
        result = train(images, configuration.model, settings, (seed,), tested="validation")
    except RuntimeError:
        return np.inf
    return float(result.error[0])


if __name__ == "__main__":
    for trial in tune(sys.argv[1:]):
        errors = " ".join(f"{error:.4f}" for error in trial.errors)
        print(
            f"{trial.data:22s} {trial.kind:9s} {trial.rate:7.4f} {trial.errors.mean():.4f} "
            f"({errors})",
            flush=True,
        )
