"""Claims of the paper in its order, one module each.

To add one: write ``simulations/claims/<id with underscores>.py`` with a module constant ``CLAIM``
and put its id in the list below. These modules import the solvers, SymPy and Matplotlib only when
a claim runs, so that listing the claims stays quick.
"""

from __future__ import annotations

from importlib import import_module

from simulations.reproduction.claim import Claim

CLAIM_IDS = (
    "figure-1b",
    "labelling-function",
    "theorem-3.1",
    "theorem-3.2",
    "figure-2",
    "figure-3",
    "diagonal",
    "lemma-4.1",
    "lemma-4.2",
    "lemma-4.3",
    "theorem-4.1",
    "events",
    "gamma-ge-rho",
    "gamma-ge-rho-boundary",
    "gamma-ge-rho-certified",
    "sigma-a-breaks-symmetry",
    "reduced-equals-full",
    "expectation-methods",
    "theorem-4.1-large-D",
    "events-large-D",
    "scaling-theory",
    "regime-of-theorem-4.1",
    "theorem-4.2",
    "figure-4",
    "realistic-tracks-idealized",
    "random-initialization",
    "encodings",
    "theorem-5.1",
    "theorem-5.2",
    "transfer-partial",
    "huang-lemma-5.1",
    "huang-lemma-5.2",
    "huang-two-phases",
    "huang-one-phase",
    "huang-theorem-4.1",
    "huang-scaling",
    "huang-pp-small",
    "huang-positional-is-not-enough",
    "huang-diversity",
    "huang-reduced-equals-full",
)


def load(claim_id: str) -> Claim:
    """Return the claim with this id."""
    name = claim_id.replace("-", "_").replace(".", "_")
    claim: Claim = import_module(f"simulations.reproduction.registry.{name}").CLAIM
    return claim


CLAIMS: tuple[Claim, ...] = tuple(map(load, CLAIM_IDS))
