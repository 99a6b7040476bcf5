"""Where a result comes from: version, commit and the versions of the numerical libraries."""

import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

#: The folder that holds the packages: of a checkout, or of an installation.
ROOT = Path(__file__).resolve().parents[2]


@cache
def provenance() -> dict[str, str]:
    """Return package version, commit (empty outside a checkout) and library versions."""
    try:
        own = version("patchdyn")
    except PackageNotFoundError:
        own = "unknown"
    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"patchdyn": own, "commit": _commit(), **libraries}


def _commit() -> str:
    if not (ROOT / ".git").exists():
        return ""
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()
