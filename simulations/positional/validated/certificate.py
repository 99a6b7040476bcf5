"""Certificates of tubes: all that an independent checker needs, as JSON, floats written exactly."""

import json
import math
from pathlib import Path
from typing import Any

from dynamics.core.files import replacing
from dynamics.core.provenance import provenance
from dynamics.core.tube.clocks import Descent
from dynamics.positional.validated.system import TruncatedField
from simulations.positional.validated.proof import Proof

FORMAT = "patchdyn tube 1"


def certificate(proof: Proof) -> dict[str, Any]:
    """Return a proof as plain data; every float is its shortest decimal, which reads back exactly.

    ``pieces`` hold start and end (time of the flow, steps of descent), the largest number K of
    features kept, the coefficients in powers of u in [-1, 1], the room in which the Jacobian is
    enclosed, and for each part the coordinates and the bar of the comparison. ``checked`` is the
    enclosure that a checker must confirm.
    """
    problem, tube = proof.problem, proof.tube
    pieces = zip(tube.pieces, tube.fields, tube.rooms, tube.parts)
    return {
        "format": FORMAT,
        "problem": {
            "D": problem.D, "C": problem.C, "q": problem.q, "p": problem.p, "nu": problem.nu,
            "beta": problem.beta, "tau": problem.tau, "kappa": problem.kappa,
        },
        "learning_rate": getattr(proof.clock, "learning_rate", None),
        "start": tube.start,
        "start_radius": tube.start_radius,
        "pieces": [
            {
                "start": piece.start,
                "end": piece.end,
                "K": field.K if isinstance(field, TruncatedField) else None,
                "coefficients": piece.coefficients.tolist(),
                "room": [float(x) for x in room],
                "parts": [[part.basis.tolist(), part.bar] for part in parts],
            }
            for piece, field, room, parts in pieces
        ],
        **conclusions(proof),
        "checked": {name: _room(*ends) for name, ends in proof.enclosure._asdict().items()},
        "provenance": provenance(),
    }  # fmt: skip


def _room(low: float, high: float) -> list[float]:
    """Return an interval with a radius larger by a quarter: another way rounds otherwise."""
    more = 0.125 * (high - low)
    return [low - more, high + more]


def conclusions(proof: Proof) -> dict[str, Any]:
    """Return what is claimed, as plain data: infinity (never; of association: for ever) is None."""
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
