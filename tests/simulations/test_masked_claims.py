"""The claims of the second theory: measured quickly, and able to come out otherwise."""

import dataclasses

import numpy as np
import pytest

from dynamics import ParameterError, gradient_flow
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked.positional import best, quadratic
from simulations import masked_runs as runs
from simulations.as_json import plain
from simulations.claim import HUANG_2024, Verdict
from simulations.claims import CLAIM_IDS, load
from simulations.claims.huang_lemma_5_1 import judge as judge_5_1
from simulations.claims.huang_lemma_5_2 import judge as judge_5_2
from simulations.claims.huang_one_phase import Lead
from simulations.claims.huang_one_phase import judge as judge_one_phase
from simulations.claims.huang_positional_is_not_enough import Comparison
from simulations.claims.huang_positional_is_not_enough import judge as judge_positional
from simulations.claims.huang_pp_small import judge as judge_pp
from simulations.claims.huang_reduced_equals_full import judge as judge_reduced
from simulations.claims.huang_scaling import Law
from simulations.claims.huang_scaling import judge as judge_scaling
from simulations.claims.huang_theorem_4_1 import End
from simulations.claims.huang_theorem_4_1 import judge as judge_theorem
from simulations.claims.huang_two_phases import Phases
from simulations.claims.huang_two_phases import judge as judge_two_phases
from simulations.masked_runs import Fit
from simulations.store import write_dataset
from tests.simulations.quick import figures, outcome

IDS = tuple(claim_id for claim_id in CLAIM_IDS if claim_id.startswith("huang-"))
HOLDS, FAILS, FINDING = Verdict.HOLDS, Verdict.FAILS, Verdict.FINDING


class TestQuickRuns:
    @pytest.mark.slow
    @pytest.mark.parametrize("claim_id", IDS)
    def test_holds_and_says_what_it_measured(self, claim_id):
        claim, found = load(claim_id), outcome(claim_id)
        assert claim.paper is HUANG_2024
        assert found.verdict is HOLDS, found.summary
        assert found.summary.endswith(".")
        assert found.measured
        assert found.figures
        plain({"measured": found.measured, "parameters": found.parameters})

    def test_nine_claims_after_those_of_the_first_paper(self):
        assert CLAIM_IDS[-len(IDS) :] == IDS
        assert len(IDS) == 9

    @pytest.mark.slow
    def test_figures_are_drawn_from_their_stored_data(self, tmp_path):
        from matplotlib.figure import Figure as Canvas

        drawn = figures(IDS)
        assert len({figure.name for figure in drawn}) == len(drawn) == 10
        for figure in drawn:
            write_dataset(tmp_path / f"{figure.name}.nc", figure.data)
            canvas = Canvas(figsize=figure.size, layout="constrained")
            figure.draw(canvas)
            canvas.canvas.draw()
            assert any(ax.lines or ax.collections for ax in canvas.axes)

    @pytest.mark.slow
    def test_exponents_of_an_independent_computation(self):
        """Another program, written from the exact dynamics, gave these over the same decades."""
        found = outcome("huang-scaling").measured
        wide, narrow = runs.WIDE_GAP.name, runs.NARROW_GAP.name
        assert found[f"exponent of the initial ratio ({wide})"] == pytest.approx(0.614, abs=2e-3)
        assert found[f"Phi_1 at the switch over log P ({wide})"] == pytest.approx(-0.295, abs=1e-3)
        assert found[f"Phi_1 at the switch over log P ({narrow})"] == pytest.approx(
            -0.172, abs=1e-3
        )
        assert found[f"exponent of the time to attention 1/2 ({wide})"] == pytest.approx(
            0.711, abs=2e-3
        )
        assert found[
            f"exponent of the time to attention 1/2 ({runs.IN_GLOBAL.name})"
        ] == pytest.approx(0.047, abs=1e-3)


class TestJudgesBothWays:
    @pytest.mark.parametrize(
        ("numbers", "verdict"),
        [
            ((10, 0, 1e-16, 1e-5, -1e-6), HOLDS),
            ((10, 1, 1e-16, 1e-5, -1e-6), FAILS),
            ((0, 0, 1e-16, 1e-5, -1e-6), FAILS),
            ((10, 0, 1e-9, 1e-5, -1e-6), FAILS),
            ((10, 0, float("nan"), 1e-5, -1e-6), FAILS),
            ((10, 0, 1e-16, -1e-5, -1e-6), FAILS),
            ((10, 0, 1e-16, 1e-5, 1e-3), FINDING),
        ],
    )
    def test_lemma_5_1(self, numbers, verdict):
        assert judge_5_1(*numbers)[0] is verdict

    @pytest.mark.parametrize(
        ("numbers", "verdict"),
        [
            ((10, 0, 1e-16, 0.0, 0.6), HOLDS),
            ((10, 2, 1e-16, 0.0, 0.6), FAILS),
            ((10, 0, 1e-10, 0.0, 0.6), FAILS),
            ((10, 0, 1e-16, 1e-9, 0.6), FAILS),
            ((10, 0, 1e-16, 0.0, 1.2), FINDING),
        ],
    )
    def test_lemma_5_2(self, numbers, verdict):
        assert judge_5_2(*numbers)[0] is verdict

    @pytest.mark.parametrize(
        ("changes", "wrong", "verdict"),
        [
            ({}, 0, HOLDS),
            ({}, 1, FAILS),
            ({"phases": 1}, 0, FAILS),
            ({"rival_at_switch": 3.7}, 0, FAILS),
            ({"others_at_switch": 2.0}, 0, FAILS),
            ({"own_gain": 1.0}, 0, FAILS),
        ],
    )
    def test_two_phases(self, changes, wrong, verdict):
        one = dataclasses.replace(Phases(2, 1400.0, -3.7, 0.4, 14.0, 0.6), **changes)
        found = judge_two_phases({"a": one}, {"cells": 30, "far": wrong, "near": 2})
        assert found[0] is verdict
        assert judge_two_phases({}, {"cells": 30, "far": 0, "near": 2})[0] is FAILS

    @pytest.mark.parametrize(
        ("lead", "verdict"),
        [
            (Lead(0.03, 0.03, 0.004), HOLDS),
            (Lead(0.03, 1.1, 0.004), FAILS),
            (Lead(0.03, 0.03, 0.2), FAILS),
        ],
    )
    def test_one_phase(self, lead, verdict):
        assert judge_one_phase({"a": lead})[0] is verdict
        assert judge_one_phase({})[0] is FAILS

    @pytest.mark.parametrize(
        ("end", "verdict"),
        [
            (End(1e-5, 1e-4, 1e-9), HOLDS),
            (End(1e-2, 1e-4, 1e-9), FAILS),
            (End(1e-5, 1e-2, 1e-9), FAILS),
        ],
    )
    def test_theorem_4_1(self, end, verdict):
        assert judge_theorem({"a": end})[0] is verdict
        assert judge_theorem({})[0] is FAILS

    @pytest.mark.parametrize(
        ("fitted", "final", "time", "verdict"),
        [
            (Fit(0.61, 0.605), 0.999, 1.0, HOLDS),
            (Fit(0.63, 0.605), 0.999, 1.0, FAILS),
            (Fit(0.61, 0.65), 0.999, 1.0, FAILS),
            (Fit(0.61, 0.605), 1.1, 1.0, FAILS),
            (Fit(0.61, 0.605), 0.999, 1.01, FAILS),
        ],
    )
    def test_scaling(self, fitted, final, time, verdict):
        law = Law("exponent", "somewhere", fitted, 0.6)
        assert judge_scaling([law], {"z=1": final}, {"a": time})[0] is verdict
        assert judge_scaling([], {"z=1": 1.0}, {"a": 1.0})[0] is FAILS

    def test_pp_small(self):
        regime = runs.WIDE_GAP
        assert judge_pp({regime: Fit(-0.301, -0.3)}, 0.09, 0.1)[0] is HOLDS
        assert judge_pp({regime: Fit(-0.2, -0.2)}, 0.09, 0.1)[0] is FAILS
        assert judge_pp({}, 0.09, 0.1)[0] is FAILS

    @pytest.mark.parametrize(
        ("changes", "verdict"),
        [
            ({}, HOLDS),
            ({"features": 0.1}, FAILS),  # FP attention is as bad
            ({"best": 0.02, "lower": 0.02}, FAILS),  # positional attention is as good
            ({"lower": 0.05}, FAILS),  # not an optimum
            ({"positions": 0.09}, FAILS),  # the flow finds something better
            ({"clusters": 1}, FAILS),  # nothing with two partitions
        ],
    )
    def test_positional(self, changes, verdict):
        one = Comparison(2, 0.02, 0.2, 0.1, 0.1 - 1e-9, 0.1001, 0.02001, 0.02001)
        assert judge_positional({"a": dataclasses.replace(one, **changes)})[0] is verdict

    def test_reduced(self):
        assert judge_reduced(1e-15, 0.0, 1e-15, 3.0)[0] is HOLDS
        for numbers in ((1e-9, 0.0, 0.0, 3.0), (1e-15, 1e-20, 0.0, 3.0), (1e-15, 0.0, 1e-3, 3.0),
                        (1e-15, 0.0, 0.0, 0.1)):  # fmt: skip
            assert judge_reduced(*numbers)[0] is FAILS


class TestPositionalAttention:
    """The convex form against the enumeration of all masks, which it does not use."""

    PROBLEMS = (
        runs.ONE_CLUSTER.replace(z_low=0.8, z_high=1.6),
        runs.TWO_CLUSTERS.replace(z_low=1.6, mask_ratio=0.25),
        runs.GRID,
    )

    @pytest.mark.parametrize("problem", PROBLEMS)
    def test_loss_of_any_row_is_that_of_the_population(self, problem):
        rng = np.random.default_rng(0)
        population, form = MaskedPopulation(problem, "enumeration", 1e-10), quadratic(problem)
        layout = problem.layout
        for _ in range(5):
            state = problem.initial_state
            state[layout.phi_slots :] = rng.normal(size=layout.size.size)
            weights = layout.size * np.exp(state[layout.cell_slot])
            mass = (weights / weights.sum())[:-1]
            assert form.loss(mass) == pytest.approx(population.evaluate(state).loss, rel=1e-9)
        start = population.evaluate(problem.initial_state).loss
        assert form.at_start == pytest.approx(start, rel=1e-9)

    @pytest.mark.parametrize("problem", PROBLEMS)
    def test_no_row_is_better(self, problem):
        rng = np.random.default_rng(1)
        form, optimum = quadratic(problem), best(problem)
        rows = rng.dirichlet(np.full(form.b.size + 1, 0.3), size=2000)[:, :-1]
        assert min(form.loss(row) for row in rows) >= optimum.lower
        assert optimum.loss - optimum.lower <= 1e-6 * optimum.loss
        assert optimum.mass.sum() == pytest.approx(1.0)
        assert optimum.mass.min() >= 0.0

    def test_one_cluster_by_hand(self):
        """Uniform weight on the C - 1 others of the area: a convex problem in one number."""
        problem = runs.ONE_CLUSTER  # P = 12, 6 masked, p in an area of 3
        one, two = 6 / 11, 6 * 5 / (11 * 10)
        share = two + (one - two) / 2
        w = min(1.0, one / share)
        expected = 0.25 * (1.0 - 2.0 * one * w + share * w * w)
        assert best(problem).loss == pytest.approx(expected, rel=1e-9)

    def test_the_flow_of_positions_ends_there(self):
        run = gradient_flow(
            MaskedPopulation(runs.ONE_CLUSTER, moving="positions"), horizon=1e6, records=20
        )
        assert run.loss[-1] == pytest.approx(best(runs.ONE_CLUSTER).loss, rel=1e-4)
        assert np.all(run.loss >= best(runs.ONE_CLUSTER).lower)

    def test_needs_partitions(self):
        with pytest.raises(ParameterError, match="partitions must be given explicitly"):
            best(MaskedProblem.two_phases())


def test_the_oracle_disagrees_with_another_problem():
    """The comparison behind Lemmas 5.1 and 5.2 can fail."""
    problem = runs.ORACLE_PROBLEMS[0]
    other = MaskedPopulation(problem.replace(z_low=1.2))
    state = np.random.default_rng(0).normal(size=len(problem.order_parameters))
    gap = np.abs(MaskedPopulation(problem).gradient(state) - other.gradient(state)).max()
    assert gap > 1e-3
    assert runs.agreement(2, 0).features < 1e-15
