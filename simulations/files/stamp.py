"""What a result depends on besides its parameters: code, libraries, interpreter."""

import hashlib
import platform
from functools import cache
from importlib.metadata import version

from dynamics.core.provenance import ROOT, provenance

_PACKAGES = ("symbolic", "dynamics", "simulations")


def stamp(mode: str, seed: int = 0) -> dict[str, str]:
    """Return version, commit, code, libraries, mode and seed; equal stamps, equal results."""
    libraries = {name: version(name) for name in ("sympy", "xarray", "matplotlib")}
    return {
        **provenance(),
        **libraries,
        "python": platform.python_version(),
        "code": code_fingerprint(),
        "mode": mode,
        "seed": str(seed),
    }


@cache
def code_fingerprint(parts: tuple[str, ...] = _PACKAGES) -> str:
    """Return a short hash of the installed source, which also tells uncommitted changes apart.

    ``parts`` are folders, or single files, below the folder that holds the packages.
    """
    digest = hashlib.sha256()
    for part in parts:
        whole = ROOT / part
        files = [whole] if whole.is_file() else sorted(whole.rglob("*.py"))
        if not files:
            raise FileNotFoundError(f"{part} is no part of the source")
        for path in files:
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
