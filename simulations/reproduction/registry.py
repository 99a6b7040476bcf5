"""The claims of all theories, in the order of the theories and of their papers.

To add one: write its module in the folder ``claims`` of the theory, with a constant ``CLAIM``, and
put its id into ``CLAIMS`` there. A room that is no theory may hold experiments of a theory's paper
(`simulations.theories`); its claims follow those of the theory. These modules import the solvers,
SymPy and Matplotlib only when a claim runs, so that listing the claims stays quick.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from simulations import theories
from simulations.reproduction.claim import Claim


def claim_ids() -> tuple[str, ...]:
    """Return the ids of all claims."""
    return tuple(_places())


def load(claim_id: str) -> Claim:
    """Return the claim with this id."""
    theory, module = _places()[claim_id]
    claim: Claim = import_module(module).CLAIM
    return replace(claim, paper=claim.paper or theories.room(theory, "claims").PAPER)


def _places() -> dict[str, tuple[str, str]]:
    """Return claim id -> (theory of its paper, module)."""
    return {
        claim_id: (theory, f"{package}.{module}")
        for theory, package in theories.rooms_of_claims()
        for claim_id, module in import_module(package).CLAIMS.items()
    }
