"""The plane (alpha, qD), divided into boxes on which the sign of d(gamma - rho)/dt is proved."""

from typing import Any

import xarray
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

from simulations.figures.style import COLOURS, REFERENCE, styled

_FACES = ("#FFFFFF", "#9EC9E2", "#F5B58A")


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the boxes and the curves."""
    ax = figure.subplots()
    columns = [data[name].values for name in ("alpha_low", "alpha_high", "qD_low", "qD_high")]
    answers = data["answer"].values.astype(int)
    patches = [Rectangle((a, d), b - a, e - d) for a, b, d, e in zip(*columns)]
    boxes = PatchCollection(
        patches,
        facecolors=[_FACES[answer] for answer in answers],
        edgecolors="#888888",
        linewidths=0.25,
    )
    artists: dict[str, Any] = {"boxes": ax.add_collection(boxes)}
    for number, x in enumerate(data["x"].values):
        dashes = ("-", "--")[number]
        label = rf"$d(\gamma-\rho)/dt=0$ at $\gamma=\rho={x:g}$"
        artists[f"critical {x:g}"] = ax.plot(
            data["alpha"],
            data["critical"].isel(x=number),
            linestyle=dashes,
            label=label,
            color=COLOURS["gamma - rho"],
        )[0]
    start = ax.axvline(data.attrs["start"], **REFERENCE | {"linestyle": ":"})
    start.set_label(r"$\alpha(0)=\nu^{1/2}$")
    ax.set(xlim=(0.0, columns[1].max()), ylim=(0.0, columns[3].max()))
    ax.set(xlabel=r"$\alpha$", ylabel=r"$qD$")
    labels = (
        "no single sign proved",
        r"proved: $d(\gamma-\rho)/dt\geq 0$",
        r"proved: $d(\gamma-\rho)/dt<0$",
    )
    legend = [
        Patch(facecolor=face, edgecolor="#888888", linewidth=0.5, label=label)
        for face, label in zip(_FACES, labels)
    ]
    lines, names = ax.get_legend_handles_labels()
    figure.legend(
        [*legend[1:], legend[0], *lines],
        [*labels[1:], labels[0], *names],
        loc="outside right upper",
    )
    return artists
