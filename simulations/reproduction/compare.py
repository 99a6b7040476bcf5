"""Two reports side by side: which verdicts changed, and which numbers by more than they may.

A number may change by as much as it is uncertain:

* where its interval was measured (``NAME_low``, ``NAME_high`` beside ``NAME``), by as much as
  leaves each of the two inside the interval of the other; intervals alone may move while they
  overlap;
* else by a share of its size: that of its column where it is larger, and in addition by the
  absolute change that its column allows, or by the tolerance of its claim where that is smaller
  than the share: there the claim allows rounding alone.

Wall times (unit ``s``) may be anything.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Relative change of a number that counts as none.
SHARE = 1e-6
_LOW, _HIGH = "_low", "_high"
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """What is not in one report as it is in the other.

    Attributes
    ----------
    claim, what
        Whose, and which: ``"verdict"``, ``"claim"`` (in one report only) or the name of a number.
    label, at, unit
        What people read of a number, and where it was measured.
    old, new
        In either report; ``None`` where there is nothing.
    """

    claim: str
    what: str
    old: Any
    new: Any
    label: str = ""
    at: Mapping[str, Any] | None = None
    unit: str = ""


def compare(
    old: Mapping[str, Record], new: Mapping[str, Record], share: float = SHARE
) -> list[Change]:
    """Return what changed from one report's records to another's, claim by claim.

    A claim that could not be run has the verdict ``"error"``.
    """
    changes: list[Change] = []
    for claim in dict.fromkeys([*old, *new]):
        if claim not in old or claim not in new:
            changes.append(Change(claim, "claim", _verdict(old, claim), _verdict(new, claim)))
            continue
        verdicts = _verdict(old, claim), _verdict(new, claim)
        if verdicts[0] != verdicts[1]:
            changes.append(Change(claim, "verdict", *verdicts))
        if "measured" in old[claim] and "measured" in new[claim]:
            changes += _numbers(claim, old[claim], new[claim], share)
    return changes


def _verdict(records: Mapping[str, Record], claim: str) -> str | None:
    record = records.get(claim)
    return None if record is None else record.get("verdict", "error")


def _numbers(claim: str, old: Record, new: Record, share: float) -> Iterator[Change]:
    before, after = _by_place(old.get("measured", ())), _by_place(new.get("measured", ()))
    tolerances = [record.get("tolerance") for record in (old, new)]
    rounding = min((t for t in tolerances if t is not None and 0.0 < t <= share), default=0.0)
    for place in dict.fromkeys([*before, *after]):
        here, there = before.get(place, {}), after.get(place, {})
        for name in dict.fromkeys([*here, *there]):
            ends = _is_end(name, here) and _is_end(name, there)
            if ends and (not name.endswith(_LOW) or name.removesuffix(_LOW) in here):
                continue  # told by its number, or by its lower end
            one = here.get(name) or there[name]
            if one["unit"] != "s" and not _agree(name, here, there, share, rounding):
                was, now = (side.get(name, {}).get("value") for side in (here, there))
                yield Change(claim, name, was, now, one["label"], one["at"], one["unit"])


Place = dict[str, Mapping[str, Any]]


def _by_place(measured: Sequence[Mapping[str, Any]]) -> dict[str, Place]:
    """Return the numbers of a record by place and name."""
    found: dict[str, Place] = {}
    for one in measured:
        found.setdefault(json.dumps(one["at"], sort_keys=True), {})[one["name"]] = one
    return found


def _is_end(name: str, place: Place) -> bool:
    """Tell whether a name is an end of an interval whose other end is there too."""
    stem = name.removesuffix(_LOW).removesuffix(_HIGH)
    return stem != name and all(_is_number(place.get(stem + end)) for end in (_LOW, _HIGH))


def _agree(name: str, here: Place, there: Place, share: float, rounding: float) -> bool:
    """Tell whether a number is in both reports what it may be."""
    if name not in here or name not in there:
        return False
    stem = name.removesuffix(_LOW)
    intervals = [_interval(stem, side) for side in (here, there)]
    allowed = here[name].get("rtol", 0.0)
    share = math.inf if allowed is None else max(share, allowed)  # JSON has no infinity
    rounding = max(rounding, here[name].get("atol") or 0.0)
    if None in intervals or not (_is_number(here[name]) and _is_number(there[name])):
        return _close(here[name].get("value"), there[name].get("value"), share, rounding)
    (low, high), (other_low, other_high) = intervals  # type: ignore[misc]
    if stem != name:  # an interval without a number inside
        return bool(max(low, other_low) <= min(high, other_high)) or _close(
            low, other_low, share, rounding
        )
    before, after = here[name]["value"], there[name]["value"]
    inside = other_low <= before <= other_high and low <= after <= high
    return bool(inside) or _close(before, after, share, rounding)


def _interval(stem: str, place: Place) -> tuple[float, float] | None:
    if not _is_end(stem + _LOW, place):
        return None
    return place[stem + _LOW]["value"], place[stem + _HIGH]["value"]


def _is_number(one: Mapping[str, Any] | None) -> bool:
    value = None if one is None else one.get("value")
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(before: Any, after: Any, share: float, rounding: float) -> bool:
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (before, after))
    if not numbers:
        return bool(before == after)
    return math.isclose(before, after, rel_tol=share, abs_tol=rounding)
