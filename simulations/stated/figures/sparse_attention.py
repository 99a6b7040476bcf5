"""Sparse attention: the plateau of the loss, and its length in tokens and coordinates."""

from typing import Any

import xarray

from simulations.figures.style import (
    REFERENCE,
    panel_letters,
    problem_style,
    size_ticks,
    styled,
)

_GREYS = ("#222222", "#777777", "#AAAAAA")


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw loss and attention against scaled time, and scaled half-loss times."""
    axes = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["problem"].values):
        rows, style = data.isel(problem=number), problem_style(number, str(name))
        (artists[str(name)],) = axes[0].plot(data["scaled"], rows["loss"], **style)
        axes[1].plot(data["scaled"], rows["attention"], **style)
    for ax, label in zip(axes, ("loss", "attention to the last token")):
        ax.set(xlabel=r"flow time / $(T\sqrt{d})$", ylabel=label, ylim=(0.0, None))
        ax.set_xlim(0.0, float(data["scaled"][-1]))
        ax.axvline(float(data["limit"]), **REFERENCE)
    for number, d in enumerate(data["d"].values):
        colour, marker = _GREYS[number % 3], "os^"[number % 3]
        (artists[f"d={d}"],) = axes[2].plot(
            data["T"], data["half"].sel(d=d), marker, ls="-", ms=5, lw=1.0, color=colour,
            label=f"$d={d}$",
        )  # fmt: skip
        axes[2].axhline(float(data["expected"].sel(d=d)), color=colour, lw=0.9, ls=":")
    axes[2].axhline(float(data["limit"]), **REFERENCE)
    axes[2].set(
        xscale="log", xlabel="tokens $T$", ylabel=r"half-loss time / $(T\sqrt{d})$",
        ylim=(1.2, None),
    )  # fmt: skip
    size_ticks(axes[2], data["T"].values)
    axes[2].legend(loc="upper right")
    figure.legend(
        handles=[artists[str(name)] for name in data["problem"].values],
        loc="outside lower center", ncols=data.sizes["problem"],
    )  # fmt: skip
    panel_letters(axes)
    return artists
