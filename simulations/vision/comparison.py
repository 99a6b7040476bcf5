"""Positional against vanilla attention on one data set: presets, what is measured, what is kept."""

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
    """Side of a patch, and how long and with which shifts a data set is learned."""

    patch: int
    steps: int
    batch: int
    shift: int


#: Where to begin; those of a user's own files were not tuned.
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
class Measured:
    """What training led to.

    Attributes
    ----------
    error
        On the tested images (seeds,): share of wrong labels, or squared error on masked pixels.
    milliseconds
        Processor time of a step of one seed.
    encodings
        Locality of P (seeds,) by cosine and by distance.
    attention
        Locality of the mean attention of every head (seeds, layers, heads).
    """

    error: np.ndarray
    milliseconds: float
    encodings: dict[str, Locality]
    attention: Locality


def planned(data: str, **changes: Any) -> tuple[int, Settings]:
    """Return the side of a patch and the settings of a data set: its preset, with changes.

    Raises what :class:`Settings` raises.
    """
    chosen = PRESETS[data]._asdict() | changes
    return chosen.pop("patch"), Settings(**chosen)


def check_grid(images: ImageSet, patch: int) -> None:
    """Refuse patches that do not divide the images, or so large that all of them touch."""
    grid = grid_of(images.train.pixels.shape, patch)
    most = max(images.shape[:2]) // 3
    require(max(grid) >= 3, "patch", patch, f"at most {most}, so that some patches do not touch")


def measure(trained: Trained, *, null: str = "permutation", draws: int = 199) -> Measured:
    """Return what a trained transformer scores, and how local its P and its attention are."""
    options: dict[str, Any] = {"grid": trained.task.grid, "null": null, "draws": draws}
    if trained.attention is None:
        raise TypeError(f"a {trained.task.model.kind} has no attention")
    encodings = {
        by: locality(np.stack([similarity(one, by) for one in trained.encodings]), **options)
        for by in ("cosine", "distance")
    }
    attention = attention_locality(trained.attention, **options)
    return Measured(trained.error, 1e3 * trained.seconds, encodings, attention)


def to_dataset(runs: Mapping[str, Trained]) -> xarray.Dataset:
    """Return errors, losses, P and attention of runs of several kinds with the same seeds."""
    variables: dict[str, Any] = {}
    for kind, run in runs.items():
        variables[f"{kind}_error"] = ("seed", run.error)
        variables[f"{kind}_losses"] = (("seed", "step"), run.losses)
        variables[f"{kind}_encodings"] = (("seed", "patch", "width"), run.encodings)
        axes = ("seed", "layer", f"{kind}_head", "patch", "key")
        variables[f"{kind}_attention"] = (axes, run.attention)
    seeds = next(iter(runs.values())).seeds
    return xarray.Dataset(variables, coords={"seed": list(seeds)})
