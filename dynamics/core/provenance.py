"""Provenance of results: package version, commit and versions of the numerical libraries."""

import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

#: The folder that contains the packages, in a checkout or in an installation.
ROOT = Path(__file__).resolve().parents[2]


@cache
def provenance() -> dict[str, str]:
    """Return a mapping to the package version, the commit (or "") and library versions."""
    try:
        own = version("patchdyn")
    except PackageNotFoundError:
        own = "unknown"
    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"patchdyn": own, "commit": _commit(), **libraries}


def _commit() -> str:
    """Return the commit of a checkout, with "-dirty" if it is modified; else ""."""
    if not (ROOT / ".git").exists():
        return ""
    try:
        result = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()
