"""Certificates of tubes: JSON files from which an independent checker derives all statements."""

import json
import math
from pathlib import Path
from typing import Any

from dynamics.core.files import replacing
from dynamics.core.tube.clocks import Descent
from dynamics.positional.validated.system import TruncatedField
from simulations.positional.validated.box import BoxProof
from simulations.positional.validated.proof import Proof

FORMAT = "patchdyn tube 2"


def certificate(proof: Proof) -> dict[str, Any]:
    """Return the tube of a proof as plain data; the shortest decimal of a float is exact.

    A certificate contains the tube alone: the checker derives everything else. ``start`` is None
    for Parametrization 3.1. ``horizon`` and the ``end`` of a piece are times of the flow or numbers
    of steps. A piece contains the largest number K of features that is not truncated, the
    coefficients in powers of u in [-1, 1], and for each part the coordinates (``basis``) and the
    bounds (``bar``) of the comparison theorem.
    """
    problem, tube = proof.problem, proof.tube
    return {
        "format": FORMAT,
        "problem": {
            name: getattr(problem, name)
            for name in ("D", "C", "q", "p", "nu", "beta", "tau", "kappa")
        },
        "learning_rate": getattr(proof.clock, "learning_rate", None),
        "start": None if any(tube.start_radius) else tube.start,
        "horizon": proof.count,
        "pieces": [
            {
                "end": piece.end,
                "K": field.K if isinstance(field, TruncatedField) else None,
                "coefficients": piece.coefficients.tolist(),
                "parts": [[part.basis.tolist(), part.bar] for part in parts],
            }
            for piece, field, parts in zip(tube.pieces, tube.fields, tube.parts)
        ],
    }


def conclusions(proof: Proof) -> dict[str, Any]:
    """Return the statements of a proof as plain data.

    Infinite times are None: ``gap_positive_from`` if gamma > rho is not proved at the end,
    ``association_until`` if association is proved forever.
    """
    since = proof.gap_positive_from
    return {
        "proved": proof.proved,
        "solver": "gd" if isinstance(proof.clock, Descent) else "flow",
        "horizon": proof.horizon,
        "time": proof.time,
        "reason": proof.reason,
        "enclosure": {name: list(ends) for name, ends in proof.enclosure._asdict().items()},
        "gap_positive_from": since if math.isfinite(since) else None,
        "gap_negative": [list(ends) for ends in proof.gap_negative],
        "association": proof.association,
        "association_until": until if math.isfinite(until := proof.association_until) else None,
        "forever": proof.forever,
        "loss": list(proof.loss),
        "test_error": list(proof.test_error),
    }


def box_conclusions(proof: BoxProof) -> dict[str, Any]:
    """Return the statements of a proof for a box of constants as plain data.

    Those about all constants are None unless the whole box is proved; infinite times are None.
    """
    names = "enclosure gap_positive_from association association_until forever loss test_error"
    whole: dict[str, Any] = dict.fromkeys(names.split())
    if proof.proved:
        since, until = proof.gap_positive_from, proof.association_until
        whole |= {
            "enclosure": {name: list(ends) for name, ends in proof.enclosure._asdict().items()},
            "gap_positive_from": since if math.isfinite(since) else None,
            "association": proof.association,
            "association_until": until if math.isfinite(until) else None,
            "forever": proof.forever,
            "loss": list(proof.loss),
            "test_error": list(proof.test_error),
        }
    return {
        "proved": proof.proved,
        "box": {
            name: [getattr(proof.low, name), getattr(proof.high, name)] for name in proof.varied
        },
        "fraction": proof.fraction,
        "solver": "flow",
        "horizon": proof.horizon,
        **whole,
        "parts": [
            {name: list(part.ends(name)) for name in proof.varied} | conclusions(part.proof)
            for part in proof.parts
        ],
    }


def write_certificate(path: Path, proof: Proof) -> None:
    """Write the certificate of a proof to a file.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    text = json.dumps(certificate(proof), allow_nan=False, separators=(",", ":"))
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
