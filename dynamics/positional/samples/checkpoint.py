"""The saved state of a run: written whole or not at all, and refused unless whole and its own."""

import hashlib
import json
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.files import replacing

_FORMAT = 1


def fingerprint(settings: Any, *arrays: np.ndarray) -> str:
    """Return the digest of the settings and data of a run, to which a checkpoint belongs."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


class Checkpoint:
    """A file of arrays (npz, nothing executable in it) that belongs to one run."""

    def __init__(self, path: Path, mark: str, seconds: float = 30.0) -> None:
        self.path, self.mark, self.seconds = path, mark, seconds
        self._last = monotonic()

    def due(self) -> bool:
        """Return whether so many seconds have passed since the last writing."""
        return monotonic() - self._last >= self.seconds

    def write(self, arrays: dict[str, np.ndarray]) -> None:
        """Replace the file.

        Raises
        ------
        FileError
            If the file cannot be written.
        """
        content: dict[str, Any] = {
            **arrays,
            "names": np.array(sorted(arrays)),
            "format": np.array(_FORMAT),
        }
        digest = fingerprint(self.mark, *(arrays[name] for name in sorted(arrays)))
        with replacing(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, mark=np.array(self.mark), digest=np.array(digest), **content)
        self._last = monotonic()

    def read(self) -> dict[str, np.ndarray] | None:
        """Return the arrays, ``None`` if there is no file.

        Raises
        ------
        ParameterError
            The file is damaged, or belongs to a run with other data or settings.
        """
        try:
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as content:
                held = {name: content[name] for name in content.files}
            mark, digest = str(held["mark"]), str(held["digest"])
            arrays = {str(name): held[str(name)] for name in held["names"]}
            whole = digest == fingerprint(mark, *(arrays[name] for name in sorted(arrays)))
        except FileNotFoundError:
            return None
        except Exception as failure:  # a damaged archive fails in as many ways as there are bytes
            raise self._refusal("a complete checkpoint, and this file is damaged") from failure
        if not whole or int(held["format"]) != _FORMAT:
            raise self._refusal("a complete checkpoint, and this file is damaged")
        if mark != self.mark:
            raise self._refusal("of the same data and settings, and this file is of another run")
        return arrays

    def _refusal(self, allowed: str) -> ParameterError:
        return ParameterError(
            f"checkpoint = {self.path} is not allowed: checkpoint must be {allowed}"
        )
