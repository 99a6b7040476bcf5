"""Stamp of a result: versions of code, libraries and interpreter."""

import hashlib
import platform
from functools import cache
from importlib.metadata import version

from dynamics.core.provenance import ROOT, provenance

_PACKAGES = ("symbolic", "dynamics", "simulations")


def stamp(mode: str, seed: int = 0) -> dict[str, str]:
    """Return the versions that a report depends on; reports with equal stamps have equal results.

    Parameters
    ----------
    mode
        ``"quick"``, ``"full"`` or ``"thorough"``.
    seed
        Root seed.
    """
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
    """Return a hash of the installed source, 12 characters.

    Parameters
    ----------
    parts
        Folders or files, relative to the folder of the packages.
    """
    digest = hashlib.sha256()
    for part in parts:
        whole = ROOT / part
        files = [whole] if whole.is_file() else sorted(whole.rglob("*.py"))
        if not files:
            raise FileNotFoundError(f"{part} is not part of the source")
        for path in files:
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
