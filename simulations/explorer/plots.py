"""Plots of the page as Bokeh figures, with methods that update them."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.layouts import column
from bokeh.models import (
    ColorBar,
    ColumnDataSource,
    CustomJSTickFormatter,
    FixedTicker,
    HoverTool,
    LabelSet,
    Legend,
    LegendItem,
    LinearColorMapper,
    Range1d,
    Span,
)
from bokeh.plotting import figure

from simulations.case import Attention
from simulations.explorer.run_job import FlowField, RunData, window
from simulations.figures.style import COLOURS, label_rows

#: Largest number of named keys on an axis; step of the numbers for more keys.
_FEW, _EVERY = 20, 16
_PALETTE = ("#4477AA", "#EE6677", "#228833", "#AA3377", "#BB9900", "#33AACC", "#555555", "#882255")
_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "Gamma": "Γ", "rho": "ρ", "Lambda": "Λ", "Xi": "Ξ",
    "nu": "ν", "tau": "τ", "kappa": "κ", "sigma": "σ", "Phi": "Φ", "Upsilon": "Υ", "Delta": "Δ",
    "eps": "ε", "xi": "ξ",
}  # fmt: skip
#: Width in pixels of a character of an event label, and of its margins.
_CHARACTER, _LABEL_MARGIN = 7.0, 6.0
TIME = "flow time t (learning rate × steps)"
_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
#: Formatter of tick labels: powers of ten are 10⁵, not 1.000e+5.
TICKS = f"""
const digits = "{_DIGITS}";
const power = Math.log10(tick), whole = Math.round(power);
if (tick > 0 && Math.abs(power - whole) < 1e-9 && (whole < -2 || whole > 3))
  return "10" + (whole < 0 ? "⁻" : "") +
    [...String(Math.abs(whole))].map(digit => digits[digit]).join("");
return String(Number(tick.toPrecision(3)));
"""


def on_change(model: Any, name: str, act: Callable[[], None]) -> None:
    """Call ``act()`` whenever a property of a Bokeh model changes."""

    def changed(attr: str, old: Any, new: Any) -> None:
        act()

    model.on_change(name, changed)


def letters(name: str) -> str:
    """Return a name with Greek letters: Φ global for Phi_global, α(0) for alpha0."""
    words = []
    for word in name.replace("_", " ").split(" "):
        start = re.fullmatch(r"([A-Za-z]+)0", word)
        symbol = _GREEK.get(start[1] if start else word, start[1] if start else word)
        words.append(f"{symbol}(0)" if start and start[1] in _GREEK else _GREEK.get(word, word))
    return " ".join(words)


#: Characters of the LaTeX commands in titles of maps.
_SIGNS = {
    "geq": "≥",
    "leq": "≤",
    "le": "≤",
    "ge": "≥",
    "times": "×",
    "max": "max ",
    "to": "→",
    "epsilon": "ε",
    "infty": "∞",
    "cdot": "·",
    "star": "*",
}


def without_latex(text: str) -> str:
    """Return a sentence with its LaTeX formulas as plain characters."""
    signs = _GREEK | _SIGNS
    text = re.sub(r"\\frac\{(.*?)\}\{(.*?)\}", r"\1/\2", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda word: signs.get(word[1], word[1]), text)
    return re.sub(r"[$\\{}]", "", text).replace("^*", "*")


def format_ticks(axes: Iterable[Any]) -> None:
    """Label few ticks of logarithmic axes, powers of ten as 10⁵."""
    for axis in axes:
        axis.formatter = CustomJSTickFormatter(code=TICKS)
        axis.ticker.desired_num_ticks = 4


def plain_figure(title: str, **options: Any) -> Any:
    """Return an empty figure in the common style."""
    shape = {
        "title": title,
        "tools": "pan,box_zoom,wheel_zoom,reset,save",
        "toolbar_location": "above",
        "min_border": 6,
        "outline_line_color": None,
        "sizing_mode": "stretch_width",
    }
    plot = figure(**(shape | options))
    plot.toolbar.logo, plot.toolbar.autohide = None, True
    plot.title.text_font_style, plot.title.text_font_size = "bold", "13px"
    for axis in plot.axis:
        axis.axis_label_text_font_style = "normal"
        axis.major_label_text_font_size = "11px"
    plot.grid.grid_line_color = "#ECECEC"
    return plot


class AgainstTime:
    """Plot of quantities of a run against log time, with its events."""

    def __init__(self, title: str, height: int, positive: bool = False) -> None:
        scale = "log" if positive else "linear"
        self.positive = positive
        self.figure = plain_figure(
            title, height=height, x_axis_type="log", y_axis_type=scale, x_range=Range1d(1e-2, 1e2)
        )
        self.figure.xaxis.axis_label = TIME
        format_ticks(self.figure.axis[: 2 if positive else 1])
        self.data, self.reference, self.events = (
            ColumnDataSource(),
            ColumnDataSource(),
            ColumnDataSource({"time": [], "name": [], "y": [], "offset": [], "align": []}),
        )
        self.cursor = Span(
            location=0.0, dimension="height", line_color="#999999", line_dash="dotted"
        )
        self.figure.add_layout(self.cursor)
        self.figure.vspan(
            x="time", source=self.events, line_color="#666666", line_dash="dashed", line_width=1
        )
        self.figure.add_layout(
            LabelSet(
                x="time",
                y="y",
                y_units="screen",
                text="name",
                source=self.events,
                x_offset="offset",
                text_align="align",
                text_font_size="11px",
                text_color="#444444",
                background_fill_color="white",
                background_fill_alpha=0.7,
            )
        )
        self.legend = Legend(
            click_policy="hide",
            label_text_font_size="12px",
            border_line_color=None,
            spacing=1,
            padding=4,
        )
        self.figure.add_layout(self.legend, "right")
        self.hover = HoverTool(mode="vline", line_policy="nearest")
        self.figure.add_tools(self.hover)
        self.lines: dict[str, Any] = {}
        on_change(self.figure, "inner_width", self._place_labels)

    def show(self, run: RunData, names: Sequence[str], reference: RunData | None = None) -> None:
        """Plot these columns of a run, and those of another run dotted."""
        runs = [run] if reference is None else [run, reference]
        data = [self._columns(each, names) for each in runs]
        self.data.data = data[0]
        self.reference.data = data[-1] if reference is not None else {name: [] for name in data[0]}
        times = [columns["time"] for columns in data]
        start, end = min(time[0] for time in times), max(time[-1] for time in times)
        self.figure.x_range.update(start=float(start), end=float(end))
        if tuple(names) != tuple(self.lines):
            self._lines(names)

    def _columns(self, run: RunData, names: Sequence[str]) -> dict[str, Any]:
        """Return times, values and errors of a run; nan where a value cannot be shown."""
        later = run.time > 0.0
        if not later.any():
            later[:] = True
        data: dict[str, Any] = {"time": run.time[later]}
        for name in names:
            if name in run.columns:
                values, errors = (np.array(part[later]) for part in run.columns[name][:2])
            else:  # the other run has no such column
                values, errors = np.full((2, later.sum()), np.nan)
            if self.positive:
                values[values <= 0.0] = np.nan
            data[name], data[f"{name} error"] = values, errors
        return data

    def _lines(self, names: Sequence[str]) -> None:
        """Replace the lines, the legend and the tooltips."""
        for lines in self.lines.values():
            for line in lines:
                self.figure.renderers.remove(line)
        self.lines = {}
        for number, name in enumerate(names):
            colour = COLOURS.get(name, _PALETTE[number % len(_PALETTE)])
            dash = "solid" if number < len(_PALETTE) else "dashed"
            style = {"line_color": colour, "line_width": 2, "name": letters(name)}
            self.lines[name] = [
                self.figure.line("time", name, source=self.data, line_dash=dash, **style),
                self.figure.line("time", name, source=self.reference, line_dash="dotted", **style),
            ]
        self.legend.items = [
            LegendItem(label=letters(name), renderers=lines) for name, lines in self.lines.items()
        ]
        self.hover.renderers = [lines[0] for lines in self.lines.values()][:1]
        self.hover.tooltips = [("t", "@time{0.000a}")] + [
            (letters(name), f"@{{{name}}}{{0.00000}} ± @{{{name} error}}{{0.0e+0}}")
            for name in names
        ]

    def mark(self, events: dict[str, float]) -> None:
        """Mark the events that happen."""
        names = sorted(events, key=events.__getitem__)
        empty = [0] * len(names)
        self.events.data = {
            "time": [events[name] for name in names],
            "name": names,
            "y": empty,
            "offset": empty,
            "align": ["left"] * len(names),
        }
        self._place_labels()

    def _place_labels(self) -> None:
        """Place the labels of events without overlap: at the right end, before their lines."""
        data, extent = dict(self.events.data), self.figure.x_range
        width = _pixels(self.figure, "inner_width")
        scale = width / np.log(extent.end / extent.start)
        ends = scale * np.log(np.maximum(data["time"], extent.start) / extent.start)
        length = [_LABEL_MARGIN + _CHARACTER * len(name) for name in data["name"]]
        before = [end + size > width for end, size in zip(ends, length)]
        left = [end - size * flips for end, size, flips in zip(ends, length, before)]
        self.events.data = data | {
            "y": [6 + 16 * row for row in label_rows(left, length)],
            "offset": [-3 if flips else 3 for flips in before],
            "align": ["right" if flips else "left" for flips in before],
        }

    def point(self, time: float) -> None:
        """Mark the time of the attention matrix."""
        self.cursor.location = time


class Curves:
    """Plots of the chosen curves, one for each group of curves."""

    def __init__(self) -> None:
        self.panels = [AgainstTime("Along the run", 330)]
        self.root = column(
            self.panels[0].figure, name="curves against time", sizing_mode="stretch_width"
        )
        self._events: dict[str, float] = {}

    def show(self, run: RunData, names: Sequence[str], reference: RunData | None = None) -> None:
        """Plot these columns of a run, and those of another run dotted."""
        parts = groups(names)
        while len(self.panels) < len(parts):
            self.panels.append(AgainstTime("", 210))
            self.panels[-1].cursor.location = self.panels[0].cursor.location
        shown = self.panels[: len(parts)]
        for panel, (title, part) in zip(shown, parts.items()):
            panel.figure.title.text = title
            panel.figure.height = 330 if len(parts) == 1 else 210
            panel.show(run, part, reference)
            panel.mark(self._events)
        self.root.children = [panel.figure for panel in shown]

    def mark(self, events: dict[str, float]) -> None:
        """Mark the events that happen."""
        self._events = events
        for panel in self.panels:
            panel.mark(events)

    def point(self, time: float) -> None:
        """Mark the time of the attention matrix."""
        for panel in self.panels:
            panel.point(time)


def groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Return mapping from title to names: those with the same first word, then all others."""
    first = [name.split("_")[0] for name in names]
    parts: dict[str, list[str]] = {}
    for name, word in zip(names, first):
        if first.count(word) > 1:
            parts.setdefault(letters(word), []).append(name)
    others = [name for name, word in zip(names, first) if first.count(word) == 1]
    return parts | ({"Along the run": others} if others or not parts else {})


def _pixels(plot: Any, name: str) -> int:
    """Return a size of a figure in pixels, 300 until the browser reports it."""
    try:
        return int(getattr(plot, name)) or 300
    except UnsetValueError:
        return 300


class Portrait:
    """Path of a run in the plane of two order parameters, with the flow field."""

    def __init__(self, height: int) -> None:
        self.figure = plain_figure(
            "Phase portrait", height=height, x_range=Range1d(0, 1), y_range=Range1d(0, 1)
        )
        self.path, self.ends = (
            ColumnDataSource({"x": [], "y": [], "time": []}),
            ColumnDataSource({"x": [], "y": [], "fill": []}),
        )
        self.arrows = ColumnDataSource({name: [] for name in ("x0", "y0", "x1", "y1", "angle")})
        self.figure.segment("x0", "y0", "x1", "y1", source=self.arrows, line_color="#9DB3C8")
        self.figure.scatter(
            "x1",
            "y1",
            marker="triangle",
            angle="angle",
            size=5,
            color="#9DB3C8",
            source=self.arrows,
            line_color=None,
        )
        self.reference = ColumnDataSource({"x": [], "y": []})
        style = {"line_width": 2.5, "line_color": "#0072B2"}
        line = self.figure.line("x", "y", source=self.path, **style)
        self.figure.line("x", "y", source=self.reference, line_dash="dotted", **style)
        self.figure.scatter(
            "x",
            "y",
            source=self.ends,
            size=9,
            fill_color="fill",
            line_color="#0072B2",
            line_width=2,
        )
        self.marker = ColumnDataSource({"x": [], "y": []})
        self.figure.scatter(
            "x", "y", source=self.marker, size=8, marker="cross", line_color="#D55E00", line_width=2
        )
        self.figure.add_tools(
            HoverTool(
                renderers=[line],
                tooltips=[("t", "@time{0.000a}"), ("x", "@x{0.0000}"), ("y", "@y{0.0000}")],
            )
        )

    def show(self, run: RunData, reference: RunData | None = None) -> None:
        """Plot the path, that of another run dotted, and remove the arrows."""
        if run.axes is None:
            return
        x, y = (run.columns[name].values for name in run.axes)
        self.path.data = {"x": x, "y": y, "time": run.time}
        columns = {} if reference is None else reference.columns
        comparable = {*run.axes} <= {*columns}
        other = [columns[name].values if comparable else np.empty(0) for name in run.axes]
        self.reference.data = {"x": other[0], "y": other[1]}
        self.ends.data = {"x": x[[0, -1]], "y": y[[0, -1]], "fill": ["white", "#0072B2"]}
        for axis, name in zip((self.figure.xaxis, self.figure.yaxis), run.axes):
            axis.axis_label = letters(name)
        ranges = (self.figure.x_range, self.figure.y_range)
        for extent, values in zip(ranges, map(np.append, (x, y), other)):
            start, end = window(values)
            extent.update(start=start, end=end, reset_start=start, reset_end=end)
        self.arrows.data = {name: [] for name in self.arrows.data}

    def flow(self, field: FlowField) -> None:
        """Plot the directions of the flow as arrows of equal length on the page."""
        ranges = (self.figure.x_range, self.figure.y_range)
        size = np.array([extent.end - extent.start for extent in ranges])
        inner = np.array([_pixels(self.figure, name) for name in ("inner_width", "inner_height")])
        pixels = field.flow / size * inner
        length = np.hypot(*pixels.T)
        fine = np.isfinite(length) & (length > 0.0)
        step = pixels[fine] / length[fine, None] * 16.0 / inner * size
        start, end = field.points[fine] - step / 2.0, field.points[fine] + step / 2.0
        angle = np.arctan2(pixels[fine, 1], pixels[fine, 0]) - np.pi / 2.0
        self.arrows.data = {
            "x0": start[:, 0],
            "y0": start[:, 1],
            "x1": end[:, 0],
            "y1": end[:, 1],
            "angle": angle,
        }

    def point(self, record: int) -> None:
        """Mark the time of the attention matrix."""
        path = self.path.data
        if len(path["x"]):
            self.marker.data = {name: [path[name][record]] for name in ("x", "y")}


class AttentionMatrix:
    """Attention matrix at one time of a run, with queries as rows and keys as columns."""

    def __init__(self, height: int) -> None:
        self.figure = plain_figure(
            "Attention", height=height, x_range=Range1d(0, 1), y_range=Range1d(1, 0), tools="save"
        )
        self.figure.grid.visible = False
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = "keys", "queries"
        self._keys: tuple[str, ...] = ()
        names = ("left", "right", "top", "bottom", "weight", "query", "key")
        self.data = ColumnDataSource({name: [] for name in names})
        self.colours = LinearColorMapper("Viridis256", low=0.0, high=1.0)
        cells = self.figure.quad(
            "left",
            "right",
            "top",
            "bottom",
            source=self.data,
            line_width=0.7,
            **{
                f"{part}_color": {"field": "weight", "transform": self.colours}
                for part in ("fill", "line")
            },
        )
        self.figure.add_layout(
            ColorBar(color_mapper=self.colours, width=10, label_standoff=6), "right"
        )
        self.figure.add_tools(
            HoverTool(
                renderers=[cells],
                tooltips=[("query", "@query"), ("key", "@key"), ("weight", "@weight{0.0000}")],
            )
        )

    def show(self, attention: Attention, largest: float) -> None:
        """Plot a matrix; the colour scale ends at the largest weight of the run."""
        weights = attention.weights
        if weights.size == len(self.data.data["weight"]) and attention.keys == self._keys:
            self.data.data["weight"] = weights.ravel()
        else:
            self._set_cells(attention)
        self.colours.high = largest

    def _set_cells(self, attention: Attention) -> None:
        """Set the cells and the ticks for a matrix with other keys."""
        rows, columns = attention.weights.shape
        i, j = np.indices((rows, columns)).reshape(2, -1)
        self._keys = attention.keys
        self.data.data = {
            "left": j,
            "right": j + 1,
            "top": i,
            "bottom": i + 1,
            "weight": attention.weights.ravel(),
            "query": [attention.queries[k] for k in i],
            "key": [attention.keys[k] for k in j],
        }
        self.figure.x_range.end, self.figure.y_range.start = columns, rows
        for axis, names in (
            (self.figure.xaxis, attention.keys),
            (self.figure.yaxis, attention.queries),
        ):
            if few := len(names) <= _FEW:
                axis.ticker = FixedTicker(ticks=[k + 0.5 for k in range(len(names))])
                axis.major_label_overrides = {k + 0.5: name for k, name in enumerate(names)}
            else:
                axis.ticker = FixedTicker(ticks=list(range(0, len(names) + 1, _EVERY)))
                axis.major_label_overrides = {}
            axis.major_tick_line_color = None if few else "black"
        self.figure.xaxis.major_label_orientation = 0.9 if columns <= _FEW else "horizontal"
