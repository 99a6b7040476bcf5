"""CIFAR-10 and CIFAR-100 in their binary version: a folder or the archive of a user.

The Python version is refused: it is made of pickles, and to read a pickle is to run its program.
"""

import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.files import FileError, explain
from simulations.vision.data.bounded import (
    DAMAGED,
    Limited,
    compare_digest,
    content,
    existing,
    opened,
)
from simulations.vision.data.images import Images, ImageSet, image_set, raw_images

#: A record's image: planes of red, green, blue, each 32 x 32.
_PIXELS = 3 * 32 * 32

#: What an archive may hold beside its images: headers, padding, names of classes.
_SLACK = 2**20


@dataclass(frozen=True)
class Layout:
    """Where the images of a version are, and how their records begin."""

    classes: int
    folder: str
    archive: str
    md5: str
    labels: int  # bytes before the pixels; the last of them is the class
    train: tuple[str, ...]
    test: tuple[str, ...]
    records: tuple[int, int]  # of a file of train, of test

    def sizes(self) -> dict[str, int]:
        """Return the bytes of every file."""
        record = self.labels + _PIXELS
        return {name: self.records[0] * record for name in self.train} | {
            name: self.records[1] * record for name in self.test
        }


LAYOUTS = {
    "cifar10": Layout(
        10,
        "cifar-10-batches-bin",
        "cifar-10-binary.tar.gz",
        "c32a1d4ab5d03f1284b67883e8d87530",
        1,
        tuple(f"data_batch_{k}.bin" for k in range(1, 6)),
        ("test_batch.bin",),
        (10_000, 10_000),
    ),
    "cifar100": Layout(
        100,
        "cifar-100-binary",
        "cifar-100-binary.tar.gz",
        "03b5dce01913d631647c71ecec9e9cb8",
        2,
        ("train.bin",),
        ("test.bin",),
        (50_000, 10_000),
    ),
}


def cifar(name: str, path: Path | None, *, seed: int, limit: int | None) -> ImageSet:
    """Return CIFAR-10 or CIFAR-100 from the unpacked folder, the archive, or where either lies."""
    layout = LAYOUTS[name]
    files = _files(layout, existing(path, name))
    train, test = (
        _images(name, layout, b"".join(files[one] for one in names))
        for names in (layout.train, layout.test)
    )
    del files
    return image_set(name, train, test, layout.classes, seed=seed, limit=limit)


def _files(layout: Layout, path: Path) -> dict[str, bytes]:
    """Return the content of every file."""
    if path.is_file():
        return _unpacked(layout, path)
    for folder in (path, path / layout.folder):
        if (folder / layout.train[0]).is_file():
            return {name: content(folder / name, size) for name, size in layout.sizes().items()}
    if (path / layout.archive).is_file():
        return _unpacked(layout, path / layout.archive)
    version = layout.folder.rsplit("-", 1)[0]
    python = f"{version}-py", f"{version}-python", layout.archive.replace("binary", "python")
    pickled = (path / layout.train[0].removesuffix(".bin")).is_file()
    if pickled or any((path / name).exists() for name in python):
        raise _refuse_pickles(layout, path)
    raise ParameterError(
        f"path = {path} is not allowed: it must hold {layout.archive} or its folder {layout.folder}"
    )


def _refuse_pickles(layout: Layout, path: Path) -> ParameterError:
    return ParameterError(
        f"path = {path} is not allowed: it is the Python version, made of pickles, which can run "
        f"any program; it must be the binary version, {layout.archive}"
    )


def _unpacked(layout: Layout, path: Path) -> dict[str, bytes]:
    """Return the files of an archive, read in place: exact names and sizes, nothing is written."""
    if path.suffix != ".gz":
        raise ParameterError(f"path = {path} is not allowed: the archive is {layout.archive}")
    wanted = {f"{layout.folder}/{name}": size for name, size in layout.sizes().items()}
    found: dict[str, bytes] = {}
    most = sum(wanted.values()) + _SLACK
    try:
        with (
            opened(path) as stream,
            tarfile.open(fileobj=Limited(stream, most), mode="r|") as archive,
        ):
            for member in archive:
                if "-py/" in member.name or "-python/" in member.name:
                    raise _refuse_pickles(layout, path)
                if member.name in wanted and member.name not in found:
                    found[member.name] = _member(path, archive, member, wanted[member.name])
                if len(found) == len(wanted):
                    break
    except (*DAMAGED, tarfile.TarError) as failure:
        raise explain("read", path, failure) from failure
    for name in wanted:
        if name not in found:
            raise FileError(f"cannot read {path}: {name} is not in it")
    compare_digest(path, layout.md5)
    return {name.rpartition("/")[2]: one for name, one in found.items()}


def _member(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo, size: int) -> bytes:
    """Return the content of a member of an archive."""
    file = archive.extractfile(member) if member.isreg() and member.size == size else None
    if file is None:
        raise FileError(f"cannot read {path}: {member.name} is not a file of {size} bytes in it")
    return file.read()


def _images(name: str, layout: Layout, records: bytes) -> Images:
    """Return images (N, 32, 32, 3) and their classes from records of labels and planes."""
    table = np.frombuffer(records, np.uint8).reshape(-1, layout.labels + _PIXELS)
    planes = table[:, layout.labels :].reshape(-1, 3, 32, 32)
    return raw_images(
        name, planes.transpose(0, 2, 3, 1), table[:, layout.labels - 1], layout.classes
    )
