"""The linear response of full-matrix descent to a component of v beside span(w*)."""

from typing import Any

import xarray

from simulations.figures.style import COLOURS, REFERENCE, TIME, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both growth rates against log time."""
    ax = figure.subplots()
    later = data.isel(time=slice(1, None))
    artists = {
        "v_perp": ax.plot(
            later["time"],
            later["rate"],
            color="#332288",
            label=r"$\frac{d}{dt}\log|v_\perp|$, beside $w^*$",
        )[0],
        "alpha": ax.plot(
            later["time"],
            later["alpha_rate"],
            color=COLOURS["alpha"],
            label=r"$\frac{d}{dt}\log\alpha$, along $w^*$",
        )[0],
    }
    ax.axhline(0.0, **REFERENCE)
    ax.set(xscale="log", xlabel=TIME, ylabel="growth rate per unit of flow time")
    ax.set_xlim(float(later["time"][0]), float(later["time"][-1]))
    ax.legend(loc="upper right")
    return artists
