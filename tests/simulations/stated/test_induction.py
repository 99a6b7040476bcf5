"""The claim on the induction head (arXiv 2511.01033): its flows, their limits, and the judge."""

import math

import numpy as np
import pytest
import xarray
from scipy.integrate import quad, solve_ivp

from dynamics import gradient_flow
from dynamics.core.crossing import first_passage
from simulations.files.store import write_dataset
from simulations.reproduction.claim import Verdict
from simulations.stated.claims import induction
from simulations.stated.claims.induction import COUNTS, Result, judge
from simulations.stated.emergence import (
    ORDER,
    THRESHOLDS,
    Course,
    Free,
    Structure,
    course,
    free_flow,
    limit,
    pull,
)
from simulations.stated.figures import induction as figures
from simulations.stated.runs import risk
from simulations.stated.two_layers import NAMES, Entries, slopes_of
from symbolic.theory import load_theory
from tests.closeness import close, within
from tests.simulations.quick import assert_complete, outcome


@pytest.fixture(scope="module")
def theory():
    return load_theory(induction.FILE)


def test_times_of_the_three_numbers(theory):
    """Against another integrator and the formula's slopes, written out here."""
    N = 8

    def slope(_, x):
        def loss(a, b, g):
            seen = np.exp(a) / (np.exp(a) + 2 * N - 2)
            w = np.exp(b * seen) / (np.exp(b * seen) + 2 * N - 1)
            return 0.5 * ((1 - g * w) ** 2 + (g * (1 - w)) ** 2 / (2 * N - 1))

        return [-loss(*(x + 1e-30j * e)).imag / 1e-30 for e in np.eye(3)]

    events = [lambda _, x, i=i, y=y: x[i] - y for y in THRESHOLDS for i in (2, 1, 0)]
    times = solve_ivp(slope, (0, 400), np.zeros(3), method="DOP853", rtol=1e-10, atol=1e-13,
                      events=events).t_events  # fmt: skip
    found = course(theory, N, None).when
    close([found[y][name] for y in THRESHOLDS for name in ORDER],
          [float(x[0]) for x in times], rel=1e-6)  # fmt: skip


def test_the_first_time(theory):
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


def test_every_entry_follows_nineteen_numbers():
    """The flow of 1008 entries from 0, each moving by its own slope, to a time 20 of the numbers.

    d entries make a number: entries flow d times as long.
    """
    entries = Entries(2)
    every = solve_ivp(
        lambda _, x: -entries.d * entries.gradient(x), (0, 20), np.zeros(entries.size), rtol=1e-6,
        atol=1e-8,
    ).y[:, -1]  # fmt: skip
    numbers = solve_ivp(
        lambda _, x: -slopes_of(2, x), (0, 20), np.zeros(19), rtol=1e-8, atol=1e-10
    ).y[:, -1]
    within(every, entries.lift @ numbers, 1e-5)
    assert np.abs(numbers).max() > 1.0
    flow = free_flow(2, None)
    at = [np.interp(20, flow.time, column) for column in flow.states.T]
    within(at, numbers, 1e-2)  # linear between records
    assert NAMES[int(np.abs(numbers).argmax())] in ("g3", "g4")


def test_the_pull_grows_like_half_a_logarithm():
    """(log N) / 2 + O(1): what it gains when N doubles comes up to (log 2) / 2 from below."""
    gains = np.diff([pull(N) for N in (16, 32, 64, 128)])
    assert np.all(np.diff(gains) > 0.0)
    assert 0.8 * math.log(2) / 2 < gains[-1] < math.log(2) / 2


def emerged(N, start="0", power=2.0):
    scale = (N / 32) ** (power - 2.0)
    times = {x: {name: limit(name, x, N) * (1.0 if name == "g" else scale) for name in ORDER}
             for x in THRESHOLDS}  # fmt: skip
    return Course(N, start, times, 5.0 * N**2, None)


FREE = Free(
    N=2, start="0", solved=30.0, head={"a3": 2.0, "b2": 2.0, "g3": 2.0}, other=("g4", -1.5),
    alone=0.2, when={x: {"g": 1.0, "b": 2.0, "a": 3.0} for x in THRESHOLDS},
    time=np.zeros(1), states=np.zeros((1, 19)),
)  # fmt: skip
GOOD = Result([Structure(2, 1e-15, COUNTS)], [emerged(32), emerged(64)], [FREE])
NAN = float("nan")


def other_order(one, **swapped):
    return one._replace(when={x: row | swapped for x, row in one.when.items()})


def test_the_verdict_that_holds():
    assert judge(GOOD)[0] is Verdict.HOLDS


@pytest.mark.parametrize(
    "change",
    [
        {"structures": [Structure(2, 1e-11, COUNTS)]},
        {"structures": [Structure(2, NAN, COUNTS)]},
        *({"structures": [Structure(2, 1e-15, (*COUNTS[:i], COUNTS[i] + 1, *COUNTS[i + 1 :]))]}
          for i in range(len(COUNTS))),
        {"courses": [emerged(32), emerged(64, power=2.1)]},
        {"courses": [emerged(32), emerged(64, power=1.9)]},
        {"courses": [emerged(32), emerged(64), emerged(32, "1"), emerged(64, "1", power=2.1)]},
        {"courses": [emerged(32), emerged(64, power=NAN)]},
        {"courses": [emerged(32), emerged(64)._replace(solved=NAN)]},
        {"courses": [emerged(32), emerged(64)._replace(solved=2.2 * 5.0 * 64**2)]},
        {"courses": [emerged(32), other_order(emerged(64), a=1.0)]},
        {"courses": [emerged(32), other_order(emerged(64), g=NAN)]},
        {"courses": [emerged(32), emerged(64), *(
            one._replace(when={x: row | {"a": 0.99 * row["b"]} for x, row in one.when.items()})
            for one in (emerged(32, "1"), emerged(64, "1")))]},  # as fast, in another order
        {"courses": [emerged(N)._replace(when={
            x: {name: 1.2 * t for name, t in row.items()} for x, row in emerged(N).when.items()
        }) for N in (32, 64)]},
        {"free": [FREE._replace(solved=NAN)]},
    ],
)  # fmt: skip
def test_the_verdict_fails(change):
    assert judge(GOOD._replace(**change))[0] is Verdict.FAILS


@pytest.mark.parametrize(
    "change",
    [
        {"head": {"a3": 0.4, "b2": 2.0, "g3": 2.0}, "other": ("g4", 0.1)},
        {"other": ("g4", -2.1)},
        {"alone": 0.3},
        {"alone": NAN},
        {"when": {x: {"g": 1.0, "b": 3.0, "a": 2.0} for x in THRESHOLDS}},
        {"when": {x: {"g": 1.0, "b": 2.0, "a": NAN if x == 0.75 else 3.0} for x in THRESHOLDS}},
    ],
)
def test_the_verdict_is_a_finding(change):
    verdict, text = judge(GOOD._replace(free=[FREE, FREE._replace(**change)]))
    assert verdict is Verdict.FINDING
    assert "for 1 of 2 flows" in text
    assert ("a3 comes before b2 in 1 flows (N = 2)" in text) == (
        change.get("when", FREE.when)[0.5]["a"] == 2.0
    )


def test_claim_in_short(tmp_path):
    assert_complete("theory-induction")
    found = outcome("theory-induction")
    assert found.verdict is Verdict.FINDING, found.summary
    assert found.number("a3", N=2, start="0") < 0.5
    assert found.number("which", N=2, start="0") == "g4"
    assert found.number("after_b2", N=2, start="0") == "never"
    (figure,) = found.figures
    assert np.isfinite(figure.data["all"]).all()
    write_dataset(tmp_path / "data.nc", figure.data)
    with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
        artists = figures.draw(data.load())
    assert {"g, N=32", "b, N=128", "a3, N=2", "g4, N=4"} <= set(artists)
