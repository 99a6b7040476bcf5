"""Rigorous enclosures of whole trajectories, their consequences, and certificates."""
