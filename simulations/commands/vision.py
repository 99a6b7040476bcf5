"""`patchdyn vision`: positional and vanilla attention on real images, and how local they become."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.commands import DONE, FAILED, BadInput
from simulations.commands.arguments import EXIT_CODES, number, refuse_to_replace

if TYPE_CHECKING:
    from simulations.vision.comparison import Measured
    from simulations.vision.data import ImageSet
    from simulations.vision.models import Model
    from simulations.vision.tasks import Settings
    from simulations.vision.training import Trained

HELP = "train positional and vanilla attention on real images (extra: vision)"
DESCRIPTION = """\
Train small Vision Transformers on a data set (Section 6 of Jelassi, Sander, Li 2022): attention
from positional encodings alone (position, Definition 3.2), vanilla attention (content, Definition
3.1), or softmax(P P^T) (gram). Prints accuracy, or the error on masked patches of photographs, and
how local P and the attention are, each beside its null: patches put elsewhere on the grid at
random. A precision above its null, a lift above 1 and a distance below 1 are local.
"""
EPILOG = f"""\
data sets:
  digits, photographs, mnist-5k    shipped with packages
  cifar10, cifar100                --path: the folder or archive of the binary version
  svhn                             --path: the folder with train_32x32.mat and test_32x32.mat
  mnist                            --path: the folder with the four IDX files

examples:
  patchdyn vision --data digits --seeds 3
  patchdyn vision --data photographs --kind position --out photographs.nc
  patchdyn vision --data cifar10 --path DIR --limit 5000

{EXIT_CODES}
Nothing is downloaded. With --out, a run that was stopped (Ctrl-C) goes on when asked again.
"""
#: Names of `simulations.vision.data.NAMES`, and kinds of attention of `simulations.vision.models`.
DATA = ("digits", "photographs", "mnist-5k", "cifar10", "cifar100", "svhn", "mnist")
KINDS = ("position", "content", "gram")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--data", required=True, choices=DATA, help="the data set")
    parser.add_argument("--path", type=Path, metavar="DIR", help="your files of it")
    parser.add_argument(
        "--kind",
        action="append",
        choices=KINDS,
        help="attention (repeatable; default position and content)",
    )
    parser.add_argument(
        "--seeds", type=number, default=1, metavar="N", help="train seeds 0..N-1 (default 1)"
    )
    parser.add_argument(
        "--limit", type=number, metavar="N", help="use N images of train and validation"
    )
    parser.add_argument(
        "--validation", action="store_true", help="measure on validation, to choose settings"
    )
    parser.add_argument(
        "--null",
        choices=("permutation", "ring"),
        default="permutation",
        help="put patches anywhere (default), or only elsewhere in their ring around the centre",
    )
    group = parser.add_argument_group("model and training (defaults depend on the data set)")
    for name, meaning in (
        ("patch", "side of a patch in pixels"),
        ("width", "width of a token (48)"),
        ("depth", "layers (2)"),
        ("heads", "heads (4)"),
        ("steps", "training steps"),
        ("batch", "images a step"),
        ("rate", "highest learning rate (5e-3)"),
        ("shift", "images are shifted by up to so many pixels"),
        ("noise", "sd of the noise on pixels of unit variance (0)"),
    ):
        group.add_argument(f"--{name}", type=number, metavar="X", help=meaning)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the result as JSON")
    output.add_argument(
        "--out", type=Path, metavar="FILE.nc", help="write losses, P and attention as NetCDF"
    )
    output.add_argument("--force", action="store_true", help="overwrite an existing file")


def execute(args: argparse.Namespace) -> int:
    """Train, measure, print."""
    from dynamics.core.checks import integer
    from simulations.vision import INSTALL
    from simulations.vision.data import load

    seeds = range(integer("seeds", args.seeds, 1, 1000))
    if args.out is not None:
        refuse_to_replace("--out", args.out, force=args.force)
    try:
        import jax  # noqa: F401 - what the modules below need
    except ImportError as missing:
        raise BadInput(f"vision needs {missing.name}, which is not installed: {INSTALL}") from None
    from simulations.vision.comparison import check_grid, measure, planned
    from simulations.vision.models import Model

    def given(*names: str) -> dict[str, Any]:
        values = {name: _exact(getattr(args, name)) for name in names}
        return {name: one for name, one in values.items() if one is not None}

    patch, settings = planned(
        args.data, **given("patch", "steps", "batch", "rate", "shift", "noise")
    )
    kinds = dict.fromkeys(args.kind or KINDS[:2])
    models = [Model(kind, patch, **given("width", "depth", "heads")) for kind in kinds]
    images = load(args.data, args.path, limit=_exact(args.limit))
    check_grid(images, patch)
    try:
        runs = {one.kind: _train(args, images, one, settings, tuple(seeds)) for one in models}
    except RuntimeError as failure:
        if "finite" not in str(failure):
            raise
        print(f"patchdyn: {failure}: choose a smaller --rate", file=sys.stderr)
        return FAILED
    measured = {kind: measure(run, null=args.null) for kind, run in runs.items()}
    _show(args, images, runs, measured)
    return DONE if args.out is None else _save(args.out, runs)


def _exact(value: Any) -> Any:
    """Return 2 for 2.0; what a number may be is decided elsewhere."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _train(
    args: argparse.Namespace,
    images: ImageSet,
    model: Model,
    settings: Settings,
    seeds: tuple[int, ...],
) -> Trained:
    """Train one kind of attention; with ``--out`` from where it was stopped."""
    from simulations.display import progress_bar
    from simulations.vision.training import train

    checkpoint = args.out and args.out.with_name(f"{args.out.name}.{model.kind}.checkpoint")
    with progress_bar(f"{model.kind} attention") as progress:
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
    """Write what was trained and say so."""
    from simulations.files.store import StoreError, write_dataset
    from simulations.vision.comparison import to_dataset

    try:
        write_dataset(out, to_dataset(runs))
    except StoreError as failure:
        print(f"patchdyn: {failure}", file=sys.stderr)
        return FAILED
    print(f"patchdyn: wrote {out}", file=sys.stderr)
    return DONE


def _show(
    args: argparse.Namespace,
    images: ImageSet,
    runs: dict[str, Trained],
    measured: dict[str, Measured],
) -> None:
    """Print what came out, for a person or as JSON."""
    from simulations.files.as_json import to_json

    task = next(iter(runs.values())).task
    told = {
        "data": images.name,
        "images": {part: len(getattr(images, part)) for part in ("train", "validation", "test")},
        "tested": "validation" if args.validation else "test",
        "grid": task.grid,
        "settings": task.settings,
        "seeds": args.seeds,
        "null": args.null,
        "score": "error" if images.classes else "squared error",
        "models": measured,
    }
    if args.json:
        print(to_json(told))
        return
    height, width, channels = images.shape
    rows, columns = task.grid
    print(
        f"{images.name}: {len(images.train)} images of {height} x {width} x {channels}, "
        f"{rows * columns} patches on a grid of {rows} x {columns}"
    )
    table = {
        kind: _lines(one, bool(images.classes), str(told["tested"]))
        for kind, one in measured.items()
    }
    print(f"{'':<32}" + "".join(f"{kind:>26}" for kind in table))
    for name in next(iter(table.values())):
        print(f"{name:<32}" + "".join(f"{lines[name]:>26}" for lines in table.values()))


def _lines(one: Measured, classified: bool, tested: str) -> dict[str, str]:
    """Return what is told of a kind of attention: means over seeds (and heads) by name."""
    score = 1.0 - one.error if classified else one.error
    name = f"accuracy ({tested})" if classified else f"squared error ({tested})"
    lines = {name: _mean_and_sd(score), "milliseconds a step": f"{one.milliseconds:.1f}"}
    for by, found in one.encodings.items():
        for measure in ("precision", "auc", "mantel"):
            lines[f"P by {by}: {measure} (null)"] = _beside_null(getattr(found, measure))
    for measure in ("precision", "lift", "distance"):
        lines[f"attention: {measure} (null)"] = _beside_null(getattr(one.attention, measure))
    lift = one.attention.lift
    if lift is not None:
        lines["lift, least to most local head"] = (
            f"{lift.value.min():.2f} to {lift.value.max():.2f}"
        )
    return lines


def _mean_and_sd(values: Any) -> str:
    spread = f" +- {values.std(ddof=1):.3f}" if values.size > 1 else ""
    return f"{values.mean():.3f}{spread}"


def _beside_null(measure: Any) -> str:
    return f"{measure.value.mean():.2f} ({measure.null_mean.mean():.2f}), z {measure.z.mean():.1f}"
