"""Tubes of the gradient flow of positional attention to time 1e5, at the largest sizes.

The cost of a piece is proportional to the number of multisets that are summed: up to 586,225 at
D = 64, qD = 4.
"""

import pytest

from dynamics import Problem
from simulations.validated import prove


@pytest.mark.benchmark(group="tubes to time 1e5, C = 4")
@pytest.mark.parametrize(("D", "qD"), [(64, 2), (64, 4), (1024, 2)])
def test_large_tube(benchmark, D, qD):
    proof = benchmark.pedantic(
        prove, (Problem(D=D, C=4, q=qD / D),), {"horizon": 1e5, "tolerance": 1e-3}, rounds=1
    )
    assert proof.proved
    tube = proof.tube
    benchmark.extra_info |= {
        "pieces": len(tube.pieces), "K": max(field.K for field in tube.fields),
        "largest radius": float(tube.radius.max()),
    }  # fmt: skip
