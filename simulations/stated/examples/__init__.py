"""Theories in one file each, to read and to run: ``patchdyn theory FILE.py``."""

from pathlib import Path


def folder() -> Path:
    """Return the folder of the files."""
    return Path(__file__).parent
