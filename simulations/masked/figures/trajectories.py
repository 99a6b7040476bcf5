"""Correlations and attention of one query patch along runs of masked image modelling."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import (
    REFERENCE,
    TIME,
    line,
    panel_letter,
    signed_log,
    styled,
)
from simulations.masked.figures import regime_label

CORRELATIONS = ("Phi_1", "Phi_n", "Phi_rest", "Upsilon_n")
_DASHES = {"Phi_1": "--", "Phi_rest": ":", "Upsilon_n": "-."}
#: Correlations smaller than this are on a linear scale in `draw_small`.
_LINEAR = 1e-4


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the correlations above, attention and loss below, one column per run."""
    return _columns(data, figure)


@styled
def draw_small(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the same with a logarithmic axis of correlations, linear near 0."""
    artists = _columns(data, figure)
    correlations = data[list(CORRELATIONS)].to_array()
    signed_log(figure.axes[0], "y", _LINEAR, correlations.where(correlations.notnull(), 0.0))
    return artists


def _columns(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    count = data.sizes["run"]
    panels = figure.subplots(2, count, sharex="col", sharey="row", squeeze=False)
    artists: dict[str, Any] = {}
    for column, run in enumerate(data["run"].values):
        part = data.isel(run=column)
        time = part["time"].where(part["time"] > 0.0)
        top, bottom = panels[:, column]
        for name in CORRELATIONS:
            artists[name] = line(top, name, time, part[name], linestyle=_DASHES.get(name, "-"))
        for name in ("a_n", "excess"):
            label = {"excess": "loss above its floor, over its start"}.get(name)
            extra = {"label": label} if label else {}
            artists[name] = line(bottom, name, time, part[name], **extra)
        _mark_times(top, bottom, part)
        top.set_title(regime_label(str(run)), fontsize=8.5 if count > 2 else 10)
        for row, ax in enumerate((top, bottom)):
            panel_letter(ax, "abcdefgh"[row * count + column])
    panels[0, 0].set_ylabel("correlation")
    panels[1, 0].set(ylabel="attention, loss", ylim=(-0.03, 1.05))
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=3)
    return artists


def _mark_times(top: Any, bottom: Any, part: xarray.Dataset) -> None:
    """Shade phase I, mark the law of the theory, and format the axis of time."""
    last = float(part["time"].max())
    switch = float(part["switch"])
    first = 1e-5 * last if np.isfinite(switch) else 1e-4 * last
    for ax in (top, bottom):
        ax.set(xscale="log", xlim=(first, last))
        if np.isfinite(switch):
            ax.axvspan(first, switch, color="#EDEDED", zorder=-2, linewidth=0)
    top.axhline(0.0, color="#999999", linewidth=0.6, zorder=-1)
    if np.isfinite(part["law"]):
        top.axhline(float(part["law"]), **REFERENCE)
    bottom.set_xlabel(TIME)
