"""Evaluate trained models: the error and the mean attention on a set of images."""

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np

from simulations.seeds import rng_at
from simulations.vision.data import Images
from simulations.vision.models import Tree
from simulations.vision.tasks import Batch, Task, batch, score

#: Images that are evaluated at once.
_EVALUATED = 256
_EVALUATION_SEED = 20220


def evaluate(
    task: Task, tree: Tree, order: np.ndarray, images: Images
) -> tuple[float, np.ndarray | None]:
    """Return the mean error of a model on images, and its mean attention.

    Parameters
    ----------
    task, tree
        Task and parameters of the model.
    order
        Patch shown at each position (D,). If it is (N, D), with an order for each training image,
        each image here has a random order.
    images
        Images that are evaluated; their masks are the same in every call.

    Returns
    -------
    error
        Mean error.
    attention
        Mean attention (depth, heads, D, D); ``None`` for the CNN.
    """
    compiled, total = _compiled(task.without_settings), len(images)
    error, attention = 0.0, None
    for shown in evaluation_batches(task, images, order):
        count = len(shown.labels)
        padded = _padded(shown, min(_EVALUATED, total))
        weights = (np.arange(len(padded.labels)) < count).astype(np.float32)
        errors, summed = compiled(tree, padded, weights)
        error += float(np.asarray(errors, dtype=float)[:count].sum())
        if summed is not None:
            share = np.asarray(summed, dtype=float) / total
            attention = share if attention is None else attention + share
    return error / total, attention


@lru_cache(maxsize=16)
def _compiled(task: Task) -> Any:
    """Return the compiled score of a batch."""
    return jax.jit(partial(score, task))


def _padded(shown: Batch, size: int) -> Batch:
    """Return a batch of the compiled size: its first image is repeated at the end."""
    missing = size - len(shown.labels)

    def padded(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array, np.repeat(array[:1], missing, axis=0)])

    return jax.tree.map(padded, shown) if missing else shown


def evaluation_batches(task: Task, images: Images, order: np.ndarray) -> Iterator[Batch]:
    """Yield all images in batches, with the same masks in every call; see :func:`evaluate`."""
    for first in range(0, len(images), _EVALUATED):
        part = slice(first, first + _EVALUATED)
        pixels, labels = images.pixels[part], images.labels[part]
        rng = rng_at(_EVALUATION_SEED, first)
        orders = order
        if order.ndim == 2:
            orders = np.argsort(rng.random((len(labels), order.shape[1])), axis=1)
        yield batch(task, pixels, labels, orders, rng, augment=False)
