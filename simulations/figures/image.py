"""Format, resolution, size, style and scales of an image for a paper."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import matplotlib.figure
from matplotlib.backends.backend_agg import FigureCanvasAgg

from simulations.figures.style import style_override

DPI = 160
#: Fonts are embedded as text, and two runs write the same bytes.
_VECTOR: Any = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "patchdyn"}
#: Font size in points of images of at most this width in inches: one column of a paper.
_COLUMN, _COLUMN_FONT = 4.0, 7.0
_METADATA: dict[str, dict[str, Any]] = {
    "png": {},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}


@dataclass(frozen=True)
class Image:
    """Options of an image.

    Attributes
    ----------
    format, dpi
        ``"png"``, ``"pdf"`` or ``"svg"``, and dots per inch.
    size
        Width and height in inches; ``None``: the size of the figure.
    style
        Matplotlib settings that replace those of the figures.
    scales
        Mapping from axis to ``"log"`` or ``"linear"``; other axes have their default scale.
    """

    format: str = "png"
    dpi: int = DPI
    size: tuple[float, float] | None = None
    style: Mapping[str, Any] = field(default_factory=dict)
    scales: Mapping[str, str] = field(default_factory=dict)

    def render(self, draw: Callable[[Any], Any], size: tuple[float, float]) -> bytes:
        """Return a figure as an image, without the global state of pyplot.

        Parameters
        ----------
        draw
            Draws on a Matplotlib figure.
        size
            Width and height in inches if the image has no size.
        """
        narrow = self.size is not None and self.size[0] <= _COLUMN
        style = ({"font.size": _COLUMN_FONT} if narrow else {}) | dict(self.style)
        with matplotlib.rc_context(_VECTOR), style_override(style):
            canvas = matplotlib.figure.Figure(
                figsize=self.size or size, dpi=self.dpi, layout="constrained"
            )
            FigureCanvasAgg(canvas)
            draw(canvas)
            buffer = io.BytesIO()
            canvas.savefig(
                buffer, format=self.format, dpi=self.dpi, metadata=_METADATA[self.format]
            )
        return buffer.getvalue()
