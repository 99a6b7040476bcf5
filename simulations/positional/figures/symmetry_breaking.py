"""How gamma - rho grows from a small sigma_A."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, log_time, styled

_LOWEST = 1e-9


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw one curve per positive beta."""
    ax = figure.subplots()
    artists: dict[str, Any] = {}
    positive = [beta for beta in data["beta"].values.tolist() if beta > 0.0]
    for number, beta in enumerate(positive):
        style = PROBLEM_STYLES[number % len(PROBLEM_STYLES)]
        label = rf"$\beta={_power(beta)}$"
        one = data["difference"].sel(beta=beta)
        artists[label] = ax.plot(data["time"], one, label=label, **style)[0]
    time, rate = data["time"].values, data.attrs["rate"]
    curve = data["difference"].sel(beta=positive[0]).values
    anchor = int(np.searchsorted(curve, 1e-4))
    growing = (curve > 1e-7) & (curve < 1.0)
    ax.plot(
        time[growing],
        curve[anchor] * np.exp(rate * (time[growing] - time[anchor])),
        label="saddle",
        **(REFERENCE | {"linewidth": 1.3}),
    )
    ax.set(yscale="log", ylim=(_LOWEST, 10.0), ylabel=r"$\gamma-\rho$")
    log_time(ax, time, first=float(time[0]))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return artists


def _power(beta: float) -> str:
    exponent = round(np.log10(beta))
    return rf"10^{{{exponent}}}" if np.isclose(beta, 10.0**exponent) else f"{beta:g}"
