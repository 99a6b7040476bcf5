"""Derivations of the toy theory."""
