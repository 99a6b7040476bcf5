"""`patchdyn against`: compare a logged training run with its theory."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import (
    EXIT_CODES,
    add_output,
    assignment,
    check_output,
    number,
    pair,
    report_written,
)
from simulations.commands.image_options import add_image_options, image_options

if TYPE_CHECKING:
    import numpy as np

HELP = "compare a logged training run with its theory"
DESCRIPTION = """\
Compare the weights that a training run logged with a theory. The weights are projected on its order
parameters; the theory starts at the projected start and takes the same steps. Reported are the
distance from the manifold of the theory, the difference from its order parameters and a verdict. If
the learning rate is unknown, the time scale is fitted. The order of sets and units is found.

RUN is a .npz or .safetensors file with an array (times, ...) for each tensor, `steps` (times,),
`learning_rate` and, for SGD with new samples in each step, `batch`; or a folder with such a file
for each checkpoint, named by its step, as in step-100.npz.
"""
EPILOG = f"""\
examples:
  patchdyn against run.npz --theory teacher.py
  patchdyn against run.npz --theory positional --at C=4 q=0.1 nu=0.01 beta=1
  patchdyn against checkpoints/ --theory mine.py --name U=attention.weight --plot run.pdf

{EXIT_CODES}; the exit code is 1 if the run does not follow the theory
"""
_ENDINGS = (".npz", ".safetensors")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("run", type=Path, metavar="RUN", help="file or folder of logged weights")
    parser.add_argument(
        "--theory", required=True, metavar="NAME|FILE.py", help="built-in theory, or its file"
    )
    parser.add_argument(
        "--at", nargs="+", default=[], metavar="NAME=VALUE",
        help="sizes and constants (default: sizes follow from the shapes, others are those of the "
        "theory)",
    )  # fmt: skip
    parser.add_argument(
        "--name", action="append", default=[], metavar="NAME=LOGGED",
        help="name of a tensor of the theory in the run (repeatable)",
    )  # fmt: skip
    for option, text in (
        ("--learning-rate", "learning rate, if it is not logged"),
        ("--batch", "new samples in each step of SGD, if it is not logged"),
        ("--tolerance", "largest distance and error of a run that follows the theory (0.05)"),
        ("--runs", "seeds of the band of SGD (100)"),
    ):
        parser.add_argument(option, type=number, metavar="X", help=text)
    add_output(parser, ("FILE.nc", "write run and theory (NetCDF)"), "plot run and theory")
    add_image_options(parser, "step")


def execute(args: argparse.Namespace) -> int:
    """Compare, write the requested files and print the verdict."""
    from simulations.figures import render, report_figure
    from simulations.figures.shared import draw_against
    from simulations.files import to_json, write_bytes, write_dataset
    from simulations.stated.against import against

    check_output(args)
    image = image_options(args, ("step",), args.plot)
    arrays = _renamed(read(args.run), dict(pair("--name", text) for text in args.name))
    given = {"learning_rate": args.learning_rate, "batch": args.batch}
    arrays |= {name: value for name, value in given.items() if value is not None}
    options: dict[str, Any] = {name: getattr(args, name) for name in ("tolerance", "runs")}
    options = {name: value for name, value in options.items() if value is not None}
    values: dict[str, Any] = dict(assignment("--at", text) for text in args.at)
    if clash := sorted(values.keys() & {"arrays", "theory", "tolerance", "runs", "seed"}):
        raise BadInput(f"--at {clash[0]} is not allowed: it is no size or constant of the theory")
    result = against(arrays, args.theory, **options, **values)
    data = result.to_dataset()
    if args.out is not None:
        write_dataset(args.out, data)
        report_written(args.out)
    if args.plot is not None:
        data.attrs["scale"] = image.scales.get("step", "")
        figure = report_figure("against", "", "", draw_against, data, (7.0, 6.0))
        write_bytes(args.plot, render(figure, image))
        report_written(args.plot)
    print(to_json(result.summary()) if args.json else _as_text(result))
    return DONE if result.follows else FAILED


def _as_text(result: Any) -> str:
    """Return the verdict and the order parameters at both ends."""
    lines = [f"{result.sentence[0].upper()}{result.sentence[1:]}.", ""]
    lines.append(f"{'':<16} {'start':>13} {'end of run':>13} {'of theory':>13}")
    states, predicted = result.projection.states, result.predicted
    for k, name in enumerate(result.projection.names):
        numbers = (states[0, k], states[-1, k], predicted[-1, k])
        lines.append(f"{name:<16} " + " ".join(f"{x:>13.6g}" for x in numbers))
    orders = result.projection.orders.items()
    lines += [f"\norder of {name}: {' '.join(map(str, order))}" for name, order in orders]
    return "\n".join(lines)


def _renamed(arrays: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the arrays under the names of the theory."""
    for logged in names.values():
        if logged not in arrays:
            raise BadInput(
                f"--name {logged} is not in the run: choose among {', '.join(sorted(arrays))}"
            )
    return {**arrays, **{name: arrays[logged] for name, logged in names.items()}}


def read(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a run.

    Parameters
    ----------
    path
        A .npz or .safetensors file with arrays over time, or a folder with one for each checkpoint.

    Raises
    ------
    BadInput
        If it cannot be read.
    """
    import numpy as np

    if not path.is_dir():
        return _read_file(path)
    files = {}
    for file in sorted(path.iterdir()):
        digits = re.findall(r"\d+", file.stem)
        if file.suffix in _ENDINGS and digits:
            files[int(digits[-1])] = file
    if not files:
        raise BadInput(
            f"{path} is not allowed: it must contain a file for each checkpoint, named by its "
            "step, such as step-100.npz"
        )
    steps = sorted(files)
    checkpoints = [_read_file(files[step]) for step in steps]
    names = set(checkpoints[0]).intersection(*checkpoints[1:]) - {"steps"}
    arrays = {"steps": np.array(steps)}
    for name in names:
        values = [checkpoint[name] for checkpoint in checkpoints]
        if len({value.shape for value in values}) > 1:
            raise BadInput(f"{name} is not allowed: its shape differs between checkpoints")
        fixed = name in ("learning_rate", "batch") or name.endswith(".direction")
        arrays[name] = values[0] if fixed else np.array(values)
    return arrays


def _read_file(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of one file."""
    import numpy as np

    if path.suffix not in _ENDINGS:
        raise BadInput(f"{path} is not allowed: it must be .npz, .safetensors or a folder of them")
    if path.suffix == ".safetensors":
        return _read_weights(path)
    try:
        loaded = np.load(path)
        return {name: np.asarray(loaded[name]) for name in loaded}
    except Exception as error:  # NumPy has many errors for damaged files
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot read {path}: {reason}".replace("\n", " ")) from None


def _read_weights(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a file in the safetensors format."""
    from dynamics.core.files import FileError
    from simulations.weights import WeightFile

    try:
        with WeightFile(path) as file:
            return {name: file.read(name) for name in file.names}
    except FileError as error:
        raise BadInput(str(error)) from None
