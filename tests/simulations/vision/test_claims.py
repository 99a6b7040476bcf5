"""Claims on real images: listed without JAX, skipped without the extra, verdicts of tables."""

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from simulations.cli import main
from simulations.commands.reproduce import choose
from simulations.figures import render
from simulations.files import plain
from simulations.reproduction.claim import Context, SkipClaim
from simulations.reproduction.predicates import PARTS, Verdict, parts
from simulations.reproduction.registry import claim_ids, load
from simulations.vision import claims
from simulations.vision.claims import (
    CLAIMS,
    augmentation,
    figure_1a,
    figure_5,
    figure_6_7,
    section_2,
)
from tests.closeness import within

pytestmark = pytest.mark.slow

#: Deviations of five runs from their mean.
NOISE = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])


@pytest.fixture
def without(monkeypatch):
    monkeypatch.setattr(claims, "missing", lambda: ["jax"])


class TestRegistry:
    def test_claims_follow_the_other_claims_of_the_paper(self):
        ids = claim_ids()
        first = ids.index("figure-1a")
        assert ids[first : first + len(CLAIMS)] == tuple(CLAIMS)
        assert load(ids[first - 1]).paper == load("figure-1a").paper
        assert load("figure-1a").paper.name.startswith("Jelassi")

    def test_claims_run_on_request_only(self):
        assert [claim.id for claim in choose(None, images=True)] == list(CLAIMS)
        by_default = [claim.id for claim in choose(None)]
        assert by_default == [claim for claim in claim_ids() if claim not in CLAIMS]
        assert [claim.id for claim in choose(["figure-5"])] == ["figure-5"]

    @pytest.mark.parametrize("claim_id", CLAIMS)
    def test_texts_are_complete(self, claim_id):
        claim = load(claim_id)
        assert claim.id == claim_id
        for text in (claim.statement, claim.method, claim.criterion):
            assert text.endswith(".")
        assert "ection" in claim.place
        assert claim.quick_note
        assert claim.assumptions


class TestWithoutTheExtra:
    @pytest.mark.parametrize("claim_id", CLAIMS)
    def test_a_claim_is_skipped_with_the_command(self, claim_id, without):
        with pytest.raises(SkipClaim, match=r'pip install "patchdyn\[vision\]"'):
            load(claim_id).run(Context(quick=True))

    def test_report_lists_skipped_claims_and_a_later_run_checks_again(
        self, tmp_path, capsys, monkeypatch
    ):
        folder = tmp_path / "report"
        arguments = ["reproduce", "--quick", "--only", "figure-1a", "--workers", "1",
                 "--out", str(folder)]  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(claims, "missing", lambda: ["jax", "sklearn"])
            assert main(arguments) == 0
        assert "1 skipped" in capsys.readouterr().out
        (entry,) = json.loads((folder / "report.json").read_text())
        assert entry["verdict"] == "skipped"
        page = (folder / "report.html").read_text()
        assert "patchdyn[vision]" in page
        assert "Skipped: figure-1a" in page
        assert "Measured numbers" not in page
        with monkeypatch.context() as patch:
            patch.setattr(claims, "missing", lambda: ["sklearn"])
            assert main(arguments) == 0
        (entry,) = json.loads((folder / "report.json").read_text())
        assert "sklearn not installed" in entry["summary"]
        assert "jax" not in entry["summary"]


def verdict(claim, table, rows):
    """Return the verdict of rows of one table."""
    layout = claim.CLAIM.tables[table]
    return layout.check(layout.frame(rows)).verdict


class TestFigure1a:
    @staticmethod
    def verdict(local, control_z=0.0, start_z=0.0):
        """Return the verdict of five runs per model; ``local`` counts the runs with local P."""
        rows = pd.DataFrame(
            [
                {
                    "model": model,
                    "run": run,
                    "local": run < local.get(model, 0),
                    "z": 30.0 if model in local else control_z,
                    "start_z": start_z,
                    "test_error": 0.1,
                }
                for model in (figure_1a.VANILLA, figure_1a.POSITIONAL, figure_1a.CONTROL)
                for run in range(5)
            ]
        ).set_index(["model", "run"])
        return verdict(figure_1a, "models", figure_1a.model_rows(rows, 0.2))

    @pytest.mark.parametrize("quick", [True, False])
    def test_vanilla_attention_is_trained_beyond_its_plateau(self, monkeypatch, quick):
        """On its plateau, after 150 steps, P is local or not depending on rounding."""
        pytest.importorskip("jax")
        from simulations.vision import runs

        requested = {}

        def trained(context, configurations, count):
            requested.update(configurations)
            raise SkipClaim("not trained")

        monkeypatch.setattr(runs, "trained", trained)
        with pytest.raises(SkipClaim, match="not trained"):
            figure_1a.CLAIM.measure(Context(quick=quick))
        assert requested[figure_1a.VANILLA].settings.steps >= 400

    @pytest.mark.parametrize(
        ("vanilla", "positional", "expected"),
        [
            (5, 5, Verdict.HOLDS),
            (4, 4, Verdict.HOLDS),
            (3, 5, Verdict.FINDING),
            (5, 3, Verdict.FINDING),
            (0, 5, Verdict.FAILS),
        ],
    )
    def test_four_of_five_runs_must_be_local(self, vanilla, positional, expected):
        local = {figure_1a.VANILLA: vanilla, figure_1a.POSITIONAL: positional}
        assert self.verdict(local) is expected

    def test_P_must_be_random_before_training_and_in_the_control(self):
        local = {figure_1a.VANILLA: 5, figure_1a.POSITIONAL: 5}
        assert self.verdict(local, start_z=3.0) is Verdict.FINDING
        assert self.verdict(local, control_z=3.0) is Verdict.FINDING


class TestFigure5:
    def test_only_the_CNN_on_the_smallest_cells_decides(self):
        errors = {
            **{(figure_5.VIT, cell): [0.1] * 5 for cell in (0, 2)},
            **{(figure_5.CNN, cell): [0.1] * 5 for cell in (0, 4)},
        }

        def verdict_of(smallest):
            runs = {
                key: [SimpleNamespace(error=error) for error in of_model]
                for key, of_model in (errors | {(figure_5.CNN, 2): smallest}).items()
            }
            return verdict(figure_5, "errors", figure_5.error_rows(runs, 0.22))

        assert verdict_of([0.24] * 5) is Verdict.HOLDS
        assert verdict_of([0.24, 0.24, 0.24, 0.24, 0.2]) is Verdict.FINDING

    @pytest.mark.parametrize(("deviation", "expected"), [
        (1e-15, Verdict.HOLDS), (2e-14, Verdict.FAILS), (np.nan, Verdict.FAILS),
    ])  # fmt: skip
    def test_different_run_on_permuted_patches_fails(self, deviation, expected):
        rows = [{"attention": "vanilla", "deviation": deviation, "apart": 0.1}]
        assert verdict(figure_5, "equivariance", rows) is expected


class TestFigures6And7:
    @staticmethod
    def verdict(*differences):
        """Return the verdict of data sets with these mean differences."""
        models = {}
        for number, difference in enumerate(differences):
            for attention, errors, cost in (
                (figure_6_7.POSITIONAL, 0.1 + difference + 1e-3 * NOISE, 1.0),
                (figure_6_7.VANILLA, np.full(5, 0.1), 1.5),
            ):
                models[f"{number}", attention] = [
                    SimpleNamespace(error=error, seconds=cost, losses=np.zeros(3))
                    for error in errors
                ]
        rows = figure_6_7.DATA_SETS.frame(figure_6_7.data_rows(models))
        assert (rows.cost == 1.5).all()
        competes = rows.difference_high <= 0.03
        checked = (
            figure_6_7.DATA_SETS.check(rows),
            PARTS.check(parts(competes, ~competes)),
        )
        return max((table.verdict for table in checked), key=list(Verdict).index)

    def test_competing_on_all_some_or_no_data_sets(self):
        assert self.verdict(-0.002, -0.05) is Verdict.HOLDS
        assert self.verdict(-0.002, 0.05) is Verdict.FINDING
        assert self.verdict(0.05) is Verdict.FAILS

    def test_end_of_the_interval_decides(self):
        half = 1e-3 * 2.7764451051977987 * np.sqrt(2.5 / 5)
        assert self.verdict(0.0299 - half) is Verdict.HOLDS
        assert self.verdict(0.0301 - half) is Verdict.FAILS


class TestSection2:
    @pytest.mark.parametrize(
        "model",
        [section_2.SQUARES, section_2.SCATTERED, section_2.POSITIONAL, section_2.VANILLA],
    )
    def test_every_row_of_every_run_must_show_its_set(self, model):
        good = {"model": model, "run": 1, "rows": 1.0, "auc": 1.0, "start_auc": 0.5}
        assert verdict(section_2, "runs", [good]) is Verdict.HOLDS
        assert verdict(section_2, "runs", [good, good | {"run": 2, "rows": 0.9}]) is Verdict.FINDING
        worse = verdict(section_2, "runs", [good, good | {"run": 2, "auc": 0.4}])
        assert worse is (Verdict.FAILS if model.startswith("(T)") else Verdict.HOLDS)


class TestAugmentation:
    @staticmethod
    def verdict(shifted, plain):
        """Return the verdict of intervals of z, (vanilla, positional), with and without shifts."""
        rows = augmentation.LOCALITY.frame(
            {"model": model, "augmentation": name, "mean_z_low": low, "mean_z_high": high}
            for name, ends in ((augmentation.SHIFTS, shifted), (augmentation.NONE, plain))
            for model, (low, high) in zip((augmentation.VANILLA, augmentation.POSITIONAL), ends)
        )
        with_shifts = rows.xs(augmentation.SHIFTS, level="augmentation")
        counts = parts(augmentation.local(with_shifts), augmentation.not_local(with_shifts))
        checked = augmentation.LOCALITY.check(rows), PARTS.check(counts)
        return max((table.verdict for table in checked), key=list(Verdict).index)

    @pytest.mark.parametrize(
        ("shifted", "plain", "expected"),
        [
            ((0.1, 4.0), (0.1, 4.0), Verdict.HOLDS),
            ((0.1, 4.0), (-0.1, 4.0), Verdict.FINDING),
            ((-0.1, 4.0), (0.1, 4.0), Verdict.FINDING),  # too wide to be decided
            ((-0.1, 2.1), (-4.0, -2.0), Verdict.FINDING),
            ((-0.1, 1.9), (0.1, 4.0), Verdict.FAILS),
            ((-0.1, 1.9), (-4.0, -2.0), Verdict.FAILS),
        ],
    )
    def test_verdict_if_both_types_of_attention_agree(self, shifted, plain, expected):
        assert self.verdict([shifted] * 2, [plain] * 2) is expected

    def test_one_type_without_locality_is_a_finding(self):
        near, none = (0.1, 4.0), (-0.1, 1.9)
        assert self.verdict([near, none], [near, near]) is Verdict.FINDING
        assert self.verdict([near, near], [none, none]) is Verdict.FINDING

    def test_the_interval_is_that_of_the_mean(self):
        index = pd.MultiIndex.from_product([["vanilla"], ["shifts"], range(5)])
        index.names = ["model", "augmentation", "run"]
        (row,) = augmentation.locality_rows(pd.DataFrame({"z": 3.0 + NOISE}, index))
        half = 2.7764451051977987 * np.sqrt(2.5 / 5)
        within(row["mean_z_low"], 3.0 - half, absolute=1e-12)
        within(row["mean_z_high"], 3.0 + half, absolute=1e-12)


class TestSection2Data:
    def test_association_as_in_definition_2_2(self):
        from simulations.vision import spatial

        sets = np.array([0, 0, 1, 1])
        maps = (sets[:, None] == sets).astype(float)
        assert spatial.association(maps, sets) == 1.0
        assert spatial.auc(maps, sets) == 1.0
        assert spatial.auc(-maps, sets) == 0.0
        maps[0, 2] = 2.0
        assert spatial.association(maps, sets) == 0.75

    def test_data_satisfy_assumption_1(self):
        from simulations.vision import spatial

        data, rng = spatial.Spatial(side=4, noisy=4.0, scattered=True), np.random.default_rng(0)
        sets, feature = data.sets(rng), spatial.unit_vector(data.d, rng)
        assert (np.bincount(sets) == 4).all()
        X, y = spatial.sample(data, sets, feature, 4000, rng)
        along = (X @ feature).round().astype(int)
        assert np.abs(X @ feature - along).max() < 1e-5  # noise is orthogonal to w*
        sums = np.array([along[:, sets == number].sum(axis=1) for number in range(4)]).T
        assert (np.abs(sums).max(axis=1) == 4).all()
        signal = np.abs(sums).argmax(axis=1)
        others = along[sets != signal[:, None]]
        assert abs((others != 0).mean() - 0.25) < 0.01
        assert abs(others.mean()) < 0.01
        assert (y * sums[np.arange(4000), signal] > 0).mean() > 0.99

    @pytest.mark.parametrize("p", [3, 5])
    def test_gradient_is_the_derivative_of_the_risk(self, p):
        """Compare with finite differences of the risk, written with loops over patches."""
        from simulations.vision.spatial import Spatial, gradient

        rng = np.random.default_rng(0)
        data = Spatial(side=2, d=3, p=p)
        P, v = rng.standard_normal((4, 4)), rng.standard_normal(3)
        X, y = rng.standard_normal((5, 4, 3)), np.array([1.0, -1.0, 1.0, 1.0, -1.0])

        def risk(P, v):
            total = 0.0
            for label, patches in zip(y, X):
                F = 0.0
                for i in range(4):
                    weights = [np.exp(P[i] @ P[j]) for j in range(4)]
                    mixed = sum(w * (v @ x) for w, x in zip(weights, patches)) / sum(weights)
                    F += mixed**p + data.nu * mixed
                total += np.log1p(np.exp(-label * F)) / 5
            return total

        by_P, by_v = gradient(data, P, v, X, y)
        h = 1e-4
        for index in np.ndindex(4, 4):
            change = np.zeros((4, 4))
            change[index] = h
            difference = (risk(P + change, v) - risk(P - change, v)) / (2 * h)
            within(by_P[index], difference, absolute=1e-6)
        for index, change in enumerate(h * np.eye(3)):
            difference = (risk(P, v + change) - risk(P, v - change)) / (2 * h)
            within(by_v[index], difference, absolute=1e-6)
        assert min(abs(by_P).max(), abs(by_v).max()) > 0.01


def smaller(configuration):
    """Return a configuration of a few steps with a model of a few parameters."""
    model = replace(configuration.model, width=8, depth=1, heads=2, hidden=8)
    settings = replace(configuration.settings, steps=3, batch=8)
    return replace(configuration, model=model, settings=settings)


@pytest.mark.slow
@pytest.mark.parametrize("claim_id", CLAIMS)
@pytest.mark.traced
def test_claim_with_much_smaller_models(claim_id, monkeypatch):
    if claims.missing():
        pytest.skip("the extra is not installed")
    from simulations.vision import runs, spatial

    for name in ("photographs", "digits", "mnist"):
        original = getattr(runs, name)
        monkeypatch.setattr(runs, name, lambda *args, original=original: smaller(original(*args)))
    monkeypatch.setattr(spatial, "Spatial", partial(spatial.Spatial, steps=5))
    monkeypatch.setattr(spatial, "_TESTED", 2000)
    monkeypatch.setitem(section_2.STEPS, "quick", 3)
    progress = []
    result = load(claim_id).run(Context(quick=True, progress=progress.append))
    assert progress == sorted(progress)
    assert 0.0 < progress[0] <= progress[-1] <= 1.0
    assert plain(result.measurement.settings)
    assert 19 < len(result.finding) <= 120
    for data in result.measurement.tables.values():
        assert np.isfinite(data.select_dtypes("number").to_numpy()).all()
    (figure,) = result.measurement.figures
    assert figure.name == claim_id
    assert render(figure).startswith(b"\x89PNG")
    figure.data.to_netcdf(engine="h5netcdf")
    if claim_id != "figure-5":  # it holds for models of any size
        assert result.verdict is not Verdict.HOLDS
    else:
        rows = result.tables["equivariance"].data
        assert rows.deviation.max() <= 1e-14
        assert rows.apart.min() > 1e-9
