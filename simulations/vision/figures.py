"""Figures of the claims on real images; they draw labelled data and compute nothing."""

import math
from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import MaxNLocator

from simulations.figures.style import (
    PROBLEM_STYLES,
    REFERENCE,
    legend_entries,
    mean_and_range,
    off_diagonal_image,
    panel_letters,
    plain_log_ticks,
    styled,
)

#: Rows and columns of the patches whose similarities Figure 5 shows.
_SHOWN_PATCHES = ((1, 1), (3, 5), (6, 3))
_COSINES = {"cmap": "RdBu_r", "vmin": -1.0, "vmax": 1.0}
_AUGMENTATIONS = {"shifts": "shifts of\none pixel", "none": "none", "noise": "noise"}


@styled
def similarity(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the encodings of each model: tiles of cosines above, principal components below."""
    panels = figure.subplots(2, data.sizes["model"], squeeze=False)
    side = math.isqrt(data.sizes["patch"])
    artists: dict[str, Any] = {}
    for number, (above, below) in enumerate(panels.T):
        model = data.isel(model=number)
        artists[f"tiles {number}"] = image = _tiles(above, model["cosine"].values, side)
        above.set_title(str(model["model"].values).replace(", ", ",\n"), fontsize=10)
        artists[f"grid {number}"] = _grid(below, model["component"].values, side)
        first, second = (f"{100 * share:.0f} %" for share in model["share"].values)
        below.set(xlabel=f"first component ({first})", ylabel=f"second ({second})")
    figure.colorbar(image, ax=list(panels[0]), shrink=0.9, pad=0.01, label="cosine")
    panel_letters(panels.flat)
    return artists


def _tiles(ax: Any, cosine: np.ndarray, side: int) -> Any:
    """Draw a tile of cosines (D,) for each patch, white at the patch itself."""
    tiles = np.full((side, side + 1, side, side + 1), np.nan)
    for patch, row in enumerate(cosine):
        others = row.copy()
        others[patch] = np.nan
        tiles[patch // side, :side, patch % side, :side] = others.reshape(side, side)
    flat = tiles.reshape(side * (side + 1), side * (side + 1))[:-1, :-1]
    ax.set_axis_off()
    return ax.imshow(flat, interpolation="nearest", **_COSINES)


def _grid(ax: Any, component: np.ndarray, side: int) -> Any:
    """Draw each patch at its two components (D, 2); neighbours in the image are joined."""
    x, y = component.T.reshape(2, side, side)
    for lines in ((x.T, y.T), (x, y)):
        ax.plot(*lines, color="#BBBBBB", linewidth=0.8, zorder=1)
    rows = np.repeat(np.arange(side), side)
    artist = ax.scatter(x.ravel(), y.ravel(), c=rows, cmap="viridis", s=14, zorder=2)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    return artist


@styled
def permuted(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw (a) errors, (b) pictures, (c) similarities in both orders, (d) the grid."""
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.0, 1.05, 0.95])
    first, panels, last = left.subplots(), middle.subplots(3, 3), right.subplots()
    artists = _errors_by_cell(first, data)
    for ax, picture, name in zip(panels[0], data["picture"].values, ("crop", "2 px", "4 px")):
        ax.imshow(picture, cmap="gray")
        ax.set_axis_off()
        ax.set_title(name)
    artists |= _similarities_of_patches(panels[1:], data)
    components = data["component"].sel(model="image").values
    artists["grid"] = _grid(last, components, math.isqrt(data.sizes["patch"]))
    last.set(xlabel="first component of P", ylabel="second")
    figure.legend(*legend_entries([first]), loc="outside upper left", ncols=3)
    panel_letters((first, panels[0, 0], panels[1, 0], last))
    return artists


def _errors_by_cell(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    artists = {}
    for name, label, style, marker in (
        ("cnn", "CNN", PROBLEM_STYLES[1], "o"),
        ("vit", "positional ViT", PROBLEM_STYLES[0], "s"),
    ):
        cells, errors = data[f"{name}_cell"].values, data[name].values
        moved = cells > 0
        mean, colour = errors.mean(axis=1), style["color"]
        spread = np.abs(np.stack([errors.min(axis=1), errors.max(axis=1)]) - mean)
        artists[name] = ax.errorbar(
            cells[moved],
            mean[moved],
            spread[:, moved],
            color=colour,
            marker=marker,
            capsize=3,
            label=f"{label}, permuted",
        )
        artists[f"{name} plain"] = ax.axhline(
            mean[~moved][0],
            color=colour,
            linestyle="--",
            linewidth=1.2,
            label=f"{label}, not permuted",
        )
    blind = REFERENCE | {"linestyle": ":"}
    artists["blind"] = ax.axhline(data.attrs["blind"], label="mean of visible", **blind)
    ax.set_xscale("log", base=2)
    sides = [int(cell) for cell in np.unique(data["cnn_cell"].values) if cell > 0]
    ax.set_xticks(sides, [str(side) for side in sides])
    ax.minorticks_off()
    ax.set(xlim=(1.7, 1.18 * sides[-1]), ylim=(0.0, 1.3 * float(data.attrs["blind"])))
    ax.set(xlabel="side of the permuted cells (pixels)", ylabel="squared error on masked pixels")
    return artists


def _similarities_of_patches(axes: Any, data: xarray.Dataset) -> dict[str, Any]:
    """Draw the cosines of some patches: in the order shown above, in that of the image below."""
    side, artists = math.isqrt(data.sizes["patch"]), {}
    for number, (row, column) in enumerate(_SHOWN_PATCHES):
        patch = row * side + column
        indices = {"shown": int(data["position"].values[patch]), "image": patch}
        for ax, (order, index) in zip(axes[:, number], indices.items()):
            cosine = data["cosine"].sel(model=order).values[index].copy()
            cosine[index] = np.nan
            artists[f"{order} {number}"] = ax.imshow(cosine.reshape(side, side), **_COSINES)
            ax.set_xticks([])
            ax.set_yticks([])
    axes[0, 0].set_ylabel("order shown")
    axes[1, 0].set_ylabel("undone")
    return artists


@styled
def comparison(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the training losses of each data set above, and its test errors below."""
    panels = figure.subplots(2, data.sizes["data"], height_ratios=[1.25, 1.0], squeeze=False)
    names = data["attention"].values.tolist()
    artists: dict[str, Any] = {}
    for number, (above, below) in enumerate(panels.T):
        errors = data.isel(data=number)
        title = str(errors["data"].values)
        for row, (name, style) in enumerate(zip(names, PROBLEM_STYLES)):
            selected = errors.sel(attention=name)
            known = np.isfinite(selected["loss"].values).all(axis=0)
            step, loss = data["step"].values[known], selected["loss"].values[:, known]
            artists[f"loss {title} {name}"] = mean_and_range(above, step, loss, label=name, **style)
            artists[f"error {title} {name}"] = _dots(
                below, selected["error"].values, selected["interval"].values, row, style["color"]
            )
        above.set_title(title, fontsize=10)
        above.set(yscale="log", xlabel="step")
        plain_log_ticks(above)
        below.set_yticks([0, 1], ["", ""] if number else names)
        below.set_ylim(1.5, -0.5)
        below.set_xlim(0.0, 1.08 * float(max(errors["error"].max(), errors["interval"].max())))
        quantity = "squared error" if "photographs" in title else "test error"
        below.set_xlabel(f"{quantity}\ncost ratio {float(errors['cost']):.1f}")
        below.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    panels[0, 0].set_ylabel("training loss")
    figure.legend(*legend_entries(panels[0]), loc="outside upper left", ncols=len(names))
    panel_letters(panels.flat)
    return artists


def _dots(ax: Any, errors: np.ndarray, interval: np.ndarray, row: int, colour: str) -> Any:
    """Draw the errors of the runs, their mean and its interval in a row."""
    mean = errors.mean()
    ax.scatter(errors, np.full(errors.size, row + 0.14), s=14, color=colour)
    return ax.errorbar(
        [mean],
        [row - 0.1],
        xerr=np.abs(interval - mean)[:, None],
        color=colour,
        marker="|",
        markersize=10,
        capsize=3,
    )


@styled
def sets(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw P^T P of each model above and its attention below, patches sorted by set."""
    panels = figure.subplots(2, data.sizes["model"], squeeze=False)
    artists: dict[str, Any] = {}
    for number, column in enumerate(panels.T):
        name = str(data["model"].values[number])
        share = float(data["rows"].values[number].mean())
        column[0].set_title(f"{name}\n{share:.2f} of the rows", fontsize=10)
        for ax, quantity in zip(column, ("scores", "attention")):
            matrix = data[f"{quantity}_{number}"].values
            image = artists[f"{quantity} {name}"] = off_diagonal_image(ax, matrix)
            edges = np.arange(4, len(matrix), 4) - 0.5
            ax.set_xticks(edges, [""] * len(edges))
            ax.set_yticks(edges, [""] * len(edges))
    for ax, label in zip(panels[:, 0], (r"$P^\top P$", "attention")):
        ax.set_ylabel(label)
    bar = figure.colorbar(
        image, ax=list(panels.flat), location="bottom", shrink=0.4, aspect=40, pad=0.03
    )
    bar.set_ticks(list(image.get_clim()), labels=["least", "greatest"])
    bar.set_label("entry of each matrix")
    panel_letters(panels.flat)
    return artists


@styled
def augmentation(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw z of each case on the left, and cosines of vanilla attention on the right."""
    panels = figure.subplots(1, 3, width_ratios=[1.25, 1.0, 1.0])
    artists = _z_by_augmentation(panels[0], data)
    side = math.isqrt(data.sizes["patch"])
    titles = {"shifts": "vanilla, with shifts", "none": "vanilla, without augmentation"}
    for ax, (name, title) in zip(panels[1:], titles.items()):
        selected = (data["attention"] == "vanilla") & (data["augmentation"] == name)
        cosine = data["cosine"].values[int(np.flatnonzero(selected.values)[0])]
        artists[name] = image = _tiles(ax, cosine, side)
        ax.set_title(title, fontsize=10)
    figure.colorbar(image, ax=list(panels[1:]), shrink=0.75, pad=0.02, label="cosine, mean of runs")
    panel_letters(panels)
    return artists


def _z_by_augmentation(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    artists: dict[str, Any] = {}
    attention = data["attention"].values.tolist()
    augmentations = data["augmentation"].values.tolist()
    colours = {name: PROBLEM_STYLES[n]["color"] for n, name in enumerate(dict.fromkeys(attention))}
    ticks = {name: n for n, name in enumerate(dict.fromkeys(augmentations))}
    ax.axhspan(-2.0, 2.0, color="#EEEEEE", zorder=0)
    ax.axhline(0.0, color="#999999", linewidth=0.8, zorder=1)
    for case, (name, tick) in enumerate(zip(attention, augmentations)):
        x = ticks[tick] + 0.3 * list(colours).index(name) - 0.15
        z, interval = data["z"].values[case], data["interval"].values[case]
        ax.scatter(np.full(z.size, x - 0.05), z, s=14, color=colours[name], alpha=0.7, zorder=3)
        artists[name] = ax.errorbar(
            [x + 0.05],
            [z.mean()],
            np.abs(interval - z.mean())[:, None],
            color=colours[name],
            marker="_",
            markersize=10,
            capsize=3,
            label=None if name in artists else name,
            zorder=4,
        )
    ax.set_xticks(list(ticks.values()), [_AUGMENTATIONS[name] for name in ticks])
    ax.set_xlim(-0.5, len(ticks) - 0.5)
    ax.set_ylabel("z of the rank correlation\nsimilar encodings, close patches")
    ax.set_xlabel("augmentation")
    ax.legend(loc="upper right")
    return artists
