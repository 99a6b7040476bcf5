"""Certified trajectories: :func:`prove`, what is claimed as data, and certificates."""

from simulations.positional.validated.certificate import conclusions, write_certificate
from simulations.positional.validated.proof import Proof, prove

__all__ = ["Proof", "conclusions", "prove", "write_certificate"]
