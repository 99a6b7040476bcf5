"""What the outcomes of a sweep depend on: the numerical code and libraries, not the plots."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulations.system import System


def stamp(theory: System | None = None) -> dict[str, str]:
    """Return versions and a hash of the code that computes; equal stamps, equal outcomes.

    The file of a theory that is stated in one is part of that code.
    """
    from dynamics.core.provenance import provenance
    from simulations.files.stamp import code_fingerprint
    from simulations.theories import folders

    versions = {key: value for key, value in provenance().items() if key != "commit"}
    code = code_fingerprint(("dynamics", "simulations/system.py", *folders()))
    own = {"theory": theory.fingerprint} if theory is not None and theory.fingerprint else {}
    return {**versions, "python": platform.python_version(), "code": code, **own}
