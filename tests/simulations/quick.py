"""Quick outcomes of claims, measured once for the tests that look at them."""

import math
from functools import cache

from simulations.files.as_json import plain
from simulations.reproduction.claim import Context, Figure, Outcome
from simulations.reproduction.registry import load


@cache
def outcome(claim_id: str) -> Outcome:
    return load(claim_id).run(Context(quick=True))


def figures(claim_ids: tuple[str, ...]) -> list[Figure]:
    return [figure for claim_id in claim_ids for figure in outcome(claim_id).figures]


def assert_complete(claim_id: str) -> None:
    """Assert that a claim says all that the report shows, in numbers that can be stored."""
    claim, found = load(claim_id), outcome(claim_id)
    assert claim.statement.endswith(".")
    assert claim.measures.endswith(".")
    assert claim.depends
    assert claim.quick_note
    assert found.summary.endswith(".")
    assert len(found.measured) >= 3
    for one in found.measured:
        assert one.label
        for value in (one.value, *one.at.values()):
            assert isinstance(value, bool | int | float | str)
            assert not isinstance(value, float) or math.isfinite(value)
    assert plain(found.parameters)
