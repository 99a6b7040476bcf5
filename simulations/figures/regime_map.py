"""Regime map: a heat map over two parameters with contours and theoretical boundaries."""

import json
import textwrap
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simulations.figures.style import styled

_NAMES = {
    "nu": r"$\nu$",
    "qD/C^2": r"$qD/C^2$",
    "beta": r"$\beta$",
    "beta/tau": r"$\beta/\tau$",
    "learning_rate": "learning rate",
    "temperature": r"$\tau$",
    "tau": r"$\tau$",
    "output_scale": r"$\kappa$",
    "kappa": r"$\kappa$",
    "qD": "$qD$",
    "q": "$q$",
    "D": "$D$",
    "C": "$C$",
    "p": "$p$",
    "alpha0": r"$\alpha(0)$",
    "gamma0": r"$\gamma(0)$",
    "rho0": r"$\rho(0)$",
    "kappa_c": r"$\kappa_c$",
    "kappa_s": r"$\kappa_s$",
    "mask_ratio": "mask ratio",
    "P": "$P$",
    "K": "$K$",
    "z": "$z$",
}
#: Contours are drawn only if this fraction of the cells has a value.
_MOSTLY = 0.6
#: Characters of a title in each inch of the width of a figure.
_CHARACTERS = 11
#: Colour and hatching of cells without a value, by status, and of other statuses.
_WITHOUT_VALUE = {
    "none": ("#F2F2F2", ""),
    "invalid": ("#FFFFFF", "xxxx"),
    "failed": ("#F6C9C9", "...."),
    "diverged": ("#E9D8A6", "////"),
    "unstable": ("#D9E6C3", "\\\\\\\\"),
}
_OTHER = ("#E0D4EC", "++++")
#: Colour and line style of the theoretical boundaries.
_BOUNDARIES = (("#C8102E", "dashed"), ("#111111", "dotted"))
#: Name, colour and hatching of the cells of a map of proofs, by status.
_PROOFS = {
    "proved": ("proved for all constants of the cell", "#5B8DB8", ""),
    "true at the centre": ("not proved; true at the centre (estimate)", "#FFFFFF", ""),
    "false at the centre": ("false at the centre (estimate)", "#F5B58A", "////"),
}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the map described in `simulations.maps`, and return a mapping from name to artist."""
    ax = figure.subplots()
    y, x = map(str, data["value"].dims)
    x_edges, y_edges = (_edges(ax, data, axis) for axis in "xy")
    values = np.ma.masked_invalid(data["value"].values)
    artists: dict[str, Any] = {"handles": []}
    if values.count():
        norm = _norm(values.compressed(), data.attrs["scale"])
        mesh = ax.pcolormesh(x_edges, y_edges, values, norm=norm, cmap="viridis", zorder=1)
        artists["mesh"] = mesh
        figure.colorbar(mesh, ax=ax, label=data.attrs["label"])
        _contours(ax, data, x, y, norm)
    artists["handles"] += _cells_without_value(ax, data, x_edges, y_edges)
    artists["handles"] += _overlays(ax, data, x, y)
    ax.set(xlim=(x_edges[0], x_edges[-1]), ylim=(y_edges[0], y_edges[-1]))
    ax.set_xlabel(_NAMES.get(data.attrs["x"], data.attrs["x"]))
    ax.set_ylabel(_NAMES.get(data.attrs["y"], data.attrs["y"]))
    for spine in ax.spines.values():
        spine.set_visible(True)
    ax.set_title(_title(data, int(_CHARACTERS * figure.get_figwidth())))
    if artists["handles"]:
        figure.legend(handles=artists["handles"], loc="outside lower center", ncols=2)
    return artists


def _title(data: xarray.Dataset, characters: int) -> str:
    """Return the title and, in lines of this many characters, the fixed parameters."""
    equations = [
        f"{_NAMES.get(name, name)}\xa0=\xa0{value if isinstance(value, str) else _number(value)}"
        for name, value in json.loads(data.attrs["fixed"]).items()
    ]
    title, fixed = str(data.attrs["title"]), ", ".join(equations)
    lines = textwrap.wrap(fixed, characters, break_long_words=False)
    return "\n".join([title, *(line.replace("\xa0", " ") for line in lines)])


def positions(values: np.ndarray) -> np.ndarray:
    """Return the coordinates of the values of an axis: numbers, or the indices of texts."""
    if values.dtype.kind in "OUS":
        return np.arange(values.size, dtype=float)
    return values.astype(float)


def axis_scale(data: xarray.Dataset, axis: str) -> str:
    """Return the scale of an axis of a map, ``"log"`` or ``"linear"``.

    Parameters
    ----------
    data
        Map; its attribute ``x_scale`` or ``y_scale`` has precedence. By default evenly spaced
        values are linear. Others are logarithmic if their logarithms are evenly spaced, or if they
        are positive and span a factor of 8.
    axis
        ``"x"`` or ``"y"``.
    """
    values = positions(data[_dimension(data, axis)].values)
    chosen = data.attrs.get(f"{axis}_scale")
    if chosen:
        return str(chosen)
    if values.size > 2 and _even(values):
        return "linear"
    if not (values > 0.0).all():
        return "linear"
    geometric = values.size > 2 and _even(np.log(values))
    return "log" if geometric or values.max() >= 8.0 * values.min() else "linear"


def _dimension(data: xarray.Dataset, axis: str) -> str:
    """Return the dimension of an axis: y is the first one of a map, x the second."""
    return str(data["value"].dims["yx".index(axis)])


def _even(values: np.ndarray) -> bool:
    """Return whether values are evenly spaced, integers up to rounding."""
    even = np.linspace(values[0], values[-1], values.size)
    rounded = bool(np.all(values == np.round(values))) and values.size > 3
    allowed = 0.5 if rounded else 1e-6 * abs(values[-1] - values[0])
    return bool(np.all(np.abs(values - even) <= allowed))


def _edges(ax: Axes, data: xarray.Dataset, which: str) -> np.ndarray:
    """Set scale and ticks of an axis, and return the edges of its cells."""
    labels = data[_dimension(data, which)].values
    values, log = positions(labels), axis_scale(data, which) == "log"
    edges = cell_edges(values, log)
    axis = ax.xaxis if which == "x" else ax.yaxis
    if log:
        (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    if labels.dtype.kind in "OUS":
        axis.set_ticks(values, [str(label) for label in labels])
    elif all(float(v).is_integer() for v in values) and values.size <= 12:
        axis.set_ticks(values, [f"{int(v)}" for v in values])
        axis.set_ticks([], minor=True)
    elif log:
        _log_ticks(axis, float(edges[0]), float(edges[-1]))
    return edges


def cell_edges(values: np.ndarray, log: bool) -> np.ndarray:
    """Return the edges of cells around values: midpoints on the scale of the axis.

    Parameters
    ----------
    values
        Centres, shape (n,).
    log
        Whether the axis is logarithmic.

    Returns
    -------
    ndarray
        Edges, shape (n + 1,).
    """
    centres = np.log(values) if log else np.asarray(values, float)
    middle = (centres[1:] + centres[:-1]) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    edges = np.concatenate([[first], middle, [last]])
    return np.exp(edges) if log else edges


def _log_ticks(axis: Any, low: float, high: float) -> None:
    """Label 1, 2, 5 of each decade on a short axis, decades on a long one."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    digits = (1, 2, 5) if np.log10(high / low) < 2.5 else (1,)
    ticks = [d * 10.0**k for k in decades for d in digits if low <= d * 10.0**k <= high]
    axis.set_ticks(ticks, [f"{tick:g}" if 1e-3 <= tick < 1e4 else _number(tick) for tick in ticks])
    if len(digits) > 1:
        axis.set_ticks([], minor=True)


def _number(value: float) -> str:
    """Return a number as text, a power of ten or a number in scientific notation as LaTeX."""
    exponent = np.log10(value) if value > 0.0 else 0.5
    if abs(exponent - round(exponent)) < 1e-9 and not 1e-2 <= value < 1e3:
        return rf"$10^{{{round(exponent)}}}$"
    digits, _, power = f"{value:g}".partition("e")
    return rf"${digits}\times10^{{{int(power)}}}$" if power else digits


@styled
def draw_association(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the cells of a map of proofs, coloured by their status."""
    ax = figure.subplots()
    status, handles = data["status"].values, []
    for name, (label, colour, hatch) in _PROOFS.items():
        handles.append(Patch(facecolor=colour, edgecolor="#777777", hatch=hatch, label=label))
        cells = np.ma.masked_where(status != name, np.ones(status.shape))
        ax.pcolor(
            data["q_edge"].values,
            data["nu_edge"].values,
            cells,
            cmap=ListedColormap([colour]),
            hatch=hatch,
            edgecolor="#FFFFFF" if not hatch else "#777777",
            linewidth=0.3,
        )
    ax.set(xscale="log", yscale="log", ylabel=_NAMES.get(data.attrs["y"], data.attrs["y"]))
    ax.set_xlabel(_NAMES.get(data.attrs["x"], data.attrs["x"]))
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return {"legend": handles}


def _norm(values: np.ndarray, scale: str) -> Normalize:
    """Return the colour scale of the values."""
    limits = colour_limits(values, scale)
    return LogNorm(*limits) if scale == "log" else Normalize(*limits)


def colour_limits(values: np.ndarray, scale: str) -> tuple[float, float]:
    """Return the ends of the colour scale, ``"log"`` or ``"linear"``, of finite values (n,)."""
    low, high = float(values.min()), float(values.max())
    if scale == "log":
        return (low / 2.0, high * 2.0) if high < 1.05 * low else (low, high)
    return low, high if high > low else low + 1.0


def _contours(ax: Axes, data: xarray.Dataset, x: str, y: str, norm: Normalize) -> None:
    """Draw contours at the levels of the map; without levels, at up to six powers of ten."""
    assert norm.vmin is not None
    assert norm.vmax is not None
    levels = json.loads(data.attrs["levels"])
    if not levels and data.attrs["scale"] == "log":
        first, last = np.ceil(np.log10(norm.vmin)), np.floor(np.log10(norm.vmax))
        decades = np.arange(first, last + 1)
        levels = 10.0 ** decades[:: max(1, int(np.ceil(decades.size / 6)))]
    levels = [level for level in levels if norm.vmin < level < norm.vmax]
    values = data["value"].values
    if not levels or min(values.shape) < 2 or np.isfinite(values).mean() < _MOSTLY:
        return  # contours of isolated cells would be misleading
    shown = np.log10(values) if data.attrs["scale"] == "log" else values
    heights = np.log10(levels) if data.attrs["scale"] == "log" else np.array(levels)
    lines = ax.contour(
        positions(data[x].values),
        positions(data[y].values),
        shown,
        levels=heights,
        colors="white",
        linewidths=0.9,
        linestyles="solid",
        zorder=2,
    )
    texts = {height: _number(float(f"{level:.3g}")) for height, level in zip(heights, levels)}
    ax.clabel(lines, fmt=texts, fontsize="small")


def _cells_without_value(
    ax: Axes, data: xarray.Dataset, x_edges: np.ndarray, y_edges: np.ndarray
) -> list[Any]:
    """Mark the cells without a value, and return the entries of the legend."""
    statuses = data["status"].values.astype(str)
    handles = []
    with matplotlib.rc_context({"hatch.linewidth": 0.6}):
        for status in sorted(set(statuses.ravel()) - {"value"}):
            face, hatch = without_value(status)
            look: dict[str, Any] = {
                "facecolor": face,
                "hatch": hatch,
                "edgecolor": "#888888",
                "linewidth": 0.0,
            }
            for i, j in np.argwhere(statuses == status):
                corner = (x_edges[j], y_edges[i])
                size = (x_edges[j + 1] - x_edges[j], y_edges[i + 1] - y_edges[i])
                ax.add_patch(Rectangle(corner, *size, zorder=1.5, **look))
            number = int((statuses == status).sum())
            text = f"{status} ({number} cell{'s' if number > 1 else ''})"
            text = data.attrs["none"] if status == "none" else text
            handles.append(Patch(**(look | {"linewidth": 0.5}), label=text or "no value"))
    return handles


def _overlays(ax: Axes, data: xarray.Dataset, x: str, y: str) -> list[Any]:
    """Draw the theoretical boundaries, and return the entries of the legend."""
    handles = []
    for name, (colour, dash) in boundaries(data).items():
        ax.contour(
            positions(data[x].values),
            positions(data[y].values),
            data[name].values,
            levels=[0.0],
            linewidths=1.8,
            zorder=3,
            colors=colour,
            linestyles=dash,
        )
        look: dict[str, Any] = {"linewidth": 1.8, "color": colour, "linestyle": dash}
        handles.append(Line2D([], [], label=data[name].attrs["long_name"], **look))
    return handles


def boundaries(data: xarray.Dataset) -> dict[str, tuple[str, str]]:
    """Return colour and line style of each overlay whose zero line crosses the plane."""
    names = [str(name) for name in data.data_vars if str(name).startswith("overlay ")]
    return {
        name: look
        for name, look in zip(names, _BOUNDARIES)
        for field in [data[name].values]
        if min(field.shape) > 1 and np.isfinite(field).any()
        if np.nanmin(field) < 0.0 < np.nanmax(field)
    }


def without_value(status: str) -> tuple[str, str]:
    """Return colour and hatching of cells with this status, which have no value."""
    return _WITHOUT_VALUE.get(status, _OTHER)
