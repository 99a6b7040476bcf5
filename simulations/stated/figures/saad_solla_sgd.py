"""One-pass SGD of the soft committee machine: runs, and flows with and without noise."""

from typing import Any

import xarray

from simulations.figures.style import panel_letters, problem_style, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw losses of runs and flows, and overlaps with their spread."""
    axes = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    axes[0].plot(data["time"], data["run_loss"].values.T, color="#BBBBBB", lw=0.8)
    for method, colour, dashes in (
        ("with noise", "#0072B2", "-"),
        ("without noise", "#D55E00", "--"),
    ):
        values = data["loss"].sel(equations=method)
        (artists[method],) = axes[0].plot(
            data["time"], values, dashes, color=colour, lw=2.0, label=f"flow {method}"
        )
    axes[0].set(xlabel="learning rate × steps", ylabel="loss", yscale="log")
    axes[0].legend(loc="upper right")
    mean, deviation = data["runs"].mean("run"), data["runs"].std("run", ddof=1)
    for number, name in enumerate(data["overlap"].values):
        colour = problem_style(number, name)["color"]
        values = data["flow"].sel(equations="with noise", overlap=name)
        axes[1].plot(data["time"], values, color=colour, lw=1.4)
        artists[name] = axes[1].errorbar(
            data["time"], mean.sel(overlap=name), deviation.sel(overlap=name), fmt="o", ms=3,
            color=colour, lw=1.0, label=f"${name}$",
        )  # fmt: skip
    axes[1].set(xlabel="learning rate × steps", ylabel="overlaps")
    axes[1].legend(loc="lower right", ncols=4)
    panel_letters(axes)
    return artists
