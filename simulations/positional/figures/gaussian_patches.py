"""Figure 2: test error on Gaussian patches, and whether P^T P shows the sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics.positional.baselines.gaussian_patches import (
    Matching,
    Student,
    Task,
    association,
    match_to_sets,
    softmax,
    train,
)
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled


class Architecture(NamedTuple):
    """A student on a task, how it is trained, and with which seeds."""

    name: str
    task: Task
    student: Student
    rate: float
    steps: int
    seeds: tuple[int, ...]


def gather(
    architectures: Sequence[Architecture],
    batch: int,
    records: int,
    progress: Callable[[float], None],
) -> xarray.Dataset:
    """Train every architecture with its seeds; return errors, measures of P^T P, and matrices."""
    most = max(len(one.seeds) for one in architectures)
    shape = (len(architectures), most)
    D = architectures[0].task.D
    error, linear, share, auc, chance = (np.full(shape, np.nan) for _ in range(5))
    matching = {name: np.full(shape, np.nan) for name in Matching._fields}
    course = np.full((*shape, records + 1), np.nan)
    step = np.zeros((len(architectures), records + 1))
    gram = np.full((len(architectures), D, D), np.nan)
    total, done = sum(len(one.seeds) * one.steps for one in architectures), 0
    for row, one in enumerate(architectures):
        for column, seed in enumerate(one.seeds):

            def follow(fraction: float, start: int = done, length: int = one.steps) -> None:
                progress((start + fraction * length) / total)

            run = train(one.task, one.student, steps=one.steps, rate=one.rate, seed=seed,
                        batch=batch, records=records, progress=follow)  # fmt: skip
            done += one.steps
            matrix = one.student.encodings_gram(run.parameters)
            error[row, column] = run.test_error[-1]
            linear[row, column] = run.linear_error
            share[row, column], auc[row, column] = association(matrix, one.task.C)
            for name, value in _matching(one, run.parameters)._asdict().items():
                matching[name][row, column] = value
            chance[row, column] = _matching(one, run.start).accuracy
            course[row, column] = run.test_error
            step[row] = run.step
            if column == 0:
                gram[row] = matrix
    per_seed = ("architecture", "run")
    return xarray.Dataset(
        {
            "error": (per_seed, error), "linear": (per_seed, linear), "share": (per_seed, share),
            "auc": (per_seed, auc), "accuracy at the start": (per_seed, chance),
            **{f"attention {name}": (per_seed, values) for name, values in matching.items()},
            "course": ((*per_seed, "record"), course), "step": (("architecture", "record"), step),
            "gram": (("architecture", "row", "column"), gram),
        },
        coords={"architecture": [one.name for one in architectures]},
        attrs={"C": architectures[0].task.C, "batch": batch},
    )  # fmt: skip


def _matching(one: Architecture, parameters: dict[str, Any]) -> Matching:
    """Match the attention to the sets, heads weighted by the norm of their values."""
    weights = np.linalg.norm(parameters["v"], axis=1)
    return match_to_sets(softmax(one.student.scores(parameters)), weights, one.task.C)


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw test errors, the sets, two learned P^T P, and all runs by error and visibility."""
    panels = figure.subplot_mosaic([["error", "sets", "first"], ["runs", "runs", "second"]])
    artists: dict[str, Any] = {}
    names = [str(name) for name in data["architecture"].values]
    shown = (names[0], names[1])
    for number, name in enumerate(shown):
        one = data.sel(architecture=name)
        course = one["course"].dropna("run", how="all")
        style = PROBLEM_STYLES[number]
        panels["error"].fill_between(
            one["step"], course.min("run"), course.max("run"), color=style["color"], alpha=0.25,
            linewidth=0,
        )  # fmt: skip
        artists[name] = panels["error"].plot(one["step"], course.median("run"), label=name, **style)
    level = float(data["linear"].mean())
    panels["error"].axhline(level, **REFERENCE)
    panels["error"].annotate("best linear rule", (1.0, level), xycoords=("axes fraction", "data"),
                             xytext=(0, 3), textcoords="offset points", ha="right")  # fmt: skip
    panels["error"].set(xlabel="Adam step", ylabel="test error", yscale="log", ylim=(1e-3, 1.0))
    panels["error"].legend(loc="upper right", fontsize=9, handlelength=1.6)
    D, C = data.sizes["row"], data.attrs["C"]
    owner = np.arange(D) // C
    _matrix(panels["sets"], np.where(owner[:, None] == owner, 1.0, 0.0), "the sets")
    for key, name in zip(("first", "second"), shown):
        artists[f"matrix {name}"] = _matrix(
            panels[key], data["gram"].sel(architecture=name).values, f"$P^\\top P$: {name}"
        )
    _draw_runs(panels["runs"], data, level, artists)
    handles, labels = panels["runs"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=1.2)
    for letter, key in zip("abcde", ("error", "sets", "first", "runs", "second")):
        panel_letter(panels[key], letter)
    return artists


def _matrix(ax: Any, matrix: np.ndarray, title: str) -> Any:
    """Show a matrix in the colours of its off-diagonal entries."""
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    image = ax.imshow(matrix, vmin=off.min(), vmax=off.max(), cmap="cividis",
                      interpolation="nearest")  # fmt: skip
    ticks = range(0, len(matrix), max(1, len(matrix) // 4))
    ax.set(xlabel="patch $j$", ylabel="patch $i$", xticks=ticks, yticks=ticks)
    ax.set_title(title, fontsize=9)
    return image


def _draw_runs(ax: Any, data: xarray.Dataset, level: float, artists: dict[str, Any]) -> None:
    """Two marks per run against test error: how visible the sets are in P^T P, and to attention."""
    marks = "osD^vP*X"
    colours = [style["color"] for style in PROBLEM_STYLES] + ["#777777", "#000000"]
    for number, name in enumerate(data["architecture"].values):
        one, colour = data.sel(architecture=name), colours[number % 8]
        style = {"color": colour, "marker": marks[number % 8], "linestyle": "none", "alpha": 0.8}
        artists[f"runs {name}"] = ax.plot(one["error"], one["auc"], label=str(name), **style)
        artists[f"attention {name}"] = ax.plot(
            one["error"], one["attention auc"], **style | {"markerfacecolor": "none"}
        )
    ax.axvline(level, **REFERENCE)
    ax.axhline(0.5, **REFERENCE)
    ax.annotate(
        "filled: $P^\\top P$; open: attention", (0.02, 0.04), xycoords="axes fraction", fontsize=9
    )
    ax.set(xscale="log", xlim=(1e-3, 0.5), ylim=(0.2, 1.05), xlabel="test error", ylabel="AUC")
