"""Data sets of standardised images in three parts, and their checks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics.core.checks import integer, require
from dynamics.core.errors import ParameterError


@dataclass(frozen=True)
class Images:
    """Images and their labels.

    Attributes
    ----------
    pixels
        float32 of shape (N, height, width, channels).
    labels
        int64 of shape (N,): the class 0..classes-1, or the photograph that contains a crop.
    """

    pixels: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.labels)


@dataclass(frozen=True)
class ImageSet:
    """A data set in three parts; choose settings on ``validation``, never on ``test``.

    Attributes
    ----------
    name
        Name as in :func:`simulations.vision.data.load`.
    train, validation, test
        Disjoint parts. Each channel is standardised, (pixel - mean) / sd, with mean and standard
        deviation over all pixels of ``train``.
    classes
        Number of classes; 0 for photographs, whose patches are masked.
    """

    name: str
    train: Images
    validation: Images
    test: Images
    classes: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an image."""
        height, width, channels = self.train.pixels.shape[1:]
        return height, width, channels


def raw_images(name: str, pixels: np.ndarray, labels: np.ndarray, classes: int) -> Images:
    """Return images after checking shapes, types and labels.

    Parameters
    ----------
    name
        Name of the data set, for messages.
    pixels
        Real numbers of shape (N, height, width, channels), or (N, height, width) for gray images.
    labels
        Integers of shape (N,).
    classes
        Number of classes; 0: do not check the labels.

    Raises
    ------
    ParameterError
        If the shapes do not fit, a pixel is nan or infinite, or a label is not in 0..classes-1.
    """
    if pixels.ndim == 3:
        pixels = pixels[..., None]
    require(
        pixels.dtype.kind in "fiu" and pixels.ndim == 4 and pixels.size > 0,
        f"pixels of {name}",
        f"array of shape {pixels.shape} and type {pixels.dtype}",
        "real numbers of shape (N, H, W, channels)",
    )
    require(
        labels.shape == pixels.shape[:1] and labels.dtype.kind in "iu",
        f"labels of {name}",
        f"array of shape {labels.shape} and type {labels.dtype}",
        f"{len(pixels)} integers, one for each image",
    )
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        first = int(np.flatnonzero(~np.isfinite(pixels).all(axis=(1, 2, 3)))[0])
        raise ParameterError(
            f"pixels of {name}, image {first}, with nan or inf are not allowed: they must be finite"
        )
    if classes:
        low, high = int(labels.min()), int(labels.max())
        hint = "; they are off by one" if (low, high) == (1, classes) else ""
        require(
            low >= 0 and high < classes,
            f"labels of {name}",
            f"{low}..{high}",
            f"integers in 0..{classes - 1}{hint}",
        )
    return Images(pixels, labels.astype(np.int64))


def image_set(
    name: str,
    train: Images,
    test: Images,
    classes: int,
    *,
    seed: int,
    validation: Images | None = None,
    share: float = 0.1,
    limit: int | None = None,
) -> ImageSet:
    """Return raw images as a standardised data set with a validation part.

    Parameters
    ----------
    name, classes
        As in :class:`ImageSet`.
    train, test
        Raw images (see :func:`raw_images`).
    seed
        Seed of the split and of the choice of ``limit`` images.
    validation
        Raw images; by default, the share ``share`` of ``train``, the same of every class.
    limit
        Largest number of images in ``train`` and ``validation`` together, the same share of every
        class.

    Raises
    ------
    ParameterError
        If ``limit`` is below ten images per class, or ``train`` contains one class only.
    """
    rng = np.random.default_rng([seed, len(train)])
    if classes and (train.labels == train.labels[0]).all():
        raise ParameterError(
            f"labels of {name} = {train.labels[0]} for every image are not allowed: there must be "
            "two classes or more"
        )
    if limit is not None and validation is None:
        limit = integer("limit", limit, 10 * max(classes, 1), 10**9)
        if limit < len(train):
            train, _ = split(train, limit / len(train), rng)
    if validation is None:
        validation, train = split(train, share, rng)
    mean, sd = _scale(name, train.pixels)
    parts = [_standardised(images, mean, sd) for images in (train, validation, test)]
    return ImageSet(name, parts[0], parts[1], parts[2], classes)


def split(images: Images, share: float, rng: np.random.Generator) -> tuple[Images, Images]:
    """Return a random share of the images of each label, and the other images."""
    chosen = np.zeros(len(images), dtype=bool)
    for label in np.unique(images.labels):
        indices = rng.permutation(np.flatnonzero(images.labels == label))
        chosen[indices[: max(1, round(share * len(indices)))]] = True
    first, second = (Images(images.pixels[part], images.labels[part]) for part in (chosen, ~chosen))
    return first, second


def _scale(name: str, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each channel over all pixels of all images."""
    mean = _moment(pixels, np.zeros(pixels.shape[-1]), 1)
    sd = np.sqrt(_moment(pixels, mean, 2))
    if not (sd > 0.0).all():
        raise ParameterError(
            f"pixels of {name} = {mean[0]:g} all over a channel are not allowed: they must vary"
        )
    return mean, sd


def _moment(pixels: np.ndarray, centre: np.ndarray, power: int) -> np.ndarray:
    """Return the mean of (pixel - centre)^power of each channel, computed in blocks."""
    blocks = (pixels[start : start + 1000] for start in range(0, len(pixels), 1000))
    total = sum(((block - centre) ** power).sum(axis=(0, 1, 2)) for block in blocks)
    return np.asarray(total) / pixels[..., 0].size


def _standardised(images: Images, mean: np.ndarray, sd: np.ndarray) -> Images:
    pixels = images.pixels.astype(np.float32)
    pixels -= mean.astype(np.float32)
    pixels /= sd.astype(np.float32)
    return Images(pixels, images.labels)
