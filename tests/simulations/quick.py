"""Quick outcomes of claims, measured once for the tests that look at them."""

import math
import re
from dataclasses import replace
from functools import cache

from simulations.files.as_json import plain
from simulations.reproduction.claim import FINDING, Context, Figure, Result
from simulations.reproduction.claim import Claim as TableClaim
from simulations.reproduction.measured import Measured
from simulations.reproduction.outcome import Claim, Outcome
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import load


@cache
def outcome(claim_id: str) -> Outcome:
    claim = load(claim_id)
    found = claim.run(Context(quick=True))
    assert_told(claim, found)
    return found


def is_converted(claim_id: str) -> bool:
    """Return whether a claim has tables with predicates (tests.simulations.test_claim_tables)."""
    return isinstance(load(claim_id), TableClaim)


def verdict(claim_id: str) -> Verdict:
    return (result if is_converted(claim_id) else outcome)(claim_id).verdict


def figures(claim_ids: tuple[str, ...]) -> list[Figure]:
    return [figure for claim_id in claim_ids for figure in _figures(claim_id)]


def _figures(claim_id: str) -> tuple[Figure, ...]:
    if is_converted(claim_id):
        return result(claim_id).measured.figures
    return outcome(claim_id).figures


def assert_told(claim: Claim, found: Outcome) -> None:
    """Assert that finding and headline are told in short, and are told of the measured numbers."""
    assert claim.finding is not None
    assert claim.headline is not None
    words, one = claim.finding(found), claim.headline.of(found)
    assert re.fullmatch(rf".{{20,{FINDING - 1}}}\.", words), f"{len(words)}: {words}"
    assert re.search(r"\d", words)
    assert not re.search(r"\b(nan|inf|None|True|False)\b", words), words
    assert any(one is other for other in found.measured)
    assert isinstance(one.value, int | float)
    assert math.isfinite(one.value)
    assert not re.match("the same|of these|its ", one.label), one.label  # read on its own
    others = [_other(each) for each in found.measured]
    assert claim.finding(replace(found, measured=others)) != words


def _other(one: Measured) -> Measured:
    """Return a number that is not what was measured."""
    if isinstance(one.value, bool):
        return replace(one, value=not one.value)
    return replace(one, value="other" if isinstance(one.value, str) else 2 * one.value + 3)


def assert_complete(claim_id: str) -> None:
    """Assert that a claim says all that the report shows, in numbers that can be stored."""
    if is_converted(claim_id):
        return
    claim, found = load(claim_id), outcome(claim_id)
    assert claim.statement.endswith(".")
    assert claim.method.endswith(".")
    assert claim.assumptions
    assert claim.quick_note
    assert found.summary.endswith(".")
    assert len(found.measured) >= 3
    for one in found.measured:
        assert one.label
        for value in (one.value, *one.at.values()):
            assert isinstance(value, bool | int | float | str)
            assert not isinstance(value, float) or math.isfinite(value)
    assert plain(found.parameters)


@cache
def result(claim_id: str) -> Result:
    """Return the result of a quick run."""
    return load(claim_id).run(Context(quick=True))
