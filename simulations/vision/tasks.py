"""Tasks on images: classify them, or predict masked patches."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynamics.core.checks import finite, integer, require
from simulations.vision.models import Model, Shape, Tree, apply
from simulations.vision.patches import unfold


@dataclass(frozen=True)
class Settings:
    """Numerical settings of a training run.

    Attributes
    ----------
    steps, batch
        Number of steps and batch size; every image occurs once per epoch, in random order.
    rate, decay
        Peak learning rate and weight decay of AdamW (.9, .99) with gradients clipped at norm 1. The
        rate rises over a tenth of the steps, then falls to 0 as a cosine; matrices decay, P does
        not.
    shift
        Largest random shift of an image in pixels, in each direction; its border is repeated.
    noise
        Standard deviation of Gaussian noise on every pixel.
    masked
        Share of masked patches; unused in classification.
    """

    steps: int = 400
    batch: int = 64
    rate: float = 5e-3
    decay: float = 0.05
    shift: int = 0
    noise: float = 0.0
    masked: float = 0.5

    def __post_init__(self) -> None:
        integer("steps", self.steps, 1, 10**7)
        integer("batch", self.batch, 1, 10**6)
        integer("shift", self.shift, 0, 64)
        for name in ("rate", "decay", "noise", "masked"):
            value = finite(name, getattr(self, name))
            require(value >= 0.0, name, value, "0 or more")
        require(0.0 < self.masked < 1.0, "masked", self.masked, "between 0 and 1")
        require(self.rate > 0.0, "rate", self.rate, "greater than 0")


class Task(NamedTuple):
    """A model, the sizes of its data, the grid of patches (rows, columns), and its training."""

    model: Model
    shape: Shape
    grid: tuple[int, int]
    settings: Settings

    @property
    def without_settings(self) -> "Task":
        """The task with default settings; the compiled functions do not depend on them."""
        return self._replace(settings=Settings())


class Batch(NamedTuple):
    """Patches (B, D, pixels), labels (B,), and the mask (B, D) or ``None``."""

    patches: Any
    labels: Any
    masked: Any


def batch(
    task: Task,
    images: np.ndarray,
    labels: np.ndarray,
    order: np.ndarray,
    rng: np.random.Generator,
    *,
    augment: bool,
) -> Batch:
    """Return images as patches in a given order.

    Shifts precede the permutation, and masks are sampled in the order of the image. Another order
    therefore permutes the same patches with the same masks.

    Parameters
    ----------
    task
        Task of the model.
    images, labels
        Images (B, height, width, channels) and their labels (B,).
    order
        Patch shown at each position: (D,), or (B, D) with an order per image.
    rng
        Generator of shifts, noise and masks.
    augment
        Whether to apply the shifts and the noise of the settings.
    """
    settings = task.settings
    if augment and settings.shift:
        images = _shifted(images, settings.shift, rng)
    if augment and settings.noise:
        noise = rng.standard_normal(images.shape, dtype=np.float32)
        images = images + (settings.noise * noise).astype(images.dtype)
    patches = unfold(images, task.model.patch)
    order = np.broadcast_to(order, patches.shape[:2])
    masked = None
    if task.shape.masked:
        masked = _masks(patches.shape[:2], settings.masked, rng)
        masked = np.take_along_axis(masked, order, axis=1)
    return Batch(np.take_along_axis(patches, order[..., None], axis=1), labels, masked)


def loss(task: Task, tree: Tree, shown: Batch) -> jax.Array:
    """Return the cross entropy of the labels, or the squared error on masked pixels."""
    output, _ = apply(task.model, tree, shown.patches, task.grid, shown.masked)
    if shown.masked is not None:
        return squared_error(output, shown).mean()
    logs = jax.nn.log_softmax(output)
    return -jnp.take_along_axis(logs, shown.labels[:, None], axis=1).mean()


def squared_error(output: Any, shown: Batch) -> Any:
    """Return the mean squared error on the masked patches of each image (B,)."""
    errors = ((output - shown.patches) ** 2).mean(axis=-1)
    return (errors * shown.masked).sum(axis=1) / shown.masked.sum(axis=1)


def score(task: Task, tree: Tree, shown: Batch, weights: Any) -> tuple[jax.Array, jax.Array | None]:
    """Return the error of each image and a weighted sum of the attention.

    Parameters
    ----------
    task, tree, shown
        Task, parameters of its model and a batch.
    weights
        Weight of each image in the sum (B,).

    Returns
    -------
    errors
        1 for a wrong class and 0 otherwise, or the squared error on masked pixels (B,).
    attention
        Sum over the images (depth, heads, D, D); ``None`` for the CNN.
    """
    output, attention = apply(task.model, tree, shown.patches, task.grid, shown.masked)
    if attention is not None:
        per_image = attention.ndim == 5
        attention = (
            jnp.einsum("b,lb...->l...", weights, attention)
            if per_image
            else weights.sum() * attention
        )
    if shown.masked is not None:
        return squared_error(output, shown), attention
    return (output.argmax(axis=1) != shown.labels).astype(jnp.float32), attention


def _shifted(images: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return images moved by up to ``most`` pixels in each direction; the border is repeated."""
    count, height, width, _ = images.shape
    by = rng.integers(-most, most + 1, (2, count, 1))
    rows = np.clip(np.arange(height) + by[0], 0, height - 1)
    columns = np.clip(np.arange(width) + by[1], 0, width - 1)
    return images[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]


def _masks(size: tuple[int, ...], share: float, rng: np.random.Generator) -> np.ndarray:
    """Return random masks (B, D) with the same number of masked patches in every image."""
    uniform = rng.random(size)
    count = min(max(round(share * size[1]), 1), size[1] - 1)
    return uniform < np.partition(uniform, count, axis=1)[:, count : count + 1]
