"""What a model learns from images: to tell classes, or patches that are masked."""

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
    """How a model is trained.

    Attributes
    ----------
    steps, batch
        Steps, and images a step: every image once an epoch, in random order.
    rate, decay
        AdamW (.9, .99): highest learning rate, reached after a tenth of the steps, then a cosine
        to 0; weight decay of the matrices, not of P. Gradients are clipped at norm 1.
    shift
        Images are shifted by up to so many pixels each way, the border repeated.
    noise
        Standard deviation of Gaussian noise on every pixel.
    masked
        Share of the patches that are masked, where no classes are told.
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
    """A model, what it is built for, the grid of its patches, and how it is trained."""

    model: Model
    shape: Shape
    grid: tuple[int, int]
    settings: Settings


class Batch(NamedTuple):
    """Patches (B, D, pixels) in the order shown, labels (B,), and which are masked (B, D)."""

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
    """Return images (B, height, width, channels) as patches in an order (D,) or (B, D).

    Shifts come before the permutation, and masks are drawn in the order of the image: another
    order shows the same patches, masked alike, elsewhere.
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
    said, _ = apply(task.model, tree, shown.patches, task.grid, shown.masked)
    if shown.masked is not None:
        return squared_error(said, shown).mean()
    logs = jax.nn.log_softmax(said)
    return -jnp.take_along_axis(logs, shown.labels[:, None], axis=1).mean()


def squared_error(said: Any, shown: Batch) -> Any:
    """Return the mean squared error on the masked patches of each image (B,)."""
    each = ((said - shown.patches) ** 2).mean(axis=-1)
    return (each * shown.masked).sum(axis=1) / shown.masked.sum(axis=1)


def score(task: Task, tree: Tree, shown: Batch, weights: Any) -> tuple[jax.Array, jax.Array | None]:
    """Return the error of each image (B,), and the sum of its attention with weights (B,).

    The error is 0 or 1 for classes, the squared error on masked pixels otherwise; the attention is
    (depth, heads, D, D).
    """
    said, maps = apply(task.model, tree, shown.patches, task.grid, shown.masked)
    if maps is not None:
        each = maps.ndim == 5
        maps = jnp.einsum("b,lb...->l...", weights, maps) if each else weights.sum() * maps
    if shown.masked is not None:
        return squared_error(said, shown), maps
    return (said.argmax(axis=1) != shown.labels).astype(jnp.float32), maps


def _shifted(images: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return images moved by up to ``most`` pixels each way; the border is repeated."""
    count, height, width, _ = images.shape
    by = rng.integers(-most, most + 1, (2, count, 1))
    rows = np.clip(np.arange(height) + by[0], 0, height - 1)
    columns = np.clip(np.arange(width) + by[1], 0, width - 1)
    return images[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]


def _masks(size: tuple[int, ...], share: float, rng: np.random.Generator) -> np.ndarray:
    """Return which patches are masked (B, D): the same number, at random, in every image."""
    drawn = rng.random(size)
    hidden = min(max(round(share * size[1]), 1), size[1] - 1)
    return drawn < np.partition(drawn, hidden, axis=1)[:, hidden : hidden + 1]
