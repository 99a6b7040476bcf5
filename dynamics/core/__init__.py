"""Numerical tools shared by all theories: solvers, trajectories, validation, enclosures."""
