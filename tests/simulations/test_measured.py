"""Measured numbers: looked up by name and place, each measured once and meaning one thing."""

import pytest

from simulations.reproduction.measured import Measured, measured_at, spread
from simulations.reproduction.outcome import Outcome, Verdict


def outcome(*measured):
    return Outcome(Verdict.HOLDS, measured, None, {}, "It holds.")


FOUND = outcome(
    *measured_at({}, ("worst", "worst of all", 3.0)),
    *measured_at({"D": 64}, ("gap", "gap", 1.0, "units"), ("worst", "worst of all", 2.0)),
    *measured_at({"D": 64, "p": 5}, ("gap", "gap", 2.0, "units")),
)


def test_a_number_is_found_by_as_much_of_its_place_as_is_needed():
    assert FOUND.number("gap", p=5) == 2.0
    assert FOUND.number("gap", D=64) == 1.0  # exactly there
    assert FOUND.number("worst") == 3.0
    assert [one.value for one in FOUND.numbers("gap")] == [1.0, 2.0]


@pytest.mark.parametrize(("name", "at"), [("gap", {}), ("gap", {"D": 16}), ("hole", {})])
def test_none_or_several_are_refused(name, at):
    with pytest.raises(KeyError, match=name):
        FOUND.number(name, **at)


def test_an_interval_has_a_name_for_each_end():
    rows = spread("power", "power of D", (1.0, 0.5, 1.5), "per decade")
    assert [row[0] for row in rows] == ["power", "power_low", "power_high"]
    assert [row[2] for row in rows] == [1.0, 0.5, 1.5]
    assert {row[3] for row in rows} == {"per decade"}


def test_a_sentence_is_no_name():
    with pytest.raises(ValueError, match="is named by letters"):
        Measured("largest deviation", "largest deviation", {}, 1.0)


def test_a_number_is_measured_once():
    with pytest.raises(ValueError, match="gap was measured twice"):
        outcome(*measured_at({"D": 1}, ("gap", "gap", 1.0), ("gap", "gap", 2.0)))


@pytest.mark.parametrize("other", [("gap", "another gap", 1.0), ("gap", "gap", 1.0, "units")])
def test_a_name_means_one_thing(other):
    with pytest.raises(ValueError, match="two meanings"):
        outcome(*measured_at({"D": 1}, ("gap", "gap", 1.0)), *measured_at({"D": 2}, other))
