"""Wall time of one gradient against its error: enumeration, Fourier, sampling."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xarray
from matplotlib.lines import Line2D

from dynamics import Population, Problem, State
from dynamics.core.errors import ToleranceError
from dynamics.positional.population.enumeration import SECONDS_PER_STATE, predicted_states
from dynamics.positional.population.expectation import risk_sums
from simulations.figures.style import panel_letter, styled

#: Colour and marker of each method.
METHODS: dict[str, dict[str, Any]] = {
    "fourier": {"color": "#4477AA", "marker": "o", "label": "Fourier"},
    "enumeration": {"color": "#228833", "marker": "s", "label": "enumeration"},
    "sampling": {"color": "#EE6677", "marker": "^", "label": "sampling"},
}
_LEAST = 1e-14
_DURATIONS = {"1 s": 1.0, "1 hour": 3600.0, "1 month": 30 * 86400.0}


def gather(
    problem: Problem,
    state: State,
    reference_tolerance: float,
    tolerances: Iterable[float],
    samples: Sequence[int],
    seeds: Sequence[int],
    patience: float,
) -> xarray.Dataset:
    """Return seconds, error and bound of every method and setting, along the dimension ``run``.

    Errors are relative to the largest gradient entry. ``patience``: seconds spent timing each.
    """
    reference = Population(problem, "fourier", reference_tolerance).evaluate(state)
    exact = np.array(reference.gradient)
    size = float(np.abs(exact).max())
    rows: list[dict[str, Any]] = []

    def certified(method: str, tolerance: float) -> None:
        population = Population(problem, method, tolerance)
        value = population.evaluate(state)
        rows.append({
            "method": method, "setting": tolerance, "certified": True, "measured": True,
            "error": np.abs(np.array(population.gradient(state)) - exact).max() / size,
            "bound": value.bound / size,
            "seconds": seconds_of(lambda: population.gradient(state), patience),
        })  # fmt: skip

    for tolerance in map(float, tolerances):
        certified("fourier", tolerance)
        try:
            certified("enumeration", tolerance)
        except ToleranceError:
            rows.append(_out_of_reach(problem, tolerance, size))
    z = 0.0
    for count in samples:
        row, z = _sampled(problem, state, count, seeds, patience, reference)
        rows.append(row)
    attrs = {
        "D": problem.D, "C": problem.C, "qD": problem.q * problem.D, "sampling_z": z,
        "reference_bound": reference.bound / size, "largest_entry": size,
    }  # fmt: skip
    if any(row["method"] == "enumeration" and row["measured"] for row in rows):
        other = Population(problem, "enumeration", reference_tolerance).gradient(state)
        attrs["enumeration_difference"] = float(np.abs(np.array(other) - exact).max() / size)
    return xarray.Dataset(
        {name: ("run", [row[name] for row in rows]) for name in rows[0]}, attrs=attrs
    )


def _out_of_reach(problem: Problem, tolerance: float, size: float) -> dict[str, Any]:
    """Return what enumeration would cost, from its number of states."""
    return {
        "method": "enumeration", "setting": tolerance, "certified": True, "measured": False,
        "error": tolerance / size, "bound": tolerance / size,
        "seconds": SECONDS_PER_STATE * predicted_states(problem, tolerance),
    }  # fmt: skip


def _sampled(
    problem: Problem,
    state: State,
    count: int,
    seeds: Sequence[int],
    patience: float,
    reference: Any,
) -> tuple[dict[str, Any], float]:
    """Return the row of one sample size, and the deviation of all seeds' mean in standard errors.

    The deviation is the largest of the loss and the three derivatives.
    """
    exact = np.array([reference.loss, *reference.gradient])
    values, variances, bounds = [], [], []
    for seed in seeds:
        population = Population(problem, "sampling", samples=count, seed=seed)
        value = population.evaluate(state)
        values.append([value.loss, *value.gradient])
        bounds.append(value.bound)
        sample = population.expectation
        sums = risk_sums(sample.states, sample.constants, *state)[0]
        variance = (sums[1] - sums[0] ** 2)[[0, 2, 3, 4]]
        variances.append(variance / np.array([1.0, *problem.multiplicity]) ** 2)
    error = np.array(values) - exact
    standard = np.sqrt(np.mean(variances, axis=0) / (count * len(seeds)))
    size = np.abs(exact[1:]).max()
    row = {
        "method": "sampling", "setting": float(count), "certified": False, "measured": True,
        "error": np.sqrt((np.abs(error[:, 1:]).max(axis=1) ** 2).mean()) / size,
        "bound": np.mean(bounds) / size,
        "seconds": seconds_of(lambda: population.gradient(state), patience),
    }  # fmt: skip
    return row, float(np.max(np.abs(error.mean(axis=0)) / standard))


def seconds_of(call: Callable[[], Any], patience: float) -> float:
    """Return the shortest of at least five timed calls, after one that is not counted."""
    call()
    times: list[float] = []
    while len(times) < 5 or sum(times) < patience:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        if sum(times) > 10.0 * patience:
            break
    return min(times)


def join(panels: Sequence[xarray.Dataset]) -> xarray.Dataset:
    """Return all panels in one data set, their numbers along the dimension ``panel``."""
    runs = [data.assign(panel_of=("run", np.full(data.sizes["run"], i)))
            for i, data in enumerate(panels)]  # fmt: skip
    joined = xarray.concat([data.drop_attrs() for data in runs], "run")
    for name in ("qD", "reference_bound", "largest_entry"):
        joined[name] = ("panel", [float(data.attrs[name]) for data in panels])
    return joined.assign_attrs(D=panels[0].attrs["D"], C=panels[0].attrs["C"])


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw one panel for each problem."""
    axes = figure.subplots(1, data.sizes["panel"], sharey=True, sharex=True, squeeze=False)[0]
    artists: dict[str, Any] = {}
    for i, ax in enumerate(axes):
        runs = data.isel(run=(data["panel_of"] == i).values)
        ax.set(xscale="log", yscale="log", xlim=(1.0, _LEAST), ylim=(3e-6, 3e7))
        for name, style in METHODS.items():
            chosen = runs.isel(run=(runs["method"] == name).values)
            artists[name] = _method(ax, chosen, style) or artists.get(name)
        _extrapolation(ax, runs.isel(run=(runs["method"] == "sampling").values))
        floor = float(data["reference_bound"][i])
        ax.axvspan(floor, _LEAST, color="#EEEEEE", zorder=-3, linewidth=0)
        for text, seconds in _DURATIONS.items():
            ax.axhline(seconds, color="#BBBBBB", linewidth=0.8, zorder=-2)
            if i == len(axes) - 1:
                ax.annotate(text, (1.0, seconds), xycoords=("axes fraction", "data"), va="center",
                            xytext=(4, 0), textcoords="offset points", color="#555555")  # fmt: skip
        ax.set_title(f"$qD={float(data['qD'][i]):g}$")
        ax.set_xlabel("relative error (smaller to the right)")
        panel_letter(ax, "ab"[i] if i < 2 else str(i))
    axes[0].set_ylabel("wall time of one gradient (s)")
    handles = [handle for handle in artists.values() if handle is not None]
    handles += _legend_of_marks()
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return artists


def _legend_of_marks() -> list[Line2D]:
    """Return legend entries for what filled and open marks and crosses mean."""
    grey: dict[str, Any] = {"color": "#555555", "linestyle": "none", "markersize": 5}
    return [
        Line2D([], [], marker="o", label="true error", **grey),
        Line2D([], [], marker="o", markerfacecolor="white", label="error bound reported", **grey),
        Line2D([], [], marker="x", label="predicted: exceeds 512 MiB", **grey),
        Line2D(
            [],
            [],
            color=METHODS["sampling"]["color"],
            linestyle=(0, (5, 3)),
            linewidth=1.2,
            label=r"extrapolated: time $\propto$ error$^{-2}$",
        ),
    ]


def _method(ax: Any, runs: xarray.Dataset, style: dict[str, Any]) -> Any:
    """Draw true errors (filled), bounds (open) and the lines between them; return the filled."""
    real = runs.isel(run=runs["measured"].values)
    planned = runs.isel(run=~runs["measured"].values)
    ax.plot(planned["error"], planned["seconds"], linestyle=":", marker="x", markersize=5,
            linewidth=1.0, color=style["color"])  # fmt: skip
    if not real.sizes["run"]:
        return None
    errors = np.maximum(real["error"], 1.5 * _LEAST)
    ax.hlines(real["seconds"], errors, real["bound"], color=style["color"], linewidth=0.7)
    ax.plot(real["bound"], real["seconds"], linestyle="-", markersize=5, markerfacecolor="white",
            linewidth=1.2, color=style["color"], marker=style["marker"])  # fmt: skip
    return ax.plot(errors, real["seconds"], linestyle="none", markersize=4.5, **style)[0]


def _extrapolation(ax: Any, sampling: xarray.Dataset) -> None:
    """Continue sampling with time proportional to error^-2."""
    last = sampling.isel(run=-1)
    error = np.array([float(last["error"]), _LEAST])
    ax.plot(error, float(last["seconds"]) * (error[0] / error) ** 2,
            color=METHODS["sampling"]["color"], linestyle=(0, (5, 3)), linewidth=1.2)  # fmt: skip
