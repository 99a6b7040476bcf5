"""Deciding identities, proofs, and sums over symbolic sizes. Knows no paper."""
