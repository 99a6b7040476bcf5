"""What a result depends on besides its parameters: code, libraries, interpreter."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("symbolic", "dynamics", "simulations")


def stamp(mode: str) -> dict[str, str]:
    """Return version, commit, code, library versions and mode; equal stamps, equal results."""
    from dynamics.core.provenance import provenance

    libraries = {name: version(name) for name in ("sympy", "xarray", "matplotlib")}
    return {
        **provenance(),
        **libraries,
        "python": platform.python_version(),
        "code": code_fingerprint(),
        "mode": mode,
    }


@cache
def code_fingerprint(packages: tuple[str, ...] = _PACKAGES) -> str:
    """Return a short hash of the installed source, which also tells uncommitted changes apart."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
