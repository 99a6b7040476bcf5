"""Options of the images that commands write."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.commands import BadInput
from simulations.commands.arguments import pair

if TYPE_CHECKING:
    from simulations.figures.image import Image

FORMATS = ("pdf", "svg", "png")
_CENTIMETRES = 2.54
#: Limits of the resolution and of a side in centimetres.
_DPI, _SIDE = (20, 2400), (2.0, 100.0)
#: Groups of settings that a style file may contain, and those of them that are no settings of the
#: look: programs, folders, and the identifiers in SVG files.
_STYLE_GROUPS = (
    *("axes", "contour", "errorbar", "figure", "font", "grid", "hatch", "image", "legend", "lines"),
    *("markers", "mathtext", "patch", "pdf", "savefig", "scatter", "svg", "text", "xaxis", "xtick"),
    *("yaxis", "ytick"),
)
_NOT_A_STYLE = {"axes.prop_cycle", "figure.hooks", "savefig.directory", "svg.hashsalt"}


def add_image_options(parser: argparse.ArgumentParser, axes: str) -> None:
    """Add the options of an image.

    Parameters
    ----------
    parser
        Parser of the command.
    axes
        Names of the axes for the help text of ``--scale``.
    """
    group = parser.add_argument_group("image")
    group.add_argument(
        "--format", choices=FORMATS, help="format (default: as the file name ends, else png)"
    )
    group.add_argument("--dpi", type=int, metavar="N", help="dots per inch (default: 160)")
    group.add_argument(
        "--size", metavar="WxH", help="width and height in cm, such as 8.5x7 for one column"
    )
    group.add_argument(
        "--style", type=Path, metavar="FILE", help="Matplotlib style file, with `font.size: 8` etc."
    )
    group.add_argument(
        "--scale",
        action="append",
        default=[],
        metavar="AXIS=SCALE",
        help=f"log or linear scale of an axis (repeatable): {axes}",
    )


def image_options(args: argparse.Namespace, axes: tuple[str, ...], file: Path | None) -> Image:
    """Return the options of an image.

    Parameters
    ----------
    args
        Arguments of the command.
    axes
        Names of the axes.
    file
        File of the image, whose name may choose the format; ``None``: several files.

    Raises
    ------
    BadInput
        If a value is not allowed.
    """
    from simulations.figures.image import DPI, Image

    dpi = DPI if args.dpi is None else args.dpi
    if not _DPI[0] <= dpi <= _DPI[1]:
        raise BadInput(f"dpi = {dpi} is not allowed: it must be in {_DPI[0]}..{_DPI[1]}")
    style = {} if args.style is None else _read_style(args.style)
    size = None if args.size is None else _size(args.size)
    return Image(_format(args.format, file), dpi, size, style, _scales(args.scale, axes))


def _format(requested: str | None, file: Path | None) -> str:
    """Return the format of a file, which ends in its name if there is no option."""
    ending = "" if file is None else file.suffix.lower().removeprefix(".")
    if requested is None and ending and ending not in FORMATS:
        raise BadInput(f"{file} is not allowed: its name must end in .pdf, .svg or .png")
    if requested is not None and ending in FORMATS and ending != requested:
        raise BadInput(f"--format {requested} is not allowed: {file} ends in .{ending}")
    return requested or ending or "png"


def _size(text: str) -> tuple[float, float]:
    """Return width and height in inches."""
    try:
        width, height = (float(side) for side in text.lower().split("x"))
    except ValueError:
        width = height = 0.0
    if not all(_SIDE[0] <= side <= _SIDE[1] for side in (width, height)):
        raise BadInput(
            f"size = {text} is not allowed: it must be WIDTHxHEIGHT in cm, such as 8.5x7, each "
            f"in {_SIDE[0]:g}..{_SIDE[1]:g}"
        )
    return width / _CENTIMETRES, height / _CENTIMETRES


def _scales(texts: list[str], axes: tuple[str, ...]) -> dict[str, str]:
    """Return a mapping from axis to scale."""
    scales = dict(pair("--scale", text) for text in texts)
    for name, scale in scales.items():
        if name not in axes:
            raise BadInput(f"--scale {name} is not allowed: choose among {', '.join(axes)}")
        if scale not in ("log", "linear"):
            raise BadInput(f"--scale {name}={scale} is not allowed: it must be log or linear")
    return scales


def _read_style(path: Path) -> dict[str, Any]:
    """Return the settings of a Matplotlib style file.

    Parameters
    ----------
    path
        Text with one ``name: value`` in each line, such as ``font.size: 8``.

    Raises
    ------
    BadInput
        If the file cannot be read, or a name or value is not allowed.
    """
    import matplotlib

    known: Any = matplotlib.RcParams()
    settings: dict[str, Any] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"style = {path} is not allowed: cannot read it ({error})") from None
    for number, line in enumerate(lines, start=1):
        name, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        if not name:
            continue
        allowed = name in matplotlib.rcParamsDefault and name not in _NOT_A_STYLE
        if not colon or not allowed or name.partition(".")[0] not in _STYLE_GROUPS:
            raise BadInput(
                f"style = {path} is not allowed: line {number} must be a Matplotlib setting of "
                "the look, such as font.size: 8"
            )
        try:
            known[name] = value.strip('"')
        except (ValueError, TypeError) as error:
            raise BadInput(
                f"style = {path} is not allowed: line {number}: {error}".replace("\n", " ")
            ) from None
        settings[name] = known[name]
    return settings
