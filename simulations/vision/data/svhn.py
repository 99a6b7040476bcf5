"""SVHN, cropped digits (format 2): two MATLAB files of a user."""

import warnings
from pathlib import Path

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.files import FileError, explain
from simulations.vision.data.bounded import compare_digest, existing, present
from simulations.vision.data.images import Images, ImageSet, image_set, raw_images

#: Images of each part.
COUNTS = {"train": 73_257, "test": 26_032}

#: MD5 of the published files.
_DIGESTS = {
    "train": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "test": "eb5a983be6a315427106f1b164d9cef3",
}

#: MATLAB's name of the types that are read.
_BYTES, _LABELS = ("uint8",), ("uint8", "double")


def svhn(path: Path | None, *, seed: int, limit: int | None) -> ImageSet:
    """Return the digits of a folder with ``train_32x32.mat`` and ``test_32x32.mat``.

    The files call the digit 0 the class 10; here it is 0.
    """
    folder = existing(path, "svhn")
    train, test = (_part(folder, part) for part in COUNTS)
    return image_set("svhn", train, test, 10, seed=seed, limit=limit)


def _part(folder: Path, part: str) -> Images:
    """Return the images of a part and their digits."""
    path = present(folder, (f"{part}_32x32.mat",))
    count = COUNTS[part]
    table = _variables(path, count)
    compare_digest(path, _DIGESTS[part])
    classes = np.asarray(table["y"]).ravel()
    if not np.isin(classes, np.arange(1, 11)).all():
        raise ParameterError(
            f"labels of svhn = {classes.min():g}..{classes.max():g} in {path.name} are not "
            "allowed: they must be 1..10, with 10 for the digit 0"
        )
    pixels = np.asarray(table["X"]).transpose(3, 0, 1, 2)
    return raw_images("svhn", pixels, classes.astype(np.int64) % 10, 10)


def _variables(path: Path, count: int) -> dict[str, np.ndarray]:
    """Return X and y of a file, whose sizes are asked before anything is unpacked."""
    from scipy.io import loadmat, whosmat

    expected = {"X": ((32, 32, 3, count), _BYTES), "y": ((count, 1), _LABELS)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            told = {name: (shape, kind) for name, shape, kind in whosmat(str(path))}
            for name, (shape, kinds) in expected.items():
                if name not in told or told[name][0] != shape or told[name][1] not in kinds:
                    sizes = " x ".join(map(str, shape))
                    raise FileError(f"cannot read {path}: it has no {name} of {sizes} bytes")
            return loadmat(str(path), variable_names=list(expected))
    except FileError:
        raise
    except NotImplementedError:
        raise FileError(
            f"cannot read {path}: it is of MATLAB 7.3 (HDF5), and must be of version 5"
        ) from None
    except OSError as failure:
        raise explain("read", path, failure) from failure
    except Exception as failure:  # what is no MATLAB file fails in many ways
        raise FileError(f"cannot read {path}: it is no MATLAB file of version 5") from failure
