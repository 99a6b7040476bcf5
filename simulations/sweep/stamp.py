"""What the outcomes of a sweep depend on: the numerical code and libraries, not the plots."""

from __future__ import annotations

import platform


def stamp() -> dict[str, str]:
    """Return versions and a hash of the code that computes; equal stamps, equal outcomes."""
    from dynamics.core.provenance import provenance
    from simulations.files.stamp import code_fingerprint
    from simulations.theories import folders

    versions = {key: value for key, value in provenance().items() if key != "commit"}
    code = code_fingerprint(("dynamics", "simulations/theory.py", *folders()))
    return {**versions, "python": platform.python_version(), "code": code}
