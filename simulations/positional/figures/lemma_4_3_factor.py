"""Lemma 4.3's factor along time, for several problems."""

from typing import Any

import xarray

from simulations.figures.style import REFERENCE, log_time, panel_letter, problem_style, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the ratio to the leading term, the lemma's factor, and rho's share."""
    panels = figure.subplots(3, 1, sharex=True)
    ratio, factor, share = panels
    artists: dict[str, Any] = {}
    time = data["time"].values[1:]
    for number, name in enumerate(data["problem"].values):
        one = data.isel(problem=number, time=slice(1, None))
        style = problem_style(number, str(name))
        artists[str(name)] = ratio.plot(time, one["gamma_ratio"], **style)[0]
        positive = one["gamma_factor"].where(one["gamma_factor"] > 0.0)
        factor.plot(time, positive, **style)
        grey = style | {"color": "#AAAAAA", "linewidth": 1.0}
        factor.plot(time, one["mean_sigmoid"], **grey)
        share.plot(time, one["rho_share"], **style)
    artists["E[s(-F)]"] = factor.plot(
        [], [], color="#AAAAAA", linewidth=1.0, label=r"grey in (b): $E[s(-F)]$"
    )[0]
    ratio.axhline(0.0, **REFERENCE)
    ratio.set_ylabel("exact / leading\nincrement of " + r"$\gamma$")
    factor.set(yscale="log", ylim=(1e-8, 3.0))
    factor.set_ylabel("factor of\n" + r"$\alpha^p\,\Gamma\,G^{p-1}$")
    share.set(yscale="log", ylim=(1e-3, 1e5), ylabel=r"$|\Delta\rho|\,/\,|\Delta\gamma|$")
    share.axhline(1.0, **REFERENCE)
    for letter, ax in zip("abc", panels):
        log_time(ax, time, label=ax is share)
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=2)
    return artists
