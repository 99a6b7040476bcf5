"""Style of all figures: colours and labels of quantities, font sizes, shaded events.

No global state changes: :func:`styled` draws inside a style context.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

#: Colour of each quantity, the same in all figures of a theory (palettes of Okabe and Ito, Tol).
COLOURS = {
    "alpha": "#D55E00",
    "gamma": "#0072B2",
    "rho": "#E69F00",
    "beta": "#AA4499",
    "Lambda": "#CC79A7",
    "Gamma": "#56B4E9",
    "Xi": "#999933",
    "G": "#222222",
    "loss": "#009E73",
    "test_error": "#882255",
    "mean_sigmoid": "#777777",
    "gamma - rho": "#332288",
    # masked image modelling
    "Phi_n": "#0072B2",
    "Phi_1": "#D55E00",
    "Phi_rest": "#999933",
    "Upsilon_n": "#CC79A7",
    "a_n": "#222222",
    "excess": "#009E73",
}
LABELS = {
    "alpha": r"$\alpha$",
    "gamma": r"$\gamma$",
    "rho": r"$\rho$",
    "beta": r"$\beta$",
    "Lambda": r"$\Lambda$",
    "Gamma": r"$\Gamma$",
    "Xi": r"$\Xi$",
    "G": r"$G$",
    "loss": "population risk",
    "test_error": r"test error $P[yF\leq 0]$",
    "mean_sigmoid": r"$E[s(-F)]$",
    "gamma - rho": r"$\gamma-\rho$",
    "Phi_n": r"$\Phi_n$ (own area)",
    "Phi_1": r"$\Phi_1$ (global area)",
    "Phi_rest": r"other $|\Phi_m|$",
    "Upsilon_n": r"$\Upsilon_n$ (own area)",
    "a_n": r"attention $a_n$",
    "excess": "loss above its floor",
}
#: Colours and line styles of the problems in one figure (Tol's bright palette).
PROBLEM_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#4477AA", "linestyle": "-"},
    {"color": "#EE6677", "linestyle": "--"},
    {"color": "#228833", "linestyle": "-."},
    {"color": "#AA3377", "linestyle": (0, (1, 1))},
    {"color": "#BB9900", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "#33AACC", "linestyle": (0, (7, 2))},
)
TIME = "flow time $t$ (learning rate × steps)"
REFERENCE = {"color": "#555555", "linewidth": 1.0, "linestyle": (0, (4, 2))}

_EVENT_SHADES = ("#F3F3F3", "#E6E6E6", "#D6D6D6")
_TICKS = 9
#: Height in points of a row of names of events, and the space between two names in a row.
_ROW, _GAP = 10, 4
_RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "lines.linewidth": 1.7,
    "mathtext.fontset": "dejavusans",
}
#: Sizes that follow the setting ``font.size`` of the user.
_SIZES = ("axes.labelsize", "axes.titlesize", "legend.fontsize")


#: Settings of the user that replace those of the figures.
_OVERRIDE: ContextVar[Mapping[str, Any]] = ContextVar("override", default={})  # noqa: B039


@contextmanager
def style_override(settings: Mapping[str, Any]) -> Iterator[None]:
    """Replace settings of the style of all figures for the duration of a ``with`` block."""
    token = _OVERRIDE.set(settings)
    try:
        with matplotlib.rc_context(dict[Any, Any](settings)):
            yield
    finally:
        _OVERRIDE.reset(token)


def styled(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``draw(data, figure)`` in the style of the figures.

    Without a figure, it creates one. Matplotlib creates tick labels later, outside the style
    context, so that their size is set on the axes.
    """

    @functools.wraps(draw)
    def inside(data: Any, figure: Figure | None = None) -> Any:
        target = Figure(figsize=(7.0, 4.2), layout="constrained") if figure is None else figure
        override = _OVERRIDE.get()
        factor = override.get("font.size", _RC["font.size"]) / _RC["font.size"]
        sizes = {name: factor * _RC[name] for name in _SIZES}
        look: dict[Any, Any] = {**_RC, **sizes, **override}
        with matplotlib.rc_context(look):
            artists = draw(data, target)
            for ax in target.axes:
                for axis, name in ((ax.xaxis, "xtick.labelsize"), (ax.yaxis, "ytick.labelsize")):
                    axis.set_tick_params(
                        which="both", labelsize=override.get(name, factor * _TICKS)
                    )
        return artists

    return inside


def line(ax: Axes, quantity: str, x: Any, y: Any, **options: Any) -> Any:
    """Plot a quantity with its colour and label."""
    options = {"color": COLOURS[quantity], "label": LABELS[quantity]} | options
    return ax.plot(x, y, **options)[0]


def pretty(name: str) -> str:
    """Return the name of a problem, such as ``"D=64, nu=0.01"``, in mathematical type.

    Where there are words in it, as it is.
    """
    greek = {"nu": r"\nu", "beta": r"\beta", "tau": r"\tau", "kappa": r"\kappa"}
    pairs = [part.split("=") for part in name.split(", ")]
    if any(len(pair) != 2 for pair in pairs):
        return name
    return ", ".join(rf"${greek.get(symbol, symbol)}={value}$" for symbol, value in pairs)


def problem_style(number: int, name: str) -> dict[str, Any]:
    """Return colour, dashes and legend entry of the problem with this place in the figure."""
    return PROBLEM_STYLES[number % len(PROBLEM_STYLES)] | {"label": pretty(name)}


def mean_and_range(ax: Axes, x: Any, values: np.ndarray, alpha: float = 0.2, **style: Any) -> Any:
    """Plot the mean over runs and shade their range; return the line.

    Parameters
    ----------
    x
        Abscissas (n,).
    values
        Ordinates (runs, n), finite.
    alpha
        Opacity of the shading.
    style
        Options of the line; ``color`` is required.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    ax.fill_between(x, low, high, color=style["color"], alpha=alpha, lw=0)
    return ax.plot(x, values.mean(axis=0), **style)[0]


def off_diagonal_image(ax: Axes, matrix: np.ndarray) -> Any:
    """Show a matrix over pairs of patches as an image, its diagonal left out (grey)."""
    values = np.array(matrix, float)
    np.fill_diagonal(values, np.nan)
    ax.set_facecolor("#BBBBBB")
    return ax.imshow(values, cmap="cividis", interpolation="nearest")


def size_ticks(ax: Axes, sizes: Iterable[Any]) -> None:
    """Put ticks on the x axis at these sizes alone, labelled with plain numbers."""
    sizes = [float(size) for size in sizes]
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
    ax.set_xticks([], minor=True)


def plain_log_ticks(ax: Axes) -> None:
    """Label a logarithmic y axis that shows less than two decades with plain numbers."""
    low, high = ax.get_ylim()
    if high < 100.0 * low:
        locator = LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0)) if high > 3.0 * low else MaxNLocator(4)
        ax.yaxis.set_major_locator(locator)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())


def legend_entries(axes: Iterable[Axes]) -> tuple[list[Any], list[str]]:
    """Return handles and labels of several panels, each label once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries |= dict(zip(labels, handles))
    return list(entries.values()), list(entries)


def panel_letter(ax: Axes, letter: str) -> None:
    """Write (a), (b), ... to the left of the upper left corner."""
    ax.annotate(
        f"({letter})",
        (0.0, 1.0),
        xycoords="axes fraction",
        xytext=(-30, 5),
        textcoords="offset points",
        fontsize=10,
        annotation_clip=False,
    )


def panel_letters(axes: Iterable[Axes]) -> None:
    """Label panels with (a), (b), ..."""
    for ax, letter in zip(axes, ascii_lowercase):
        panel_letter(ax, letter)


def signed_log(ax: Axes, name: str, threshold: float, values: Any, most: int = 4) -> None:
    """Scale an axis logarithmically for values of both signs, and linearly near 0.

    Parameters
    ----------
    ax, name
        Axes, and ``"x"`` or ``"y"``.
    threshold
        The axis is linear between minus and plus this value. It ends there for a sign without
        larger values.
    values
        Values that the axis must show.
    most
        Largest number of ticks for each sign, in addition to the tick at 0.
    """
    values = np.asarray(values, float)
    scale, limits, ticks = (getattr(ax, f"set_{name}{what}") for what in ("scale", "lim", "ticks"))
    scale("symlog", linthresh=threshold, linscale=0.6)
    ends, tick_values = [], [0.0]
    for sign in (-1.0, 1.0):
        largest = float(np.max(sign * values, initial=0.0))
        if largest <= threshold:
            ends.append(sign * threshold)
            continue
        ends.append(sign * 2.0 * largest)
        first, last = (math.floor(math.log10(x)) for x in (threshold, largest))
        step = max(1, math.ceil((last - first) / most))
        tick_values += [sign * 10.0**power for power in range(last, first, -step)]
    limits(*ends)
    ticks(sorted(tick_values))


def log_time(ax: Axes, times: Any, first: float = 1e-2, label: bool = True) -> None:
    """Scale the time axis logarithmically, from ``first`` to the last time."""
    ax.set(xscale="log", xlim=(first, float(np.max(times))))
    if label:
        ax.set_xlabel(TIME)


def shade_events(ax: Axes, bounds: Sequence[float], names: bool = False) -> list[Any]:
    """Shade Events I, II, III, separated by ``bounds`` = (T0, T1); nan if an event is absent."""
    low, high = ax.get_xlim()
    inner = [time for time in bounds if np.isfinite(time) and low < time < high]
    edges = [low, *inner, high]
    spans = []
    for number, (start, end) in enumerate(pairwise(edges)):
        spans.append(ax.axvspan(start, end, color=_EVENT_SHADES[number], zorder=-2, linewidth=0))
        if names:
            ax.annotate(
                ("I", "II", "III")[number],
                (np.sqrt(start * end), 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                color="#444444",
            )
    return spans


def shade_times(ax: Axes, times: Mapping[str, float], names: bool = False) -> list[Any]:
    """Shade the intervals between events in two alternating greys; return the shaded areas.

    Parameters
    ----------
    ax
        Axes whose limits are set.
    times
        Mapping from event to time; events outside the limits and nan are left out.
    names
        Whether to write the name of each event above its time.
    """
    low, high = ax.get_xlim()
    inner = sorted((time, name) for name, time in times.items() if low < time < high)
    edges = [low, *(time for time, _ in inner), high]
    spans = [
        ax.axvspan(start, end, color=_EVENT_SHADES[number % 2], zorder=-2, linewidth=0)
        for number, (start, end) in enumerate(pairwise(edges))
        if inner
    ]
    texts = [
        ax.annotate(
            name.replace("_", " "),
            (time, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize="small",
            color="#444444",
        )
        for time, name in (inner if names else [])
    ]
    _spread(ax, texts)
    return spans


def _spread(ax: Axes, texts: Sequence[Any]) -> None:
    """Move the names of events up into rows in which they do not overlap, and the title above."""
    if not texts:
        return
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # widths are known after the layout
    boxes = [text.get_window_extent() for text in texts]
    gap = _GAP * figure.dpi / 72
    rows = label_rows([box.x0 for box in boxes], [box.width + gap for box in boxes])
    for text, row in zip(texts, rows):
        text.set_position((0, 3 + _ROW * row))
    ax.set_title(ax.get_title(loc="left"), loc="left", pad=6 + _ROW * (1 + max(rows)))


def label_rows(left: Sequence[float], length: Sequence[float]) -> list[int]:
    """Return the row of each label: the lowest in which it overlaps no earlier label.

    Parameters
    ----------
    left, length
        Left edges and lengths in pixels.
    """
    rows: list[int] = []
    for edge, size in zip(left, length):
        taken = {
            row
            for row, other, extent in zip(rows, left, length)
            if edge < other + extent and other < edge + size
        }
        rows.append(next(row for row in range(len(rows) + 1) if row not in taken))
    return rows
