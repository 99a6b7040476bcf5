"""The claims at large D, on their quick sizes."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dynamics import gradient_flow
from simulations.positional import large_D
from simulations.positional.claims.events_large_D import judge as judge_events
from simulations.positional.claims.scaling_theory import Differences, Jump, turning_points
from simulations.positional.claims.scaling_theory import judge as judge_theory
from simulations.positional.claims.theorem_4_1_large_D import judge as judge_theorem
from simulations.positional.data import large_D as figures_data
from simulations.positional.figures import large_D as figures
from simulations.positional.large_D import FIXED, Case
from simulations.reproduction.claim import Verdict
from tests.closeness import close
from tests.simulations.quick import assert_complete, outcome

INSIDE, OUTSIDE = Case("nu=1/D", 3, 4, 100_000), Case(FIXED, 3, 4, 100_000)


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["events-large-D", "theorem-4.1-large-D", "scaling-theory"])
@pytest.mark.traced
def test_quick_run(claim):
    assert_complete(claim)
    for figure in outcome(claim).figures:
        canvas = Figure(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        assert canvas.axes


@pytest.mark.slow
def test_a_run_reaches_its_goal_in_order():
    run = large_D.follow(Case("nu=1/D", 3, 4, 1_000))
    assert run.learned
    assert run.associates
    assert run.events.T0.time < run.events.T1.time < run.path.time[-1]
    assert run.test_error < 1e-3
    assert run.T1_if_ended_at(1e-2) < run.T1_if_ended_at(large_D.LOSS_GOAL) * (1 + 1e-9)
    close(run.T1_if_ended_at(large_D.LOSS_GOAL), run.events.T1.time, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("D", large_D.QUICK_SIZES)
def test_the_end_is_at_the_goal_where_alpha_jumps_too(D):
    run = large_D.follow(Case(FIXED, 3, 4, D))
    assert run.learned
    close(run.path.loss[-1], large_D.LOSS_GOAL, rel=large_D.END_ACCURACY)


@pytest.mark.slow
def test_the_end_of_a_run_does_not_depend_on_the_steps():
    case = Case("nu=1/D", 3, 4, 1_000)
    usual = large_D.follow(case)
    close(usual.path.loss[-1], large_D.LOSS_GOAL, rel=large_D.END_ACCURACY)
    path = gradient_flow(
        usual.population,
        horizon=case.horizon,
        rtol=1e-6,
        records=60,
        until=lambda state: usual.population.certified_loss(state).loss < 0.7 * large_D.LOSS_GOAL,
    )
    coarse = large_D.ended_at_goal(path, usual.population)
    assert path.time[-1] > 1.1 * coarse.time[-1]
    close(coarse.time[-1], usual.path.time[-1], rel=1e-4)
    close(coarse.states[-1], usual.path.states[-1], rel=1e-4)
    above = path.at_records([0, 1, 2])
    assert large_D.ended_at_goal(above, usual.population) is above


def test_cases_are_the_papers_parametrization_and_one_contrast():
    inside, outside = INSIDE.problem, OUTSIDE.problem
    assert (inside.nu, inside.beta) == (1e-5, math.log(math.log(1e5)))
    assert (outside.nu, outside.beta) == (0.01, 1.0)
    assert inside.q * inside.D == outside.q * outside.D == 4.0
    assert {case.scaling for case in large_D.cases(quick=False)} == {*large_D.POWERS, FIXED}
    assert Case("nu=1/D", 5, 4, 10_000).horizon == 1e4 * INSIDE._replace(D=10_000).horizon


def test_exponent_is_a_slope_in_logarithms():
    D = np.array([1e2, 1e3, 1e4])
    close(large_D.exponent(D, 3.0 * D**1.5), 1.5, rel=1e-12)
    assert np.isnan(large_D.exponent(D, np.array([1.0, np.nan, np.nan])))


def ending(**changes):
    """A run as the judges see it: everything the theorem says, unless changed."""
    event = SimpleNamespace(happens=True, time=2.0)
    usual = {"associates": True, "learned": True, "risk_after_rise": 5e-4}
    usual["test_error"] = changes.pop("error", 1e-4)
    path = SimpleNamespace(time=np.array([0.0, 1e9]))
    events = SimpleNamespace(
        T0=SimpleNamespace(happens=True, time=1.0),
        T1=event,
        onset=event,
        end_of_rise=event,
        rise=1.2,
    )
    return SimpleNamespace(path=path, events=events, **(usual | changes))


def test_a_flow_that_is_left_out_is_a_gap_in_the_figures():
    number = SimpleNamespace(time=1.0, happens=True)
    run = SimpleNamespace(
        events=SimpleNamespace(alpha_star=1.0, T0=number, T1=number, rise=1.1, end_of_rise=number),
        predicted_T1=1.0,
        risk_after_rise=0.1,
        G=10.0,
        settled_error=0.1,
        test_error=1e-4,
        path=SimpleNamespace(time=[1.0], loss=[1e-3]),
        label=SimpleNamespace(error=1e-5),
    )
    slowest = [case for case in large_D.cases(quick=False) if case.scaling == large_D.SLOWEST]
    assert {case.features for case in slowest} == {4}
    data = figures_data.gather(dict.fromkeys(large_D.cases(quick=False), run))
    assert data["T1"].isnull().sum() == 8 - len(slowest)
    for draw in (figures.draw_events, figures.draw_ends):
        assert draw(data, Figure(figsize=(7.0, 6.0), layout="constrained"))


class TestVerdicts:
    @pytest.mark.parametrize("bad", [{"associates": False}, {"learned": False}, {"error": 2e-3}])
    def test_theorem_looks_at_the_papers_scalings_only(self, bad):
        assert judge_theorem({INSIDE: ending(), OUTSIDE: ending()})[0] is Verdict.HOLDS
        assert judge_theorem({INSIDE: ending(), OUTSIDE: ending(**bad)})[0] is Verdict.HOLDS
        assert judge_theorem({INSIDE: ending(**bad), OUTSIDE: ending()})[0] is Verdict.FINDING

    def test_events_need_a_rise_until_the_risk_is_small(self):
        assert judge_events({INSIDE: ending()})[0] is Verdict.HOLDS
        verdict, summary = judge_events({INSIDE: ending(risk_after_rise=0.05)})
        assert verdict is Verdict.FINDING
        assert "0.05" in summary

    @pytest.mark.parametrize(
        ("alpha", "T1", "measured", "failed", "verdict"),
        [(0.01, -0.01, 102.0, 0, Verdict.HOLDS), (0.03, 0.0, 102.0, 0, Verdict.FINDING),
         (0.0, -0.03, 102.0, 0, Verdict.FINDING), (0.0, 0.0, 110.0, 0, Verdict.FINDING),
         (0.0, 0.0, math.nan, 0, Verdict.FINDING), (0.0, 0.0, 102.0, 1, Verdict.FAILS)],
    )  # fmt: skip
    def test_theory(self, alpha, T1, measured, failed, verdict):
        proof = SimpleNamespace(count=20, failed=failed, all_zero=failed == 0)
        apart = {INSIDE: Differences(alpha, T1), INSIDE._replace(D=1_000): Differences(1.0, 1.0)}
        assert judge_theory(apart, {OUTSIDE: Jump(100.0, measured)}, proof)[0] is verdict

    def test_theory_without_a_fold_wants_no_jump(self):
        proof = SimpleNamespace(count=20, failed=0, all_zero=True)
        apart = {INSIDE: Differences(0.0, 0.0)}
        for measured, verdict in ((math.nan, Verdict.HOLDS), (50.0, Verdict.FINDING)):
            assert judge_theory(apart, {INSIDE: Jump(math.nan, measured)}, proof)[0] is verdict


def test_nu_never_turns_along_the_branch():
    from dynamics.positional.large_D import Limit

    assert turning_points(Limit(4, 16.0, 5)) == 0
