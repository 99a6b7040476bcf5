"""Test error against the number of samples of a new feature, and the samples needed against D."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray

from dynamics.linear_models import uniform_error
from simulations.figures.style import (
    COLOURS,
    PROBLEM_STYLES,
    REFERENCE,
    panel_letter,
    styled,
)
from simulations.transfer_runs import (
    EASY,
    IDEALIZED,
    LEARNERS,
    PRETRAINED,
    SCRATCH,
    UNIFORM,
    Entry,
    Sweep,
)

_STYLES = dict(zip(LEARNERS, PROBLEM_STYLES))
_MARKERS = dict(zip(LEARNERS, "os^vDP"))
_LEAST = 2e-4  # errors below are drawn there


def gather(found: Mapping[Entry, Sweep], threshold: float) -> xarray.Dataset:
    """Return errors (entry, size, run), nan where there is none, and what each entry is."""
    rows = list(found.items())
    sizes = np.full((len(rows), max(len(entry.sizes) for entry, _ in rows)), np.nan)
    errors = np.full((*sizes.shape, max(entry.runs for entry, _ in rows)), np.nan)
    for number, (entry, sweep) in enumerate(rows):
        sizes[number, : len(entry.sizes)] = entry.sizes
        errors[number, : len(entry.sizes), : entry.runs] = sweep.errors
    return xarray.Dataset(
        {
            "samples": (("entry", "size"), sizes),
            "error": (("entry", "size", "run"), errors),
            "needed": ("entry", [sweep.needed(threshold) for _, sweep in rows]),
            "linear": ("entry", [uniform_error(sweep.problem).coin for _, sweep in rows]),
        },
        coords={
            "learner": ("entry", [entry.learner for entry, _ in rows]),
            "qD": ("entry", [entry.qD for entry, _ in rows]),
            "D": ("entry", [entry.D for entry, _ in rows]),
        },
        attrs={"threshold": threshold},
    )


@styled
def draw_few_samples(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the errors with a pre-trained A for every D, and the samples needed against D."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    own = data.isel(entry=data["learner"].values == PRETRAINED)
    for number in range(own.sizes["entry"]):
        one = own.isel(entry=number)
        style = PROBLEM_STYLES[number] | {"label": f"$D={int(one['D'])}$"}
        artists[f"D {int(one['D'])}"] = _errors(left, one, dots=0.94 + 0.04 * number, **style)
    for number, entry in enumerate(np.flatnonzero(data["learner"].values == UNIFORM)):
        label = UNIFORM if number == 0 else None
        _errors(left, data.isel(entry=entry), label=label, color="#AAAAAA", lw=1.0)
    left.axhline(data.attrs["threshold"], **REFERENCE)
    left.set_ylim(_LEAST, 1.3)
    _axes(left)
    left.set_ylabel(r"test error $P[yF\leq 0]$")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=5)
    artists |= _needed(right, data, (PRETRAINED, IDEALIZED, UNIFORM, SCRATCH))
    right.legend(loc="best")
    for ax, letter in zip((left, right), "ab"):
        panel_letter(ax, letter)
    return artists


@styled
def draw_learners(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the errors of every learner at D = 32, one panel a regime, and the samples needed."""
    regimes = sorted(set(data["qD"].values.tolist()))
    panels = figure.subplots(1, len(regimes) + 1)
    artists: dict[str, Any] = {}
    for ax, qD in zip(panels, regimes):
        here = data.isel(entry=(data["qD"].values == qD) & (data["D"].values == 32))
        for number in range(here.sizes["entry"]):
            one = here.isel(entry=number)
            learner = str(one["learner"].values)
            style = _STYLES[learner] | {"marker": _MARKERS[learner], "markersize": 4}
            artists[f"{learner} {qD}"] = _errors(ax, one, label=learner, **style)
        ax.axhline(float(here["linear"][0]), color="#555555", linestyle=":", linewidth=1.0)
        ax.set_ylim(_LEAST, 1.0)
        _axes(ax)
        ax.set_title(f"$qD={qD:g}$, $D=32$")
    panels[0].set_ylabel(r"mean test error $P[yF\leq 0]$")
    easy = data.isel(entry=data["qD"].values == EASY)
    artists |= _needed(panels[-1], easy, LEARNERS)
    panels[-1].set_title(f"$qD={EASY:g}$")
    handles: dict[str, Any] = {}
    for ax in panels[:-1]:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels())))
    figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=5)
    for ax, letter in zip(panels, "abcd"):
        panel_letter(ax, letter)
    return artists


def _errors(ax: Any, one: xarray.Dataset, dots: float | None = None, **style: Any) -> Any:
    """Plot the mean over runs and, with ``dots``, the runs themselves, shifted by that factor."""
    samples, error = one["samples"].values, one["error"].values
    kept = np.isfinite(samples)
    samples, error = samples[kept], np.maximum(error[kept], _LEAST)
    error = error[:, np.isfinite(error).all(axis=0)]
    if dots is not None:
        places = np.repeat(samples * dots, error.shape[1])
        ax.plot(places, error.ravel(), ".", color=style["color"], markersize=3, alpha=0.5)
    return ax.plot(samples, error.mean(axis=1), **style)[0]


def _needed(ax: Any, data: xarray.Dataset, learners: tuple[str, ...]) -> dict[str, Any]:
    """Plot the samples needed against D, and an arrow from the most samples where not reached."""
    artists: dict[str, Any] = {}
    for learner in learners:
        own = data.isel(entry=data["learner"].values == learner).sortby("D")
        if own.sizes["entry"] == 0:
            continue
        patches, needed = own["D"].values, own["needed"].values
        style = _STYLES[learner] | {"marker": _MARKERS[learner], "markersize": 5}
        artists[f"needed {learner}"] = ax.plot(
            patches, np.where(np.isfinite(needed), needed, np.nan), label=learner, **style
        )[0]
        for D, number, tried in zip(patches, needed, own["samples"].max("size").values):
            if math.isinf(number):
                ax.annotate(
                    "", (D, 2.5 * tried), (D, tried),
                    arrowprops={"arrowstyle": "->", "color": style["color"]},
                )  # fmt: skip
                ax.plot(D, tried, style["marker"], color=style["color"], mfc="white", ms=5)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ticks = sorted(set(data["D"].values.tolist()))
    ax.set_xticks(ticks, [str(D) for D in ticks])
    ax.set_ylim(0.7, max(300.0, ax.get_ylim()[1] * 1.5))
    ax.set_xlabel("patches $D$")
    ax.set_ylabel(f"samples for mean error {data.attrs['threshold']:g}")
    return artists


def _axes(ax: Any) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(r"samples $\tilde N$ of the new feature")
    ax.tick_params(axis="both", which="minor", length=2, color=COLOURS["mean_sigmoid"])
