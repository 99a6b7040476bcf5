"""Compare types of attention on one data set: presets, measurements and results as a dataset."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics.core.checks import require
from dynamics.locality import Locality, attention_locality, locality, similarity
from simulations.vision.data import ImageSet
from simulations.vision.patches import grid_of
from simulations.vision.tasks import Settings
from simulations.vision.training import Trained


class Preset(NamedTuple):
    """Side length of a patch, and settings of the training."""

    patch: int
    steps: int
    batch: int
    shift: int


#: Default settings; those of the user's own files were not tuned.
PRESETS = {
    "digits": Preset(2, 600, 128, 1),
    "photographs": Preset(2, 400, 64, 0),
    "mnist-5k": Preset(4, 1000, 128, 2),
    "mnist": Preset(4, 2000, 128, 2),
    "cifar10": Preset(4, 2000, 128, 4),
    "cifar100": Preset(4, 2000, 128, 4),
    "svhn": Preset(4, 2000, 128, 2),
}


@dataclass(frozen=True)
class Measurements:
    """Error and locality of trained models.

    Attributes
    ----------
    error
        Share of wrong labels, or squared error on masked pixels (seeds,).
    milliseconds
        Processor time of a step of one seed.
    encodings
        Locality of P (seeds,), by cosine and by distance.
    attention
        Locality of the mean attention of every head (seeds, layers, heads).
    """

    error: np.ndarray
    milliseconds: float
    encodings: dict[str, Locality]
    attention: Locality


def preset(data: str, **changes: Any) -> tuple[int, Settings]:
    """Return the side length of a patch and the settings of a data set.

    Parameters
    ----------
    data
        Name of the data set.
    changes
        Values that replace those of the preset: ``patch``, or attributes of :class:`Settings`.

    Raises
    ------
    ParameterError
        If a setting is not allowed.
    """
    values = PRESETS[data]._asdict() | changes
    return values.pop("patch"), Settings(**values)


def check_grid(images: ImageSet, patch: int) -> None:
    """Raise ParameterError if patches do not divide the images or all of them touch."""
    grid = grid_of(images.train.pixels.shape, patch)
    most = max(images.shape[:2]) // 3
    require(max(grid) >= 3, "patch", patch, f"at most {most}, so that some patches do not touch")


def measure(trained: Trained, *, null: str = "permutation", draws: int = 199) -> Measurements:
    """Return the error of trained transformers, and the locality of their P and attention.

    Parameters
    ----------
    trained
        Transformers; a CNN has no attention.
    null, draws
        Null distribution and number of samples, as in `dynamics.locality.locality`.

    Raises
    ------
    TypeError
        If the model has no attention.
    """
    options: dict[str, Any] = {"grid": trained.task.grid, "null": null, "draws": draws}
    if trained.attention is None:
        raise TypeError(f"a {trained.task.model.architecture} has no attention")
    encodings = {
        by: locality(np.stack([similarity(P, by) for P in trained.encodings]), **options)
        for by in ("cosine", "distance")
    }
    attention = attention_locality(trained.attention, **options)
    return Measurements(trained.error, 1e3 * trained.seconds, encodings, attention)


def to_dataset(runs: Mapping[str, Trained]) -> xarray.Dataset:
    """Return errors, losses, P and attention of models with the same seeds."""
    variables: dict[str, Any] = {}
    for name, run in runs.items():
        variables[f"{name}_error"] = ("seed", run.error)
        variables[f"{name}_losses"] = (("seed", "step"), run.losses)
        variables[f"{name}_encodings"] = (("seed", "patch", "width"), run.encodings)
        axes = ("seed", "layer", f"{name}_head", "patch", "key")
        variables[f"{name}_attention"] = (axes, run.attention)
    seeds = next(iter(runs.values())).seeds
    return xarray.Dataset(variables, coords={"seed": list(seeds)})
