"""Claims on real images: listed lightly, skipped without the extra, able to come out otherwise."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from simulations.cli import main
from simulations.commands.reproduce import choose
from simulations.figures import render
from simulations.files.as_json import plain
from simulations.reproduction.claim import Context
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import claim_ids, load
from simulations.vision import extra
from simulations.vision.claims import (
    CLAIMS,
    augmentation,
    figure_1a,
    figure_5,
    figure_6_7,
    section_2,
)
from tests.closeness import within
from tests.simulations.quick import assert_told

RUNS = np.zeros(5)


@pytest.fixture
def without(monkeypatch):
    monkeypatch.setattr(extra, "missing", lambda: ["jax"])


class TestRegistry:
    def test_the_claims_follow_those_of_the_paper(self):
        every = claim_ids()
        place = every.index("figure-1a")
        assert every[place : place + len(CLAIMS)] == tuple(CLAIMS)
        assert load(every[place - 1]).paper == load("figure-1a").paper
        assert load("figure-1a").paper.name.startswith("Jelassi")

    def test_they_run_on_request_only(self):
        assert [claim.id for claim in choose(None, images=True)] == list(CLAIMS)
        by_default = [claim.id for claim in choose(None)]
        assert by_default == [claim for claim in claim_ids() if claim not in CLAIMS]
        assert [claim.id for claim in choose(["figure-5"])] == ["figure-5"]

    @pytest.mark.parametrize("claim_id", CLAIMS)
    def test_what_is_said(self, claim_id):
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
        found = load(claim_id).run(Context(quick=True))
        assert found.verdict is Verdict.SKIPPED
        assert 'pip install "patchdyn[vision]"' in found.summary

    def test_the_report_says_so_and_a_later_run_measures(self, tmp_path, capsys, monkeypatch):
        folder = tmp_path / "report"
        words = ["reproduce", "--quick", "--only", "figure-1a", "--workers", "1",
                 "--out", str(folder)]  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(extra, "missing", lambda: ["jax", "sklearn"])
            assert main(words) == 0
        assert "1 skipped" in capsys.readouterr().out
        (entry,) = json.loads((folder / "report.json").read_text())
        assert entry["verdict"] == "skipped"
        page = (folder / "report.html").read_text()
        assert "patchdyn[vision]" in page
        assert "Skipped: figure-1a" in page
        assert "Measured numbers" not in page
        with monkeypatch.context() as patch:
            patch.setattr(extra, "missing", lambda: ["sklearn"])
            assert main(words) == 0  # not kept: it is asked again
        (entry,) = json.loads((folder / "report.json").read_text())
        assert "sklearn not installed" in entry["summary"]
        assert "jax" not in entry["summary"]


def local(**changes):
    """Return what figure 1a finds where P is local."""
    names = figure_1a.Found._fields
    found = figure_1a.Found(**dict.fromkeys(names, RUNS))
    small = np.full(5, 0.005)
    found = found._replace(p=small, ring_p=small, mantel_p=small, z=RUNS + 30.0)
    return found._replace(**changes)


class TestVerdictsCouldComeOutOtherwise:
    def test_figure_1a(self):
        def judge(vanilla, positional, control):
            return figure_1a.judge({
                figure_1a.VANILLA: vanilla, figure_1a.POSITIONAL: positional,
                figure_1a.CONTROL: control,
            })[0]  # fmt: skip

        calm = local(p=RUNS + 0.5, z=RUNS)
        assert judge(local(), local(), calm) is Verdict.HOLDS
        assert judge(local(), local(), local()) is Verdict.FINDING  # the control is local too
        assert judge(local(start_z=RUNS + 3.0), local(), calm) is Verdict.FINDING
        once = np.array([0.005, 0.005, 0.005, 0.005, 0.01])
        twice = np.array([0.005, 0.01, 0.005, 0.005, 0.01])
        for name in ("p", "ring_p", "mantel_p"):
            assert judge(local(**{name: once}), local(**{name: once}), calm) is Verdict.HOLDS
            assert judge(local(**{name: twice}), local(), calm) is Verdict.FINDING
            assert judge(local(), local(**{name: twice}), calm) is Verdict.FINDING
            assert judge(local(**{name: RUNS + 0.5}), local(), calm) is Verdict.FAILS

    def test_figure_5(self):
        good = figure_5.Found(
            1e-15, 0.1, {0: RUNS + 0.1, 2: RUNS + 0.1}, {0: RUNS + 0.1, 2: RUNS + 0.24},
            RUNS + 0.005, RUNS, 0.22,
        )  # fmt: skip
        assert figure_5.judge(good)[0] is Verdict.HOLDS
        learns = {0: RUNS + 0.1, 2: np.array([0.24, 0.24, 0.24, 0.24, 0.2])}
        assert figure_5.judge(good._replace(cnn=learns))[0] is Verdict.FINDING
        assert figure_5.judge(good._replace(p=RUNS + 0.01))[0] is Verdict.FINDING
        assert figure_5.judge(good._replace(shuffled_z=RUNS + 5.0))[0] is Verdict.FINDING
        assert figure_5.judge(good._replace(deviation=2e-14))[0] is Verdict.FAILS
        assert figure_5.judge(good._replace(deviation=np.nan))[0] is Verdict.FAILS

    def test_figure_6_7(self):
        noise, steps = 0.001 * np.arange(5), {"a": 1, "b": 2}

        def compared(difference):
            return figure_6_7.Compared(0.1 + difference + noise, 0.1 + 0.0 * noise, 1.5)

        level, behind, ahead = compared(-0.002), compared(0.05), compared(-0.05)
        assert level.leads == "neither"
        assert behind.leads == "vanilla"
        assert ahead.leads == "positional"
        assert figure_6_7.judge({"a": level, "b": ahead}, steps)[0] is Verdict.HOLDS
        assert figure_6_7.judge({"a": level, "b": behind}, steps)[0] is Verdict.FINDING
        assert figure_6_7.judge({"a": behind}, steps)[0] is Verdict.FAILS

    def test_section_2(self):
        good = section_2.Found(RUNS + 1.0, RUNS + 1.0, RUNS + 0.5, RUNS + 1.0, RUNS, RUNS + 0.1)
        names = (section_2.SQUARES, section_2.SCATTERED, section_2.POSITIONAL, section_2.VANILLA)
        every = dict.fromkeys(names, good)
        assert section_2.judge(every)[0] is Verdict.HOLDS
        for name in names:
            part = good._replace(rows=np.array([1.0, 1.0, 1.0, 1.0, 0.9]))
            assert section_2.judge(every | {name: part})[0] is Verdict.FINDING
        worse = good._replace(auc=np.array([1.0, 1.0, 1.0, 1.0, 0.4]))
        assert section_2.judge(every | {section_2.SCATTERED: worse})[0] is Verdict.FAILS
        assert section_2.judge(every | {section_2.POSITIONAL: worse})[0] is Verdict.HOLDS

    def test_augmentation(self):
        noise = 0.1 * np.arange(5)
        near, none = (
            augmentation.Found(**dict.fromkeys(augmentation.Found._fields, RUNS))._replace(z=z)
            for z in (3.0 + noise, noise - 0.2)
        )
        shifts, plain = (
            [(kind, name) for kind in ("vanilla", "positional")]
            for name in (augmentation.SHIFTS, augmentation.NONE)
        )
        every = dict.fromkeys([*shifts, *plain], near)
        assert augmentation.judge(every)[0] is Verdict.HOLDS
        assert augmentation.judge(every | dict.fromkeys(plain, none))[0] is Verdict.FINDING
        assert augmentation.judge(every | {shifts[0]: none})[0] is Verdict.FINDING
        assert augmentation.judge(every | dict.fromkeys(shifts, none))[0] is Verdict.FAILS
        half = none.interval[1] - none.z.mean()
        for mean, alone, both in (  # the interval must lie above 0, or end below 2
            (0.01 + half, Verdict.HOLDS, Verdict.HOLDS),
            (half - 0.01, Verdict.FINDING, Verdict.FAILS),
        ):
            part = none._replace(z=mean + noise - noise.mean())
            assert augmentation.judge(every | {shifts[1]: part})[0] is alone
            assert augmentation.judge(every | dict.fromkeys(shifts, part))[0] is both
        for end, both in ((1.99, Verdict.FAILS), (2.01, Verdict.FINDING)):
            wide = 20.0 * (noise - noise.mean())
            part = none._replace(z=end - 20.0 * half + wide)
            assert augmentation.judge(every | dict.fromkeys(shifts, part))[0] is both


class TestSection2Data:
    def test_association_is_that_of_definition_2_2(self):
        from simulations.vision import spatial

        sets = np.array([0, 0, 1, 1])
        maps = (sets[:, None] == sets).astype(float)
        assert spatial.association(maps, sets) == 1.0
        assert spatial.auc(maps, sets) == 1.0
        assert spatial.auc(-maps, sets) == 0.0
        maps[0, 2] = 2.0
        assert spatial.association(maps, sets) == 0.75

    def test_the_data_are_those_of_assumption_1(self):
        from simulations.vision import spatial

        data, rng = spatial.Spatial(side=4, noisy=4.0, scattered=True), np.random.default_rng(0)
        sets, feature = data.sets(rng), spatial.unit(data.d, rng)
        assert (np.bincount(sets) == 4).all()
        X, y = spatial.draw(data, sets, feature, 4000, rng)
        along = (X @ feature).round().astype(int)
        assert np.abs(X @ feature - along).max() < 1e-5  # noise is orthogonal to w*
        sums = np.array([along[:, sets == one].sum(axis=1) for one in range(4)]).T
        assert (np.abs(sums).max(axis=1) == 4).all()
        signal = np.abs(sums).argmax(axis=1)
        others = along[sets != signal[:, None]]
        assert abs((others != 0).mean() - 0.25) < 0.01
        assert abs(others.mean()) < 0.01
        assert (y * sums[np.arange(4000), signal] > 0).mean() > 0.99

    @pytest.mark.parametrize("p", [3, 5])
    def test_the_gradient_is_that_of_the_risk(self, p):
        """Against differences of the risk, written with loops over patches."""
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
        for place in np.ndindex(4, 4):
            along = np.zeros((4, 4))
            along[place] = h
            found = (risk(P + along, v) - risk(P - along, v)) / (2 * h)
            within(by_P[place], found, absolute=1e-6)
        for place in range(3):
            along = h * np.eye(3)[place]
            found = (risk(P, v + along) - risk(P, v - along)) / (2 * h)
            within(by_v[place], found, absolute=1e-6)
        assert min(abs(by_P).max(), abs(by_v).max()) > 0.01


def smaller(plan):
    """Return a plan of a few steps with a model of a few numbers."""
    model = replace(plan.model, width=8, depth=1, heads=2, hidden=8)
    return replace(plan, model=model, settings=replace(plan.settings, steps=3, batch=8))


@pytest.mark.slow
@pytest.mark.parametrize("claim_id", CLAIMS)
@pytest.mark.traced
def test_a_claim_as_a_whole_with_models_much_smaller(claim_id, monkeypatch):
    if extra.missing():
        pytest.skip("the extra is not installed")
    from simulations.vision import runs, spatial

    for name in ("photographs", "digits", "mnist"):
        made = getattr(runs, name)
        monkeypatch.setattr(runs, name, lambda *args, made=made: smaller(made(*args)))
    monkeypatch.setattr(spatial, "Spatial", partial(spatial.Spatial, steps=5))
    monkeypatch.setattr(spatial, "_TESTED", 2000)
    monkeypatch.setitem(section_2.STEPS, "quick", 3)
    seen = []
    found = load(claim_id).run(Context(quick=True, progress=seen.append))
    assert_told(load(claim_id), found)
    assert seen == sorted(seen)
    assert 0.0 < seen[0] <= seen[-1] <= 1.0
    assert found.summary.endswith(".")
    assert plain(found.parameters)
    assert len(found.measured) >= 3
    for one in found.measured:
        assert not isinstance(one.value, float) or np.isfinite(one.value)
    (figure,) = found.figures
    assert figure.name == claim_id
    assert render(figure).startswith(b"\x89PNG")
    figure.data.to_netcdf(engine="h5netcdf")
    assert found.number("runs") in (2, 3)
    if claim_id != "figure-5":  # which is about what models of any size show
        assert found.verdict is not Verdict.HOLDS
    else:
        assert found.number("deviation") <= 1e-14 < 1e-9 < found.number("apart")
