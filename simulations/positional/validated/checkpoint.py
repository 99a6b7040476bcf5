"""Checkpoints of proofs: the finished pieces of a tube, from which an interrupted proof resumes.

The file has one line for each piece, appended and synchronized when the piece is proved. Each line
begins with the SHA-256 digest of itself and all lines before it. A truncated or altered line and
all lines after it are discarded and proved again. Floats are written as decimals that read back
exactly, so that a resumed proof has the same certificate as an uninterrupted one.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.core.files import FileError, explain, obstacle, replacing
from dynamics.core.tube.piece import Frame, Part, Piece
from dynamics.core.tube.tube import Tube
from dynamics.positional.validated.system import ReducedSystem, TruncatedField

_FORMAT = "patchdyn unfinished tube 2"
_DIGITS = 64


class ProofCheckpoint:
    """Checkpoint file of one proof.

    Parameters
    ----------
    path
        The file; it is created if it does not exist.
    identity
        Everything that the pieces depend on: problem, clock, horizon, start, and the program.

    Raises
    ------
    FileError
        If the file cannot be read or written, or belongs to another proof.
    """

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path, self._tubes = path, dict[float, list[dict[str, Any]]]()
        header = json.dumps({"format": _FORMAT, "question": identity}, allow_nan=False)
        self._seal = _sealed("", header)
        first = f"{self._seal} {header}\n".encode()
        if obstacle(path) is None and not path.exists():
            with replacing(path) as temporary:
                temporary.write_bytes(first)
            return
        try:
            content = path.read_bytes() if obstacle(path) is None else b""
            if not content.startswith(first):
                raise FileError(
                    f"{path} contains no pieces of this proof: remove it, or choose another --out"
                )
            valid = len(first) + self._read(content[len(first) :])
            os.truncate(path, valid)
        except OSError as failure:
            raise explain("use", path, failure) from failure

    def _read(self, content: bytes) -> int:
        """Read all valid lines; return their number of bytes."""
        valid = 0
        for line in content.splitlines(keepends=True):
            seal, text = line[:_DIGITS], line[_DIGITS + 1 :].rstrip(b"\n")
            if (
                not line.endswith(b"\n")
                or seal != _sealed(self._seal, text.decode(errors="replace")).encode()
            ):
                break
            piece = json.loads(text)
            self._tubes.setdefault(piece["tolerance"], []).append(piece)
            self._seal = seal.decode()
            valid += len(line)
        return valid

    def tube(self, system: ReducedSystem, tolerance: float) -> Tube | None:
        """Return the stored part of the tube of a tolerance; None if nothing is stored."""
        tube = Tube.at_start(system)
        for row in self._tubes.get(tolerance, []):
            tube.pieces.append(Piece(row["start"], row["end"], np.array(row["coefficients"])))
            tube.fields.append(system.truncated(row["K"]))
            tube.parts.append([_part(*values) for values in row["parts"]])
            tube.box_radii.append(row["box_radius"])
            basis, radius = row["frame"]
            tube.frame, tube.length = Frame(np.array(basis), radius), row["length"]
        return tube if tube.pieces else None

    def add(self, tolerance: float, tube: Tube) -> None:
        """Append the last piece of a tube; raise FileError if it cannot be written."""
        piece, field, frame = tube.pieces[-1], tube.fields[-1], tube.frame
        assert isinstance(field, TruncatedField)
        assert frame is not None
        parts = [list(part._replace(basis=part.basis.tolist())) for part in tube.parts[-1]]
        text = json.dumps(
            {
                "tolerance": tolerance,
                "start": piece.start,
                "end": piece.end,
                "coefficients": piece.coefficients.tolist(),
                "K": field.K,
                "box_radius": tube.box_radii[-1],
                "length": tube.length,
                "parts": parts,
                "frame": [frame.basis.tolist(), frame.radius],
            },
            allow_nan=False,
        )
        self._seal = _sealed(self._seal, text)
        try:
            with self.path.open("ab") as file:
                file.write(f"{self._seal} {text}\n".encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as failure:
            raise explain("write", self.path, failure) from failure


def _part(start: float, basis: Any, bar: Any, reach: Any, value: Any, rate: Any) -> Part:
    return Part(start, np.array(basis), bar, reach, tuple(value), tuple(rate))


def _sealed(before: str, text: str) -> str:
    """Return the digest of a line and all lines before it, given the digest of the latter."""
    return hashlib.sha256(f"{before} {text}".encode()).hexdigest()
