"""Checkpoints: arrays of an unfinished computation in an npz file.

The file is written atomically and contains no pickled objects. It is rejected if it is damaged or
belongs to another computation.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.core.errors import ParameterError
from dynamics.core.files import replacing

_FORMAT = 1


def fingerprint(settings: Any, *arrays: np.ndarray) -> str:
    """Return the SHA-256 digest of JSON-serialisable settings and of arrays."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=repr).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


class Checkpoint:
    """An npz file of arrays that belongs to one run.

    Parameters
    ----------
    path
        The file.
    mark
        Identifier of the run, such as its :func:`fingerprint`.
    seconds
        Time between two writes (see :meth:`is_due`).
    """

    def __init__(self, path: Path, mark: str, seconds: float = 30.0) -> None:
        self.path, self.mark, self.seconds = path, mark, seconds
        self._last = monotonic()

    def is_due(self) -> bool:
        """Return whether enough time has passed since the last write."""
        return monotonic() - self._last >= self.seconds

    def write(self, arrays: Mapping[str, ArrayLike]) -> None:
        """Write the file, or replace it.

        Raises
        ------
        FileError
            If the file cannot be written.
        """
        names = sorted(arrays)
        content: dict[str, Any] = {name: np.asarray(arrays[name]) for name in names}
        digest = fingerprint(self.mark, *content.values())
        content |= {"names": np.array(names), "format": np.array(_FORMAT)}
        with replacing(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, mark=np.array(self.mark), digest=np.array(digest), **content)
        self._last = monotonic()

    def read(self) -> dict[str, np.ndarray] | None:
        """Return the arrays, or ``None`` if there is no file.

        Raises
        ------
        ParameterError
            If the file is damaged, or belongs to a run with other data or settings.
        """
        try:
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as content:
                stored = {name: content[name] for name in content.files}
            mark, digest = str(stored["mark"]), str(stored["digest"])
            arrays = {str(name): stored[str(name)] for name in stored["names"]}
            complete = digest == fingerprint(mark, *(arrays[name] for name in sorted(arrays)))
        except FileNotFoundError:
            return None
        except Exception as failure:  # a damaged archive raises many types of exceptions
            raise self._error("a complete checkpoint, and this file is damaged") from failure
        if not complete or int(stored["format"]) != _FORMAT:
            raise self._error("a complete checkpoint, and this file is damaged")
        if mark != self.mark:
            raise self._error("of the same data and settings, and this file is of another run")
        return arrays

    def _error(self, allowed: str) -> ParameterError:
        """Return the error of a file that is rejected."""
        return ParameterError(
            f"checkpoint = {self.path} is not allowed: checkpoint must be {allowed}"
        )


def computed_once(path: Path | None, mark: str, compute: Callable[[], ArrayLike]) -> np.ndarray:
    """Return the array stored in a checkpoint; if there is none, compute and store it.

    Parameters
    ----------
    path
        The file; ``None`` stores nothing.
    mark
        Identifier of the computation, such as its :func:`fingerprint`.
    compute
        Function that returns the array.

    Raises
    ------
    ParameterError
        If the file is damaged, or belongs to another computation.
    """
    if path is None:
        return np.asarray(compute())
    checkpoint = Checkpoint(path, mark)
    arrays = checkpoint.read()
    if arrays is None:
        arrays = {"values": np.asarray(compute())}
        checkpoint.write(arrays)
    return arrays["values"]
