"""Drawings that several theories share: a run, a tube, slopes, the difference of two models."""

import json
from collections.abc import Mapping
from string import ascii_lowercase
from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simulations.figures.style import (
    COLOURS,
    LABELS,
    PROBLEM_STYLES,
    REFERENCE,
    TIME,
    log_time,
    panel_letter,
    panel_letters,
    problem_style,
    shade_times,
    signed_log,
    styled,
)

#: Order parameters below this fraction of the largest one are drawn in a second panel.
_SMALL = 0.05
#: Longer names of problems are listed in one column of the legend.
_LONG = 40
#: Dashes of the second run.
_SECOND = (0, (4, 1.5))
#: Look of the order parameters without a name, and height in points of an entry of a legend.
_OTHERS: dict[str, Any] = {"color": "#BBBBBB", "linewidth": 0.9, "zorder": 1.5}
_ENTRY = 13.0


@styled
def draw_run(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Plot the order parameters of a run, small ones in a panel of their own, and its risk.

    Parameters
    ----------
    data
        Variables ``state`` (parameter, time), ``loss`` (time) and, for a second run, ``state 2``
        (parameter, time 2) and ``loss 2`` (time 2). The attribute ``events`` is a mapping in JSON
        from event to time, ``runs`` a list of the descriptions of two runs, ``scales`` a mapping
        from ``time`` or ``loss`` to ``"log"`` or ``"linear"``; each is optional.
    figure
        Figure.
    """
    scales = json.loads(data.attrs.get("scales", "{}"))
    runs = [""] if "loss 2" not in data else ["", " 2"]
    if scales.get("time", "log") == "log":  # a logarithmic axis cannot show time 0
        data = data.isel({f"time{run}": slice(1, None) for run in runs})
    states = np.hstack([data[f"state{run}"].values for run in runs])
    reach = np.nan_to_num(np.abs(states)).max(axis=1)
    large = reach >= _SMALL * reach.max()
    groups = [group for group in (large, ~large) if group.any()]
    labels = ["order parameters", "small order parameters"][: len(groups)]
    panels = figure.subplots(len(groups) + 1, 1, sharex=True)
    artists: dict[str, Any] = {}
    for run in runs:
        _draw_states(panels, groups, data, run, artists)
        style = {"color": COLOURS["loss"], "linestyle": _SECOND if run else "-"}
        curve = panels[-1].plot(data[f"time{run}"], data[f"loss{run}"], **style)
        artists[f"loss{run}"] = curve[0]
    for ax in panels[:-1]:
        ax.axhline(0.0, **REFERENCE)
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    for ax, letter, label in zip(panels, ascii_lowercase, [*labels, LABELS["loss"]]):
        ax.set_title(f"({letter}) {label}", loc="left")
    _scale_run(panels, data, runs, scales)
    events = json.loads(data.attrs.get("events", "{}"))
    for ax in panels:
        artists["events"] = shade_times(ax, events, names=ax is panels[0])
    if len(runs) > 1:
        handles = [artists["loss"], artists["loss 2"]]
        figure.legend(handles, json.loads(data.attrs["runs"]), loc="outside lower center", ncols=2)
    return artists


def _draw_states(
    panels: Any, groups: list[np.ndarray], data: xarray.Dataset, run: str, artists: dict[str, Any]
) -> None:
    """Draw the order parameters of one run, a group in each panel: many without names in grey."""
    height = 72.0 * panels[0].get_figure(root=True).get_figheight() / len(panels)
    most = int(np.clip(height / _ENTRY - 1, 2, len(PROBLEM_STYLES)))
    for ax, group in zip(panels, groups):
        named = _moving(data, group, most)
        others = [number for number in np.flatnonzero(group).tolist() if number not in named]
        for rank, number in enumerate([*named, *others]):
            name = str(data["parameter"].values[number])
            style: dict[str, Any] = {"label": f"_{name}", **_OTHERS}
            if number in named:
                style = {**PROBLEM_STYLES[rank], "label": LABELS.get(name, name)}
            elif number == others[0]:
                style["label"] = f"{len(others)} others"
            if number in named and name in COLOURS:
                style |= {"color": COLOURS[name], "linestyle": "-"}
            if "loss 2" in data:  # dashes distinguish the runs
                style["linestyle"] = _SECOND if run else "-"
            if run:
                style["label"] = f"_{name}"
            values = data[f"state{run}"].values[number]
            artists[f"{name}{run}"] = ax.plot(data[f"time{run}"], values, **style)[0]


def _moving(data: xarray.Dataset, group: np.ndarray, most: int) -> list[int]:
    """Return the order parameters of a group to name: all, or those that change most.

    Parameters
    ----------
    data
        Runs, as for `draw_run`: an order parameter changes as much as in the run of more change.
    group
        Whether each order parameter belongs to the group, shape (parameter,).
    most
        Largest number of entries of the legend; one of them is for all the others.
    """
    members = np.flatnonzero(group)
    if members.size <= most:
        return [int(member) for member in members]
    states = [data[name].values[members] for name in ("state", "state 2") if name in data]
    change = np.max([np.ptp(np.nan_to_num(run), axis=1) for run in states], axis=0)
    return sorted(int(member) for member in members[np.argsort(-change, kind="stable")][: most - 1])


def _scale_run(
    panels: Any, data: xarray.Dataset, runs: list[str], scales: Mapping[str, str]
) -> None:
    """Set the scales of time and risk of the panels of a run."""
    times = np.concatenate([data[f"time{run}"].values for run in runs])
    losses = np.concatenate([data[f"loss{run}"].values for run in runs])
    spans = losses.min() > 0.0 and losses.max() > 10.0 * losses.min()
    scale = scales.get("loss", "log" if spans else "linear")
    panels[-1].set_yscale(scale)
    if scale == "log" and losses.max() < 1e3 * losses.min():
        panels[-1].yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panels[-1].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panels[-1].yaxis.set_minor_formatter(NullFormatter())
    for ax in panels:
        if scales.get("time", "log") == "log":
            first = float(np.sort(times)[min(len(runs), times.size - 1)])
            log_time(ax, times, first=first, label=ax is panels[-1])
        else:
            ax.set_xlim(0.0, float(times.max()))
    panels[-1].set_xlabel(TIME)


@styled
def draw_tube(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Plot the radius of the tube, and below it the bounds (low, high) of gamma - rho."""
    later = data.isel(time=slice(1, None))  # a logarithmic axis cannot show time 0
    time = later["time"].values
    above, below = figure.subplots(2, 1, sharex=True)
    artists: dict[str, Any] = {}
    for name in data["parameter"].values.tolist():
        radius = later["radius"].sel(parameter=name).values
        label, colour = LABELS.get(name, name), COLOURS.get(name)
        artists[name] = above.plot(time, radius, label=label, color=colour)[0]
    above.set(yscale="log", ylabel="radius of the tube")
    above.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    low, high = (later["gap"].sel(end=end).values for end in ("low", "high"))
    artists["gap"] = below.fill_between(time, low, high, color=COLOURS["gamma - rho"])
    below.axhline(0.0, **REFERENCE)
    threshold = max(1e-9, 1e-6 * float(np.max(np.abs(high))))
    signed_log(below, "y", threshold, np.concatenate([low, high]))
    below.set_ylabel(LABELS["gamma - rho"])
    for letter, ax in zip("ab", (above, below)):
        log_time(ax, time, first=float(time[0]), label=ax is below)
        panel_letter(ax, letter)
    return artists


@styled
def draw_slopes(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Plot the gradients of a full model: one panel per state, one line per order parameter.

    Dots are the gradients of entries of the full model, bars the derived gradients.
    """
    names = [str(name) for name in data["name"].values]
    panels = np.atleast_1d(figure.subplots(1, data.sizes["problem"], sharey=True))
    artists: dict[str, Any] = {}
    for number, ax in enumerate(panels):
        own = data.isel(entry=np.flatnonzero(data["number"].values == number))
        order = own["order"].values
        rank = np.array([np.sum(order[:i] == own_order) for i, own_order in enumerate(order)])
        count = np.array([np.sum(order == own_order) for own_order in order])
        at = order + 0.6 * ((rank + 0.5) / np.maximum(count, 1) - 0.5)
        bars = data["derived"].isel(problem=number).values
        low, high = np.arange(len(names)) - 0.4, np.arange(len(names)) + 0.4
        artists[f"derived {number}"] = ax.vlines(bars, low, high, color="#E69F00", linewidth=3.0)
        artists[f"entries {number}"] = ax.plot(own["slope"], at, ".", color="#0072B2", ms=2.5)[0]
        ax.set_title(str(data["problem"].values[number]))
        slopes = np.concatenate([bars, own["slope"].values])
        signed_log(ax, "x", 1e-3 * float(np.abs(bars).max()), slopes, most=2)
        ax.set(xlabel="derivative of the risk in one entry")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    return artists


@styled
def draw_model_difference(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Plot the difference between reduced and full descent against the step, for each problem."""
    ax = figure.subplots()
    artists: dict[str, Any] = {}
    names = [str(name) for name in data["problem"].values]
    for number, name in enumerate(names):
        curve = data["difference"].isel(problem=number)
        worst = curve.max([dim for dim in curve.dims if dim != "step"])
        look = problem_style(number, name) | {"linewidth": 1.1}
        artists[name] = ax.plot(worst.where(worst > 0.0), **look)[0]
    tolerance, rounding = data.attrs["tolerance"], np.finfo(float).eps
    ax.axhline(tolerance, **REFERENCE)
    ax.axhline(rounding, **(REFERENCE | {"linestyle": (0, (1, 1.5))}))
    for height, text in ((tolerance, "tolerance"), (rounding, "rounding")):
        ax.annotate(
            text,
            (1.0, height),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            color="#555555",
        )
    ax.set(yscale="log", ylim=(1e-6 * tolerance, 10.0 * tolerance))
    ax.set(xlim=(0, data.sizes["step"] - 1), xlabel="step", ylabel=r"$|$reduced $-$ full$|$")
    columns = 1 if max(map(len, names)) > _LONG else 2
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=columns)
    return artists


@styled
def draw_against(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Plot a training run (circles) next to its theory (lines), and below its distance and error.

    Parameters
    ----------
    data
        Variables ``logged`` and ``theory`` (step, parameter), ``distance`` and ``error`` (step),
        for SGD the band ``low`` and ``high``; attributes ``tolerance``, ``sentence`` and ``scale``
        of the steps, ``"log"``, ``"linear"`` or empty.
    figure
        Figure.
    """
    steps = data["step"].values
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    artists: dict[str, Any] = {}
    for number, name in enumerate(map(str, data["parameter"].values)):
        colour = COLOURS.get(name, PROBLEM_STYLES[number % len(PROBLEM_STYLES)]["color"])
        own = data.isel(parameter=number)
        if "low" in data:
            above.fill_between(steps, own["low"], own["high"], color=colour, alpha=0.25, lw=0)
        label = LABELS.get(name, name)
        artists[f"theory {name}"] = above.plot(steps, own["theory"], color=colour, label=label)[0]
        circles = {"marker": "o", "linestyle": "", "mfc": "none", "ms": 4.5, "color": colour}
        artists[name] = above.plot(steps, own["logged"], **circles)[0]
    above.set_ylabel("order parameters")
    above.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="line: theory\ncircle: run")
    for name, style in (("distance", PROBLEM_STYLES[0]), ("error", PROBLEM_STYLES[1])):
        values = data[name].values
        rounding = 64.0 * np.finfo(float).eps  # the run starts on the manifold up to rounding
        hidden = np.nan if values.max() > rounding else rounding
        shown = np.where(values > rounding, values, hidden)
        artists[name] = below.plot(steps, shown, label=data[name].attrs["long_name"], **style)[0]
    below.axhline(data.attrs["tolerance"], label="tolerance", **REFERENCE)
    below.set(yscale="log", ylabel="relative", xlabel="step")
    below.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    uneven = np.median(steps - steps[0]) < 0.1 * (steps[-1] - steps[0])
    if (data.attrs.get("scale") or ("log" if uneven else "linear")) == "log":
        below.set_xscale("symlog", linthresh=max(1.0, float(steps[0] or steps[1])))
    panel_letters((above, below))
    return artists
