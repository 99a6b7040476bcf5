"""Files of weights in the safetensors format, which contains numbers and no program.

A header in JSON describes dtype, shape and place of each tensor. It is checked against the bytes of
the file.
"""

import json
import math
from pathlib import Path
from typing import Any, Self

import numpy as np

from dynamics.core.files import FileError, explain

#: Largest number of bytes of a header; a tensor takes a few hundred.
_LARGEST_HEADER = 2**24
_DTYPES = {
    "F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2", "I32": "<i4", "I64": "<i8",
}  # fmt: skip


class WeightFile:
    """Open file of weights, closed at the end of a ``with`` block.

    Parameters
    ----------
    path
        File in the safetensors format.

    Raises
    ------
    dynamics.core.files.FileError
        If the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = open(path, "rb")  # noqa: SIM115
            self._size = path.stat().st_size
            self._header = self._described()
        except OSError as failure:
            raise explain("read", path, failure) from failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def names(self) -> list[str]:
        """Names of the tensors."""
        return list(self._header)

    def _described(self) -> dict[str, Any]:
        """Return the description of each tensor; the file is then read up to the first one."""
        size = int.from_bytes(self._file.read(8), "little")
        if not 2 <= size <= _LARGEST_HEADER:
            raise self._error("it does not begin like a file of safetensors")
        try:
            header = json.loads(self._file.read(size))
        except (ValueError, RecursionError):
            header = None
        if not isinstance(header, dict):
            raise self._error("its header is damaged")
        header.pop("__metadata__", None)
        self._first = self._file.tell()
        return header

    def read(self, name: str) -> np.ndarray:
        """Return a tensor.

        Raises
        ------
        dynamics.core.files.FileError
            If its description does not agree with the file, or its dtype is not supported.
        """
        described = self._header[name]
        try:
            dtype, shape = described["dtype"], tuple(map(int, described["shape"]))
            first, last = map(int, described["data_offsets"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self._error("its header is damaged") from None
        if dtype not in _DTYPES:
            raise self._error(f"numbers of type {dtype!s:.20} are not supported")
        size = math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
        if min(shape, default=1) < 1 or first < 0 or last - first != size:
            raise self._error("its header is damaged")
        if self._first + last > self._size:
            raise self._error("it is cut short")
        try:
            self._file.seek(self._first + first)
            numbers = np.frombuffer(self._file.read(size), _DTYPES[dtype])
        except OSError as failure:
            raise explain("read", self._path, failure) from failure
        if dtype == "BF16":  # the upper half of a float32
            numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
        return numbers.reshape(shape)

    def _error(self, reason: str) -> FileError:
        self._file.close()
        return FileError(f"cannot read {self._path}: {reason}")
