"""Where gamma >= rho ends: the exact boundary for several D over a measured map."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, panel_letter, styled

_HOLDS, _FAILS = "#4477AA", "#CC6677"


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the boundary for several D, and where measured flows keep gamma >= rho."""
    axes = figure.subplots(1, data.sizes["panel"], squeeze=False)[0]
    artists: dict[str, Any] = {}
    for number, (letter, ax) in enumerate(zip("ab", axes)):
        panel = data.isel(panel=number)
        density, beta, holds, _ = panel["cell"].values.T
        measured = _size(panel["measured_D"])
        for value, colour, text in ((1.0, _HOLDS, "holds"), (0.0, _FAILS, "fails")):
            here = holds == value
            artists[f"{text} {number}"] = ax.plot(
                density[here],
                beta[here],
                "o" if value else "x",
                color=colour,
                markersize=5,
                linestyle="none",
                label=rf"$\gamma\geq\rho$ {text}, $D={measured}$",
            )[0]
        styles = iter(PROBLEM_STYLES[2:] + PROBLEM_STYLES[:2])
        for size in range(data.sizes["size"]):
            D = float(panel["D"][size])
            x, y = panel["curve"].values[size].T
            if D == 0.0 or not np.isfinite(x).any():
                continue
            look = {"color": "black", "linewidth": 2.2} if measured == _size(D) else next(styles)
            name = f"boundary {number} {D:g}"
            artists[name] = ax.plot(x, y, label=f"$D={_size(D)}$", **look)[0]
        ax.set_xscale("log")
        ax.set_title(
            rf"$p={int(panel['p'])}$, $C={int(panel['C'])}$, {panel['scaling'].values}",
            fontsize=9.5,
        )
        ax.set_xlabel("density of features $qD/C^2$")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
        panel_letter(ax, letter)
    axes[0].set_ylabel(r"$\beta$")
    return artists


def _size(D: Any) -> str:
    exponent = np.log10(float(D))
    if np.isinf(exponent):
        return r"\infty"
    return f"10^{round(exponent)}" if exponent >= 4 else f"{int(D)}"
