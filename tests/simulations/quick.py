"""Quick outcomes of claims, measured once for the tests that look at them."""

from functools import cache

from simulations.claim import Context, Figure, Outcome
from simulations.claims import load


@cache
def outcome(claim_id: str) -> Outcome:
    return load(claim_id).run(Context(quick=True))


def figures(claim_ids: tuple[str, ...]) -> list[Figure]:
    return [figure for claim_id in claim_ids for figure in outcome(claim_id).figures]
