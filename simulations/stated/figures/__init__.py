"""Figures of theories that are stated in one file."""
