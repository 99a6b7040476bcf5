"""A map of theorems: 20 x 20 cells of qD and nu at D = 16, C = 2, to time 1000, on all cores.

A cell takes some ten thousand boxes, each a sum over 792 multisets of images.
"""

import os

import pytest

from dynamics import Problem
from simulations.validated import Axis, prove_map


@pytest.mark.benchmark(group="map of theorems")
def test_map(benchmark):
    q = Axis("qD", (0.5, 4.0), (0.5 / 16, 4.0 / 16))
    nu = Axis("nu", (1e-3, 1e-1), (1e-3, 1e-1))
    given = {"cells": 20, "horizon": 1e3, "workers": os.cpu_count() or 1}
    data = benchmark.pedantic(prove_map, (Problem(16, 2, 0.1), q, nu), given, rounds=1)
    assert data.attrs["fraction"] > 0.5
    benchmark.extra_info |= {"proved": data.attrs["fraction"], "boxes": int(data["boxes"].sum())}
