"""Figures of the toy theory."""
