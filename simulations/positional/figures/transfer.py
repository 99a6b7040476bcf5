"""Figures of transfer: test error against samples, and samples needed against D."""

import math
from typing import Any

import numpy as np
import xarray

from simulations.figures.style import (
    COLOURS,
    PROBLEM_STYLES,
    REFERENCE,
    legend_entries,
    panel_letter,
    panel_letters,
    styled,
)
from simulations.positional.learners import (
    EASY,
    FINDER,
    IDEALIZED,
    LEARNERS,
    MIDDLE,
    PRETRAINED,
    SCRATCH,
    UNIFORM,
)

_STYLES = dict(zip(LEARNERS, (*PROBLEM_STYLES, {"color": "#DDAA33", "linestyle": "-"})))
_MARKERS = dict(zip(LEARNERS, "os^vDPX"))
_LEAST = 2e-4  # errors below are drawn there
_BOUND = {"color": "black", "linewidth": 1.2, "linestyle": "-"}
_LINEAR = {"color": "#555555", "linewidth": 1.0, "linestyle": ":"}
_COLLECTED = {"color": "#888888", "linewidth": 1.2, "linestyle": (0, (4, 2))}


@styled
def draw_few_samples(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw errors with a pre-trained A for every D, and the samples needed against D."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    pretrained = data.isel(entry=data["learner"].values == PRETRAINED)
    for number in range(pretrained.sizes["entry"]):
        entry = pretrained.isel(entry=number)
        style = PROBLEM_STYLES[number] | {"label": f"$D={int(entry['D'])}$"}
        artists[f"D {int(entry['D'])}"] = _errors(left, entry, dots=0.94 + 0.04 * number, **style)
    for number, index in enumerate(np.flatnonzero(data["learner"].values == UNIFORM)):
        label = UNIFORM if number == 0 else None
        _errors(left, data.isel(entry=index), label=label, color="#AAAAAA", lw=1.0)
    left.axhline(float(data["threshold"][0]), **REFERENCE)
    left.set_ylim(_LEAST, 1.3)
    _axes(left)
    left.set_ylabel(r"test error $P[yF\leq 0]$")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=5)
    artists |= _needed(right, data, (PRETRAINED, IDEALIZED, UNIFORM, SCRATCH))
    D = np.unique(data["D"].values)
    right.plot(D, np.log(D), color="#555555", linestyle=":", linewidth=1.2, label=r"$\log D$")
    right.set_ylim(0.7, right.get_ylim()[1] * 40.0)
    right.legend(loc="upper left", ncols=1)
    panel_letters((left, right))
    return artists


@styled
def draw_learners(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the errors of every learner at D = 32, one panel per qD, and the samples needed."""
    regimes = sorted(set(data["qD"].values.tolist()))
    panels = figure.subplots(2, 3).ravel()
    artists: dict[str, Any] = {}
    for ax, qD in zip(panels, regimes):
        regime = data.isel(entry=(data["qD"].values == qD) & (data["D"].values == 32))
        for number in range(regime.sizes["entry"]):
            entry = regime.isel(entry=number)
            learner = str(entry["learner"].values)
            style = _STYLES[learner] | {"marker": _MARKERS[learner], "markersize": 4}
            artists[f"{learner} {qD}"] = _errors(ax, entry, label=learner, **style)
        ax.axhline(float(regime["linear"][0]), label="linear rule (exact)", **_LINEAR)
        N, first = np.unique(regime["samples"].values, return_index=True)
        finite = np.isfinite(N)
        bound = regime["least"].values.ravel()[first][finite]
        ax.plot(N[finite], np.maximum(bound, _LEAST), label="bound without the sets", **_BOUND)
        ax.set_ylim(_LEAST, 1.0)
        _axes(ax)
        ax.set(title=f"$qD={qD:g}$, $D=32$", ylabel=r"mean test error $P[yF\leq 0]$")
    for ax in panels[len(regimes) : 3]:
        ax.set_axis_off()
    for ax, qD, learners in (
        (panels[3], EASY, tuple(name for name in LEARNERS if name != FINDER)),
        (panels[4], MIDDLE, (PRETRAINED, SCRATCH, FINDER)),
    ):
        regime = data.isel(entry=data["qD"].values == qD)
        artists |= _needed(ax, regime, learners)
        ax.set_title(f"$qD={qD:g}$")
        if qD == MIDDLE:
            D, first_of_D = np.unique(regime["D"].values, return_index=True)
            ax.plot(D, regime["least_needed"].values[first_of_D], **_BOUND)
            collected = regime["collected"].values[first_of_D]
            ax.plot(D, collected, label="every set seen (mean)", **_COLLECTED)
    artists |= _per_set(panels[5], data)
    figure.legend(*legend_entries(panels[:5]), loc="outside upper left", ncols=3)
    for ax, letter in zip(panels, "abcdef"):
        if ax.axison:
            panel_letter(ax, letter)
    return artists


def _per_set(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    """Draw the error of the learner that looks for the sets against N / L, with the bounds."""
    artists: dict[str, Any] = {}
    chosen = (data["learner"].values == FINDER) & (data["qD"].values == MIDDLE)
    entries = data.isel(entry=chosen).sortby("D")
    for number in range(entries.sizes["entry"]):
        entry = entries.isel(entry=number)
        D = int(entry["D"])
        shares = entry["samples"].values * data.attrs["set_size"] / D
        mean = np.maximum(entry["error"].mean("run").values, _LEAST)
        style = PROBLEM_STYLES[number]
        artists[f"finder {D}"] = ax.plot(shares, mean, marker="X", ms=4, label=f"$D={D}$", **style)[
            0
        ]
        ax.plot(shares, np.maximum(entry["least"].values, _LEAST), color=style["color"], lw=0.8)
    _axes(ax)
    ticks = (0.5, 1, 2, 4, 8)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set(ylim=(_LEAST, 1.0), xlabel=r"samples per set $\tilde N/L$", ylabel="mean test error")
    ax.set_title(f"{FINDER}, $qD={MIDDLE:g}$")
    ax.legend(loc="upper right", ncols=2, handlelength=1.8, columnspacing=1.0)
    return artists


def _errors(ax: Any, entry: xarray.Dataset, dots: float | None = None, **style: Any) -> Any:
    """Plot the mean over runs and, if ``dots`` is given, all runs, shifted by this factor."""
    samples, error = entry["samples"].values, entry["error"].values
    finite = np.isfinite(samples)
    samples, error = samples[finite], np.maximum(error[finite], _LEAST)
    error = error[:, np.isfinite(error).all(axis=0)]
    if dots is not None:
        positions = np.repeat(samples * dots, error.shape[1])
        ax.plot(positions, error.ravel(), ".", color=style["color"], markersize=3, alpha=0.5)
    return ax.plot(samples, error.mean(axis=1), **style)[0]


def _needed(ax: Any, data: xarray.Dataset, learners: tuple[str, ...]) -> dict[str, Any]:
    """Plot the samples needed against D, with an arrow where the error was not reached."""
    artists: dict[str, Any] = {}
    for learner in learners:
        entries = data.isel(entry=data["learner"].values == learner).sortby("D")
        if entries.sizes["entry"] == 0:
            continue
        patches, needed = entries["D"].values, entries["needed"].values
        style = _STYLES[learner] | {"marker": _MARKERS[learner], "markersize": 5}
        shown = np.where(np.isfinite(needed), needed, np.nan)
        artists[f"needed {learner}"] = ax.plot(patches, shown, label=learner, **style)[0]
        ends = entries["needed_low"].values, entries["needed_high"].values
        top = entries["samples"].max("size").values
        ends = tuple(np.minimum(end, top) for end in ends)
        ax.vlines(patches, *ends, color=style["color"], linewidth=1.0)
        for D, number, tried in zip(patches, needed, entries["samples"].max("size").values):
            if math.isinf(number):
                ax.annotate(
                    "",
                    (D, 2.5 * tried),
                    (D, tried),
                    arrowprops={"arrowstyle": "->", "color": style["color"]},
                )
                ax.plot(D, tried, style["marker"], color=style["color"], mfc="white", ms=5)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ticks = sorted(set(data["D"].values.tolist()))
    ax.set_xticks(ticks, [str(D) for D in ticks])
    ax.set(ylim=(0.7, max(300.0, ax.get_ylim()[1] * 1.5)), xlabel="patches $D$")
    ax.set_ylabel(f"samples for mean error {float(data['threshold'][0]):g}")
    return artists


def _axes(ax: Any) -> None:
    """Set logarithmic axes against the number of samples."""
    ax.set(xscale="log", yscale="log", xlabel=r"samples $\tilde N$ of the new feature")
    ax.tick_params(axis="both", which="minor", length=2, color=COLOURS["mean_sigmoid"])
