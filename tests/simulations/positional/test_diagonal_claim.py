"""The claim on the frozen diagonal: its conclusions and numbers, and its figure from a file."""

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure as Canvas

from dynamics import Problem
from simulations.figures import render
from simulations.files import write_dataset
from simulations.positional import reference_runs as runs
from simulations.positional.claims.diagonal import (
    POPULATION_TOLERANCE,
    Conclusions,
    Ending,
    compared,
    pair,
)
from simulations.positional.figures import diagonal
from simulations.reproduction.predicates import Verdict
from tests.closeness import within
from tests.simulations.quick import figures, result

YES = Conclusions(True, True, True)


def ending(late=YES, early=YES):
    return Ending(late, early, 1.0, 0.1, 0.0, 10.0, 1.0)


@pytest.mark.parametrize("item", Conclusions._fields)
def test_the_same_conclusions_are_equal_in_each_at_both_times(item):
    other = YES._replace(**{item: False})
    assert compared(ending(), ending())["same"]
    assert compared(ending(other, other), ending(other, other))["same"]
    for changed in (ending(late=other), ending(early=other)):
        assert not compared(changed, ending())["same"]
        assert not compared(ending(), changed)["same"]
        for pair_of_runs in ((changed, ending()), (ending(), changed), (changed, changed)):
            assert not compared(*pair_of_runs)["settled"]
    assert compared(ending(), ending())["settled"]


@pytest.mark.slow
def test_a_million_patches_reach_the_horizon_of_the_thorough_run():
    """Late in training rounding moves alpha* by more than 1e-8 of it."""
    problem = Problem.parametrization_3_1(10**6, 4, q=4 / 10**6)
    frozen, trained = pair(problem, POPULATION_TOLERANCE, 1e15)
    for path in (frozen, trained):
        assert path.time[-1] == 1e15
        assert path.stats["steps"] < 10_000
        assert np.all(path.gamma - path.rho >= 0.0)


@pytest.mark.slow
@pytest.mark.traced
class TestOutcome:
    def test_numbers(self):
        quick = result("diagonal")
        assert quick.verdict is Verdict.FINDING
        tiny, crowded = runs.describe(runs.TINY), runs.describe(runs.CROWDED)
        ends, problems = quick.tables["runs"].data, quick.tables["problems"].data
        within(ends.test_error[tiny, "trained"], 0.1079, 1e-4)
        within(ends.test_error[tiny, "frozen"], 0.1235, 1e-4)
        within(ends.violation[crowded, "frozen"], 1.394, 1e-3)
        within(ends.violation[crowded, "trained"], 0.00596, 1e-5)
        assert not problems.same[tiny]
        assert problems.same[crowded]
        assert (quick.tables["full matrix"].data.difference < 1e-13).all()

    def test_figure_draws_again_from_its_file(self, tmp_path):
        (figure,) = figures(("diagonal",))
        assert render(figure).startswith(b"\x89PNG")
        write_dataset(tmp_path / "data.nc", figure.data)
        canvas = Canvas(figsize=figure.size, layout="constrained")
        with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
            assert diagonal.draw(data.load(), canvas)
        canvas.draw_without_rendering()
