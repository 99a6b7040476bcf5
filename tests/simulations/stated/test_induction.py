"""Claim about the induction head (arXiv 2511.01033): flows and their limits."""

import math

import numpy as np
import pytest
import xarray
from scipy.integrate import quad, solve_ivp

from dynamics import gradient_flow
from dynamics.core.crossing import first_passage
from simulations.files import write_dataset
from simulations.reproduction.predicates import Verdict
from simulations.stated.claims import induction
from simulations.stated.emergence import (
    ORDER,
    SOLVED,
    THRESHOLDS,
    full_flow,
    limit,
    pull,
    three_flow,
)
from simulations.stated.figures import induction as figures
from simulations.stated.runs import risk
from simulations.stated.two_layers import NAMES, Entries, slopes_of
from symbolic.theory import load_theory
from tests.closeness import close, within
from tests.simulations.quick import result


@pytest.fixture(scope="module")
def theory():
    return load_theory(induction.FILE)


def test_times_of_the_three_order_parameters(theory):
    """Compare with another integrator, and with slopes of the formula."""
    N = 8

    def slope(_, x):
        def loss(a, b, g):
            attention = np.exp(a) / (np.exp(a) + 2 * N - 2)
            w = np.exp(b * attention) / (np.exp(b * attention) + 2 * N - 1)
            return 0.5 * ((1 - g * w) ** 2 + (g * (1 - w)) ** 2 / (2 * N - 1))

        return [-loss(*(x + 1e-30j * e)).imag / 1e-30 for e in np.eye(3)]

    events = [lambda _, x, i=i, y=y: x[i] - y for y in THRESHOLDS for i in (2, 1, 0)]
    times = solve_ivp(
        slope, (0, 400), np.zeros(3), method="DOP853", rtol=1e-10, atol=1e-13, events=events
    ).t_events
    result = three_flow(theory, N, None).when
    close(
        [result[y][name] for y in THRESHOLDS for name in ORDER],
        [float(x[0]) for x in times],
        rel=1e-6,
    )


def test_first_passage(theory):
    flow = gradient_flow(risk(theory, N=3), horizon=10.0)
    assert first_passage(flow, lambda x: float(x[2]), -1.0) == 0.0
    assert math.isnan(first_passage(flow, lambda x: float(x[2]), 50.0))


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_limits_are_integrals_of_the_equations(threshold):
    """dg/dt = (1 - g) / 2 N; db/dt = e^a / 4 N^2, da/db = b."""
    N = 1000
    close(limit("g", threshold, N), quad(lambda g: 2 * N / (1 - g), 0, threshold)[0], rel=1e-9)
    for name, end in (("b", threshold), ("a", math.sqrt(2 * threshold))):
        time = quad(lambda b: 4 * N**2 * math.exp(-(b**2) / 2), 0, end)[0]
        close(limit(name, threshold, N), time, rel=1e-9)


@pytest.mark.slow
def test_every_entry_follows_the_order_parameters():
    """Compare the flow of 1008 entries from 0 with that of the 19 order parameters.

    An order parameter is the value of d entries, whose flow takes d times as long.
    """
    entries = Entries(2)
    every = solve_ivp(
        lambda _, x: -entries.d * entries.gradient(x),
        (0, 20),
        np.zeros(entries.size),
        rtol=1e-6,
        atol=1e-8,
    ).y[:, -1]
    numbers = solve_ivp(
        lambda _, x: -slopes_of(2, x), (0, 20), np.zeros(19), rtol=1e-8, atol=1e-10
    ).y[:, -1]
    within(every, entries.lift @ numbers, 1e-5)
    assert np.abs(numbers).max() > 1.0
    flow = full_flow(2, None)
    at = [np.interp(20, flow.time, column) for column in flow.states.T]
    within(at, numbers, 1e-2)  # linear between records
    assert NAMES[int(np.abs(numbers).argmax())] in ("g3", "g4")


def test_pull_grows_like_half_a_logarithm():
    """It is (log N) / 2 + O(1): its increase by a doubling of N tends to (log 2) / 2 from below."""
    increases = np.diff([pull(N) for N in (16, 32, 64, 128)])
    assert np.all(np.diff(increases) > 0.0)
    assert 0.8 * math.log(2) / 2 < increases[-1] < math.log(2) / 2


@pytest.mark.slow
def test_claim_in_short(tmp_path):
    outcome = result("theory-induction")
    assert outcome.verdict is Verdict.FINDING
    row = outcome.tables["all 19"].data.loc[2, "0"]
    assert row.a3 < 0.5
    assert row.which == "g4"
    assert math.isnan(row.after_b2)
    (figure,) = outcome.measurement.figures
    assert np.isfinite(figure.data["all"]).all()
    write_dataset(tmp_path / "data.nc", figure.data)
    with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
        artists = figures.draw(data.load())
    assert {"g, N=32", "b, N=128", "a3, N=2", "g4, N=4"} <= set(artists)


@pytest.mark.parametrize(("power", "passes"), [(2.049, True), (2.051, False), (1.949, False)])
def test_exponent_of_the_loss(power, passes):
    table = induction.POWERS.frame([
        {"number": "loss", "threshold": SOLVED, "N": 32, "start": "0", "power": power}
    ])  # fmt: skip
    assert induction.POWERS.check(table).passed.to_numpy().all() == passes
