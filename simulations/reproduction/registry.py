"""The claims of all theories, in the order of the theories and of their papers.

To add one: write its module in the folder ``claims`` of the theory, with a constant ``CLAIM``, and
put its id into ``CLAIMS`` there. A room that is no theory may hold experiments of a theory's paper
(`simulations.theories`); its claims follow those of the theory. What a claim says stands in its
module as literals and is read from the source, so that listing the claims imports no solver.
"""

import ast
from dataclasses import fields, replace
from importlib import import_module
from importlib.resources import files

from simulations import theories
from simulations.reproduction.claim import Claim, Paper, Words


def claim_ids(extra: str | None = None) -> tuple[str, ...]:
    """Return the ids of all claims, or of those that need an optional extra (empty: none)."""
    places = _places()
    return tuple(
        claim_id
        for claim_id, (_, package, _) in places.items()
        if extra is None or getattr(import_module(package), "EXTRA", "") == extra
    )


def load(claim_id: str) -> Claim:
    """Return the claim with this id; what it measures with is imported."""
    paper, package, module = _places()[claim_id]
    claim: Claim = import_module(f"{package}.{module}").CLAIM
    return replace(claim, paper=paper)


def words(claim_id: str) -> Words:
    """Return what the claim with this id says; its module is read, not imported."""
    paper, package, module = _places()[claim_id]
    source = (files(package) / f"{module}.py").read_text("utf-8")
    claim = next(
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if ast.unparse(node.targets[0]) == "CLAIM"
    )
    names = {field.name for field in fields(Words)}
    said = {word.arg: ast.literal_eval(word.value) for word in claim.keywords if word.arg in names}
    return Words(**said, paper=paper)


def _places() -> dict[str, tuple[Paper, str, str]]:
    """Return claim id -> (its paper, package, module)."""
    found = {}
    for theory, package in theories.rooms_of_claims():
        room = import_module(package)
        for claim_id, module in room.CLAIMS.items():
            paper = theories.room(theory, "claims").PAPER if theory else room.PAPERS[claim_id]
            found[claim_id] = paper, package, module
    return found
