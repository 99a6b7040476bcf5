"""`patchdyn vision`: train positional and vanilla attention on real images."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import (
    EXIT_CODES,
    add_output,
    check_output,
    number,
    report_written,
)

if TYPE_CHECKING:
    from simulations.vision.comparison import Measurements
    from simulations.vision.data import ImageSet
    from simulations.vision.models import Model
    from simulations.vision.tasks import Settings
    from simulations.vision.training import Trained

HELP = "train positional and vanilla attention on real images (extra: vision)"
DESCRIPTION = """\
Train small Vision Transformers on a data set (Section 6 of Jelassi, Sander, Li 2022). Attention is
computed from positional encodings alone (position, Definition 3.2), by vanilla attention (content,
Definition 3.1), or as softmax(P P^T) (gram). Print the accuracy, or for photographs the error on
masked patches, and the locality of P and of the attention. Each measure of locality is compared
with its null distribution, in which patches are placed at random on the grid. Attention is local if
its precision exceeds the null, its lift exceeds 1 and its distance is below 1.
"""
EPILOG = f"""\
data sets:
  digits, photographs, mnist-5k    included in Python packages
  cifar10, cifar100                --path: the folder or archive of the binary version
  svhn                             --path: the folder with train_32x32.mat and test_32x32.mat
  mnist                            --path: the folder with the four IDX files

examples:
  patchdyn vision --data digits --seeds 3
  patchdyn vision --data photographs --kind position --out photographs.nc
  patchdyn vision --data cifar10 --path DIR --limit 5000

{EXIT_CODES}
Nothing is downloaded. With --out, the same command resumes a run that was stopped with Ctrl-C.
"""
#: Data sets (`simulations.vision.data.NAMES`) and types of attention (`simulations.vision.models`).
DATA = ("digits", "photographs", "mnist-5k", "cifar10", "cifar100", "svhn", "mnist")
ATTENTION_TYPES = ("position", "content", "gram")
#: Options of the model and of its training, with their help texts.
OF_MODEL = {
    "width": "dimension of a token (default: 48)",
    "depth": "number of layers (default: 2)",
    "heads": "number of heads (default: 4)",
}
OF_TRAINING = {
    "patch": "side length of a patch in pixels",
    "steps": "number of training steps",
    "batch": "batch size",
    "rate": "peak learning rate (default: 5e-3)",
    "shift": "largest random shift of an image in pixels",
    "noise": "standard deviation of pixel noise; pixels have unit variance (default: 0)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--data", required=True, choices=DATA, help="data set")
    parser.add_argument(
        "--path", type=Path, metavar="DIR", help="folder with the files of the data set"
    )
    parser.add_argument(
        "--kind",
        action="append",
        choices=ATTENTION_TYPES,
        help="type of attention (repeatable; default: position and content)",
    )
    parser.add_argument(
        "--seeds",
        type=number,
        default=1,
        metavar="N",
        help="train with seeds 0, ..., N-1 (default: 1)",
    )
    parser.add_argument(
        "--limit", type=number, metavar="N", help="use only N images for training and validation"
    )
    parser.add_argument(
        "--validation",
        action="store_true",
        help="evaluate on the validation set, to choose settings",
    )
    parser.add_argument(
        "--null",
        choices=("permutation", "ring"),
        default="permutation",
        help="null distribution: permute all patches (default), or only within rings "
        "around the centre",
    )
    group = parser.add_argument_group("model and training (some defaults depend on the data set)")
    for name, meaning in (OF_MODEL | OF_TRAINING).items():
        group.add_argument(f"--{name}", type=number, metavar="X", help=meaning)
    add_output(parser, ("FILE.nc", "write losses, P and attention as NetCDF"))


def execute(args: argparse.Namespace) -> int:
    """Train, measure locality and print the results."""
    from dynamics.core.checks import integer
    from simulations.vision import INSTALL
    from simulations.vision.data import load

    seeds = range(integer("seeds", args.seeds, 1, 1000))
    check_output(args)
    try:
        import jax  # noqa: F401 - required by the modules below
    except ImportError as missing:
        raise BadInput(f"vision needs {missing.name}, which is not installed: {INSTALL}") from None
    from simulations.vision.comparison import check_grid, measure, preset
    from simulations.vision.models import Model

    patch, settings = preset(args.data, **_given(args, OF_TRAINING))
    names = dict.fromkeys(args.kind or ATTENTION_TYPES[:2])
    models = [Model(name, patch, **_given(args, OF_MODEL)) for name in names]
    images = load(args.data, args.path, limit=_as_integer(args.limit))
    check_grid(images, patch)
    try:
        runs = {
            model.architecture: _train(args, images, model, settings, tuple(seeds))
            for model in models
        }
    except RuntimeError as error:
        if "finite" not in str(error):
            raise
        print(f"patchdyn: {error}: choose a smaller --rate", file=sys.stderr)
        return FAILED
    measurements = {name: measure(run, null=args.null) for name, run in runs.items()}
    _show(args, images, runs, measurements)
    return DONE if args.out is None else _save(args.out, runs)


def _given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return a mapping from name to value of the options that are given."""
    values = {name: _as_integer(getattr(args, name)) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _as_integer(value: Any) -> Any:
    """Return an integer for a float such as 2.0; other values are unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _train(
    args: argparse.Namespace,
    images: ImageSet,
    model: Model,
    settings: Settings,
    seeds: tuple[int, ...],
) -> Trained:
    """Train one type of attention; with ``--out``, resume from its checkpoint."""
    from simulations.display import progress_bar
    from simulations.vision.training import train

    checkpoint = args.out and args.out.with_name(f"{args.out.name}.{model.architecture}.checkpoint")
    with progress_bar(f"{model.architecture} attention") as progress:
        return train(
            images,
            model,
            settings,
            seeds,
            progress=progress,
            tested="validation" if args.validation else "test",
            checkpoint=checkpoint,
        )


def _save(out: Path, runs: dict[str, Trained]) -> int:
    """Write the trained models and print the name of the file."""
    from simulations.files import StoreError, write_dataset
    from simulations.vision.comparison import to_dataset

    try:
        write_dataset(out, to_dataset(runs))
    except StoreError as error:
        print(f"patchdyn: {error}", file=sys.stderr)
        return FAILED
    report_written(out)
    return DONE


def _show(
    args: argparse.Namespace,
    images: ImageSet,
    runs: dict[str, Trained],
    measurements: dict[str, Measurements],
) -> None:
    """Print the results, as text or JSON."""
    from simulations.files import to_json

    task = next(iter(runs.values())).task
    summary = {
        "data": images.name,
        "images": {part: len(getattr(images, part)) for part in ("train", "validation", "test")},
        "tested": "validation" if args.validation else "test",
        "grid": task.grid,
        "settings": task.settings,
        "seeds": args.seeds,
        "null": args.null,
        "score": "error" if images.classes else "squared error",
        "models": measurements,
    }
    if args.json:
        print(to_json(summary))
        return
    height, width, channels = images.shape
    rows, columns = task.grid
    print(
        f"{images.name}: {len(images.train)} images of {height} x {width} x {channels}, "
        f"{rows * columns} patches on a grid of {rows} x {columns}"
    )
    table = {
        name: _lines(result, bool(images.classes), str(summary["tested"]))
        for name, result in measurements.items()
    }
    print(f"{'':<32}" + "".join(f"{name:>26}" for name in table))
    for name in next(iter(table.values())):
        print(f"{name:<32}" + "".join(f"{lines[name]:>26}" for lines in table.values()))


def _lines(result: Measurements, classified: bool, tested: str) -> dict[str, str]:
    """Return label and value of each result: means over seeds (and heads)."""
    score = 1.0 - result.error if classified else result.error
    name = f"accuracy ({tested})" if classified else f"squared error ({tested})"
    lines = {name: _mean_and_sd(score), "milliseconds per step": f"{result.milliseconds:.1f}"}
    for by, locality in result.encodings.items():
        for measure in ("precision", "auc", "mantel"):
            lines[f"P by {by}: {measure} (null)"] = _with_null(getattr(locality, measure))
    for measure in ("precision", "lift", "distance"):
        lines[f"attention: {measure} (null)"] = _with_null(getattr(result.attention, measure))
    lift = result.attention.lift
    if lift is not None:
        lines["lift, least to most local head"] = (
            f"{lift.value.min():.2f} to {lift.value.max():.2f}"
        )
    return lines


def _mean_and_sd(values: Any) -> str:
    """Return mean and standard deviation as text."""
    spread = f" +- {values.std(ddof=1):.3f}" if values.size > 1 else ""
    return f"{values.mean():.3f}{spread}"


def _with_null(measure: Any) -> str:
    """Return a measure with its mean under the null distribution and its z-score as text."""
    return f"{measure.value.mean():.2f} ({measure.null_mean.mean():.2f}), z {measure.z.mean():.1f}"
