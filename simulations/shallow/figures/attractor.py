"""Final attention over alpha_* and eta_KQ/eta, and frequency of wrong attractors."""

from typing import Any

import numpy as np
import xarray
from matplotlib.patches import Rectangle

from simulations.figures.style import PROBLEM_STYLES, panel_letters, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the map with its hatched region, and one row of it for two levels of noise."""
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    rows, columns = data["attention"].shape
    image = left.imshow(
        data["attention"], origin="lower", aspect="auto", vmin=0.0, vmax=1.0, cmap="viridis"
    )
    for i in range(rows):
        for j in range(columns):
            share, value = float(data["wrong"][i, j]), float(data["attention"][i, j])
            patch = {"facecolor": image.cmap(value), "edgecolor": "none", "pad": 2.0}
            left.text(
                j,
                i,
                f"{share:.2f}",
                ha="center",
                va="center",
                fontsize=8.5,
                bbox=patch,
                color="white" if value < 0.6 else "black",
            )
    for i, j in np.argwhere(data["wrong"].values >= 0.5):
        left.add_patch(
            Rectangle(
                (j - 0.5, i - 0.5),
                1.0,
                1.0,
                fill=False,
                hatch="/",
                edgecolor="white",
                linewidth=0.0,
            )
        )
    ratios = [f"{ratio:g}" for ratio in data["ratio"].values]
    left.set_xticks(range(columns), ratios)
    left.set_yticks(range(rows), [f"{alpha:g}" for alpha in data["alpha"].values])
    left.set(xlabel=r"$\rho=\eta_{KQ}/\eta$", ylabel=r"fraction of relevant tokens $\alpha_*$")
    figure.colorbar(image, ax=left, label="median attention at the end")
    row = data["wrong"].sel(alpha=0.1, method="nearest")
    artists = {"map": image}
    for number, (values, label) in enumerate(
        ((row, r"$\xi\sqrt{m}=1$"), (data["quiet"], r"$\xi\sqrt{m}=0.03$"))
    ):
        style = PROBLEM_STYLES[number] | {"label": label, "marker": "os"[number]}
        artists[label] = right.plot(data["ratio"], values, **style)[0]
    right.set(xscale="log", ylim=(-0.04, 1.04), xlabel=r"$\rho=\eta_{KQ}/\eta$")
    right.set_ylabel(r"share in a wrong attractor, $\alpha_*=0.1$")
    right.legend(loc="upper left")
    panel_letters((left, right))
    return artists
