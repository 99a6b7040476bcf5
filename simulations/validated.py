"""Certified trajectories: :func:`prove`, certificates, and their independent check."""

from simulations.positional.validated.association_map import PROVED, Axis, prove_map
from simulations.positional.validated.box import BoxProof, prove_box
from simulations.positional.validated.certificate import (
    box_conclusions,
    certificate,
    conclusions,
    write_certificate,
)
from simulations.positional.validated.checker import Checked, Rejected, TooLarge, check
from simulations.positional.validated.checker_text import checked_as_text
from simulations.positional.validated.page import installed_pyodide, write_page
from simulations.positional.validated.proof import Proof, prove
from simulations.positional.validated.region import AssociationProof, prove_association

__all__ = [
    "PROVED",
    "AssociationProof",
    "Axis",
    "BoxProof",
    "Checked",
    "Proof",
    "Rejected",
    "TooLarge",
    "box_conclusions",
    "certificate",
    "check",
    "checked_as_text",
    "conclusions",
    "installed_pyodide",
    "prove",
    "prove_association",
    "prove_box",
    "prove_map",
    "write_certificate",
    "write_page",
]
