"""What a claim says about the proofs of a derivation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symbolic.core.proof import Proof


def all_sizes(proofs: list[Proof]) -> dict[str, int | bool]:
    """Return how many identities were decided for all sizes, and whether all of them hold."""
    general = [proof for proof in proofs if proof.all_sizes]
    return {
        "identities decided for all sizes": sum(proof.count for proof in general),
        "holds for all sizes": bool(general) and all(proof.all_zero for proof in general),
    }
