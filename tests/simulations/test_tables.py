"""Tables of measurements: verdicts and counts; settings of a run; rounding in sentences."""

import pandas as pd
import pytest

from simulations.reproduction.claim import Context, Measurement
from simulations.reproduction.predicates import PARTS, Column, Table, Verdict, parts
from simulations.reproduction.sentences import sentence
from tests.closeness import close
from tests.simulations.fakes import claim

LAYOUT = Table(
    ("D", "seed"),
    {"x": Column("x"), "inside": Column("inside")},
    predicates={"x is small": lambda t: t.x < 1.0},
    strict={"x is positive": lambda t: t.x > 0.0},
    judged=lambda t: t.inside,
)


def rows(*values, inside=True):
    return [{"D": 8, "seed": n, "x": x, "inside": inside} for n, x in enumerate(values)]


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (rows(0.5, 0.9), Verdict.HOLDS),
        (rows(0.5, 1.1), Verdict.FINDING),
        (rows(0.5, -0.1), Verdict.FAILS),
        (rows(1.1, -0.1), Verdict.FAILS),
        (rows(float("nan")), Verdict.FAILS),
        (rows(-0.1, 1.1, inside=False), Verdict.FINDING),  # nothing is judged
        ([*rows(0.5), {"D": 9, "seed": 0, "x": -1.0, "inside": False}], Verdict.HOLDS),
        ([], Verdict.FINDING),
    ],
)
def test_the_verdict_follows_from_the_judged_rows(data, verdict):
    assert LAYOUT.check(LAYOUT.frame(data)).verdict is verdict


def test_counts_are_those_of_judged_rows():
    checked = LAYOUT.check(LAYOUT.frame([*rows(0.5, 1.5), *rows(0.5, inside=False)[:0]]))
    assert checked.count("x is small") == "1 of 2"
    assert checked.count("x is small", seed=1) == "0 of 1"


def test_a_row_that_occurs_twice_is_rejected():
    with pytest.raises(ValueError, match=r"measured twice: \[\(8, 0\)\]"):
        LAYOUT.check(LAYOUT.frame([*rows(0.5), *rows(0.7)]))
    single = Table((), {"x": Column("x")})
    with pytest.raises(ValueError, match="measured twice"):
        single.check(single.frame([{"x": 1.0}, {"x": 2.0}]))


def test_other_columns_are_rejected():
    data = LAYOUT.frame(rows(0.5))
    for changed in (data.rename(columns={"x": "y"}), data.reset_index(), data[["inside", "x"]]):
        with pytest.raises(ValueError, match="expected index"):
            LAYOUT.check(changed)
    with pytest.raises(ValueError, match="identifiers"):
        Table((), {"no name": Column("x")})
    with pytest.raises(ValueError, match="one name each"):
        Table((), {"x": Column("x")}, {"same": lambda t: t.x > 0}, {"same": lambda t: t.x > 1})


def test_other_tables_are_rejected():
    with pytest.raises(ValueError, match=r"one: expected tables \['numbers'\], not \[\]"):
        claim("one").evaluate(Measurement({}))


def test_settings_by_mode():
    chosen = [
        Context(quick=quick, thorough=thorough).choose(quick=1, full=2, thorough=3)
        for quick, thorough in ((True, False), (False, False), (False, True))
    ]
    assert chosen == [1, 2, 3]
    assert Context(quick=False, thorough=True).choose(quick=1, full=2) == 2


def test_progress_between_two_fractions():
    fractions = []
    context = Context(quick=True, progress=fractions.append)
    assert list(context.track("ab", 0.2, 0.6)) == ["a", "b"]
    close(fractions, [0.4, 0.6], rel=1e-15)


@pytest.mark.parametrize(
    ("shown", "absent", "verdict"),
    [
        ([True, True], [False, False], Verdict.HOLDS),
        ([False, False], [True, True], Verdict.FAILS),
        ([False, True], [True, False], Verdict.HOLDS),
        ([False, False], [True, False], Verdict.HOLDS),
    ],
)
def test_a_statement_fails_if_every_part_is_absent(shown, absent, verdict):
    """Whether each part is shown is a predicate of the table of parts."""
    table = parts(pd.Series(shown), pd.Series(absent))
    assert table.iloc[0].tolist() == [sum(shown), sum(absent), 2]
    assert PARTS.check(table).verdict is verdict


@pytest.mark.parametrize(
    ("number", "field", "expected"),
    [
        (0.0651, "{x!u:.2g}", "0.066"),
        (0.0659, "{x!d:.2g}", "0.065"),
        (0.065, "{x!u:.2g} {x!d:.2g}", "0.065 0.065"),
        (1.32e-4, "{x!u:.1e}", "1.4e-04"),
        (9.99e-5, "{x!u:.1e}", "1.0e-04"),
        (1e-9, "{x!u:.0e} {x!d:.0e}", "1e-09 1e-09"),  # the double is a little more than 1e-9
        (0.1416, "{x!u:.0%} {x!d:.0%}", "15% 14%"),
        (1234567.2, "{x!u:,.0f}", "1,234,568"),
        (-0.551, "{x!u:.2f} {x!d:.2f}", "-0.55 -0.56"),
        (float("inf"), "{x!u:.2g}", "inf"),
        (0.0659, "{x:.2g} {x!r}", "0.066 0.0659"),
    ],
)
def test_bounds_in_a_sentence_are_rounded_to_the_safe_side(number, field, expected):
    assert sentence(field, x=number) == expected


def test_a_finding_rounds_its_bounds():
    result = claim("c", finding="at most {worst!u:.0e}", extra={"worst": 2.1e-12}).run(
        Context(True)
    )
    assert result.finding == "at most 3e-12"
