"""The claims of Section 3 and Figure 2: complete outcomes, verdicts that can turn out otherwise."""

import importlib

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure as Canvas

from simulations.figures import render
from simulations.files.store import write_dataset
from simulations.positional.claims import figure_2, theorem_3_1, theorem_3_2
from simulations.reproduction.claim import Context, Verdict
from simulations.reproduction.registry import claim_ids
from tests.simulations.quick import assert_complete, outcome

CLAIMS = {
    "theorem-3.1": "linear_models",
    "theorem-3.2": "explicit_transformer",
    "figure-2": "gaussian_patches",
    "figure-3": "data_point",
}


def test_stand_in_the_papers_order():
    assert tuple(one for one in claim_ids() if one in CLAIMS) == tuple(CLAIMS)


@pytest.mark.slow
@pytest.mark.traced
@pytest.mark.parametrize("claim_id", CLAIMS)
class TestOutcome:
    def test_is_complete_and_can_be_stored(self, claim_id):
        assert_complete(claim_id)

    def test_figure_draws_again_from_its_file(self, claim_id, tmp_path):
        (figure,) = outcome(claim_id).figures
        assert render(figure).startswith(b"\x89PNG")
        assert len(figure.caption) > 100
        write_dataset(tmp_path / "data.nc", figure.data)
        module = importlib.import_module(f"simulations.positional.figures.{CLAIMS[claim_id]}")
        canvas = Canvas(figsize=figure.size, layout="constrained")
        with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
            assert module.draw(data.load(), canvas)
        canvas.draw_without_rendering()
        for ax in canvas.axes:
            assert ax.get_xlabel() or ax.get_label() == "<colorbar>"
            for label in (ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()):
                assert label.get_fontsize() >= 9


@pytest.mark.slow
@pytest.mark.traced
class TestNumbers:
    def test_linear_models(self):
        found = outcome("theorem-3.1")
        assert found.verdict is Verdict.FAILS
        assert "Counterexample: uniform weights at D = 4096, C = 16" in found.summary
        at = {"D": 1024, "C": 8, "kind": "ties by a coin"}
        assert found.number("error_at_one", **at) == pytest.approx(0.1578, abs=1e-4)
        assert found.number("critical_density", **at) == pytest.approx(0.761, abs=1e-3)
        assert found.number("error", C=16, k=1.0) < 1e-4
        assert found.number("critical_power", C=16, D=4096) < 2.0

    def test_explicit_transformer(self):
        found = outcome("theorem-3.2")
        assert found.verdict is Verdict.FINDING
        at = {"D": 64, "C": 4, "qD": 16}
        exact = found.number("error", **at, rule="next set")
        assert exact == pytest.approx(0.00422, abs=1e-5)
        assert found.number("error", **at, rule="uniform weights") > 40.0 * exact
        assert exact >= found.number("silent", **at)

    def test_gaussian_patches(self):
        found = outcome("figure-2")
        assert found.verdict is Verdict.FINDING
        assert found.number("worst_error", architecture="6 heads, 4 filters") < 0.03
        assert found.number("linear_level", L=4) == pytest.approx(0.0956, abs=0.002)
        one = {"architecture": "A = P^T P, 1 filter"}
        assert (found.number("share", **one), found.number("runs", **one)) == (1.0, 2)

    def test_linear_level_of_figure_2_is_drawn_from_the_root_seed(self, monkeypatch):
        short = [
            figure_2.Architecture(
                "one",
                figure_2.Task(16, 4, 4, True),
                figure_2.Student("gram", encoding=16, init=1.0),
                1e-2,
                15,
                (0, 1),
            )
        ]
        monkeypatch.setattr(figure_2, "_architectures", lambda *_: short)
        for seed in (0, 1):
            level = figure_2.linear_level(4, np.random.default_rng(seed), 500_000)
            found = figure_2.run(Context(quick=True, seed=seed))
            assert found.number("linear_level", L=4) == level

    def test_data_point(self):
        found = outcome("figure-3")
        assert found.verdict is Verdict.HOLDS
        data = found.figures[0].data
        s, sets = data["coefficient"].values, data["set"].values.reshape(8, 8)
        assert s.sum() < 0
        assert np.all(s[data["set"].values == data.attrs["signal_set"]] == 1)
        assert sets[0, 0] == sets[1, 1] != sets[2, 0]


class TestVerdictsCouldComeOutOtherwise:
    def test_theorem_3_1(self):
        judge = theorem_3_1.judge
        found = theorem_3_1.Evidence(0.75, 0.76, 0.01, 1.9, 0.01, 0.05, 0.2, 1.0)
        verdict, summary = judge(found)
        assert verdict is Verdict.FINDING
        assert "base 3" in summary
        assert "base 3" not in judge(found._replace(decoded=0.2))[1]
        assert judge(found._replace(below=0.13, decoded=0.2))[0] is Verdict.HOLDS
        assert judge(found._replace(deviation=9.0))[0] is Verdict.FAILS
        assert judge(found._replace(counterexample="uniform"))[0] is Verdict.FAILS

    def test_theorem_3_2(self):
        judge = theorem_3_2.judge
        found = theorem_3_2.Evidence(
            20.0, 1e-16, 1.0, (0.8, 1.7), 1e-5, 256, -1e-11, 1.0, 0.05, 256
        )
        assert judge(found)[0] is Verdict.FINDING
        assert judge(found._replace(gram=0.1))[0] is Verdict.HOLDS
        for change in (
            {"margin": 0.0},
            {"mismatch": 1e-3},
            {"deviation": 5.0},
            {"exponents": (1.7, 1.7)},
        ):
            assert judge(found._replace(**change))[0] is Verdict.FAILS

    def test_figure_2(self):
        judge = figure_2.judge
        first = figure_2.Trained("heads", 0.01, 0.0956, 0.4, 0.6, 0.0)
        showing = figure_2.Trained("gram", 0.01, 0.0956, 0.95, 1.0, 1.0)
        assert judge([first, showing])[0] is Verdict.FINDING
        assert judge([first, showing._replace(least_auc=0.6)])[0] is Verdict.HOLDS
        assert judge([first, showing._replace(worst_error=0.09)])[0] is Verdict.HOLDS
        assert judge([first._replace(worst_error=0.0956), showing])[0] is Verdict.FAILS
        assert judge([first._replace(most_auc=0.95), showing])[0] is Verdict.FAILS
