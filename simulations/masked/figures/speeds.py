"""Speeds of feature-position and position-position correlations along a run."""

from typing import Any

import xarray

from simulations.figures.style import COLOURS, TIME, panel_letter, styled
from simulations.masked.figures import regime_label


@styled
def draw_features(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw dPhi_n/dt, -dPhi_1/dt and the fastest of the other feature correlations."""
    lines = (
        ("own", "Phi_n", "-", r"$d\Phi_n/dt$"),
        ("first", "Phi_1", "--", r"$-d\Phi_1/dt$"),
        ("rest", "Phi_rest", ":", r"fastest other $|d\Phi_m/dt|$"),
    )
    return _panels(data, figure, lines, {"first": -1.0})


@styled
def draw_positions(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the speeds of Phi and of the projected Upsilon."""
    lines = (
        ("own", "Phi_n", "-", r"$d\Phi_n/dt$"),
        ("fastest", "Phi_1", "--", r"fastest $|d\Phi_m/dt|$"),  # over its equal in one phase
        ("positions", "Upsilon_n", ":", r"fastest projected $|d\Upsilon/dt|$"),
    )
    return _panels(data, figure, lines, {})


def _panels(
    data: xarray.Dataset, figure: Any, lines: tuple[tuple[str, ...], ...], signs: dict[str, float]
) -> dict[str, Any]:
    panels = figure.subplots(1, data.sizes["run"], sharey=True, squeeze=False)[0]
    artists: dict[str, Any] = {}
    for letter, ax, (number, run) in zip("abcd", panels, enumerate(data["run"].values)):
        part = data.isel(run=number)
        later = part["time"] > 0.0
        for name, colour, dashes, label in lines:
            values = (signs.get(name, 1.0) * part[name]).where(later & (part[name] != 0.0))
            artists[name] = ax.plot(
                part["time"], values, color=COLOURS[colour], linestyle=dashes, label=label
            )[0]
        end = float(part["time"].max())
        ax.set(xscale="log", yscale="log", xlim=(end * 1e-6, end), xlabel=TIME)
        ax.set_title(regime_label(str(run)))
        panel_letter(ax, letter)
    panels[0].set_ylabel("speed")
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=3)
    return artists
