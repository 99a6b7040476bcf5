"""Claims that train on finite samples: numbers, rows of the tables, and the runs behind them."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure as Canvas

from dynamics.positional.baselines.linear_models import uniform_error
from simulations.files import write_dataset
from simulations.positional import (
    initialization_runs,
    training_runs,
    transfer_runs,
)
from simulations.positional.claims import (
    encodings,
    figure_4,
    realistic_tracks_idealized,
    theorem_4_2,
    theorem_5_1,
    theorem_5_2,
    transfer_partial,
)
from simulations.positional.learners import PRETRAINED, SCRATCH, UNIFORM
from simulations.positional.transfer_statistics import Sweep, SweepConfig
from simulations.reproduction import intervals
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import claim_ids, load
from tests.closeness import close, within
from tests.simulations.quick import figures, result

CLAIMS = (
    "figure-1b", "theorem-4.2", "figure-4", "realistic-tracks-idealized", "random-initialization",
    "encodings", "theorem-5.1", "theorem-5.2", "transfer-partial",
)  # fmt: skip
OWN_CRITERION = (
    "theorem-4.2", "figure-4", "realistic-tracks-idealized", "random-initialization", "encodings",
    "figure-2",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def fewer_runs():
    """Train fewer networks for the claims of Section 5 than a quick run of the report."""
    with pytest.MonkeyPatch.context() as patch:
        for name, most in (("sweep_configs", 3), ("theorem_5_1_configs", 100)):
            patch.setattr(transfer_runs, name, at_most(most, getattr(transfer_runs, name)))
        yield


def at_most(runs, entries):
    """Return a function that limits the runs of each entry."""
    return lambda *sizes: [x._replace(runs=min(x.runs, runs)) for x in entries(*sizes)]


def test_claims_are_in_the_order_of_the_paper():
    assert tuple(claim_id for claim_id in claim_ids() if claim_id in CLAIMS) == CLAIMS


@pytest.mark.slow
@pytest.mark.parametrize("claim_id", CLAIMS)
@pytest.mark.traced
class TestOutcome:
    def test_figure_draws_again_from_its_file_and_no_legend_covers_data(self, claim_id, tmp_path):
        for figure in figures((claim_id,)):
            assert len(figure.caption) > 100
            path = tmp_path / f"{figure.name}.nc"
            write_dataset(path, figure.data)
            canvas = Canvas(figsize=figure.size, layout="constrained")
            with xarray.open_dataset(path, engine="h5netcdf") as data:
                assert figure.draw.func(data.load(), canvas)
            assert_no_legend_covers_data(canvas)


def assert_no_legend_covers_data(canvas):
    canvas.draw_without_rendering()
    for ax in canvas.axes:
        if ax.get_legend() is not None:
            box = ax.get_legend().get_window_extent()
            for line in ax.lines:
                points = ax.transData.transform(np.column_stack(line.get_data()))
                inside = box.count_contains(points[np.isfinite(points).all(axis=1)])
                assert len(points) <= 2 or not inside


@pytest.mark.parametrize("claim_id", OWN_CRITERION)
def test_criterion_names_all_three_verdicts(claim_id):
    text = load(claim_id).criterion
    assert "HOLDS" in text
    assert "FAILS" in text
    assert "finding" in text.lower()


@pytest.mark.slow
class TestNumbers:
    def test_error_is_that_of_uniform_attention_with_A_reset(self):
        larger = result("theorem-4.2").tables["settings"].data.loc[training_runs.LARGE]
        assert larger.test_error < 0.01
        floor = uniform_error(training_runs.SMALL).coin  # exact, without any training
        within(larger.control, floor, 0.012)

    def test_error_falls_before_patch_association_at_the_public_settings(self):
        quick = result("figure-4")
        public = quick.tables["panels"].data.loc[training_runs.PUBLIC]
        assert 1 <= public.learned <= 4  # the step itself, not a record after it
        assert public.associated > 50 * public.learned
        assert "cannot be verified" in quick.measurement.settings["source of the public settings"]
        within(public.test_error, public.control, 0.01)

    def test_distance_from_the_semi_realistic_process_falls_as_a_square_root(self):
        exponent = result("realistic-tracks-idealized").tables["distances"].data.exponent
        within(exponent["semi-realistic", 20], -0.5, 0.12)
        within(exponent["paper's start", 20], 0.0, 0.12)

    def test_association_is_lost_later_with_more_samples(self):
        tables = result("theorem-4.2").tables
        growth = tables["growth"].data.iloc[0]
        assert growth.growth > 0.0
        assert growth.growth_of_need > 0.0
        assert tables["settings"].rows.index.tolist() == [training_runs.LARGE]
        larger = result("figure-4").tables["panels"].data.loc[training_runs.LARGE]
        assert larger.associated < larger.learned

    def test_random_scores_prevent_association_but_not_a_small_error(self):
        quick = result("random-initialization")
        assert quick.verdict is Verdict.FINDING
        zero, random = (quick.tables["starts"].data.loc[("D = 16", f"c = {c}")] for c in (0, 1))
        assert (zero.complete, random.complete) == (5, 0)
        floor = uniform_error(training_runs.SMALL).coin
        assert random.error < 2.0 * zero.error < floor

    def test_encodings_learn_the_sets_from_scores_of_zero(self):
        complete = result("encodings").tables["starts"].data.complete[16]
        assert complete["P from the identity"] == complete["A from 0"] == 5
        assert complete["A from the same P^T P"] == 0

    def test_summary_of_starts_has_means_intervals_and_complete_runs(self):
        shares = ((0.5, 1.0, 0.75), (0.25, 0.5, 0.25), (0.0, 1.0, 1.0))
        runs = [
            initialization_runs.TrainedRun(np.array(share), np.zeros(3), error, np.zeros((2, 2)))
            for share, error in zip(shares, (0.01, 0.02, 0.03))
        ]
        summary = initialization_runs.summary(runs)
        assert list(initialization_runs.COLUMNS) == sorted(
            summary, key=list(initialization_runs.COLUMNS).index
        )
        assert (summary["runs"], summary["complete"]) == (3, 2)
        assert (summary["best_least"], summary["share_greatest"]) == (0.5, 1.0)
        close([summary["share"], summary["best"]], [2.0 / 3.0, 2.5 / 3.0], rel=1e-12)
        close(summary["error_high"], intervals.of_mean([0.01, 0.02, 0.03])[1], rel=1e-12)
        assert summary["best_high"] == 1.0  # a share is at most 1

    def test_descent_in_P_is_stable_at_the_largest_size(self):
        """Use a run that diverges at step 127 at twice the rate, without association before."""
        start = encodings.starts()[encodings.P_RANDOM]
        run = initialization_runs.train_from(
            initialization_runs.problem_of(48), start, 130, seed=0, number=2
        )
        assert run.share[-1] > 0.8

    def test_the_attention_shows_both_partitions(self):
        assert result("figure-1b").verdict is Verdict.HOLDS

    def test_transfer_needs_few_samples_and_training_from_scratch_many(self):
        needed = result("theorem-5.1").tables["samples needed"].data.needed
        few, many = needed[PRETRAINED, 32], needed[SCRATCH, 32]
        assert few <= 4.0
        assert many > 20.0 * few


class TestRows:
    """Rows of constructed runs, and the rows that are judged."""

    def test_panels_of_a_run_that_never_associates(self):
        def run(rows, learned):
            history = SimpleNamespace(cosine=[0.9, 0.99], test_error=[0.5, 0.1])
            window = training_runs.window(np.array(rows) == 1.0)
            return SimpleNamespace(
                association=np.array(rows), gap=np.array([0.1, 0.3, -0.2]), history=history,
                control=[0.5, 0.2], learned=learned, window=window,
            )  # fmt: skip

        both = figure_4.panels([run([0.0, 1.0, 1.0], 1.0), run([0.0, 0.5, 0.5], 2.0)])
        assert (both["matches"], both["once"]) == (False, False)
        assert math.isnan(both["associated"])
        assert (both["first_associated"], both["first_learned"], both["learned"]) == (1.0, 1.0, 2.0)
        assert (both["gap"], both["highest_gap"]) == (-0.2, 0.3)
        assert math.isnan(both["mean_associated_low"])
        assert figure_4.panels([run([0.0, 0.5, 1.0], 1.0)])["associated"] == 2.0

    def test_span_counts_missing_runs_and_needs_three_for_an_interval(self):
        span = theorem_4_2._span("lost", [10.0, 30.0, math.nan, math.inf])
        counts = [span[f"lost_{name}"] for name in ("runs", "never", "beyond")]
        assert counts == [2, 1, 1]
        assert (span["lost_least"], span["lost_greatest"]) == (10.0, 30.0)
        assert math.isnan(span["lost"])
        assert theorem_4_2._span("lost", [10.0, 30.0, 20.0])["lost"] == 20.0
        assert math.isnan(theorem_4_2._span("lost", [math.inf])["lost_least"])

    def test_samples_needed_are_judged_at_the_largest_size_without_a_pretrained_A(self):
        sweeps = {
            SweepConfig(learner, 8.0, D, (2, 64), 5): Sweep(
                learner,
                transfer_runs.downstream(D, 8.0),
                (2, 64),
                np.array([[0.2] * 5, [last] * 5]),
            )
            for learner, last in ((PRETRAINED, 0.001), (UNIFORM, 0.1))
            for D in (16, 32)
        }
        table = theorem_5_2.NEEDED.check(theorem_5_2.NEEDED.frame(theorem_5_2.needed(sweeps, 0)))
        assert table.rows.index.tolist() == [(UNIFORM, 8.0, 32)]
        assert table.verdict is Verdict.HOLDS  # not reached counts as more
        assert table.data.needed.isna().tolist() == [False, False, True, True]
        close(table.data.few.iloc[-1], math.log(32) ** 2, rel=1e-12)

    def test_few_samples_are_judged_within_the_hypotheses(self):
        row = {"error_high": 0.01, "more_low": 0.0, "q": 0.25, "label_error": 0.0025}
        rows = [
            row | {"D": D} | change
            for D, change in enumerate(({}, {"q": 0.26}, {"label_error": 0.0026}))
        ]
        table = theorem_5_1.FEW.check(theorem_5_1.FEW.frame(rows))
        assert table.rows.index.get_level_values("D").tolist() == [0]

    def test_the_shifted_process_is_not_judged(self):
        layout = realistic_tracks_idealized.DISTANCES
        starts = ("semi-realistic", "same alpha(0)", "paper's start", "shifted in time")
        rows = [
            {"other": other, "step": 20, "exponent_low": -0.2, "exponent_high": -0.1}
            for other in starts
        ]
        table = layout.check(layout.frame(rows))
        assert table.judged.tolist() == [True, True, True, False]
        assert table.verdict is Verdict.FAILS
        assert layout.check(layout.frame(rows[2:])).verdict is Verdict.FINDING

    def test_deviation_from_the_line_between_the_ends(self):
        problem = transfer_runs.downstream(32, 8.0)
        sweeps = {
            share: Sweep("", problem, (1, 4), np.array([[0.4] * 5, [error] * 5]))
            for share, error in ((1.0, 0.0), (0.5, 0.08), (0.0, 0.1))
        }
        table = transfer_partial.SHARES.frame(transfer_partial.rows(sweeps, 0))
        close(table.deviation[0.5], (0.08 - 0.05) / 0.1, rel=1e-12)
        close(table.floor[0.5], 0.08, rel=1e-12)
        assert math.isnan(table.needed[0.5])
        checked = transfer_partial.SHARES.check(table)
        assert checked.rows.index.tolist() == [0.5]
        assert checked.verdict is Verdict.FINDING
