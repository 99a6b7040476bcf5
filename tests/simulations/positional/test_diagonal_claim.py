"""The claim on the frozen diagonal: complete, drawn from its file, able to come out otherwise."""

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure as Canvas

from dynamics import Problem
from simulations.figures import render
from simulations.files.store import write_dataset
from simulations.positional import runs
from simulations.positional.claims.diagonal import (
    POPULATION_TOLERANCE,
    Compared,
    Conclusions,
    Ending,
    _pair,
    judge,
)
from simulations.positional.figures import diagonal
from simulations.reproduction.claim import Verdict
from tests.simulations.quick import assert_complete, outcome

BASE, SMALL = Problem(D=64, C=4, q=1 / 32), Problem(D=8, C=2, q=0.5)
YES = Conclusions(True, True, True)


def ending(late=YES, early=YES, violation=0.0):
    return Ending(late, early, 1.0, 0.1, violation, 10.0, (0.1, 1.0, -0.1, 1.0))


def compared(meets=True, frozen=YES, trained=YES, early=YES):
    return Compared(ending(frozen, early), ending(trained), meets, 1e-6)


class TestVerdict:
    @pytest.mark.parametrize("item", ["associates", "learns", "ordered"])
    def test_hangs_on_each_conclusion(self, item):
        other = YES._replace(**{item: False})
        inside, outside = compared(), compared(meets=False, frozen=other)
        assert judge({BASE: inside}, 1e-15)[0] is Verdict.HOLDS
        verdict, summary = judge({BASE: inside, SMALL: outside}, 1e-15)
        assert verdict is Verdict.FINDING
        assert "1 of 1 problems that meet" in summary
        assert "0 of 1 others" in summary
        assert judge({BASE: compared(frozen=other)}, 1e-15)[0] is Verdict.FAILS
        assert judge({BASE: compared(early=other)}, 1e-15)[0] is Verdict.FAILS
        both = compared(frozen=other, trained=other)
        assert judge({BASE: both}, 1e-15)[0] is Verdict.HOLDS

    def test_a_wrong_reduction_fails(self):
        assert judge({BASE: compared()}, 1e-11)[0] is Verdict.FAILS


@pytest.mark.slow
def test_a_million_patches_reach_the_horizon_of_the_thorough_run():
    """Late in training rounding moves alpha* by more than 1e-8 of it."""
    problem = Problem.parametrization_3_1(10**6, 4, q=4 / 10**6)
    frozen, trained = _pair(problem, POPULATION_TOLERANCE, 1e15)
    for path in (frozen, trained):
        assert path.time[-1] == 1e15
        assert path.stats["steps"] < 10_000
        assert np.all(path.gamma - path.rho >= 0.0)


@pytest.mark.slow
@pytest.mark.traced
class TestOutcome:
    def test_is_complete(self):
        assert_complete("diagonal")

    def test_numbers(self):
        found = outcome("diagonal")
        assert found.verdict is Verdict.FINDING
        tiny, crowded = runs.place(runs.TINY), runs.place(runs.CROWDED)
        for name, at, kind, value, error in (
            ("test_error", tiny, "trained", 0.1079, 1e-4),
            ("test_error", tiny, "frozen", 0.1235, 1e-4),
            ("violation", crowded, "frozen", 1.394, 1e-3),
            ("violation", crowded, "trained", 0.00596, 1e-5),
        ):
            assert found.number(name, **at, diagonal=kind) == pytest.approx(value, abs=error)
        assert not found.number("same", **tiny)
        assert found.number("same", **crowded)
        differences = found.numbers("difference")
        assert differences
        assert all(one.value < 1e-13 for one in differences)

    def test_figure_draws_again_from_its_file(self, tmp_path):
        (figure,) = outcome("diagonal").figures
        assert render(figure).startswith(b"\x89PNG")
        write_dataset(tmp_path / "data.nc", figure.data)
        canvas = Canvas(figsize=figure.size, layout="constrained")
        with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
            assert diagonal.draw(data.load(), canvas)
        canvas.draw_without_rendering()
