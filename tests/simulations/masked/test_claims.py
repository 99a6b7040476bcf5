"""The claims of the second theory: measured quickly, and able to come out otherwise."""

import numpy as np
import pytest

from dynamics import ParameterError, gradient_flow
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked.best_positional_attention import best, quadratic
from simulations.files.store import write_dataset
from simulations.masked import runs
from simulations.masked.claims import PAPER
from simulations.masked.claims.diversity import model, problem_of
from simulations.masked.claims.positional_is_not_enough import shuffled
from simulations.reproduction.fits import exponent
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import claim_ids, load
from tests.closeness import close
from tests.simulations.quick import figures, result

IDS = tuple(claim_id for claim_id in claim_ids() if claim_id.startswith("huang-"))


class TestQuickRuns:
    @pytest.mark.slow
    @pytest.mark.traced
    @pytest.mark.parametrize("claim_id", IDS)
    def test_holds_at_the_sizes_of_the_quick_run(self, claim_id):
        expected = Verdict.HOLDS
        if claim_id == "huang-positional-is-not-enough":
            expected = Verdict.FINDING
        assert load(claim_id).paper is PAPER
        assert result(claim_id).verdict is expected
        assert result(claim_id).measured.figures

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
        assert found.low <= 0.3 <= found.high
        assert found.high - found.low <= 2 * 0.1 * 0.3
        assert not found.low <= 0.35 <= found.high
        assert not found.low <= 0.25 <= found.high

    def test_what_does_not_settle_is_not_resolved(self):
        x = np.log(self.SIZES)
        found = exponent(self.SIZES, np.exp(0.001 * x**2))
        assert found.high - found.low > 2 * 0.1 * found.last

    def test_needs_four_sizes_in_equal_ratios(self):
        for sizes in (self.SIZES[:3], self.SIZES[[0, 1, 2, 4]]):
            with pytest.raises(ValueError, match="four sizes"):
                exponent(sizes, sizes)


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
