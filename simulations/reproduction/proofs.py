"""What a claim says about the proofs of a derivation."""

from simulations.reproduction.measured import Measured, measured_at
from simulations.reproduction.outcome import Outcome
from symbolic.core.proof import Proof


def decided(proofs: list[Proof]) -> list[Measured]:
    """Return how many identities were decided and fail, and the same for those of all sizes."""
    general = [proof for proof in proofs if proof.all_sizes]
    return measured_at(
        {},
        ("identities", "exact identities decided", sum(proof.count for proof in proofs)),
        ("failed", "exact identities that fail", sum(proof.failed for proof in proofs)),
        ("general", "identities decided for all sizes", sum(proof.count for proof in general)),
        ("general_hold", "holds for all sizes",
         bool(general) and all(proof.all_zero for proof in general)),
    )  # fmt: skip


def share_decided(outcome: Outcome) -> str:
    """Return in words how many of the identities that a claim decided are exact."""
    count, failed = outcome.number("identities"), outcome.number("failed")
    return f"{count - failed} of {count} exact identities hold"
