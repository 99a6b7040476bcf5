"""Tubes of two systems of the reachability competition ARCH-COMP, ROBE21 and LALO20.

Its entries report the time and the final width: of the conserved sum of Robertson's coordinates at
time 40, and of x_4 of Laub and Loomis at time 20. The box of LALO20 has half-width .01, .05 or .1.
A tube bounds a box to first order, so that it reaches time 20 from a half-width of 1e-6, but not
from the box of the competition: the Jacobian on it is too wide.
"""

import numpy as np
import pytest

from dynamics.core.tube.clocks import Flow
from dynamics.core.tube.tube import enclose
from tests.dynamics.core.tube.quadratic import laub_loomis, robertson

SUM, FOURTH = np.ones(3), np.eye(7)[3]


def width(tube, functional):
    """Return the width of a linear functional at the end of a tube."""
    frame = tube.frame
    lengths = [np.linalg.norm(functional @ frame.basis[:, each]) for each in frame.all_blocks]
    return 2.0 * float(np.dot(lengths, frame.radius))


@pytest.mark.benchmark(group="ARCH-COMP, ROBE21: stiff, to time 40")
@pytest.mark.parametrize(("beta", "gamma"), [(1e2, 1e3), (1e3, 1e5), (1e3, 1e7)])
def test_robertson(benchmark, beta, gamma):
    tube = benchmark.pedantic(
        enclose, (robertson(beta, gamma), Flow(), 40.0),
        {"tolerance": 1e-6, "functional": SUM}, rounds=1,
    )  # fmt: skip
    assert tube.end == 40.0
    benchmark.extra_info |= {"width of the sum": width(tube, SUM), "pieces": len(tube.pieces)}


@pytest.mark.benchmark(group="ARCH-COMP, LALO20: seven dimensions, to time 20")
@pytest.mark.parametrize("half", [1e-6, 0.01])
def test_laub_loomis(benchmark, half):
    tube = benchmark.pedantic(
        enclose, (laub_loomis(half), Flow(), 20.0),
        {"tolerance": 1e-6, "functional": FOURTH}, rounds=1,
    )  # fmt: skip
    benchmark.extra_info |= {
        "end": tube.end, "width of x_4": width(tube, FOURTH), "pieces": len(tube.pieces)
    }  # fmt: skip
    if half == 1e-6:
        assert tube.end == 20.0
