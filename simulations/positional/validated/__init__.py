"""Proofs about whole trajectories: what is enclosed, what follows, and certificates of it."""
