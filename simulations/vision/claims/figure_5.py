"""Figure 5: permuted patches change the errors of a CNN, but not those of a ViT."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import Column, Table, Tables
from simulations.vision import figures
from simulations.vision.claims import extremes, needs_extra, seeded
from simulations.vision.measures import encodings_dataset
from simulations.vision.patches import fold, unfold

if TYPE_CHECKING:
    from simulations.vision.runs import Run, TrainingConfig

    #: Runs by model and side length of the permuted cells, 0 for unpermuted images.
    Models = Mapping[tuple[str, int], Sequence[Run]]

#: Largest difference of two equal runs in double precision, and their number of steps.
TOLERANCE = 1e-14
COMPARED_STEPS = 30
#: P is local if p is at most the first number, and random if mean |z| is below the second.
LARGEST_P, LARGEST_RANDOM_Z = 0.005, 2.0
#: With cells of ``SMALLEST_CELL`` pixels, the error of the CNN must be at least this part of the
#: error of the mean of the visible pixels.
SMALLEST_CELL, LEAST_RATIO = 2, 0.95
VIT, CNN = "positional ViT", "CNN"


@needs_extra
def measure(context: Context) -> Measurement:
    """Train on permuted photographs, and compare runs in double precision."""
    from simulations.vision import runs

    models, settings = runs.trained(
        context, _configurations(context), context.choose(quick=2, full=5)
    )
    visible_mean = runs.mean_of_visible(context.seed)
    locality = LOCALITY.frame(locality_rows(models[VIT, SMALLEST_CELL]))
    pictures = runs.image_set("photographs", context.seed, 0).test.pixels
    return Measurement(
        {
            "equivariance": EQUIVARIANCE.frame(_in_double_precision(context)),
            "errors": ERRORS.frame(error_rows(models, visible_mean)),
            "locality": locality,
            "order shown": ORDER_SHOWN.frame([{"mean_shown_z": locality.shown_z.mean()}]),
        },
        settings,
        (_figure(models, visible_mean, pictures),),
    )


def _configurations(context: Context) -> dict[tuple[str, int], TrainingConfig]:
    """Return the configurations by model and cell."""
    from simulations.vision import runs

    steps = context.choose(quick=150, full=runs.STEPS_ON_PHOTOGRAPHS, thorough=1500)
    cnn_steps = context.choose(quick=100, full=runs.STEPS_OF_CNN, thorough=600)
    cells = context.choose(quick=(0, 2), full=(0, 2, 4), thorough=(0, 2, 4, 8))

    def configuration(architecture: str, steps: int, cell: int) -> TrainingConfig:
        return runs.photographs(architecture, steps, runs.CELLS if cell else runs.IMAGE, cell)

    vit = {(VIT, cell): configuration("position", steps, cell) for cell in (0, SMALLEST_CELL)}
    return vit | {(CNN, cell): configuration("cnn", cnn_steps, cell) for cell in cells}


def _in_double_precision(context: Context) -> Iterator[dict[str, Any]]:
    """Yield the differences between runs on images and on permuted patches, per attention."""
    from simulations.vision.models import Model
    from simulations.vision.runs import ATTENTION, image_set
    from simulations.vision.tasks import Settings
    from simulations.vision.training import permutation_deviation

    images = image_set("photographs", context.seed, 0)
    settings = Settings(steps=COMPARED_STEPS, batch=16)
    order = np.random.default_rng(context.seed).permutation(64)
    for attention in ("vanilla", "positional"):
        model = Model(ATTENTION[attention], width=16, depth=1, hidden=16)
        arguments = (images, model, settings, order, context.seed)
        yield {
            "attention": attention,
            "deviation": max(permutation_deviation(*arguments)),
            "apart": permutation_deviation(*arguments, permute_encodings=False)[0],
        }


def error_rows(models: Models, visible_mean: float) -> Iterator[dict[str, Any]]:
    """Yield the error of each run."""
    for (model, cell), runs in models.items():
        for number, run in enumerate(runs, start=1):
            row = {"model": model, "cell": cell, "run": number, "test_error": run.error}
            yield row | {"visible_mean": visible_mean}


def locality_rows(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Yield the locality of P with the permutation undone and in the order shown."""
    from dynamics.locality import encoding_locality

    for number, run in enumerate(runs, start=1):
        yield {
            "run": number,
            "p": float(encoding_locality(run.encodings).precision.p),
            "shown_z": float(encoding_locality(run.encodings[run.order]).precision.z),
        }


def _figure(models: Models, visible_mean: float, pictures: np.ndarray) -> Figure:
    return report_figure(
        "figure-5",
        "Figure 5 on masked photographs: permuted patches",
        "(a) Squared error on masked pixels of test crops against the side length of the permuted "
        "cells, mean and range over runs; dashed: not permuted; dotted: the mean of the visible "
        "pixels. The ViT is positional and trained with cells of 2 pixels only: with P(0) permuted "
        "along, its run is the same for all cells. (b) A crop, and the crop with permuted cells of "
        "2 and of 4 pixels. (c) Cosines between the encodings of three patches and all others "
        "after training on permuted patches (cells of 2 pixels, first run): in the order shown, "
        "and below with the permutation undone. (d) The same encodings along their two principal "
        "directions; neighbours in the unpermuted image are joined.",
        figures.permuted,
        to_dataset(models, visible_mean, pictures),
        (10.0, 4.3),
    )


def to_dataset(models: Models, visible_mean: float, pictures: np.ndarray) -> xarray.Dataset:
    """Return the data of the figure.

    Parameters
    ----------
    models
        Runs by model and cell.
    visible_mean
        Error of the mean of the visible pixels.
    pictures
        Test crops (N, height, width, 1).

    Returns
    -------
    xarray.Dataset
        Errors of each model (cell, run), a crop and its permutations, and P in both orders.
    """
    run = models[VIT, SMALLEST_CELL][0]
    crop = max(pictures[:200], key=_detail)[..., 0]
    variables: dict[str, Any] = {
        "picture": (
            ("picture_cell", "row", "column"),
            [crop, *(_permuted_picture(crop, cell) for cell in (2, 4))],
        ),
        "position": ("patch", np.argsort(run.order)),
        "picture_cell": [0, 2, 4],
    }
    for name, model in (("vit", VIT), ("cnn", CNN)):
        cells = [cell for key, cell in models if key == model]
        errors = [[run.error for run in models[model, cell]] for cell in cells]
        variables |= {f"{name}_cell": cells, name: ((f"{name}_cell", "run"), errors)}
    encodings = {"image": run.encodings, "shown": run.encodings[run.order]}
    return encodings_dataset(encodings).assign(variables).assign_attrs(blind=visible_mean)


def _detail(crop: np.ndarray) -> float:
    """Return the smaller of the variation within the sixteenths of a crop and among them."""
    tiles = unfold(crop[None], crop.shape[0] // 4)[0]
    return float(min(tiles.std(axis=1).mean(), tiles.mean(axis=1).std()))


def _permuted_picture(crop: np.ndarray, cell: int) -> np.ndarray:
    """Return a crop (height, width) with permuted cells."""
    grid = crop.shape[0] // cell, crop.shape[1] // cell
    order = np.random.default_rng(0).permutation(grid[0] * grid[1])
    return np.asarray(fold(unfold(crop[None, ..., None], cell)[:, order], grid, cell)[0, ..., 0])


def headline(tables: Tables) -> dict[str, Any]:
    """Return the numbers of the sentence: errors of the CNN, and the deviation of the ViT."""
    errors = tables["errors"].data.test_error.sort_index()
    return {
        "plain": extremes(errors[CNN, 0]),
        "permuted": extremes(errors[CNN, SMALLEST_CELL]),
        "deviation": tables["equivariance"].data.deviation.max(),
    }


EQUIVARIANCE = Table(
    index=("attention",),
    columns={
        "deviation": Column(
            "largest difference of losses and of P, P(0) permuted along", atol=TOLERANCE
        ),
        "apart": Column("largest difference of losses, P(0) not permuted along", rtol=math.inf),
    },
    strict={"permuted patches give the same run of a ViT": lambda t: t.deviation <= TOLERANCE},
)
ERRORS = Table(
    index=("model", "cell", "run"),
    columns={
        "test_error": Column("squared error on masked pixels", rtol=math.inf),
        "visible_mean": Column("error of the mean of the visible pixels"),
    },
    predicates={
        "the CNN on permuted cells is within 5 % of the mean of the visible pixels": lambda t: (
            t.test_error >= LEAST_RATIO * t.visible_mean
        ),
    },
    judged=lambda t: (
        (t.index.get_level_values("model") == CNN)
        & (t.index.get_level_values("cell") == SMALLEST_CELL)
    ),
)
LOCALITY = Table(
    index=("run",),
    columns=seeded(
        p="p of the precision of P, permutation undone",
        shown_z="z of the precision of P in the order shown",
    ),
    predicates={"P is local with the permutation undone": lambda t: t.p <= LARGEST_P},
)
ORDER_SHOWN = Table(
    index=(),
    columns=seeded(mean_shown_z="z of the precision of P in the order shown, mean"),
    predicates={
        "P is not local in the order shown": lambda t: t.mean_shown_z.abs() < LARGEST_RANDOM_Z
    },
)

CLAIM = Claim(
    id="figure-5",
    place="Figure 5 (Section 6)",
    statement=(
        "ViTs perform equally on images whose patches are permuted, since they are permutation "
        "invariant, while CNNs struggle to generalize; with the permutation undone the "
        "similarities of positional encodings are spatially localized again."
    ),
    method=(
        "Train ViTs in double precision on photographs and on the same with permuted patches. "
        "Measure the error of a positional ViT and of a CNN on permuted cells of several sizes, "
        "and the locality of P in the order shown and with the permutation undone."
    ),
    criterion=(
        "HOLDS if (a) a ViT, vanilla or positional, on permuted patches with P(0) permuted along "
        "has the same losses and the permuted P to 1e-14 (an identity of the architecture, no "
        "evidence for the paper; only a wrong implementation could violate it); (b) the error of "
        "the CNN on permuted cells of 2 pixels is at least 95 % of that of the mean of the visible "
        "pixels in every run; (c) P is local in every run with the permutation undone (precision, "
        "p <= .005) and not in the order shown (mean |z| < 2). FAILS if (a) is false. Otherwise a "
        "finding. Five runs."
    ),
    tables={
        "equivariance": EQUIVARIANCE,
        "errors": ERRORS,
        "locality": LOCALITY,
        "order shown": ORDER_SHOWN,
    },
    measure=measure,
    headline=headline,
    finding=(
        "CNN error {plain} over runs, {permuted} on permuted patches; runs of a ViT on permuted "
        "patches differ by {deviation:.0e}."
    ),
    tolerance=TOLERANCE,
    quick_note="150 and 100 steps instead of 400 and 120, two runs, cells of 2 pixels only",
    thorough_note="1,500 and 600 steps instead of 400 and 120, cells of 8 pixels too",
    assumptions=(
        "crops of photographs in packages (not CIFAR-100); a CNN of six convolutions of width 16; "
        "dynamics.locality and its null distribution"
    ),
    group="vision",
    alone_if_quick=True,
)
