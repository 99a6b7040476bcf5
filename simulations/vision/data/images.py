"""What a data set is: standardised images in three parts, with labels or without."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynamics.core.checks import integer, require
from dynamics.core.errors import ParameterError


@dataclass(frozen=True)
class Images:
    """Images and their labels.

    Attributes
    ----------
    pixels
        float32 of shape (N, H, W, channels).
    labels
        int64 of shape (N,): the class 0..classes-1, or the photograph from which a crop is.
    """

    pixels: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.labels)


@dataclass(frozen=True)
class ImageSet:
    """A data set in three parts; settings are chosen on ``validation``, never on ``test``.

    Attributes
    ----------
    name
        As given to :func:`simulations.vision.data.load`.
    train, validation, test
        Disjoint parts. Each channel is standardised by one number each: (pixel - mean) / sd, both
        over all pixels of ``train``.
    classes
        Number of classes; 0 for photographs, which are masked and not classified.
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

    def without_validation(self) -> ImageSet:
        """Return the set for a last run, once settings are chosen: ``validation`` joins ``train``.

        The scale stays that of ``train`` alone.
        """
        pixels = np.concatenate([self.train.pixels, self.validation.pixels])
        labels = np.concatenate([self.train.labels, self.validation.labels])
        none = Images(self.validation.pixels[:0], self.validation.labels[:0])
        return replace(self, train=Images(pixels, labels), validation=none)


def raw_images(name: str, pixels: np.ndarray, labels: np.ndarray, classes: int) -> Images:
    """Return pixels of any real type and labels, checked; gray images (N, H, W) get one channel.

    Raises
    ------
    ParameterError
        If the shapes do not fit, a pixel is nan or infinite, or a label is not in 0..classes-1.
    """
    if pixels.ndim == 3:
        pixels = pixels[..., None]
    good = pixels.dtype.kind in "fiu" and pixels.ndim == 4 and pixels.size > 0
    require(
        good,
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
        _check_labels(name, labels, classes)
    return Images(pixels, labels.astype(np.int64))


def _check_labels(name: str, labels: np.ndarray, classes: int) -> None:
    """Refuse labels outside 0..classes-1; those counted from 1 are told as such."""
    low, high = int(labels.min()), int(labels.max())
    if (low, high) == (1, classes):
        raise ParameterError(
            f"labels of {name} = 1..{high} are not allowed: they are off by one, and must be "
            f"0..{classes - 1}"
        )
    require(
        low >= 0 and high < classes,
        f"labels of {name}",
        f"{low}..{high}",
        f"integers in 0..{classes - 1}",
    )


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
    """Return raw images as a data set: validation split off, standardised by ``train``.

    Parameters
    ----------
    name, classes
        As in :class:`ImageSet`.
    train, test
        Raw images (see :func:`raw_images`).
    seed
        Of the split and of the choice of ``limit`` images.
    validation
        Raw images; without them the share ``share`` of ``train``, the same of every class.
    limit
        Images of ``train`` and ``validation`` together at most, the same share of every class.

    Raises
    ------
    ParameterError
        If ``limit`` is below 2 images a class, or ``train`` holds one class only.
    """
    rng = np.random.default_rng([seed, len(train)])
    if classes:
        _check_classes(name, train.labels)
    if limit is not None and validation is None:
        limit = integer("limit", limit, 10 * max(classes, 1), 10**9)
        if limit < len(train):
            train, _ = split(train, limit / len(train), rng)
    if validation is None:
        validation, train = split(train, share, rng)
    mean, sd = _scale(name, train.pixels)
    ready = [
        Images(_standardised(one.pixels, mean, sd), one.labels) for one in (train, validation, test)
    ]
    return ImageSet(name, ready[0], ready[1], ready[2], classes)


def _check_classes(name: str, labels: np.ndarray) -> None:
    """Refuse images of a single class."""
    present = np.unique(labels)
    if len(present) < 2:
        raise ParameterError(
            f"labels of {name} = {int(present[0])} for every image are not allowed: there must be "
            "two classes or more"
        )


def split(images: Images, share: float, rng: np.random.Generator) -> tuple[Images, Images]:
    """Return the share of the images, and the others: of every label the same share, at random."""
    chosen = np.zeros(len(images), dtype=bool)
    for label in np.unique(images.labels):
        of_label = rng.permutation(np.flatnonzero(images.labels == label))
        chosen[of_label[: max(1, round(share * len(of_label)))]] = True
    first, second = (Images(images.pixels[part], images.labels[part]) for part in (chosen, ~chosen))
    return first, second


def _scale(name: str, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each channel over all pixels of all images."""
    mean = _mean(pixels, np.zeros(pixels.shape[-1]), 1)
    sd = np.sqrt(_mean(pixels, mean, 2))
    if not (sd > 0.0).all():
        raise ParameterError(
            f"pixels of {name} = {mean[0]:g} all over a channel are not allowed: they must vary"
        )
    return mean, sd


def _mean(pixels: np.ndarray, centre: np.ndarray, power: int) -> np.ndarray:
    """Return the mean of (pixel - centre)^power of each channel, in blocks that fit into memory."""
    blocks = (pixels[start : start + 1000] for start in range(0, len(pixels), 1000))
    total = sum(((one - centre) ** power).sum(axis=(0, 1, 2)) for one in blocks)
    return np.asarray(total) / pixels[..., 0].size


def _standardised(pixels: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    scaled = pixels.astype(np.float32)
    scaled -= mean.astype(np.float32)
    scaled /= sd.astype(np.float32)
    return scaled
