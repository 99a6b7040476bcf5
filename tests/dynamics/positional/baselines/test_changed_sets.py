"""Attention to partly changed sets: exact and sampled errors, linear in the unchanged fraction."""

import numpy as np
import pytest

from dynamics import Problem
from dynamics.core.errors import ParameterError
from dynamics.positional.baselines.changed_sets import changed_error, changed_order, unchanged_error
from dynamics.positional.baselines.explicit_transformer import block_error, block_scores
from dynamics.positional.samples import HeldOut
from tests.closeness import close

PROBLEM = Problem(D=32, C=4, q=0.25, nu=0.1, output_scale=1.0)
ALPHA = 1.3


def test_unchanged_error_equals_block_error():
    error = unchanged_error(PROBLEM, ALPHA)
    exact = block_error(PROBLEM, ALPHA).label_error
    close(error.wrong + error.ties, exact, rel=1e-12)


@pytest.mark.parametrize("unchanged", [0, 2, 4])
def test_error_is_linear_in_the_fraction_of_unchanged_sets(unchanged):
    rng = np.random.default_rng(unchanged)
    order = changed_order(PROBLEM, unchanged, rng)
    A = block_scores(PROBLEM)[np.ix_(order, order)]
    w = np.eye(1, PROBLEM.dimension)[0]
    sampled = HeldOut(PROBLEM, 60_000, 3).error(A, ALPHA * w)
    share = unchanged / PROBLEM.L
    right, changed = unchanged_error(PROBLEM, ALPHA), changed_error(PROBLEM, ALPHA)
    for exact, estimate in (
        (
            share * (right.wrong + right.ties) + (1 - share) * (changed.wrong + changed.ties),
            sampled.error,
        ),
        (share * right.ties + (1 - share) * changed.ties, sampled.ties),
    ):
        assert estimate == pytest.approx(exact, abs=4 * np.sqrt(exact / 60_000))
    assert changed.coin > 3 * right.coin


def test_changed_sets_take_their_patches_from_different_sets():
    for unchanged in (0, 3, 4, 8):
        order = changed_order(PROBLEM, unchanged, np.random.default_rng(unchanged))
        assert sorted(order) == list(range(32))
        owners = [len(set(row.tolist())) for row in (order // 4).reshape(8, 4)]
        assert sorted(owners) == [1] * unchanged + [4] * (8 - unchanged)


def test_too_few_changed_sets_raise():
    with pytest.raises(ParameterError, match="unchanged = 6"):
        changed_order(PROBLEM, 6, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="L = 2"):
        changed_error(Problem(D=8, C=4, q=0.3), 1.0)
