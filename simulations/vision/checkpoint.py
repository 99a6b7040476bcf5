"""Checkpoints of a training run: arrays alone, never pickled, and the run they belong to."""

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.core.checks import require
from dynamics.core.files import replacing


def fingerprint(*what: Any) -> str:
    """Return the digest of settings and data, to which a checkpoint belongs."""
    digest = hashlib.sha256()
    for one in what:
        digest.update(one.tobytes() if isinstance(one, np.ndarray) else repr(one).encode())
        digest.update(b"\0")
    return digest.hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """A file with the state of a run, and the fingerprint of the run."""

    path: Path
    mark: str

    def write(self, leaves: Sequence[Any], losses: np.ndarray, done: int) -> None:
        """Store the state after ``done`` steps."""
        arrays: dict[str, Any] = {
            f"leaf_{number}": np.asarray(leaf) for number, leaf in enumerate(leaves)
        }
        with replacing(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, mark=self.mark, done=done, losses=losses, **arrays)

    def read(self, like: Sequence[Any]) -> tuple[list[np.ndarray], np.ndarray, int] | None:
        """Return leaves, losses and steps done, ``None`` if there is no file.

        Raises
        ------
        ParameterError
            If the file is damaged or of another run.
        """
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                mark, done = str(stored["mark"]), int(stored["done"])
                losses = stored["losses"]
                leaves = [stored[f"leaf_{number}"] for number in range(len(like))]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            mark, leaves, losses, done = "", [], np.zeros(0), 0
        require(bool(mark), "checkpoint", self.path, "a complete checkpoint")
        require(mark == self.mark, "checkpoint", self.path, "one of this run")
        return leaves, losses, done

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)
