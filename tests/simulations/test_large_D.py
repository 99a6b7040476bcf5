"""The claims at large D, on their quick sizes."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from simulations import large_D
from simulations.claim import Context, Verdict
from simulations.claims import load


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["events-large-D", "theorem-4.1-large-D"])
def test_quick_run(claim):
    fractions = []
    outcome = load(claim).run(Context(quick=True, progress=fractions.append))
    assert outcome.verdict in set(Verdict)
    assert fractions[-1] == 1.0
    for figure in outcome.figures:
        canvas = Figure()
        figure.draw(canvas)
        assert len(canvas.axes) == 2


@pytest.mark.slow
def test_a_run_reaches_its_goal_in_order():
    run = large_D.follow(1_000, 4)
    assert run.path.loss[-1] < large_D.LOSS_GOAL
    assert run.events.T0.time < run.events.T1.time < run.path.time[-1]
    assert run.path.test_error[-1] < 1e-3


def test_exponent_is_a_slope_in_logarithms():
    D = np.array([1e2, 1e3, 1e4])
    assert large_D.exponent(D, 3.0 * D**1.5) == pytest.approx(1.5)
    assert np.isnan(large_D.exponent(D, np.array([1.0, np.nan, np.nan])))
