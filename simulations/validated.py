"""Certified trajectories: :func:`prove`, what is claimed as data, certificates, and their check."""

from simulations.positional.validated.certificate import conclusions, write_certificate
from simulations.positional.validated.checker import Rejected, check
from simulations.positional.validated.proof import Proof, prove

__all__ = ["Proof", "Rejected", "check", "conclusions", "prove", "write_certificate"]
