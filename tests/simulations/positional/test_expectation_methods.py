"""The claim on the three methods: its tables on made-up numbers, its data, and its figure."""

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure as Canvas

from dynamics import Problem, State
from simulations.positional.claims import expectation_methods
from simulations.positional.figures import time_to_equal_error
from tests.closeness import close

RUNS = [  # method, setting, certified, measured, error, bound, seconds
    ("fourier", 1e-2, True, True, 1e-4, 2e-3, 2e-4),
    ("fourier", 1e-6, True, True, 1e-9, 5e-7, 4e-4),
    ("enumeration", 1e-2, True, True, 1e-3, 4e-3, 1e-2),
    ("enumeration", 1e-6, True, False, 3e-6, 3e-6, 5e3),
    ("sampling", 1e4, False, True, 1e-2, 3e-2, 1e-3),
]


def panel(qD=16.0, z=1.5, **changed):
    """Return made-up runs of a problem, with other errors for the first run of some methods."""
    names = ("method", "setting", "certified", "measured", "error", "bound", "seconds")
    columns = {name: list(column) for name, column in zip(names, zip(*RUNS))}
    for method, error in changed.items():
        columns["error"][columns["method"].index(method)] = error
    return xarray.Dataset(
        {name: ("run", column) for name, column in columns.items()},
        attrs={"D": 64, "C": 4, "qD": qD, "sampling_z": z, "reference_bound": 1e-10},
    )


@pytest.mark.parametrize("method", ["fourier", "enumeration"])
def test_certified_values_are_those_computed(method):
    """Predicted costs are left out; one value outside its bound shows in its row."""
    layout = expectation_methods.CERTIFIED
    data = layout.frame(expectation_methods.certified(panel(**{method: 0.1})))
    assert len(data) == 3
    passed = layout.check(data).passed.iloc[:, 0]
    assert passed[~passed].index.tolist() == [(16.0, method, 1e-2)]
    assert layout.check(layout.frame(expectation_methods.certified(panel()))).passed.all(axis=None)


def test_numbers_of_a_panel():
    close(expectation_methods.summary(panel())["error_over_bound"], 0.25, rel=1e-12)
    rows = expectation_methods.wall_times(panel())
    seconds = expectation_methods.TIMES.frame(rows).seconds
    assert seconds[16.0, "fourier", 1e-6] == 4e-4
    assert seconds[16.0, "fourier", 1e-3] == 4e-4
    assert (16.0, "enumeration", 1e-6) not in seconds
    # 1e-3 s at error 1e-2 is 1e5 s at 1e-6
    close(seconds[16.0, "sampling", 1e-6], 1e5, rel=1e-12)


class TestCompareMethods:
    @pytest.fixture(scope="class")
    @classmethod
    def data(cls):
        problem, state = Problem(D=16, C=4, q=2 / 16), State(0.2, 0.5, -0.05)
        return expectation_methods.compare_methods(
            problem, state, 1e-10, (1e-2, 1e-6), (200, 3200), range(12), 0.0
        )

    def test_every_method_and_setting(self, data):
        assert list(data["method"].values) == [*["fourier", "enumeration"] * 2, *["sampling"] * 2]
        assert bool(data["measured"].all())
        assert bool((data["seconds"] > 0).all())

    def test_errors_against_the_oracle_of_all_states(self, data):
        """Check both certified methods: each within its bound, and equal values."""
        certified = data.isel(run=data["certified"].values)
        allowed = certified["bound"] + data.attrs["reference_bound"]
        assert bool((certified["error"] <= allowed).all())
        assert data.attrs["enumeration_difference"] < 1e-8

    def test_sampling_errors_fall_with_the_root_of_the_number(self, data):
        few, many = data.isel(run=(data["method"] == "sampling").values)["error"].values
        # sixteen times the images: a quarter of the error, give or take that of twelve seeds
        assert 2.0 < few / many < 8.0
        assert data.attrs["sampling_z"] < 5.0

    def test_enumeration_out_of_reach_is_predicted(self):
        problem, state = Problem(D=64, C=4, q=16 / 64), State(0.05, 1.0, -0.06)
        data = expectation_methods.compare_methods(problem, state, 1e-8, (1e-6,), (100,), (0,), 0.0)
        row = data.isel(run=(data["method"] == "enumeration").values).isel(run=0)
        assert not bool(row["measured"])
        assert float(row["seconds"]) > 0.1
        close(float(row["error"]), 1e-6 / data.attrs["largest_entry"], rel=1e-12)


def test_seconds_of_calls_once_more_to_warm_up():
    calls = []
    seconds = expectation_methods.seconds_of(lambda: calls.append(1), seconds_per_timing=0.0)
    assert len(calls) >= 2
    assert 0.0 <= seconds < 1.0


def test_the_figure_draws_every_method_in_every_panel():
    attrs = {"largest_entry": 1.0}
    data = expectation_methods.join_panels([panel(q).assign_attrs(attrs) for q in (2.0, 16.0)])
    assert list(data["qD"].values) == [2.0, 16.0]
    canvas = Canvas(figsize=(7.4, 4.4), layout="constrained")
    artists = time_to_equal_error.draw(data, canvas)
    canvas.draw_without_rendering()
    assert set(artists) == set(time_to_equal_error.METHODS)
    assert [ax.get_title() for ax in canvas.axes] == ["$qD=2$", "$qD=16$"]
    assert all(ax.get_xlabel() for ax in canvas.axes)
    errors = np.concatenate([line.get_xdata() for line in canvas.axes[0].get_lines()])
    close(min(e for e in errors if e > 1e-13), 1e-9, rel=1e-12)
