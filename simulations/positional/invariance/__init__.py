"""Proofs and refutations of gamma >= rho on boxes of parameters, in ball arithmetic."""
