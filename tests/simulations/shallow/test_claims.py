"""Claims of the shallow transformer: verdicts, figures, predicates, and the runs they share."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dynamics.shallow import ShallowPopulation, ShallowProblem
from simulations.files import write_dataset
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import claim_ids, load
from simulations.shallow import runs
from simulations.shallow.claims import PAPER, noise, sparsification
from simulations.shallow.claims.reduction import compare
from simulations.shallow.claims.sample_complexity import coupon_median
from tests.closeness import close, within
from tests.simulations.quick import figures, result

IDS = tuple(claim_id for claim_id in claim_ids() if claim_id.startswith("li-"))
HOLDS, FINDING = Verdict.HOLDS, Verdict.FINDING
EXPECTED = dict.fromkeys(
    ("li-reduction", "li-conserved", "li-theorem-1-iterations", "li-optimizers"), HOLDS
)


def test_registry_lists_the_claims_together():
    first = claim_ids().index(IDS[0])
    assert len(IDS) >= 3
    assert claim_ids()[first : first + len(IDS)] == IDS


@pytest.mark.slow
@pytest.mark.traced
@pytest.mark.parametrize("claim_id", IDS)
def test_verdicts_and_figures(claim_id):
    assert load(claim_id).paper is PAPER
    assert load(claim_id).criterion.endswith(".")
    assert result(claim_id).verdict is EXPECTED.get(claim_id, FINDING)
    assert figures((claim_id,))


@pytest.mark.slow
@pytest.mark.traced
def test_figures_are_drawn_from_their_stored_data(tmp_path):
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
class TestNumbers:
    def test_coupon_median(self):
        """Two types of samples have a closed form; six are simulated."""
        close(coupon_median(2), 2.0, rel=1e-10)
        samples = np.random.default_rng(0).integers(0, 6, (4000, 40))
        complete = [np.mean([len(set(row[:N])) == 6 for row in samples.tolist()]) for N in (12, 13)]
        assert complete[0] < 0.52
        assert complete[1] > 0.48
        assert 12.0 < coupon_median(6) < 13.0

    def test_half_passed(self):
        close(runs.half_passed([8, 32, 128], np.array([0.0, 0.25, 0.75])), 64.0, rel=1e-12)
        assert runs.half_passed([8, 32], np.array([0.6, 1.0])) == 8.0
        assert runs.half_passed([8, 32], np.array([0.0, 0.4])) == 32.0  # not within the range

    @pytest.mark.parametrize("other", ["nothing", "15 random"])
    @pytest.mark.parametrize(
        ("beyond", "shown", "absent"),
        [
            (1.02, True, False),
            (0.98, False, False),
            (-0.98, False, False),
            (-1.02, False, True),
        ],
    )
    def test_removal_helps_only_if_both_intervals_do(self, other, beyond, shown, absent):
        """The threshold is the half width of Student's interval at .9975."""
        signs = np.tile([1.0, -1.0], 8)  # 16 runs, standard error s / sqrt(15)
        half = stats.t.ppf(0.5 + 0.9975 / 2.0, 15) / math.sqrt(15.0)
        removed = np.full(16, 0.5)
        losses = {"nothing": np.full(16, 2.0), "15 random": np.full(16, 2.0)}
        losses |= {"15 irrelevant": removed}
        losses[other] = removed + 0.01 * (beyond * half + signs)
        table = pd.DataFrame([sparsification.against(losses, "15 irrelevant", 2)])
        assert sparsification.is_helpful(table).tolist() == [shown]
        assert sparsification.is_not_helpful(table).tolist() == [absent]

    def test_only_removal_of_relevant_tokens_must_raise_the_loss(self):
        table = result("li-sparsification").tables["losses"]
        assert table.rows.index.tolist() == [(2.0, "15 relevant"), (4.0, "15 relevant")]

    @pytest.mark.parametrize(
        ("low", "high", "shown", "absent"),
        [
            (1.01, 3.0, True, False),
            (1.01, 1.4, True, False),
            (1.0, 1.5, False, False),  # at both thresholds
            (1.0, 1.49, False, True),
            (0.5, 3.0, False, False),
        ],
    )
    def test_growth_is_decided_by_its_interval(self, low, high, shown, absent):
        table = pd.DataFrame({"growth_low": [low], "growth_high": [high]})
        assert noise.grows(table).tolist() == [shown]
        assert noise.does_not_grow(table).tolist() == [absent]

    def test_growth_without_attention_is_reported_only(self):
        table = result("li-noise").tables["growth"]
        decide = table.rows.index.get_level_values("run")
        assert set(decide) == {noise.WITH, noise.TRAINED}
        assert result("li-noise").tables["parts"].data.parts.item() == len(decide) == 6
        assert len(table.data) == 8

    def test_curve_has_smaller_tolerance_at_its_ends(self):
        allowed = result("li-proposition-2").tables["curve"].data.allowed
        assert allowed.tolist() == [0.02, 0.1, 0.1, 0.1, 0.1, 0.02]


def test_comparison_with_the_oracle_detects_another_rate(monkeypatch):
    """The comparison of `li-reduction` can fail."""
    from simulations.shallow.claims import reduction

    monkeypatch.setattr(reduction, "STEPS", 50)
    draw = (3, 3, 4, 6, 2, 2, 6)
    assert compare(draw, 0)[0].max() < 1e-13
    step = reduction.EVERY
    monkeypatch.setattr(reduction, "EVERY", 2 * step)
    close(compare(draw, 0)[0][-1] + 1.0, 1.0, rel=1e-12)
    from dynamics.shallow import oracle

    original = oracle.step
    monkeypatch.setattr(oracle, "step", lambda w, b, r: original(w, b, (r[0], 1.01 * r[1])))
    assert compare(draw, 0)[0].max() > 1e-6


class TestNoise:
    RUN = noise.RUNS[noise.WITHOUT]

    def test_without_attention_a_sample_is_equivalent_to_its_mean(self):
        """Training on means equals training on tokens, to rounding."""
        from dynamics.shallow import draw_tokens, train_on_tokens

        problem, rng = noise.problem(attend=False), np.random.default_rng(0)
        start = runs.token_start(problem, rng)
        tokens = draw_tokens(problem, 12, rng, noise=1.0)
        ends = [
            train_on_tokens(x, **start, steps=30, learning_rate=0.5, attention=False)
            for x in (tokens, noise.pooled(tokens))
        ]
        assert np.abs(ends[0].F).min() > 1e-3
        within(ends[1].F, ends[0].F, 1e-12)

    def test_errors_have_the_requested_norm_and_a_fixed_direction(self):
        problem = noise.problem(attend=True)
        small, large = (
            noise.perturbed_start(problem, np.random.default_rng(1), sigma=size, delta=2.0 * size)
            for size in (0.5, 1.0)
        )
        for name, size in (("V", 0.5), ("K", 1.0), ("Q", 1.0)):
            error = small[name] - np.eye(10, 5)
            within(np.linalg.norm(error, axis=0), size, 1e-14)
            within(large[name] - np.eye(10, 5), 2.0 * error, 1e-14)
        assert np.array_equal(small["W_O"], large["W_O"])

    def test_more_samples_leave_fewer_errors(self):
        few, many = (
            np.mean([noise.count_error({}, self.RUN, N, seed, 0) for seed in range(6)])
            for N in (8, 2048)
        )
        assert few > 0.2
        assert many == noise.count_error({}, self.RUN, None, 0, 0) == 0.0

    def test_half_of_sets_finds_the_median(self):
        """Each seed suffices from a known size on; the result is their median to a factor 2."""
        sizes = 3.0 * 1.5 ** np.arange(11)
        N, resampled = runs.half_of_sets(lambda pair: pair[0] >= sizes[pair[1]], 11, 0)
        assert sizes[5] / 2.0 < N < sizes[5] * 2.0
        low, high = np.quantile(resampled, [0.025, 0.975])
        assert sizes[1] < low < N < high < sizes[9]
        assert runs.half_of_sets(lambda _: False, 3, 0, most=128)[0] == 128.0


class TestRuns:
    PROBLEM = ShallowProblem(L=10, alpha_confusion=0.1, background="single", neurons=10, xi=0.1)

    def test_descend_equals_gradient_descent_on_the_population(self):
        """The recorded losses equal the ones of `gradient_descent` at the same times."""
        from dynamics import gradient_descent

        descent = runs.descend(self.PROBLEM, runs.symmetric_start(self.PROBLEM), 0.1, 0.7)
        run = gradient_descent(
            ShallowPopulation(self.PROBLEM),
            learning_rate=0.1,
            steps=40,
            record="linear",
            records=41,
        )
        within(descent.hinge[:41], run.loss, 1e-12)
        within(descent.attention[:41], run.attention, 1e-12)

    def test_level_is_reached_between_two_steps(self):
        descent = runs.descend(self.PROBLEM, runs.symmetric_start(self.PROBLEM), 0.1, 0.7)
        steps = int(descent.reached / 0.1)
        start = runs.symmetric_start(self.PROBLEM)
        before, after = (
            runs.descend(self.PROBLEM, start, 0.1, 0.0, most=number).hinge[-1]
            for number in (steps, steps + 1)
        )
        assert after < 0.7 <= before

    def test_map_in_threads_preserves_the_order(self):
        assert runs.map_in_threads(lambda n: n * n, range(20)) == [n * n for n in range(20)]
