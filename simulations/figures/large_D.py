"""Flows for D up to a million: when the events happen, and what is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled

_MARKERS = ("o", "s")


def gather(found: Mapping[tuple[int, int], Any]) -> xarray.Dataset:
    """Return what is drawn, dims (qD, D), from runs keyed by (qD, D)."""
    features = sorted({key[0] for key in found})
    sizes = sorted({key[1] for key in found})

    def table(value: Any) -> tuple[tuple[str, str], np.ndarray]:
        rows = [[float(value(found[one, D])) for D in sizes] for one in features]
        return ("qD", "D"), np.array(rows)

    def settled(run: Any) -> float:
        return float(np.interp(run.events.T0.time, run.path.time, run.path.test_error))

    return xarray.Dataset(
        {
            "alpha_star": table(lambda run: run.events.alpha_star),
            "T0": table(lambda run: run.events.T0.time),
            "T1": table(lambda run: run.events.T1.time),
            "rise": table(lambda run: run.events.rise),
            "G": table(lambda run: run.G),
            "loss": table(lambda run: run.path.loss[-1]),
            "test_error": table(lambda run: run.path.test_error[-1]),
            "settled_error": table(settled),
            "label_error": table(lambda run: run.label.error),
        },
        coords={"qD": features, "D": sizes},
    )


@styled
def draw_events(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw T0 and T1 against D, and the factor of the second rise."""
    times, rise = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, one in enumerate(data["qD"].values):
        row, look = data.sel(qD=one), _look(number)
        for name, fill in (("T0", "none"), ("T1", "full")):
            label = f"$T_{name[1]}$, $qD={one}$"
            artists[f"{name} {one}"] = times.plot(
                data["D"], row[name], label=label, fillstyle=fill, **look
            )[0]
            _slope(times, data["D"].values, row[name].values, look["color"])
        artists[f"rise {one}"] = rise.plot(data["D"], row["rise"], label=f"$qD={one}$", **look)[0]
    times.set_yscale("log")
    times.set_ylabel("flow time (learning rate × steps)")
    times.legend(loc="upper left")
    rise.axhline(1.0, **REFERENCE)
    rise.set_ylabel(r"factor of the second rise of $\alpha$")
    rise.legend(loc="upper left")
    for letter, ax in zip("ab", (times, rise)):
        _against_D(ax, letter)
    times.set_xlim(right=float(data["D"].max()) * 4.0)
    return artists


@styled
def draw_ends(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the final attention mass and the test errors against D."""
    mass, errors = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, one in enumerate(data["qD"].values):
        row, look = data.sel(qD=one), _look(number)
        artists[f"G {one}"] = mass.plot(data["D"], row["G"], label=f"$qD={one}$", **look)[0]
        kinds: dict[str, tuple[str, dict[str, Any]]] = {
            "settled_error": ("at $T_0$", {"fillstyle": "none", "linestyle": ":"}),
            "test_error": ("at the end", {}),
            "label_error": ("of $f^*$", {"marker": "", "linewidth": 1.0}),
        }
        for name, (label, change) in kinds.items():
            artists[f"{name} {one}"] = errors.plot(
                data["D"], row[name], label=f"{label}, $qD={one}$", **(look | change)
            )[0]
    mass.plot(data["D"], data["D"], label="$G=D$", **REFERENCE)
    mass.set_yscale("log")
    mass.set_ylabel(r"$G=D\,(\Lambda+(C-1)\,\Gamma)$ at the end")
    mass.legend(loc="upper left")
    errors.set_yscale("log")
    errors.set_ylim(1e-9, 3.0)
    errors.set_ylabel(r"test error $P[yF\leq 0]$")
    handles = np.array(errors.get_legend_handles_labels()[0], dtype=object)
    by_column = handles.reshape(-1, 3).T.ravel()  # a legend fills its columns: one row for each qD
    figure.legend(handles=list(by_column), loc="outside lower right", ncols=3)
    for letter, ax in zip("ab", (mass, errors)):
        _against_D(ax, letter)
    return artists


def _look(number: int) -> dict[str, Any]:
    return {**PROBLEM_STYLES[number], "marker": _MARKERS[number], "markersize": 5}


def _against_D(ax: Any, letter: str) -> None:
    ax.set_xscale("log")
    ax.set_xlabel("number of patches $D$")
    panel_letter(ax, letter)


def _slope(ax: Any, D: np.ndarray, values: np.ndarray, colour: str) -> None:
    """Write the exponent over the last decade beside the last point."""
    if np.isfinite(values[-2:]).all():
        slope = np.log(values[-1] / values[-2]) / np.log(D[-1] / D[-2])
        ax.annotate(
            f"$D^{{{slope:.1f}}}$",
            (D[-1], values[-1]),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=9,
        )
