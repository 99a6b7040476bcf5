"""Figures of flows for D up to a million: times of the events, final risk and errors."""

from typing import Any

import xarray

from simulations.figures.style import PROBLEM_STYLES, panel_letters, styled

#: Markers of the scalings, and their sizes: a later one lies inside an earlier one.
_MARKERS = ("o", "s", "^", "D")
_SIZES = (10, 7.5, 5.5, 3.5)


@styled
def draw_events(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw T1 next to the scaling theory, and the risk at which the second rise ends."""

    def plot(axes: Any, row: xarray.Dataset, style: dict[str, Any], scaling: str) -> dict[str, Any]:
        times, risks = axes
        points, lines = style | {"linestyle": "none"}, style | {"marker": ""}
        label = pretty_scaling(scaling)
        measured = times.plot(row["D"], row["T1"], label=label, **points)[0]
        theory = times.plot(row["D"], row["T1_theory"], **lines)[0]
        risks.plot(row["D"], row["risk_after_rise"], **lines)
        for ended in (False, True):
            shown = row["risk_after_rise"].where(row["end_of_rise"].notnull() == ended)
            risks.plot(row["D"], shown, **points | {"fillstyle": "full" if ended else "none"})
        return {"T1": measured, "theory": theory}

    labels = "$T_1$ (learning rate × steps)", r"risk when the rise of $\alpha$ ends"
    return _grid(data, figure, plot, labels)


@styled
def draw_ends(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the flow time to the goal and the test errors against D."""

    def plot(axes: Any, row: xarray.Dataset, style: dict[str, Any], scaling: str) -> dict[str, Any]:
        times, errors = axes
        artists = {
            "end": times.plot(
                row["D"], row["end"], label=pretty_scaling(scaling), fillstyle="none", **style
            )[0]
        }
        for name, fill in (("settled_error", "none"), ("test_error", "full")):
            artists[name] = errors.plot(row["D"], row[name], **style | {"fillstyle": fill})[0]
        return artists

    labels = "flow time until risk $10^{-3}$", r"test error $P[yF\leq 0]$"
    return _grid(data, figure, plot, labels)


def pretty_scaling(name: str) -> str:
    """Return the name of a scaling in mathematical type."""
    names = {
        "nu=D^(-1/2)": r"$\nu=D^{-1/2}$",
        "nu=1/D": r"$\nu=1/D$",
        "nu=1/D^2": r"$\nu=1/D^2$",
        "nu=0.01, beta=1": r"$\nu=0.01$, $\beta=1$",
    }
    return names[name]


def _grid(data: xarray.Dataset, figure: Any, plot: Any, labels: tuple[str, str]) -> dict[str, Any]:
    """Draw two rows of panels against D, with a column per qD and a style per scaling."""
    rows = figure.subplots(2, data.sizes["qD"], squeeze=False, sharex=True, sharey="row")
    artists: dict[str, Any] = {}
    for column, features in enumerate(data["qD"].values):
        for number, scaling in enumerate(data["scaling"].values):
            style = PROBLEM_STYLES[number] | {
                "marker": _MARKERS[number],
                "markersize": _SIZES[number],
                "linewidth": 1.2,
            }
            curves = plot(rows[:, column], data.sel(scaling=scaling, qD=features), style, scaling)
            artists |= {f"{name} {scaling} {features}": artist for name, artist in curves.items()}
        rows[0, column].set_title(rf"$qD={features}$")
        rows[1, column].set_xlabel("number of patches $D$")
    for ax in rows.ravel():
        ax.set(xscale="log", yscale="log")
    for ax, label in zip(rows[:, 0], labels):
        ax.set_ylabel(label)
    panel_letters(rows.ravel())
    handles, names = rows[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return artists
