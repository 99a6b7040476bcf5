"""Certified trajectories: :func:`prove`, certificates, and their independent check."""

from simulations.positional.validated.certificate import (
    certificate,
    conclusions,
    write_certificate,
)
from simulations.positional.validated.checker import Checked, Rejected, TooLarge, check
from simulations.positional.validated.checker_text import checked_as_text
from simulations.positional.validated.page import write_page
from simulations.positional.validated.proof import Proof, prove

__all__ = [
    "Checked",
    "Proof",
    "Rejected",
    "TooLarge",
    "certificate",
    "check",
    "checked_as_text",
    "conclusions",
    "prove",
    "write_certificate",
    "write_page",
]
