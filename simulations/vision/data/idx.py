"""MNIST in its own format, IDX: four files of a user."""

import struct
from pathlib import Path

import numpy as np

from dynamics.core.files import FileError
from simulations.vision.data.bounded import compare_digest, content, existing, present
from simulations.vision.data.images import Images, ImageSet, image_set, raw_images

SIDE = 28

#: Images of each part.
COUNTS = {"train": 60_000, "t10k": 10_000}

_MAGIC = {"images": 0x803, "labels": 0x801}

#: MD5 of the published files, compressed.
_DIGESTS = {
    "train-images": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels": "ec29112dd5afa0611ce80d1b7f02629c",
}


def mnist(path: Path | None, *, seed: int, limit: int | None) -> ImageSet:
    """Return the MNIST digits of a folder with the four IDX files, compressed or not."""
    folder = existing(path, "mnist")
    train, test = (_part(folder, part) for part in COUNTS)
    return image_set("mnist", train, test, 10, seed=seed, limit=limit)


def _part(folder: Path, part: str) -> Images:
    """Return the images of a part and their labels."""
    pixels = _array(folder, part, "images", (COUNTS[part], SIDE, SIDE))
    labels = _array(folder, part, "labels", (COUNTS[part],))
    return raw_images("mnist", pixels, labels, 10)


def _array(folder: Path, part: str, what: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array of a file: magic number, big-endian sizes, then one byte an entry."""
    stem, kind = f"{part}-{what}", f"idx{len(shape)}-ubyte"
    path = present(folder, (f"{stem}-{kind}.gz", f"{stem}-{kind}", f"{stem}.{kind}"))
    if path.suffix == ".gz":
        compare_digest(path, _DIGESTS[stem])
    header = struct.pack(f">{1 + len(shape)}I", _MAGIC[what], *shape)
    found = content(path, len(header) + int(np.prod(shape)))
    if found[: len(header)] != header:
        sizes = " x ".join(map(str, shape))
        raise FileError(f"cannot read {path}: it does not begin like an IDX file of {sizes} bytes")
    return np.frombuffer(found, np.uint8, offset=len(header)).reshape(shape)
