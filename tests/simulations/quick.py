"""Results of quick runs, computed once for all tests."""

from functools import cache

from simulations.reproduction.claim import Context, Figure, Result
from simulations.reproduction.registry import load


@cache
def result(claim_id: str) -> Result:
    """Return the result of a quick run."""
    return load(claim_id).run(Context(quick=True))


def figures(claim_ids: tuple[str, ...]) -> list[Figure]:
    """Return the figures of quick runs."""
    return [figure for claim_id in claim_ids for figure in result(claim_id).measurement.figures]
