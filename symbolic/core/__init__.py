"""Exact decisions of identities, proofs, sums of symbolic length, and emitted source code."""
