"""Claims of masked image modelling: verdicts of the quick run, figures, and their numbers."""

import numpy as np
import pytest

from dynamics import ParameterError, gradient_flow
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked.best_positional_attention import best, quadratic
from simulations.files import write_dataset
from simulations.masked import runs
from simulations.masked.claims import PAPER, growth_stages, loss_lemma
from simulations.masked.claims.diversity import model, problem_of
from simulations.masked.claims.positional_is_not_enough import shuffled
from simulations.reproduction.fits import exponent
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import claim_ids, load
from tests.closeness import close, within
from tests.simulations.quick import figures, result

IDS = tuple(claim_id for claim_id in claim_ids() if claim_id.startswith("huang-"))


class TestQuickRuns:
    @pytest.mark.slow
    @pytest.mark.traced
    @pytest.mark.parametrize("claim_id", IDS)
    def test_verdicts_of_the_quick_run(self, claim_id):
        expected = Verdict.HOLDS
        if claim_id in ("huang-positional-is-not-enough", "huang-optimizers"):
            expected = Verdict.FINDING
        assert load(claim_id).paper is PAPER
        assert result(claim_id).verdict is expected
        assert result(claim_id).measurement.figures

    def test_registry_lists_the_claims_together(self):
        first = claim_ids().index(IDS[0])
        assert claim_ids()[first : first + len(IDS)] == IDS
        assert len(IDS) == 14

    @pytest.mark.slow
    @pytest.mark.traced
    def test_figures_are_drawn_from_their_stored_data(self, tmp_path):
        from matplotlib.figure import Figure as Canvas

        all_figures = figures(IDS)
        assert len({figure.name for figure in all_figures}) == len(all_figures)
        for figure in all_figures:
            write_dataset(tmp_path / f"{figure.name}.nc", figure.data)
            canvas = Canvas(figsize=figure.size, layout="constrained")
            figure.draw(canvas)
            canvas.canvas.draw()
            assert any(ax.lines or ax.collections for ax in canvas.axes)

    @pytest.mark.slow
    def test_times_equal_an_independent_computation(self):
        """Another program computed these exponents over P = 1e6 .. 1e12 from the exact dynamics."""
        P = [10**e for e in range(6, 13)]
        for regime, time in ((runs.WIDE_GAP, 0.711), (runs.IN_GLOBAL, 0.047)):
            times = [runs.events(regime.problem(size)).attended.time for size in P]
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
    def test_interval_contains_the_limit(self, factor):
        limit = exponent(self.SIZES, self.SIZES**0.3 * factor(self.SIZES))
        assert limit.low <= 0.3 <= limit.high
        assert limit.high - limit.low <= 2 * 0.1 * 0.3
        assert not limit.low <= 0.35 <= limit.high
        assert not limit.low <= 0.25 <= limit.high

    def test_a_changing_exponent_is_not_resolved(self):
        x = np.log(self.SIZES)
        fit = exponent(self.SIZES, np.exp(0.001 * x**2))
        assert fit.high - fit.low > 2 * 0.1 * fit.last

    def test_needs_four_sizes_in_equal_ratios(self):
        for sizes in (self.SIZES[:3], self.SIZES[[0, 1, 2, 4]]):
            with pytest.raises(ValueError, match="four sizes"):
                exponent(sizes, sizes)


class TestPositionalAttention:
    """The convex form against the enumeration of all masks."""

    PROBLEMS = (
        runs.ONE_CLUSTER.replace(z_low=0.8, z_high=1.6),
        runs.TWO_CLUSTERS.replace(z_low=1.6, mask_ratio=0.25),
        runs.GRID,
    )

    @pytest.mark.parametrize("problem", PROBLEMS)
    def test_loss_of_random_rows_equals_the_population(self, problem):
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
    def test_optimum_is_a_lower_bound(self, problem):
        rng = np.random.default_rng(1)
        form, optimum = quadratic(problem), best(problem)
        rows = rng.dirichlet(np.full(form.b.size + 1, 0.3), size=2000)[:, :-1]
        assert min(form.loss(row) for row in rows) >= optimum.lower
        assert optimum.loss - optimum.lower <= 1e-6 * optimum.loss
        close(optimum.mass.sum(), 1.0, rel=1e-12)
        assert optimum.mass.min() >= 0.0

    def test_one_cluster_in_closed_form(self):
        """With equal weights on the C - 1 other patches of the area there is one variable."""
        problem = runs.ONE_CLUSTER  # P = 12, 6 masked, p in an area of 3
        single, pair = 6 / 11, 6 * 5 / (11 * 10)  # probabilities that patches are unmasked
        share = pair + (single - pair) / 2
        w = min(1.0, single / share)
        expected = 0.25 * (1.0 - 2.0 * single * w + share * w * w)
        close(best(problem).loss, expected, rel=1e-9)

    def test_flow_of_positions_reaches_the_optimum(self):
        run = gradient_flow(
            MaskedPopulation(runs.ONE_CLUSTER, moving="positions"), horizon=1e6, records=20
        )
        close(run.loss[-1], best(runs.ONE_CLUSTER).loss, rel=1e-4)
        assert np.all(run.loss >= best(runs.ONE_CLUSTER).lower)

    def test_needs_partitions(self):
        with pytest.raises(ParameterError, match="partitions must be given explicitly"):
            best(MaskedProblem.two_phases())


def test_one_common_patch_suffices_if_only_p_is_masked():
    """The loss is zero with all weight on patches of p's area in both partitions."""
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
def test_trained_rows_equal_separate_flows():
    """The query is not the first one of its cell."""
    rows, weights = model(0)
    close(weights.sum(axis=1), 1.0, rel=1e-12)
    p = 195
    problem = problem_of(0, p)
    run = gradient_flow(
        MaskedPopulation(problem), horizon=runs.default_horizon(problem, 1e-3), rtol=1e-6
    )
    assert rows[p] == pytest.approx(run.final[runs.columns_of(problem)], rel=1e-3, abs=1e-4)


def test_oracle_detects_another_problem():
    """The comparison behind Lemmas 5.1 and 5.2 can fail."""
    problem = runs.ORACLE_PROBLEMS[0]
    other = MaskedPopulation(problem.replace(z_low=1.2))
    state = np.random.default_rng(0).normal(size=len(problem.order_parameters))
    gap = np.abs(MaskedPopulation(problem).gradient(state) - other.gradient(state)).max()
    assert gap > 1e-3
    assert runs.agreement(2, 0).features < 1e-15


class TestLossLemma:
    def test_uniform_attention_in_closed_form(self):
        # areas {0, 1} and {2, 3}, p = 2, two of four masked: {0, 2}, {1, 2} leave one patch of
        # each area (a_n = a_1 = 1/4), {2, 3} hides p's area (a_1 = 1/2)
        problem = MaskedProblem.from_sizes([2, 2], query=2)
        row = loss_lemma.at_random(problem, 0.0, (0,))
        close(row["raw"], (2 * (9 + 1) / 16 + 1 + 1 / 4) / 12, 1e-14)
        close(row["loss"], row["raw"], 1e-14)
        close(row["floor"], 1 / 12, 1e-14)
        close(row["shortfall"], 2 * (9 / 16) / 6, 1e-14)
        within(row["aligned"], row["floor"], 1e-14)

    def test_losses_do_not_depend_on_the_scale(self):
        problem = MaskedProblem.from_sizes([3, 2, 2], query=4)
        rows = [loss_lemma.at_random(problem.replace(z_low=z), 0.0, (1,)) for z in (1.0, 0.5)]
        close(rows[1], rows[0], 1e-13)


class TestGrowthStages:
    @pytest.mark.parametrize("regime", [runs.WIDE_GAP, runs.NARROW_GAP])
    def test_speed_peaks_at_an_attention_of_one_third(self, regime):
        stages = growth_stages.stages(regime.problem())
        within(stages["attention_peak"], 1 / 3, 0.03)  # the maximum of a (1 - a)^2
        assert 1.0 <= stages["lead_start"] < 1.1  # the switch
        close(stages["boost"], speed(1 / 3) / speed(stages["attention_start"]), 0.02)


def speed(attention: float) -> float:
    return attention * (1.0 - attention) ** 2
