"""The claims of all theories, in the order of the theories and of their papers.

To add a claim, write its module in the folder ``claims`` of the theory, with a constant ``CLAIM``,
and add its id to ``CLAIMS`` there. `texts` reads the committed snapshot, so that listing the claims
imports no solver.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any

from simulations import theories
from simulations.reproduction import snapshot
from simulations.reproduction.claim import Claim, Paper


def claim_ids(extra: str | None = None) -> tuple[str, ...]:
    """Return the ids of all claims, or of those that need an optional extra (empty: none)."""
    return tuple(
        claim_id
        for _, package in _packages()
        if extra is None or getattr(package, "EXTRA", "") == extra
        for claim_id in package.CLAIMS
    )


def load(claim_id: str) -> Claim:
    """Return the claim with this id, and import its solvers."""
    for theory, package in _packages():
        if claim_id in package.CLAIMS:
            module = f"{package.__name__}.{package.CLAIMS[claim_id]}"
            paper = _paper(theory, package, claim_id)
            claim: Claim = import_module(module).CLAIM
            return replace(claim, paper=paper, module=module)
    raise KeyError(claim_id)


def texts(claim_id: str) -> Mapping[str, Any]:
    """Return the texts of a claim in the snapshot, and the title of its paper."""
    for theory, package in _packages():
        if claim_id in package.CLAIMS:
            stored = snapshot.read().get(claim_id, {}).get("texts", {})
            paper = _paper(theory, package, claim_id)
            return {"claim": claim_id, **stored, "title": paper.title, "paper": paper.name}
    raise KeyError(claim_id)


def _packages() -> Iterator[tuple[str, ModuleType]]:
    for theory, name in theories.packages_of_claims():
        yield theory, import_module(name)


def _paper(theory: str, package: ModuleType, claim_id: str) -> Paper:
    paper: Paper = (
        theories.submodule(theory, "claims").PAPER if theory else package.PAPERS[claim_id]
    )
    return paper
