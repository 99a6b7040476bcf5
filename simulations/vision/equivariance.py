"""Training on permuted patches: the same run, if P(0) is permuted along (Section 6, Figure 5a)."""

from typing import Any, NamedTuple

import jax
import jax.experimental
import numpy as np

from simulations.vision.data import ImageSet
from simulations.vision.models import Model
from simulations.vision.tasks import Settings
from simulations.vision.training import start, task_of, trajectory

#: Its name and place changed with JAX 0.8.
_double: Any = (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64


class Deviation(NamedTuple):
    """Largest differences of two runs: of their losses at any step, and of P at the end."""

    loss: float
    encodings: float


def deviation(
    images: ImageSet,
    model: Model,
    settings: Settings,
    order: np.ndarray,
    *,
    seed: int = 0,
    moved: bool = True,
) -> Deviation:
    """Train on images and on the same with permuted patches, in double precision, and compare.

    Parameters
    ----------
    images, model, settings
        A transformer and what it learns.
    order
        Which patch is shown at each place (D,).
    seed
        Of both runs.
    moved
        Whether P(0) is permuted along. If not, the second run starts elsewhere.
    """
    task = task_of(images, model, settings)
    with _double(True):
        first = start(task, seed)
        tree, losses = trajectory(task, images.train, first, seed, np.arange(task.shape.D))
        other = first | {"P": first["P"][order] if moved else first["P"]}
        permuted, again = trajectory(task, images.train, other, seed, order)
    return Deviation(
        float(abs(losses - again).max()), float(abs(tree["P"][order] - permuted["P"]).max())
    )
