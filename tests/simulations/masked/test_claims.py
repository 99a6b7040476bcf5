"""The claims of the second theory: measured quickly, and able to come out otherwise."""

import dataclasses

import numpy as np
import pytest

from dynamics import ParameterError, gradient_flow
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked.best_positional_attention import best, quadratic
from simulations.files.store import write_dataset
from simulations.masked import runs
from simulations.masked.claims import PAPER
from simulations.masked.claims.diversity import (
    AREA,
    GLOBAL,
    MASKED,
    POSITIONAL,
    TRAINED,
    UNTRAINED,
    Maps,
    model,
    problem_of,
)
from simulations.masked.claims.diversity import judge as judge_diversity
from simulations.masked.claims.lemma_5_1 import judge as judge_5_1
from simulations.masked.claims.lemma_5_2 import judge as judge_5_2
from simulations.masked.claims.one_phase import Lead
from simulations.masked.claims.one_phase import judge as judge_one_phase
from simulations.masked.claims.positional_is_not_enough import Comparison, Pair, shuffled
from simulations.masked.claims.positional_is_not_enough import judge as judge_positional
from simulations.masked.claims.pp_small import judge as judge_pp
from simulations.masked.claims.reduced_equals_full import judge as judge_reduced
from simulations.masked.claims.scaling import Law, Ratio
from simulations.masked.claims.scaling import judge as judge_scaling
from simulations.masked.claims.theorem_4_1 import End, Rate
from simulations.masked.claims.theorem_4_1 import judge as judge_theorem
from simulations.masked.claims.two_phases import Cells, Phases
from simulations.masked.claims.two_phases import judge as judge_two_phases
from simulations.reproduction.claim import Verdict
from simulations.reproduction.fits import Exponent, exponent
from simulations.reproduction.registry import claim_ids, load
from tests.closeness import close
from tests.simulations.quick import figures, verdict

IDS = tuple(claim_id for claim_id in claim_ids() if claim_id.startswith("huang-"))
HOLDS, FAILS, FINDING = Verdict.HOLDS, Verdict.FAILS, Verdict.FINDING


class TestQuickRuns:
    @pytest.mark.slow
    @pytest.mark.traced
    @pytest.mark.parametrize("claim_id", IDS)
    def test_holds_and_says_what_it_measured(self, claim_id):
        claim = load(claim_id)
        assert claim.paper is PAPER
        expected = FINDING if claim_id == "huang-positional-is-not-enough" else HOLDS
        assert verdict(claim_id) is expected
        assert claim.criterion.endswith(".")
        assert figures((claim_id,))

    def test_they_come_after_those_of_the_first_paper(self):
        first = claim_ids().index(IDS[0])
        assert claim_ids()[first : first + len(IDS)] == IDS
        assert len(IDS) == 13

    @pytest.mark.slow
    @pytest.mark.traced
    def test_figures_are_drawn_from_their_stored_data(self, tmp_path):
        from matplotlib.figure import Figure as Canvas

        drawn = figures(IDS)
        assert len({figure.name for figure in drawn}) == len(drawn)
        for figure in drawn:
            write_dataset(tmp_path / f"{figure.name}.nc", figure.data)
            canvas = Canvas(figsize=figure.size, layout="constrained")
            figure.draw(canvas)
            canvas.canvas.draw()
            assert any(ax.lines or ax.collections for ax in canvas.axes)

    @pytest.mark.slow
    def test_times_of_an_independent_computation(self):
        """Another program, from the exact dynamics, gave these exponents over P = 1e6 .. 1e12."""
        P = [10**e for e in range(6, 13)]
        for regime, time in ((runs.WIDE_GAP, 0.711), (runs.IN_GLOBAL, 0.047)):
            times = [runs.events(regime.problem(size)).found.time for size in P]
            slope = np.polyfit(np.log(np.array(P, float)), np.log(times), 1)[0]
            assert slope == pytest.approx(time, abs=1e-3)


class TestExponents:
    SIZES = 10.0 ** np.arange(6, 61, 6)

    @pytest.mark.parametrize(
        "factor",
        [
            lambda P: 1.0 + 5.0 * P**-0.05,
            lambda P: 1.0 - 0.5 * P**-0.02,
            lambda P: np.log(P),
            lambda P: 1.0 / np.log(P) ** 2,
            lambda P: 7.0 + 0.0 * P,
        ],
    )
    def test_the_limit_is_inside(self, factor):
        found = exponent(self.SIZES, self.SIZES**0.3 * factor(self.SIZES))
        assert found.allows(0.3)
        assert found.resolves(0.3, 0.1)
        assert not found.allows(0.35)
        assert not found.allows(0.25)

    def test_what_does_not_settle_is_not_resolved(self):
        x = np.log(self.SIZES)
        found = exponent(self.SIZES, np.exp(0.001 * x**2))
        assert not found.resolves(found.last, 0.1)

    def test_needs_four_sizes_in_equal_ratios(self):
        for sizes in (self.SIZES[:3], self.SIZES[[0, 1, 2, 4]]):
            with pytest.raises(ValueError, match="four sizes"):
                exponent(sizes, sizes)


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
        found = judge_two_phases({"a": one}, Cells(30, wrong, 2))
        assert found[0] is verdict
        assert judge_two_phases({}, Cells(30, 0, 2))[0] is FAILS

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
            (End(0.9e-4, 1e-4, 0.0, 1.0), HOLDS),
            (End(1.1e-4, 1e-5, 1e-9, 1.0), FAILS),
            (End(1e-5, 1.1e-4, 1e-9, 1.0), FAILS),
        ],
    )
    def test_theorem_4_1(self, end, verdict):
        rate = Rate("time", Exponent((0.55, 0.55, 0.55), 0.549, 0.551), 0.55)
        assert judge_theorem({"a": end}, [rate])[0] is verdict
        assert judge_theorem({}, [rate])[0] is FAILS
        assert judge_theorem({"a": end}, [])[0] is FAILS

    @pytest.mark.parametrize(
        ("low", "high", "recalled", "verdict"),
        [
            (0.40, 0.42, False, HOLDS),
            (0.56, 0.57, False, FAILS),
            (0.56, 0.57, True, FINDING),
            (0.40, 0.60, False, FINDING),
        ],
    )
    def test_rates_of_theorem_4_1(self, low, high, recalled, verdict):
        rate = Rate("time", Exponent((low, low, high), low, high), 0.55, recalled)
        assert judge_theorem({"a": End(1e-5, 1e-5, 0.0, 1.0)}, [rate])[0] is verdict

    @pytest.mark.parametrize(
        ("low", "high", "final", "time", "verdict"),
        [
            (0.595, 0.605, 0.999, 1.0, HOLDS),
            (0.601, 0.605, 0.999, 1.0, FAILS),
            (0.5, 0.7, 0.999, 1.0, FINDING),
            (0.595, 0.605, 1.1, 1.0, FAILS),
            (0.595, 0.605, 0.999, 1.01, FAILS),
        ],
    )
    def test_scaling(self, low, high, final, time, verdict):
        law = Law("exponent", "somewhere", Exponent((low, low, high), low, high), 0.6)
        finals, times = {"z=1": Ratio(final, 4e-3)}, {"a": Ratio(time, 1e-3)}
        assert judge_scaling([law], finals, times)[0] is verdict
        assert judge_scaling([], finals, times)[0] is FAILS

    def test_pp_small(self):
        regime = runs.WIDE_GAP
        assert judge_pp({regime: Exponent((-0.3,) * 3, -0.301, -0.299)}, 0.09, 0.1)[0] is HOLDS
        assert judge_pp({regime: Exponent((-0.2,) * 3, -0.201, -0.199)}, 0.09, 0.1)[0] is FAILS
        assert judge_pp({}, 0.09, 0.1)[0] is FAILS

    @pytest.mark.parametrize(
        ("changes", "verdict"),
        [
            ({}, HOLDS),
            ({"features": 0.1}, FAILS),  # FP attention is as bad
            ({"single": 0.0999}, FAILS),  # a second partition costs less than FP attention leaves
            ({"lower": 0.05}, FAILS),  # not an optimum
            ({"positions": 0.09}, FAILS),  # the flow finds something better
            ({"clusters": 1}, FAILS),  # nothing with two partitions
        ],
    )
    def test_positional(self, changes, verdict):
        one = Comparison(2, 0.02, 0.2, 0.1, 0.1 - 1e-9, 0.1001, 0.0202, 0.0202, 0.06)
        found = {"a": dataclasses.replace(one, **changes)}
        assert judge_positional(found, {"b": Pair(0.1, [0.2, 0.3], [0, 2])})[0] is verdict
        assert judge_positional(found, {})[0] is FAILS
        assert judge_positional({"a": one}, {"b": Pair(0.1, [0.2, 0.1], [0, 2])})[0] is FINDING
        assert judge_positional({"a": one}, {"b": Pair(0.1, [0.1, 0.3], [0, 2])})[0] is FAILS

    def test_diversity(self):
        values = {
            TRAINED: [24.0, 24.1],
            MASKED: [23.0],
            AREA: [24.5],
            GLOBAL: [20.0],
            POSITIONAL: [24.0],
            UNTRAINED: [25.3],
        }
        share = dict.fromkeys(values, 0.98) | {POSITIONAL: 0.5, UNTRAINED: 0.15}
        assert judge_diversity({"a": Maps(values, share, share)})[0] is HOLDS
        assert judge_diversity({"a": Maps(values | {MASKED: [19.0]}, share, share)})[0] is FAILS
        assert judge_diversity({"a": Maps(values, share | {POSITIONAL: 0.99}, share)})[0] is FAILS
        assert judge_diversity({})[0] is FAILS

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
            close(form.loss(mass), population.evaluate(state).loss, rel=1e-9)
        start = population.evaluate(problem.initial_state).loss
        close(form.at_start, start, rel=1e-9)

    @pytest.mark.parametrize("problem", PROBLEMS)
    def test_no_row_is_better(self, problem):
        rng = np.random.default_rng(1)
        form, optimum = quadratic(problem), best(problem)
        rows = rng.dirichlet(np.full(form.b.size + 1, 0.3), size=2000)[:, :-1]
        assert min(form.loss(row) for row in rows) >= optimum.lower
        assert optimum.loss - optimum.lower <= 1e-6 * optimum.loss
        close(optimum.mass.sum(), 1.0, rel=1e-12)
        assert optimum.mass.min() >= 0.0

    def test_one_cluster_by_hand(self):
        """Uniform weight on the C - 1 others of the area: a convex problem in one number."""
        problem = runs.ONE_CLUSTER  # P = 12, 6 masked, p in an area of 3
        one, two = 6 / 11, 6 * 5 / (11 * 10)
        share = two + (one - two) / 2
        w = min(1.0, one / share)
        expected = 0.25 * (1.0 - 2.0 * one * w + share * w * w)
        close(best(problem).loss, expected, rel=1e-9)

    def test_the_flow_of_positions_ends_there(self):
        run = gradient_flow(
            MaskedPopulation(runs.ONE_CLUSTER, moving="positions"), horizon=1e6, records=20
        )
        close(run.loss[-1], best(runs.ONE_CLUSTER).loss, rel=1e-4)
        assert np.all(run.loss >= best(runs.ONE_CLUSTER).lower)

    def test_needs_partitions(self):
        with pytest.raises(ParameterError, match="partitions must be given explicitly"):
            best(MaskedProblem.two_phases())


def test_one_common_patch_is_enough_where_only_p_is_masked():
    """By hand: all weight on patches that share p's area in both partitions leaves nothing."""
    together = MaskedProblem(
        P=6, partitions=(((0, 1, 2), (3, 4, 5)), ((0, 1, 3), (2, 4, 5))), query=5, mask_ratio=1 / 6
    )
    assert best(together).loss == pytest.approx(0.0, abs=1e-9)
    apart = together.replace(partitions=(((0, 1), (2, 3), (4, 5)), ((0, 4), (1, 2), (3, 5))))
    weight = 1 / 2 * (2 * 0.5**2 + 0.0)  # half on each partner: (1/4 + 1/4) / 2 per cluster, / 2
    close(best(apart).lower, weight / 6, rel=1e-6)
    p = shuffled((12, 6, 6, 6, 6), 2, 3)
    assert p.own_size(0) == p.own_size(1) == 6


@pytest.mark.slow
def test_trained_rows_are_those_of_each_query():
    """A query that is not the first of its cell, trained by itself, has the row of the model."""
    rows, weights = model(0)
    close(weights.sum(axis=1), 1.0, rel=1e-12)
    p = 195
    problem = problem_of(0, p)
    run = gradient_flow(
        MaskedPopulation(problem), horizon=runs.natural_horizon(problem, 1e-3), rtol=1e-6
    )
    assert rows[p] == pytest.approx(run.final[runs.columns_of(problem)], rel=1e-3, abs=1e-4)


def test_the_oracle_disagrees_with_another_problem():
    """The comparison behind Lemmas 5.1 and 5.2 can fail."""
    problem = runs.ORACLE_PROBLEMS[0]
    other = MaskedPopulation(problem.replace(z_low=1.2))
    state = np.random.default_rng(0).normal(size=len(problem.order_parameters))
    gap = np.abs(MaskedPopulation(problem).gradient(state) - other.gradient(state)).max()
    assert gap > 1e-3
    assert runs.agreement(2, 0).features < 1e-15
