"""The claims at large D, on their quick sizes."""

import itertools
import math

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure

from dynamics import gradient_flow
from simulations.positional import large_D_flows as large
from simulations.positional.claims import events_large_D
from simulations.positional.claims.scaling_theory import turning_points
from simulations.positional.figures import large_D as figures
from simulations.positional.large_D_flows import FIXED, Case
from simulations.reproduction.registry import load
from tests.closeness import close
from tests.simulations.quick import result

INSIDE, OUTSIDE = Case("nu=1/D", 3, 4, 100_000), Case(FIXED, 3, 4, 100_000)


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["events-large-D", "theorem-4.1-large-D", "scaling-theory"])
@pytest.mark.traced
def test_quick_run(claim):
    for figure in result(claim).measurement.figures:
        canvas = Figure(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        assert canvas.axes


@pytest.mark.slow
def test_a_run_reaches_its_goal_in_order():
    run = large.run_flow(Case("nu=1/D", 3, 4, 1_000))
    assert run.learned
    assert run.associates
    assert run.events.T0.time < run.events.T1.time < run.path.time[-1]
    assert run.test_error < 1e-3
    assert run.T1_if_ended_at(1e-2) < run.T1_if_ended_at(large.LOSS_GOAL) * (1 + 1e-9)
    close(run.T1_if_ended_at(large.LOSS_GOAL), run.events.T1.time, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("D", large.QUICK_SIZES)
def test_the_end_is_at_the_goal_where_alpha_jumps_too(D):
    run = large.run_flow(Case(FIXED, 3, 4, D))
    assert run.learned
    close(run.path.loss[-1], large.LOSS_GOAL, rel=large.END_ACCURACY)


@pytest.mark.slow
def test_the_end_of_a_run_does_not_depend_on_the_steps():
    case = Case("nu=1/D", 3, 4, 1_000)
    default = large.run_flow(case)
    close(default.path.loss[-1], large.LOSS_GOAL, rel=large.END_ACCURACY)
    path = gradient_flow(
        default.population,
        horizon=case.horizon,
        rtol=1e-6,
        records=60,
        until=lambda state: default.population.certified_loss(state).loss < 0.7 * large.LOSS_GOAL,
    )
    coarse = large.ended_at_goal(path, default.population)
    assert path.time[-1] > 1.1 * coarse.time[-1]
    close(coarse.time[-1], default.path.time[-1], rel=1e-4)
    close(coarse.states[-1], default.path.states[-1], rel=1e-4)
    above = path.at_records([0, 1, 2])
    assert large.ended_at_goal(above, default.population) is above


def test_cases_are_the_papers_parametrization_and_one_contrast():
    inside, outside = INSIDE.problem, OUTSIDE.problem
    assert (inside.nu, inside.beta) == (1e-5, math.log(math.log(1e5)))
    assert (outside.nu, outside.beta) == (0.01, 1.0)
    assert inside.q * inside.D == outside.q * outside.D == 4.0
    assert {case.scaling for case in large.cases(quick=False)} == {
        *large.POWERS,
        FIXED,
    }
    assert Case("nu=1/D", 5, 4, 10_000).horizon == 1e4 * INSIDE._replace(D=10_000).horizon


def test_exponents_are_slopes_in_logarithms_over_the_last_decade():
    table = {"scaling": ["nu=1/D"], "qD": [4, 16], "D": [1e2, 1e3, 1e4]}
    D = np.array(table["D"])
    values = [[3.0 * D**1.5, np.array([1.0, np.nan, np.nan])]]
    data = xarray.Dataset({"T1": (("scaling", "qD", "D"), values)}, coords=table)
    rows = large.exponents(data, ("T1",))
    assert rows.index.tolist() == [("T1", "nu=1/D", 4)]
    close(rows.exponent.item(), 1.5, rel=1e-12)


@pytest.mark.parametrize(
    ("claim_id", "table", "judged"),
    [("theorem-4.1-large-D", "flows", [True, True, False]),
     ("events-large-D", "events", [True, True, False]),
     ("scaling-theory", "flows", [True, False, True])],
)  # fmt: skip
def test_flows_outside_the_hypotheses_do_not_count(claim_id, table, judged):
    cases = INSIDE, INSIDE._replace(D=10_000), OUTSIDE
    layout = load(claim_id).tables[table]
    assert layout.check(layout.frame(case.levels for case in cases)).judged.tolist() == judged


def test_a_flow_that_is_left_out_is_a_gap_in_the_figures():
    cases = large.cases(quick=False)
    slowest = [case for case in cases if case.scaling == large.SLOWEST]
    assert {case.features for case in slowest} == {4}
    assert {case.D for case in cases if case.scaling == FIXED} == {1_000, 1_000_000}
    own = {(case.features, case.D) for case in cases if case.scaling == "nu=1/D"}
    assert own == set(itertools.product((4, 16), large.SIZES))  # the claims rest on these
    rows = [case.levels | dict.fromkeys(events_large_D.EVENTS.columns, 1.0) for case in cases]
    data = events_large_D.figure_data(events_large_D.EVENTS.frame(rows), [2.0] * len(cases))
    assert data["T1"].isnull().sum() == 4 * 2 * len(large.SIZES) - len(cases) == 4 + 4 + 3
    assert data["scaling"].values.tolist() == [*large.POWERS, FIXED]
    assert figures.draw_events(data, Figure(figsize=(7.0, 6.0), layout="constrained"))
    ends = data.assign(end=data["T1"], settled_error=data["T1"], test_error=data["T1"])
    assert figures.draw_ends(ends, Figure(figsize=(7.0, 6.0), layout="constrained"))


def test_nu_never_turns_along_the_branch():
    from dynamics.positional.many_patch_limit import Limit

    assert turning_points(Limit(4, 16.0, 5)) == 0
