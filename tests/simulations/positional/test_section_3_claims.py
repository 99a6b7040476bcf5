"""Claims of Section 3 and Figure 2: numbers of quick runs, and figures from files."""

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure as Canvas

from simulations.figures import render
from simulations.files import write_dataset
from simulations.positional.claims import figure_2
from simulations.reproduction.claim import Context
from simulations.reproduction.predicates import Verdict
from simulations.reproduction.registry import claim_ids
from tests.closeness import within
from tests.simulations.quick import figures, result

CLAIMS = ("theorem-3.1", "theorem-3.2", "figure-2", "figure-3")


def test_claims_are_in_the_order_of_the_paper():
    assert tuple(claim_id for claim_id in claim_ids() if claim_id in CLAIMS) == CLAIMS


@pytest.mark.slow
@pytest.mark.traced
@pytest.mark.parametrize("claim_id", CLAIMS)
class TestOutcome:
    def test_figure_draws_again_from_its_file(self, claim_id, tmp_path):
        (figure,) = figures((claim_id,))
        assert render(figure).startswith(b"\x89PNG")
        assert len(figure.caption) > 100
        write_dataset(tmp_path / "data.nc", figure.data)
        canvas = Canvas(figsize=figure.size, layout="constrained")
        with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
            assert figure.draw.func(data.load(), canvas)
        canvas.draw_without_rendering()
        for ax in canvas.axes:
            assert ax.get_xlabel() or ax.get_label() == "<colorbar>"
            for label in (ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()):
                assert label.get_fontsize() >= 9


@pytest.mark.slow
@pytest.mark.traced
class TestNumbers:
    def test_linear_models(self):
        quick = result("theorem-3.1")
        assert quick.verdict is Verdict.FAILS
        uniform = quick.tables["uniform weights"]
        assert uniform.data.loc[uniform.data.meets & (uniform.data.disagreement < 0.125)].size
        densities = quick.tables["critical densities"].data.loc[(1024, 8, "ties by a coin")]
        within(densities.error_at_one, 0.1578, 1e-4)
        within(densities.critical_density, 0.761, 1e-3)
        assert uniform.data.error[16, 1.0] < 1e-4
        assert quick.tables["critical powers"].data.critical_power[16, 4096] < 2.0

    def test_explicit_transformer(self):
        quick = result("theorem-3.2")
        assert quick.verdict is Verdict.FINDING
        errors = quick.tables["errors"].data.error
        exact = errors[64, 4, 16, "next set"]
        within(exact, 0.00422, 1e-5)
        assert errors[64, 4, 16, "uniform weights"] > 40.0 * exact
        assert exact >= quick.tables["attention to the next set"].data.silent[64, 4, 16]

    def test_gaussian_patches(self):
        quick = result("figure-2")
        assert quick.verdict is Verdict.FINDING
        assert quick.tables["the figure's ViT"].data.worst_error["6 heads, 4 filters"] < 0.03
        within(quick.tables["linear rule"].data.linear_level[4], 0.0956, 0.002)
        gram = quick.tables["other architectures"].data.loc["A = P^T P, 1 filter"]
        assert (gram.share, gram.runs) == (1.0, 2)

    def test_linear_level_of_figure_2_depends_on_the_root_seed(self, monkeypatch):
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
            measured = figure_2.measure(Context(quick=True, seed=seed))
            assert measured.tables["linear rule"].linear_level[4] == level

    def test_data_point(self):
        quick = result("figure-3")
        assert quick.verdict is Verdict.HOLDS
        data = quick.measurement.figures[0].data
        s, sets = data["coefficient"].values, data["set"].values.reshape(8, 8)
        assert s.sum() < 0
        assert np.all(s[data["set"].values == data.attrs["signal_set"]] == 1)
        assert sets[0, 0] == sets[1, 1] != sets[2, 0]
