"""Enumeration of small sizes, also for many sizes."""

from itertools import islice, product

import numpy as np
import pytest

from simulations.cli import main
from simulations.stated.sizes import by_sum, fewest_minima_first

NINE = """\
sizes = [Size(f"n{i}") for i in range(9)]
v = [Tensor(f"v{i}", Exchangeable(f"k{i}", size), start=1) for i, size in enumerate(sizes)]
def loss(v0, v1, v2, v3, v4, v5, v6, v7, v8):
    total = 0
    for i, x in enumerate((v0, v1, v2, v3, v4, v5, v6, v7, v8)):
        total = total + (i + 1) * (x["i"] ** 2).sum("i")
    return total
THEORY = Theory("nine", "none", sizes=sizes, parameters=v, loss=loss)
"""


def test_rows_are_a_sorted_product():
    rng = np.random.default_rng(0)
    for _ in range(20):
        ranges = [
            range(low, low + int(rng.integers(0, 5)))
            for low in rng.integers(1, 9, size=rng.integers(1, 5)).tolist()
        ]
        rows = list(product(*ranges))
        assert list(by_sum(ranges)) == sorted(rows, key=lambda row: (sum(row), row))
        order = [(sum(x == r[0] for x, r in zip(row, ranges)), sum(row), row) for row in rows]
        assert [row for *_, row in sorted(order)] == list(fewest_minima_first(ranges))


def test_first_of_many_rows_need_no_enumeration():
    ranges = [range(1, 10**6)] * 12
    assert list(islice(by_sum(ranges), 2)) == [(1,) * 12, (*(1,) * 11, 2)]
    assert next(fewest_minima_first(ranges)) == (2,) * 12


@pytest.mark.slow
def test_theory_with_nine_sizes(tmp_path, capsys):
    path = tmp_path / "nine.py"
    path.write_text(NINE)
    assert main(["theory", str(path)]) == 0
    assert "n8 = 2" in capsys.readouterr().out
    assert main(["run", "--theory", str(path), "--horizon", "1"]) == 0
