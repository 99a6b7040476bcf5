"""Signs by halves of the sets: buckets, beside a sort and a binary search for each multiset.

The buckets of ``signs.halves`` earn their place as long as ``times faster`` stays well above 1;
about 9 were measured where they were written.
"""

import time

import numpy as np
import pytest

from dynamics import Problem, State
from dynamics.positional.population.fourier.errors import WeightErrors
from dynamics.positional.population.fourier.set_law import set_law
from dynamics.positional.population.fourier.signs.halves import count_by_halves, halves_law
from dynamics.positional.population.fourier.signs.power_sums import Order
from dynamics.positional.population.fourier.signs.sign import undecided
from dynamics.positional.population.fourier.tables import Model

PROBLEM, STATE = Problem(D=64, C=8, q=0.5), State(0.0215, 12.1, -0.744)


@pytest.fixture(scope="module")
def task():
    """A few totals whose sign is open, and the multisets of both halves."""
    law, model = set_law(PROBLEM), Model.at(PROBLEM, STATE)
    weight_errors = WeightErrors.of(PROBLEM, STATE, model)
    order = Order.of(PROBLEM, STATE)
    left_open = undecided(law, 20, 1e-6, model, weight_errors, order)
    few = np.argsort(np.abs(left_open.totals + PROBLEM.C))[:3]  # T near 0
    left_open = left_open._replace(
        totals=left_open.totals[few],
        base=left_open.base[few],
        x=left_open.x[few],
        dbase=left_open.dbase[few],
        dx=left_open.dx[few],
    )
    halves, _ = halves_law(PROBLEM.L - 1, law, 1e-3)
    return left_open, halves.a, halves.b, PROBLEM.L


def sums_of(half, x):
    sums = np.zeros(len(half.parent))
    depth = half.number
    for number in range(1, depth.max() + 1):
        at = np.flatnonzero(depth == number)
        sums[at] = sums[half.parent[at]] + x[half.last[at]]
    ordered = np.empty_like(sums)
    ordered[half.slot] = sums
    return ordered


def by_sort_and_search(left_open, a, b, L):
    """P[F <= 0, R = r] for each total: sums of B sorted, those of A looked up."""
    found = np.zeros(len(left_open.totals))
    for i, r in enumerate(left_open.totals):
        sums_a, sums_b = sums_of(a, left_open.x[i]), sums_of(b, left_open.x[i])
        for g in range(2 * b.span + 1):
            h = r - (g - b.span) + a.span
            if not 0 <= h <= 2 * a.span:
                continue
            one, other = slice(*a.first[h : h + 2]), slice(*b.first[g : g + 2])
            order = np.argsort(sums_b[other])
            below = np.concatenate([[0.0], np.cumsum(b.weight[other][order])])
            rest = -left_open.base[i] - sums_a[one]
            place = np.searchsorted(sums_b[other][order], rest, side="right")
            found[i] += a.weight[one] @ below[place]
    return found


def best_of(function, task, rounds=5):
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        answer = function(*task)
        seconds.append(time.perf_counter() - start)
    return answer, min(seconds)


@pytest.mark.benchmark(group="signs of three totals by halves, D=64 C=8 qD=32")
def test_buckets(benchmark, task):
    counted = benchmark(count_by_halves, *task)
    plain, seconds = best_of(by_sort_and_search, task, 3)
    assert np.all(counted[0] - 1e-12 <= plain)
    assert np.all(plain <= counted[1] + 1e-12)
    assert np.all(plain > 1e-7)
    if benchmark.stats:
        faster = seconds / benchmark.stats["min"]
        benchmark.extra_info["times faster than sort and search"] = faster
