"""Certificates of tubes: all that an independent checker needs, as JSON, floats written exactly."""

import json
import math
from pathlib import Path
from typing import Any

from dynamics.core.files import replacing
from dynamics.core.tube.clocks import Descent
from dynamics.positional.validated.system import TruncatedField
from simulations.positional.validated.proof import Proof

FORMAT = "patchdyn tube 2"


def certificate(proof: Proof) -> dict[str, Any]:
    """Return the tube of a proof as plain data; every float is exact in its shortest decimal.

    Nothing that a checker does not verify is in it: what follows from the tube, it derives.
    ``start`` is None for that of Parametrization 3.1. ``horizon`` and the ``end`` of a piece are
    times of the flow or steps of descent. A piece holds the largest number K of features kept, the
    coefficients in powers of u in [-1, 1], and for each part the coordinates and the bar of the
    comparison.
    """
    problem, tube = proof.problem, proof.tube
    return {
        "format": FORMAT,
        "problem": {
            "D": problem.D, "C": problem.C, "q": problem.q, "p": problem.p, "nu": problem.nu,
            "beta": problem.beta, "tau": problem.tau, "kappa": problem.kappa,
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
    }  # fmt: skip


def conclusions(proof: Proof) -> dict[str, Any]:
    """Return what the prover states, as plain data, without certificate.

    Infinity (never; of association: for ever) is None.
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


def write_certificate(path: Path, proof: Proof) -> None:
    """Write a certificate; FileError if it cannot be written."""
    text = json.dumps(certificate(proof), allow_nan=False, separators=(",", ":"))
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
