"""A proof under way: its finished pieces on disk, so that an interrupted one goes on from there.

One line for each piece, appended and synchronized when the piece is proved. A line begins with the
SHA-256 digest of itself and all lines before it: one that is torn, or was changed, ends what is
believed, and what follows is proved anew. Floats are written as decimals that read back exactly:
the certificate is that of an uninterrupted proof.
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

_FORMAT = "patchdyn unfinished tube 1"
_DIGITS = 64


class Unfinished:
    """The file of one question: problem, clock, horizon, start, and the program that answers.

    Raises
    ------
    FileError
        If the file cannot be read or written, or is that of another question.
    """

    def __init__(self, path: Path, question: dict[str, Any]) -> None:
        self.path, self._tubes = path, dict[float, list[dict[str, Any]]]()
        header = json.dumps({"format": _FORMAT, "question": question}, allow_nan=False)
        self._seal = _sealed("", header)
        first = f"{self._seal} {header}\n".encode()
        if obstacle(path) is None and not path.exists():
            with replacing(path) as temporary:
                temporary.write_bytes(first)
            return
        try:
            found = path.read_bytes() if obstacle(path) is None else b""
            if not found.startswith(first):
                raise FileError(
                    f"{path} holds no pieces of this proof: remove it, or choose another --out"
                )
            believed = len(first) + self._read(found[len(first) :])
            os.truncate(path, believed)
        except OSError as failure:
            raise explain("use", path, failure) from failure

    def _read(self, content: bytes) -> int:
        """Take all lines that can be believed; return how many bytes they are."""
        believed = 0
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
            believed += len(line)
        return believed

    def tube(self, system: ReducedSystem, tolerance: float) -> Tube | None:
        """Return what is proved with a tolerance, None if nothing."""
        tube = Tube.at_start(system)
        for kept in self._tubes.get(tolerance, []):
            tube.pieces.append(Piece(kept["start"], kept["end"], np.array(kept["coefficients"])))
            tube.fields.append(system.truncated(kept["K"]))
            tube.parts.append([_part(*values) for values in kept["parts"]])
            tube.box_radii.append(kept["room"])
            basis, radius = kept["frame"]
            tube.frame, tube.length = Frame(np.array(basis), radius), kept["length"]
        return tube if tube.pieces else None

    def add(self, tolerance: float, tube: Tube) -> None:
        """Write the last piece of a tube."""
        piece, field, frame = tube.pieces[-1], tube.fields[-1], tube.frame
        assert isinstance(field, TruncatedField)
        assert frame is not None
        text = json.dumps(
            {
                "tolerance": tolerance, "start": piece.start, "end": piece.end,
                "coefficients": piece.coefficients.tolist(), "K": field.K,
                "room": tube.box_radii[-1], "length": tube.length,
                "parts": [[part.basis.tolist() if name == "basis" else getattr(part, name)
                           for name in Part._fields] for part in tube.parts[-1]],
                "frame": [frame.basis.tolist(), frame.radius],
            },
            allow_nan=False,
        )  # fmt: skip
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
    """Return the digest of a line and all before it."""
    return hashlib.sha256(f"{before} {text}".encode()).hexdigest()
