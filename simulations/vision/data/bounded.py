"""Bytes of files that may be anything: never more of them than are expected."""

import gzip
import hashlib
import io
import warnings
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, cast

from dynamics.core.errors import ParameterError
from dynamics.core.files import FileError, explain

#: What reading a damaged compressed file raises.
DAMAGED = (OSError, EOFError, zlib.error)


def content(path: Path, size: int) -> bytes:
    """Return the bytes of a file, decompressed if its name ends in ``.gz``, exactly ``size``.

    At most one byte more is read, so that a small file which unpacks to a large one does no harm.

    Raises
    ------
    FileError
        If the file cannot be read or has another size.
    """
    try:
        with opened(path) as file:
            found = file.read(size + 1)
    except DAMAGED as failure:
        raise explain("read", path, failure) from failure
    if len(found) != size:
        many = f"more than {size}" if len(found) > size else f"{len(found)}"
        raise FileError(f"cannot read {path}: it has {many} bytes, and must have {size}")
    return found


def opened(path: Path) -> IO[bytes]:
    """Return a file open for reading, decompressed on the way if its name ends in ``.gz``."""
    return cast(IO[bytes], gzip.open(path) if path.suffix == ".gz" else open(path, "rb"))


class Limited(io.RawIOBase):
    """A stream that refuses to give more than a number of bytes."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self.stream, self.left = stream, most

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; raise OSError past the limit."""
        found = self.stream.read(min(size if size >= 0 else self.left + 1, self.left + 1))
        self.left -= len(found)
        if self.left < 0:
            raise OSError("it unpacks to far more than its files need")
        return found


def present(folder: Path, names: Iterable[str]) -> Path:
    """Return the first file of these names in a folder.

    Raises
    ------
    ParameterError
        If there is none.
    """
    names = tuple(names)
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ParameterError(f"path = {folder} is not allowed: it must hold {' or '.join(names)}")


def existing(path: Path | str | None, name: str) -> Path:
    """Return the path that was given for a data set, which must be there.

    Raises
    ------
    ParameterError
        If none was given or nothing is there.
    """
    if path is None:
        raise ParameterError(f"path is missing: {name} is read from files of yours (--path DIR)")
    path = Path(path)
    try:
        there = path.exists()
    except (OSError, ValueError):  # a name that no system takes
        there = False
    if not there:
        raise ParameterError(f"path = {path} is not allowed: nothing is there")
    return path


def compare_digest(path: Path, md5: str) -> None:
    """Warn where a file is not the published one; what it holds is checked in any case."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with open(path, "rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    except OSError as failure:
        raise explain("read", path, failure) from failure
    if digest.hexdigest() != md5:
        warnings.warn(
            f"{path.name} is not the published file (MD5 {digest.hexdigest()}, not {md5})",
            stacklevel=2,
        )
