"""Figures of the scaling theory of many patches: branches, jumps, relative differences."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import (
    COLOURS,
    PROBLEM_STYLES,
    REFERENCE,
    legend_entries,
    panel_letter,
    styled,
)
from simulations.positional.figures.large_D import pretty_scaling

_MARKERS = ("o", "s", "^", "D", "v")


@styled
def draw_branches(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw alpha* D^(1/p) against nu D^((p-1)/p), its two asymptotes and measured values."""
    ax = figure.subplots()
    artists: dict[str, Any] = {}
    for number in range(data.sizes["limit"]):
        row, style = data.isel(limit=number), PROBLEM_STYLES[number]
        p, features = int(row["p"]), int(row["qD"])
        label = rf"$p={p}$, $qD={features}$"
        artists[label] = ax.plot(row["nu_hat"], row["a"], label=label, **style)[0]
        measured = data["measured_limit"].values == number
        ax.plot(
            data["measured_nu_hat"].values[measured],
            data["measured_a"].values[measured],
            _MARKERS[number],
            color=style["color"],
            markersize=5,
            fillstyle="none",
        )
    ax.set(xscale="log", yscale="log", xlim=(1e-6, 1e4), ylim=(3e-5, 2.0))
    first = data.isel(limit=0)
    x = np.geomspace(0.3, 1e4, 5)
    ax.plot(x, float(first["linear"]) / x, **REFERENCE)
    ax.axhline(float(first["power"]), **REFERENCE)
    ax.annotate(r"$\alpha^*=a_0D^{-1/p}$", (1.5e-6, float(first["power"]) * 1.12), fontsize=9)
    ax.annotate(r"$\alpha^*=b_0/(\nu D)$", (300.0, 0.02), fontsize=9)
    ax.set(xlabel=r"$\nu D^{(p-1)/p}$", ylabel=r"$\alpha^* D^{1/p}$ at $\gamma=\rho=0$")
    ax.legend(loc="lower left")
    return artists


@styled
def draw_jumps(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the sign of d alpha/dt, the branch with its fold, and the measured flow."""
    axes = figure.subplots(1, data.sizes["panel"], squeeze=False)[0]
    artists: dict[str, Any] = {}
    for number, (letter, ax) in enumerate(zip("abc", axes)):
        row = data.isel(panel=number)
        G, alpha = row["G"].values, row["alpha"].values
        ax.contourf(G, alpha, row["slope"], levels=[-1.0, 0.0, 1.0], colors=["#FFFFFF", "#DDDDDD"])
        ax.contour(G, alpha, row["slope"], levels=[0.0], colors="#888888", linewidths=0.8)
        artists[f"path {number}"] = ax.plot(
            *row["path"].values.T, color=COLOURS["alpha"], label="measured flow"
        )[0]
        artists[f"branch {number}"] = ax.plot(
            *row["branch"].values.T,
            color="#000000",
            linewidth=1.2,
            linestyle="--",
            label=r"branch of $\alpha^*$ from $\gamma=\rho=0$",
        )[0]
        if np.isfinite(row["fold"]).all():
            artists[f"fold {number}"] = ax.plot(
                *row["fold"].values,
                "o",
                color="#000000",
                markersize=6,
                fillstyle="none",
                markeredgewidth=1.4,
                linestyle="none",
                label="fold",
            )[0]
        ax.set(xscale="log", yscale="log", xlim=(G[0], G[-1]), ylim=(alpha[0], alpha[-1]))
        exponent = round(np.log10(float(row["D"])))
        title = rf"$D=10^{exponent}$, $qD={int(row['qD'])}$"
        ax.set_title(title + "\n" + pretty_scaling(str(row["scaling"].values)), fontsize=9.5)
        ax.set_xlabel("attention mass $G$")
        panel_letter(ax, letter)
    axes[0].set_ylabel(r"$\alpha$")
    handles, labels = legend_entries(axes)
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return artists


@styled
def draw_differences(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the relative differences from the theory against D."""
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    artists: dict[str, Any] = {}
    titles = {"alpha_star": r"$\alpha^*$ at $\gamma=\rho=0$", "T1": "$T_1$"}
    for letter, ax, (name, title) in zip("ab", axes, titles.items()):
        for number, p in enumerate(np.unique(data["p"].values)):
            chosen = data["p"].values == p
            artists[f"{name} {p}"] = ax.plot(
                data["D"].values[chosen] * 1.12**number,
                data[name].values[chosen],
                _MARKERS[number],
                color=PROBLEM_STYLES[number]["color"],
                markersize=5,
                fillstyle="none",
                label=f"$p={p}$",
            )[0]
        ax.axhline(0.02, **REFERENCE)
        D = np.array([1e3, 1e6])
        ax.plot(D, 1e3 / D, color="#999999", linewidth=0.9, linestyle=":", label=r"$10^3/D$")
        ax.set(xscale="log", yscale="log", title=title, xlabel="number of patches $D$")
        panel_letter(ax, letter)
    axes[0].set_ylabel("|measured / theory − 1|")
    axes[1].legend(loc="lower left")
    return artists
