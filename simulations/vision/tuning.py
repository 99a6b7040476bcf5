"""Choose learning rates on validation images: ``python -m simulations.vision.tuning [DATA ...]``.

For each data set of Figures 5 to 7 and each model, with the steps of the full report, print the
mean error of each rate on the validation part, over runs with seeds that no claim uses.
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

#: Candidate rates, a factor of two apart, and the seeds of their runs.
RATES = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
SEEDS = (100, 101, 102)


class Trial(NamedTuple):
    """Errors on validation images (seeds,) of a model at one learning rate."""

    data: str
    architecture: str
    rate: float
    errors: np.ndarray


def configurations() -> dict[tuple[str, str], TrainingConfig]:
    """Return the configurations of the full report by data set and model."""
    cnn = {("masked photographs", "CNN"): photographs("cnn", STEPS_OF_CNN)}
    return configurations_of_comparison(Context(quick=False)) | cnn


def tune(
    data: Sequence[str] = (), rates: Sequence[float] = RATES, seeds: Sequence[int] = SEEDS
) -> Iterator[Trial]:
    """Yield the errors at each rate.

    Parameters
    ----------
    data
        Names of data sets; default: all of the full report.
    rates, seeds
        Candidate rates, and seeds of the runs. The error of a run is infinite if its loss does not
        stay finite.
    """
    for (name, _), configuration in configurations().items():
        for rate in rates if not data or name in data else ():
            errors = np.array([_error(configuration, rate, seed) for seed in seeds])
            yield Trial(name, configuration.model.architecture, rate, errors)


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
            f"{trial.data:22s} {trial.architecture:9s} {trial.rate:7.4f} "
            f"{trial.errors.mean():.4f} ({errors})",
            flush=True,
        )
