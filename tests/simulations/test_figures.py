"""Figures are drawn from their data alone and leave nothing behind."""

import importlib

import matplotlib
import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure as Canvas

from simulations.figures import style
from simulations.files.store import write_dataset
from simulations.reproduction.run import render
from tests.simulations.quick import figures
from tests.simulations.test_claims import SECTION_4_1

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
    "reduced-against-full": "reduced_against_full",
}


def by_name(name):
    return next(figure for figure in figures(SECTION_4_1) if figure.name == name)


def test_names_are_unique_and_known():
    names = [figure.name for figure in figures(SECTION_4_1)]
    assert len(names) == len(set(names))
    assert set(names) == set(MODULES)


@pytest.mark.parametrize("name", MODULES)
class TestEveryFigure:
    def test_renders_and_explains_itself(self, name):
        figure = by_name(name)
        assert render(figure).startswith(b"\x89PNG")
        assert figure.title
        assert len(figure.caption) > 40

    def test_axes_are_labelled_and_readable(self, name):
        figure = by_name(name)
        canvas = Canvas(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        canvas.draw_without_rendering()
        for ax in canvas.axes:
            bottom = ax.get_subplotspec() is None or ax.get_subplotspec().is_last_row()
            assert ax.get_xlabel() or not bottom or ax.get_label() == "<colorbar>"
            for label in (ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()):
                assert label.get_fontsize() >= 9

    def test_legend_lies_beside_the_data_or_is_in_a_free_corner(self, name):
        figure = by_name(name)
        canvas = Canvas(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        canvas.draw_without_rendering()
        for ax in canvas.axes:
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
        module = importlib.import_module(f"simulations.positional.figures.{MODULES[name]}")
        with xarray.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as data:
            artists = module.draw(data.load())
        assert artists

    def test_changes_nothing_global(self, name):
        before = dict(matplotlib.rcParams)
        by_name(name).draw(Canvas())
        assert dict(matplotlib.rcParams) == before


class TestStyle:
    def test_names_of_problems_become_mathematics(self):
        assert style.pretty("D=8, qD=2, nu=0.1") == r"$D=8$, $qD=2$, $\nu=0.1$"

    def test_every_quantity_has_its_own_colour_and_label(self):
        assert set(style.COLOURS) == set(style.LABELS)
        names = list(style.COLOURS)
        second = names.index("Phi_n")
        for theory in (names[:second], names[second:]):
            assert len({style.COLOURS[name] for name in theory}) == len(theory)

    def test_missing_events_are_not_shaded(self):
        ax = Canvas().subplots()
        ax.set_xscale("log")
        ax.set_xlim(1.0, 1e4)
        assert len(style.shade_events(ax, (10.0, np.nan))) == 2
        assert len(style.shade_events(ax, (10.0, 100.0))) == 3
