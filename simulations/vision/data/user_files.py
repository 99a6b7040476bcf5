"""Read CIFAR, SVHN and MNIST from files of the user, in their published formats.

The files may be damaged or hostile: no more bytes are decompressed than a format needs, archives
are not unpacked to disk, and the Python version of CIFAR is rejected, since reading its pickles
runs their program.
"""

import gzip
import hashlib
import io
import struct
import tarfile
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.files import FileError, explain
from simulations.vision.data.images import Images, ImageSet, image_set, raw_images

#: Exceptions raised by a damaged compressed file.
_DAMAGED = (OSError, EOFError, zlib.error, tarfile.TarError)

#: Images in each part of MNIST and of SVHN.
MNIST_COUNTS = {"train": 60_000, "t10k": 10_000}
SVHN_COUNTS = {"train": 73_257, "test": 26_032}

_MNIST_SIDE = 28
_IDX_MAGIC = {"images": 0x803, "labels": 0x801}

#: MD5 of the published files: MNIST compressed, SVHN.
_MD5 = {
    "train-images": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels": "ec29112dd5afa0611ce80d1b7f02629c",
    "train_32x32": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "test_32x32": "eb5a983be6a315427106f1b164d9cef3",
}

#: Bytes of a CIFAR image: planes of red, green and blue, each 32 x 32.
_CIFAR_PIXELS = 3 * 32 * 32
#: Bytes that an archive may contain in addition to its images: headers, padding, class names.
_ARCHIVE_OVERHEAD = 2**20


@dataclass(frozen=True)
class CifarLayout:
    """Files and records of a version of CIFAR.

    Attributes
    ----------
    classes
        Number of classes.
    folder, archive, md5
        Name of the folder in the archive, name of the archive, and its digest.
    label_bytes
        Bytes before the pixels of a record; the last of them is the class.
    train, test
        Names of the files of each part.
    records
        Images in a file of ``train`` and in a file of ``test``.
    """

    classes: int
    folder: str
    archive: str
    md5: str
    label_bytes: int
    train: tuple[str, ...]
    test: tuple[str, ...]
    records: tuple[int, int]

    def sizes(self) -> dict[str, int]:
        """Return the number of bytes of each file."""
        record = self.label_bytes + _CIFAR_PIXELS
        parts = zip((self.train, self.test), self.records)
        return {name: count * record for names, count in parts for name in names}


CIFAR = {
    "cifar10": CifarLayout(
        classes=10,
        folder="cifar-10-batches-bin",
        archive="cifar-10-binary.tar.gz",
        md5="c32a1d4ab5d03f1284b67883e8d87530",
        label_bytes=1,
        train=tuple(f"data_batch_{k}.bin" for k in range(1, 6)),
        test=("test_batch.bin",),
        records=(10_000, 10_000),
    ),
    "cifar100": CifarLayout(
        classes=100,
        folder="cifar-100-binary",
        archive="cifar-100-binary.tar.gz",
        md5="03b5dce01913d631647c71ecec9e9cb8",
        label_bytes=2,
        train=("train.bin",),
        test=("test.bin",),
        records=(50_000, 10_000),
    ),
}


def cifar(name: str, path: Path | str | None, *, seed: int, limit: int | None) -> ImageSet:
    """Return CIFAR-10 or CIFAR-100 from the archive, its folder, or the folder around either."""
    layout = CIFAR[name]
    files = _cifar_files(layout, _existing(path, name))
    train, test = (
        _cifar_images(name, layout, b"".join(files[file] for file in part))
        for part in (layout.train, layout.test)
    )
    del files
    return image_set(name, train, test, layout.classes, seed=seed, limit=limit)


def mnist(path: Path | str | None, *, seed: int, limit: int | None) -> ImageSet:
    """Return the MNIST digits of a folder with the four IDX files, compressed or not."""
    folder = _existing(path, "mnist")
    train, test = (
        raw_images(
            "mnist",
            _idx_array(folder, f"{part}-images", (count, _MNIST_SIDE, _MNIST_SIDE)),
            _idx_array(folder, f"{part}-labels", (count,)),
            classes=10,
        )
        for part, count in MNIST_COUNTS.items()
    )
    return image_set("mnist", train, test, 10, seed=seed, limit=limit)


def svhn(path: Path | str | None, *, seed: int, limit: int | None) -> ImageSet:
    """Return the digits of a folder with ``train_32x32.mat`` and ``test_32x32.mat``.

    The files store the digit 0 as class 10; here it is 0.
    """
    folder = _existing(path, "svhn")
    train, test = (
        _svhn_images(_first_file(folder, f"{part}_32x32.mat"), count)
        for part, count in SVHN_COUNTS.items()
    )
    return image_set("svhn", train, test, 10, seed=seed, limit=limit)


READERS: dict[str, Callable[..., ImageSet]] = {
    **{name: partial(cifar, name) for name in CIFAR},
    "svhn": svhn,
    "mnist": mnist,
}


def _cifar_files(layout: CifarLayout, path: Path) -> dict[str, bytes]:
    """Return the content of each file of a version of CIFAR."""
    if path.is_file():
        return _archive_members(layout, path)
    for folder in (path, path / layout.folder):
        if (folder / layout.train[0]).is_file():
            return {name: _content(folder / name, size) for name, size in layout.sizes().items()}
    if (path / layout.archive).is_file():
        return _archive_members(layout, path / layout.archive)
    version = layout.folder.rsplit("-", 1)[0]
    python_version = (
        f"{version}-py",
        f"{version}-python",
        layout.archive.replace("binary", "python"),
    )
    pickled = (path / layout.train[0].removesuffix(".bin")).is_file()
    if pickled or any((path / name).exists() for name in python_version):
        raise _pickle_error(layout, path)
    raise ParameterError(
        f"path = {path} is not allowed: it must contain {layout.archive} or its folder "
        f"{layout.folder}"
    )


def _pickle_error(layout: CifarLayout, path: Path) -> ParameterError:
    return ParameterError(
        f"path = {path} is not allowed: it is the Python version, made of pickles, which can run "
        f"any program; it must be the binary version, {layout.archive}"
    )


def _archive_members(layout: CifarLayout, path: Path) -> dict[str, bytes]:
    """Return the content of each file in an archive; the sizes must be those of the layout."""
    if path.suffix != ".gz":
        raise ParameterError(f"path = {path} is not allowed: the archive is {layout.archive}")
    sizes = layout.sizes()
    limit = sum(sizes.values()) + _ARCHIVE_OVERHEAD
    try:
        with _open(path) as stream:
            tar = stream.read(limit + 1)
        if len(tar) > limit:
            raise FileError(f"cannot read {path}: it unpacks to far more than its files need")
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
            names = archive.getnames()
            if any("-py/" in name or "-python/" in name for name in names):
                raise _pickle_error(layout, path)
            files = {}
            for name, size in sizes.items():
                member = f"{layout.folder}/{name}"
                if member not in names:
                    raise FileError(f"cannot read {path}: {member} is not in it")
                files[name] = _member(path, archive, archive.getmember(member), size)
    except _DAMAGED as failure:
        raise explain("read", path, failure) from failure
    _warn_unless_published(path, layout.md5)
    return files


def _member(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo, size: int) -> bytes:
    """Return the content of a regular file of an archive."""
    file = archive.extractfile(member) if member.isreg() and member.size == size else None
    if file is None:
        raise FileError(f"cannot read {path}: {member.name} is not a file of {size} bytes in it")
    return file.read()


def _cifar_images(name: str, layout: CifarLayout, records: bytes) -> Images:
    """Return images (N, 32, 32, 3) and their classes from records of labels and planes."""
    table = np.frombuffer(records, np.uint8).reshape(-1, layout.label_bytes + _CIFAR_PIXELS)
    pixels = table[:, layout.label_bytes :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return raw_images(name, pixels, table[:, layout.label_bytes - 1], layout.classes)


def _idx_array(folder: Path, stem: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array of an IDX file: magic number, big-endian sizes, then a byte per entry."""
    suffix = f"idx{len(shape)}-ubyte"
    path = _first_file(folder, f"{stem}-{suffix}.gz", f"{stem}-{suffix}", f"{stem}.{suffix}")
    if path.suffix == ".gz":
        _warn_unless_published(path, _MD5[stem])
    magic = _IDX_MAGIC[stem.rpartition("-")[2]]
    header = struct.pack(f">{1 + len(shape)}I", magic, *shape)
    content = _content(path, len(header) + int(np.prod(shape)))
    if not content.startswith(header):
        sizes = " x ".join(map(str, shape))
        raise FileError(f"cannot read {path}: it does not begin like an IDX file of {sizes} bytes")
    return np.frombuffer(content, np.uint8, offset=len(header)).reshape(shape)


def _svhn_images(path: Path, count: int) -> Images:
    """Return the images of an SVHN file and their digits."""
    table = _mat_variables(path, count)
    _warn_unless_published(path, _MD5[path.stem])
    classes = np.asarray(table["y"]).ravel()
    if not np.isin(classes, np.arange(1, 11)).all():
        raise ParameterError(
            f"labels of svhn = {classes.min():g}..{classes.max():g} in {path.name} are not "
            "allowed: they must be 1..10, with 10 for the digit 0"
        )
    pixels = np.asarray(table["X"]).transpose(3, 0, 1, 2)
    return raw_images("svhn", pixels, classes.astype(np.int64) % 10, 10)


def _mat_variables(path: Path, count: int) -> dict[str, np.ndarray]:
    """Return X and y of a MATLAB file; declared shapes and types are checked before reading."""
    from scipy.io import loadmat, whosmat

    expected = {"X": ((32, 32, 3, count), ("uint8",)), "y": ((count, 1), ("uint8", "double"))}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            declared = {name: (shape, dtype) for name, shape, dtype in whosmat(str(path))}
            for name, (shape, dtypes) in expected.items():
                if declared.get(name) not in [(shape, dtype) for dtype in dtypes]:
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
    except Exception as failure:  # SciPy raises many types for other files
        raise FileError(f"cannot read {path}: it is no MATLAB file of version 5") from failure


def _existing(path: Path | str | None, name: str) -> Path:
    """Return the path of a data set, or raise ParameterError if it is missing."""
    if path is None:
        raise ParameterError(f"path is missing: {name} is read from files of yours (--path DIR)")
    path = Path(path)
    try:
        exists = path.exists()
    except (OSError, ValueError):  # not a valid file name
        exists = False
    if not exists:
        raise ParameterError(f"path = {path} is not allowed: nothing is there")
    return path


def _first_file(folder: Path, *names: str) -> Path:
    """Return the first existing file of a folder among names, or raise ParameterError."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ParameterError(f"path = {folder} is not allowed: it must contain {' or '.join(names)}")


def _open(path: Path) -> IO[bytes]:
    """Open a file for reading; decompress it if its name ends in ``.gz``."""
    return cast(IO[bytes], gzip.open(path) if path.suffix == ".gz" else open(path, "rb"))


def _content(path: Path, size: int) -> bytes:
    """Return the decompressed content of a file of exactly ``size`` bytes, or raise FileError.

    At most one more byte is decompressed.
    """
    try:
        with _open(path) as file:
            content = file.read(size + 1)
    except _DAMAGED as failure:
        raise explain("read", path, failure) from failure
    if len(content) != size:
        actual = f"more than {size}" if len(content) > size else f"{len(content)}"
        raise FileError(f"cannot read {path}: it has {actual} bytes, and must have {size}")
    return content


def _warn_unless_published(path: Path, md5: str) -> None:
    """Warn if a file is not the published one."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False))
    except OSError as failure:
        raise explain("read", path, failure) from failure
    if digest.hexdigest() != md5:
        warnings.warn(
            f"{path.name} is not the published file (MD5 {digest.hexdigest()}, not {md5})",
            stacklevel=2,
        )
