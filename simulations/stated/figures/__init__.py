"""Figures of the claims about theory files."""
