"""The claims: listed lightly, measured quickly, able to come out otherwise; and their figures."""

import importlib
import math
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure as Canvas

from dynamics import Problem
from simulations.figures import render
from simulations.files.as_json import plain
from simulations.files.store import write_dataset
from simulations.positional import runs
from simulations.positional.claims import lemma_4_3, reduced_equals_full
from simulations.positional.claims.gamma_ge_rho import Sample
from simulations.positional.claims.gamma_ge_rho import judge as judge_gamma_ge_rho
from simulations.positional.courses import Course
from simulations.reproduction.claim import ClaimText, Context, Verdict
from simulations.reproduction.registry import claim_ids, load, texts
from tests.closeness import close
from tests.simulations.quick import figures, is_converted, outcome, result, verdict

SECTION_4_1 = (
    "lemma-4.1",
    "lemma-4.2",
    "lemma-4.3",
    "theorem-4.1",
    "events",
    "gamma-ge-rho",
    "sigma-a-breaks-symmetry",
    "reduced-equals-full",
)
#: Figures by name, each with its module.
MODULES = {
    "three-values": "three_values",
    "span-stability": "span_stability",
    "lemma-4-3-factor": "lemma_4_3_factor",
    "lemma-4-3-scaling": "lemma_4_3_scaling",
    "theorem-4.1-horizons": "theorem_hypotheses",
    "attention-matrix": "attention_matrix",
    "loss-and-error": "loss_and_error",
    "order-parameters": "order_parameters",
    "phase-portrait": "phase_portrait",
    "gamma-rho-violation": "gamma_rho_violation",
    "gamma-rho-condition": "gamma_rho_condition",
    "symmetry-breaking": "symmetry_breaking",
    "reduced-against-full": "against_full",
}
BASE = {"D": 64, "C": 4, "qD": 2.0}
CROWDED = {"D": 16, "C": 2, "qD": 8.0, "nu": 1e-3, "beta": 0.5}
TINY = {"D": 8, "C": 2, "qD": 4.0, "nu": 1e-3, "beta": 0.5}


#: Claims whose criterion, horizon or rates were changed after a run had been seen.
AMENDED = {
    "theorem-3.1", "lemma-4.3", "gamma-ge-rho-boundary", "gamma-ge-rho-certified",
    "gamma-ge-rho", "random-initialization", "encodings", "figure-1a", "li-sample-complexity",
    "li-noise", "li-sparsification", "li-proposition-2", "transfer-partial",
    "theorem-4.2", "augmentation-makes-locality",
    "theory-in-context", "theory-induction",
    "theorem-4.1-dimension", "lemma-D.11", "huang-loss-lemma", "equation-T",
    "theorem-4.2-one-rate",
}  # fmt: skip


class TestRegistry:
    def test_changes_after_a_run_are_marked(self):
        assert {one for one in claim_ids() if "amended" in texts(one)} == AMENDED

    def test_lists_every_claim_of_section_4_1_in_order(self):
        assert tuple(claim_id for claim_id in claim_ids() if claim_id in SECTION_4_1) == SECTION_4_1
        assert tuple(load(one).id for one in claim_ids()) == claim_ids()

    @pytest.mark.parametrize("claim_id", SECTION_4_1)
    def test_every_claim_says_what_it_is_about(self, claim_id):
        claim = load(claim_id)
        assert isinstance(claim, ClaimText)
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
            "assert all(texts(one)['method'] for one in claim_ids())\n"
            f"print([name for name in {heavy!r} if name in sys.modules])"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert found.stdout.decode().strip() == "[]"


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
    @pytest.mark.parametrize("claim_id", [x for x in SECTION_4_1 if not is_converted(x)])
    def test_is_complete_and_can_be_stored(self, claim_id):
        found = outcome(claim_id)
        assert isinstance(found.verdict, Verdict)
        assert found.summary.endswith(".")
        assert any(character.isdigit() for character in found.summary)
        assert len(found.measured) >= 3
        assert found.figures
        for one in found.measured:
            assert isinstance(one.value, bool | int | float | str)
            assert not isinstance(one.value, float) or math.isfinite(one.value)
        assert plain(found.parameters)

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
        ],
    )
    def test_verdict(self, claim_id, expected):
        assert verdict(claim_id) is expected

    def test_another_seed_holds_too_and_progress_is_a_rising_fraction(self, short_descents):
        seen = []
        other = load("reduced-equals-full").run(Context(quick=True, seed=7, progress=seen.append))
        assert other.verdict is Verdict.HOLDS
        assert seen == sorted(seen)
        assert 0.0 < seen[0] < seen[-1] <= 1.0


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
        found = outcome("gamma-ge-rho")
        assert found.number("violation", **CROWDED) == pytest.approx(1.39, abs=0.01)
        assert found.number("first_violation", **CROWDED) == pytest.approx(0.16, abs=0.01)
        close(found.number("last_violation", **CROWDED), 3.2e4, rel=0.02)
        assert found.number("violation", **BASE) == 0.0
        assert found.number("final_gap", **TINY) < -10.0

    def test_the_condition_decides_every_problem(self):
        found = outcome("gamma-ge-rho")
        assert found.number("decided") == found.number("problems")
        assert 0 < found.number("failures", drawn="crowded") < 8  # not all on one side

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


class TestVerdictsCouldComeOutOtherwise:
    def test_gamma_ge_rho(self):
        problem = Problem(D=64, C=4, q=1 / 32)
        other = problem.replace(p=5)
        good = Course(0.1, 0.2, 0.3, 0.0, math.nan, math.nan, 1e-10, 1.0)
        unconfirmed = good._replace(worst=1.0, first=1.0, last=2.0)
        broken = unconfirmed._replace(critical=0.15)

        def judge(inside, sparse, crowded):
            samples = [
                Sample(True, {0: [broken, good]}, {other: sparse} if sparse else {}),
                Sample(False, {0: [crowded], 1: [good]}),
            ]
            return judge_gamma_ge_rho({problem: broken}, {problem: inside}, samples)

        verdict, text = judge(good, good, unconfirmed)
        assert verdict is Verdict.HOLDS  # outside the hypotheses nothing enters
        assert "holds throughout in 1 of 1 chosen" in text
        assert "1 of 2 drawn problems with q = 0.2 to 0.95 (95 %: 1 to 99 %)" in text
        assert "in 5 of 6 problems" in text
        assert judge(unconfirmed, good, good)[0] is Verdict.FINDING
        for found in (judge(broken, good, good), judge(good, broken, good)):
            assert found[0] is Verdict.FAILS
            assert "counterexamples: at D=64" in found[1]
        nothing = [Sample(True, {0: [good]}), Sample(False, {0: [good]})]
        assert judge_gamma_ge_rho({}, {}, nothing)[0] is Verdict.FINDING

    def test_reduced_descent_with_a_wrong_multiplicity_is_caught(self, short_descents):
        short_descents["factor"] = 1.001
        claim = load("reduced-equals-full")
        assert claim.run(Context(quick=True)).verdict is Verdict.FAILS


def by_name(name):
    return next(figure for figure in figures(SECTION_4_1) if figure.name == name)


@cache
def drawn(name):
    """A figure as it is laid out, drawn once for the tests that look at it."""
    figure = by_name(name)
    canvas = Canvas(figsize=figure.size, layout="constrained")
    figure.draw(canvas)
    canvas.draw_without_rendering()
    return canvas


def test_names_are_unique_and_known():
    names = [figure.name for figure in figures(SECTION_4_1)]
    assert len(names) == len(set(names))
    assert set(names) == set(MODULES)


@pytest.mark.parametrize("name", MODULES)
class TestEveryFigure:
    @pytest.mark.traced
    def test_renders_explains_itself_and_changes_nothing_global(self, name):
        figure, before = by_name(name), dict(matplotlib.rcParams)
        assert render(figure).startswith(b"\x89PNG")
        assert dict(matplotlib.rcParams) == before
        assert figure.title
        assert len(figure.caption) > 40

    def test_axes_are_labelled_and_readable(self, name):
        for ax in drawn(name).axes:
            bottom = ax.get_subplotspec() is None or ax.get_subplotspec().is_last_row()
            assert ax.get_xlabel() or not bottom or ax.get_label() == "<colorbar>"
            for label in (ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()):
                assert label.get_fontsize() >= 9

    def test_legend_lies_beside_the_data_or_is_in_a_free_corner(self, name):
        for ax in drawn(name).axes:
            legend = ax.get_legend()
            if legend is None:
                continue
            box = legend.get_window_extent()
            for line in ax.lines:
                points = ax.transData.transform(np.column_stack(line.get_data()))
                if len(points) > 2:
                    assert not box.count_contains(points[np.isfinite(points).all(axis=1)])

    def test_draws_again_from_its_netcdf_file(self, name, tmp_path):
        figure = by_name(name)
        write_dataset(tmp_path / "data.nc", figure.data)
        shared = name == "reduced-against-full"  # with the claim of masked image modelling
        room = "simulations.figures" if shared else "simulations.positional.figures"
        module = importlib.import_module(f"{room}.{MODULES[name]}")
        with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
            artists = module.draw(data.load())
        assert artists


ROOT = Path(__file__).parents[2]


def test_the_book_lists_every_claim_in_order():
    page = (ROOT / "notebooks" / "book" / "claims.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `([\w.-]+)` \|", page, re.MULTILINE)) == claim_ids()


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert "notebooks/book/claims.md" in links
    assert "notebooks/book/limits.md" in links
    assert all((ROOT / link).is_file() for link in links)
