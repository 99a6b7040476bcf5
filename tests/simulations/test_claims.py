"""Claims of Section 4.1: registry, verdicts, known numbers and figures."""

import math
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure as Canvas

from simulations.cli import build_parser
from simulations.figures import render
from simulations.files import write_dataset
from simulations.positional import reference_runs as runs
from simulations.positional.claims import gamma_ge_rho, lemma_4_3, reduced_equals_full
from simulations.reproduction.claim import Claim, Context
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import claim_ids, load, texts
from tests.closeness import close, within
from tests.simulations.quick import figures, result

SECTION_4_1 = (
    "lemma-4.1",
    "lemma-4.2",
    "lemma-4.3",
    "theorem-4.1",
    "events",
    "gamma-ge-rho",
    "optimizers",
    "sigma-a-breaks-symmetry",
    "reduced-equals-full",
)
#: Names of the figures.
FIGURES = (
    "three-values",
    "span-stability",
    "lemma-4-3-factor",
    "lemma-4-3-scaling",
    "theorem-4.1-horizons",
    "attention-matrix",
    "loss-and-error",
    "order-parameters",
    "phase-portrait",
    "gamma-rho-violation",
    "gamma-rho-condition",
    "symmetry-breaking",
    "reduced-against-full",
    "optimizers",
)
#: Claims whose criterion, horizon or rates were changed after a run.
AMENDED = {
    "theorem-3.1", "figure-2", "lemma-4.3", "gamma-ge-rho-boundary", "gamma-ge-rho-certified",
    "gamma-ge-rho", "random-initialization", "encodings", "figure-1a", "li-sample-complexity",
    "li-noise", "li-sparsification", "li-proposition-2", "transfer-partial",
    "theorem-4.2", "augmentation-makes-locality",
    "theory-in-context", "theory-induction", "theory-markov-chain",
    "theory-statistical-induction",
    "theorem-4.1-dimension", "lemma-D.11", "huang-loss-lemma", "equation-T",
    "theorem-4.2-one-rate", "huang-two-phases", "huang-one-phase", "huang-diversity",
    "li-theorem-1-iterations", "optimizers", "li-optimizers", "saad-solla", "single-location",
    "saad-solla-sgd", "figure-1b", "figure-4", "theorem-4.1-proved", "gamma-ge-rho-proved",
}  # fmt: skip


class TestRegistry:
    def test_changes_after_a_run_are_marked(self):
        assert {claim_id for claim_id in claim_ids() if "amended" in texts(claim_id)} == AMENDED

    def test_lists_every_claim_of_section_4_1_in_order(self):
        assert tuple(claim_id for claim_id in claim_ids() if claim_id in SECTION_4_1) == SECTION_4_1
        assert tuple(load(claim_id).id for claim_id in claim_ids()) == claim_ids()

    @pytest.mark.parametrize("claim_id", SECTION_4_1)
    def test_every_claim_has_its_texts(self, claim_id):
        claim = load(claim_id)
        assert isinstance(claim, Claim)
        assert "4.1" in claim.place
        assert claim.statement.endswith(".")
        assert claim.method.endswith(".")
        assert claim.criterion.endswith(".")
        assert claim.assumptions

    def test_listing_imports_no_solver_no_sympy_and_no_matplotlib(self):
        heavy = ("numba", "sympy", "matplotlib", "scipy", "xarray", "numpy")
        code = (
            "import sys\n"
            "from simulations.reproduction.registry import claim_ids, texts\n"
            "assert all(texts(claim_id)['method'] for claim_id in claim_ids())\n"
            f"print([name for name in {heavy!r} if name in sys.modules])"
        )
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert process.stdout.decode().strip() == "[]"


@pytest.fixture
def short_descents(monkeypatch):
    """Compare reduced and full-matrix descent over 60 steps; return the change of the rate."""
    descent, change = runs.full_descent, {"factor": 1.0}

    def short(problem, rate, steps, seed):
        return descent(problem, change["factor"] * rate, min(steps, 60), seed)

    monkeypatch.setattr(reduced_equals_full, "STEPS", 60)
    monkeypatch.setattr(runs, "full_descent", short)
    return change


@pytest.mark.slow
@pytest.mark.traced
class TestOutcomes:
    @pytest.mark.parametrize(
        ("claim_id", "expected"),
        [
            ("lemma-4.1", Verdict.HOLDS),
            ("lemma-4.2", Verdict.HOLDS),
            ("lemma-4.3", Verdict.FINDING),
            ("theorem-4.1", Verdict.HOLDS),
            ("events", Verdict.FINDING),
            ("gamma-ge-rho", Verdict.FAILS),
            ("sigma-a-breaks-symmetry", Verdict.HOLDS),
            ("reduced-equals-full", Verdict.HOLDS),
            ("optimizers", Verdict.FINDING),
        ],
    )
    def test_verdict(self, claim_id, expected):
        assert result(claim_id).verdict is expected

    def test_another_seed_holds_too_and_progress_is_a_rising_fraction(self, short_descents):
        seen = []
        other = load("reduced-equals-full").run(Context(quick=True, seed=7, progress=seen.append))
        assert other.verdict is Verdict.HOLDS
        assert seen == sorted(seen)
        assert 0.0 < seen[0] < seen[-1] <= 1.0


@pytest.mark.slow
class TestNumbers:
    """Numbers known from independent computations, and agreements between methods."""

    def test_events_of_the_base_problem(self):
        events = result("events").tables["events"].data
        row = events.loc[runs.describe(runs.BASE)]
        close(row.T1, 3.2e3, rel=0.02)
        close(row.alpha, 0.0398, rel=0.002)
        close(row.gamma, 3.45, rel=0.002)
        assert row.after_event_I == "falls"
        assert math.isnan(events.T1[runs.describe(runs.CROWDED)])

    def test_violation_of_gamma_ge_rho(self):
        named = result("gamma-ge-rho").tables["problems"].data.loc["named"]
        crowded = named.loc[runs.describe(runs.CROWDED)]
        within(crowded.violation, 1.39, absolute=0.01)
        within(crowded.first_violation, 0.16, absolute=0.01)
        close(crowded.last_violation, 3.2e4, rel=0.02)
        assert named.violation[runs.describe(runs.BASE)] == 0.0
        assert named.final_gap[runs.describe(runs.TINY)] < -10.0

    def test_the_condition_decides_every_problem(self):
        tables = result("gamma-ge-rho").tables
        (condition,) = tables["condition"].data.itertuples()
        assert condition.decided == condition.problems
        failures = tables["samples"].data.failures
        assert 0 < failures[gamma_ge_rho.CROWDED] < 8  # not all on one side
        groups = tables["groups of the samples"].data.failures_by_group
        assert groups.groupby("range").sum().to_dict() == failures.to_dict()

    def test_judged_are_problems_within_the_hypotheses_but_not_named_ones(self):
        table = result("gamma-ge-rho").tables["problems"]
        assert not table.judged["named"].any()
        assert table.judged["chosen"].all()
        assert not table.judged[gamma_ge_rho.CROWDED].any()

    def test_asymmetry_grows_at_the_eigenvalue_of_the_saddle(self):
        tables = result("sigma-a-breaks-symmetry").tables
        symmetric = tables["sigma_A = 0"].data.loc[0.0]
        close(tables["sigma_A > 0"].data.growth_rate[1e-6], symmetric.saddle_rate, rel=0.05)
        assert symmetric.largest_G_change == 0.0

    def test_test_error_never_beats_the_best_rule(self):
        outside = result("theorem-4.1").tables["outside"].data
        assert {runs.describe(p) for p in (runs.BASE, runs.CROWDED, runs.TINY)} <= {*outside.index}
        assert (outside.test_error >= outside.best_error).all()
        assert (outside.best_error < outside.label_error).all()

    def test_exponents_of_factors_are_those_of_powers(self):
        d = np.array([256, 512, 1024])
        scale = lemma_4_3.polylog(d)
        factors = lemma_4_3.FACTORS.frame(
            {
                "d": size,
                "qD": 4.0,
                "gamma_factor_greatest": size**0.3 / log,
                "gamma_factor_least": -(size**-0.4) * log,
                "rho_constant": size**0.1 / log,
            }
            for size, log in zip(d, scale)
        )
        (row,) = lemma_4_3.exponents(factors).itertuples()
        close(row.exponent_gamma_greatest, 0.3, rel=1e-12)
        close(row.exponent_gamma_least, -0.4, rel=1e-12)
        close(row.exponent_rho, 0.1, rel=1e-12)
        close(row.exponent_polylog, np.polyfit(np.log(d), np.log(scale), 1)[0], rel=1e-12)

    def test_T1_grows_with_the_horizon(self):
        tables, base = result("events").tables, runs.describe(runs.BASE)
        times = tables["T1 by horizon"].data.T1_by_horizon[base]
        assert times.is_monotonic_increasing
        close(times["1e+08"], tables["events"].data.T1[base], rel=1e-5)

    def test_span_repels_at_the_start_and_attracts_later(self):
        (row,) = result("lemma-4.2").tables["deviation"].data.itertuples()
        assert row.start_rate > 1.0
        assert row.final_rate < -1.0


def test_reduced_descent_with_a_wrong_rate_fails(short_descents):
    short_descents["factor"] = 1.001
    assert load("reduced-equals-full").run(Context(quick=True)).verdict is Verdict.FAILS


def figure_named(name):
    return next(figure for figure in figures(SECTION_4_1) if figure.name == name)


@cache
def canvas_of(name):
    """Return a figure with its final layout, drawn once for all tests."""
    figure = figure_named(name)
    canvas = Canvas(figsize=figure.size, layout="constrained")
    figure.draw(canvas)
    canvas.draw_without_rendering()
    return canvas


@pytest.mark.slow
def test_names_are_unique_and_known():
    names = [figure.name for figure in figures(SECTION_4_1)]
    assert len(names) == len(set(names))
    assert set(names) == set(FIGURES)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
class TestEveryFigure:
    @pytest.mark.traced
    def test_renders_without_global_changes_and_has_texts(self, name):
        figure, before = figure_named(name), dict(matplotlib.rcParams)
        assert render(figure).startswith(b"\x89PNG")
        assert dict(matplotlib.rcParams) == before
        assert figure.title
        assert len(figure.caption) > 40

    def test_axes_are_labelled_and_readable(self, name):
        for ax in canvas_of(name).axes:
            bottom = ax.get_subplotspec() is None or ax.get_subplotspec().is_last_row()
            assert ax.get_xlabel() or not bottom or ax.get_label() == "<colorbar>"
            for label in (ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()):
                assert label.get_fontsize() >= 9

    def test_legend_does_not_cover_the_data(self, name):
        for ax in canvas_of(name).axes:
            legend = ax.get_legend()
            if legend is None:
                continue
            box = legend.get_window_extent()
            for line in ax.lines:
                points = ax.transData.transform(np.column_stack(line.get_data()))
                if len(points) > 2:
                    assert not box.count_contains(points[np.isfinite(points).all(axis=1)])

    def test_draws_again_from_its_netcdf_file(self, name, tmp_path):
        figure = figure_named(name)
        write_dataset(tmp_path / "data.nc", figure.data)
        with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
            assert figure.draw.func(data.load())


ROOT = Path(__file__).parents[2]


def test_the_book_lists_every_claim_in_order():
    page = (ROOT / "notebooks" / "book" / "claims.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `([\w.-]+)` \|", page, re.MULTILINE)) == claim_ids()


def test_the_readme_is_short_and_its_links_are_valid():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert "notebooks/book/claims.md" in links
    assert "notebooks/book/limits.md" in links
    assert all((ROOT / link).is_file() for link in links)


def test_the_gallery_shows_the_same_six_pictures_as_the_readme_with_valid_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "notebooks" / "book" / "gallery.md").read_text(encoding="utf-8")
    commands = re.findall(r"^```\n(patchdyn .+)\n```$", page, re.MULTILINE)
    assert len(commands) == 6
    assert sorted(re.findall(r"`(patchdyn [^`]+)` \|", readme)) == sorted(commands)
    for command in commands:
        assert build_parser().parse_args(shlex.split(command)[1:]).command
    images = set(re.findall(r"images/(\w+\.png)", page))
    assert images == set(re.findall(r"images/(\w+\.png)", readme))
    assert len(images) == 6
    folder = ROOT / "notebooks" / "images"
    assert sum((folder / name).stat().st_size for name in images) < 600_000
