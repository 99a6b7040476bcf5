"""Distinct rows of families and totals over families."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynamics.theory.rows import distinct, total

NUMBERS = st.sampled_from([-1.5, -0.0, 0.0, 0.25, 1.0, 1e300])


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*[NUMBERS] * n), min_size=1)))
def test_rows_are_distinct_and_every_family_has_its_own(families):
    table = np.array(families)
    row, rows = distinct(table.T)
    assert np.array_equal(rows[row], table)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_rows_of_objects_are_not_merged():
    table = np.array([[1, 2], [1, 2]], object)
    row, rows = distinct(table.T)
    assert row.tolist() == [0, 1]
    assert rows.tolist() == table.tolist()


@given(st.lists(st.tuples(st.lists(st.integers(-9, 9), max_size=3), st.integers(0, 3)), min_size=1))
def test_totals_by_configuration(configurations):
    values, numbers = zip(*configurations)
    first, of = (np.cumsum([0, *sizes]) for sizes in (map(len, values), numbers))
    result = total(np.array([x for summands in values for x in summands], float), first, of)
    assert result.tolist() == [sum(summands) for summands, n in configurations for _ in range(n)]
