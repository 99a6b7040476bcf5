"""`patchdyn falsify --certify`: the certificate of gamma >= rho on a box, as data and as text."""

from collections.abc import Callable
from typing import Any

from dynamics import ParameterError
from simulations.falsify import parse
from simulations.positional.invariance.box import VARIED, read_box
from simulations.positional.invariance.certified import Certificate, certify, population_drift

ONLY = "gamma >= rho"


def answer(
    conjecture: str, box: str, precision: int, progress: Callable[[float], None] | None
) -> tuple[dict[str, Any], str]:
    """Prove or refute the conjecture on a box; return the certificate as data and as text.

    Raises
    ------
    ParameterError
        If the conjecture is another one.
    """
    parse(conjecture, {"gamma", "rho"})
    if "".join(conjecture.split()) not in ("gamma>=rho", "rho<=gamma"):
        raise ParameterError(
            f"CONJECTURE = {conjecture!r} is not allowed with --certify: only {ONLY!r} is"
        )
    if not box:
        raise ParameterError(
            "--certify needs a --box, such as --box 'D=16, C=4, qD=0..2, alpha=0..0.2'"
        )
    certificate = certify(read_box(box), precision=precision, progress=progress)
    drift = population_drift(certificate.witness) if certificate.witness else None
    return _record(certificate, drift), _text(certificate, drift)


def _text(certificate: Certificate, drift: tuple[float, float] | None) -> str:
    lines = [certificate.sentence]
    if drift is not None:
        lines.append(
            f"  population gradient there: d(gamma - rho)/dt = {drift[0]:.6g} +- {drift[1]:.1g}"
        )
    lines.append(f"  boxes examined: {certificate.cells}, precision {certificate.precision} bits")
    return "\n".join(lines)


def _record(certificate: Certificate, drift: tuple[float, float] | None) -> dict[str, Any]:
    witness = certificate.witness
    return {
        "answer": certificate.answer,
        "sentence": certificate.sentence,
        "box": {name: list(map(float, certificate.box.ends(name))) for name in VARIED}
        | {name: getattr(certificate.box, name) for name in ("D", "C", "p")},
        "box, exactly": certificate.box.describe(),
        "proved share": certificate.share,
        "boxes examined": certificate.cells,
        "precision": certificate.precision,
        "witness": witness
        and {
            "problem": witness.problem,
            "alpha": float(witness.alpha),
            "x": float(witness.x),
            "exactly": witness.describe(),
        },
        "population drift": drift and {"value": drift[0], "bound": drift[1]},
    }
