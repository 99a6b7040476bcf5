"""Figure 5: on permuted images a ViT learns as before, a CNN does not, association follows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.vision.extra import needs_extra
from simulations.vision.figures import permuted
from simulations.vision.measures import encodings_dataset
from simulations.vision.patches import fold, unfold

if TYPE_CHECKING:
    import pandas as pd

    from simulations.vision.runs import Run, TrainingConfig

#: Largest difference of two runs in double precision that counts as none.
TOLERANCE = 1e-14
#: Steps over which they are compared.
COMPARED = 30
#: Largest p that counts as local, and mean |z| that counts as not local.
LOCAL, CALM = 0.005, 2.0
#: The CNN on permuted cells of ``SMALLEST`` pixels must do no better than this part of the error
#: of the mean of the visible pixels.
SMALLEST, WORSE = 2, 0.95
VIT, CNN = "positional ViT", "CNN"


@needs_extra
def measure(context: Context) -> Measurement:
    """Train on permuted photographs, and compare runs in double precision."""
    from simulations.vision import runs

    count = 2 if context.quick else 5
    by_model = _configurations(context)
    configurations = [entry for by_cell in by_model.values() for entry in by_cell.values()]
    trained = runs.trained(context, configurations, count)
    models = {
        model: {cell: trained[entry] for cell, entry in by_cell.items()}
        for model, by_cell in by_model.items()
    }
    visible_mean = runs.mean_of_visible(context.seed)
    locality = LOCALITY.frame(locality_rows(models[VIT][SMALLEST]))
    pictures = runs.image_set("photographs", context.seed, 0).test.pixels
    return Measurement(
        {
            "equivariance": EQUIVARIANCE.frame(_in_double_precision(context)),
            "errors": ERRORS.frame(error_rows(models, visible_mean)),
            "locality": locality,
            "order shown": ORDER_SHOWN.frame([{"mean_shown_z": locality.shown_z.mean()}]),
        },
        runs.parameters(configurations, count, context.seed),
        (_figure(models, visible_mean, pictures),),
    )


def _configurations(context: Context) -> dict[str, dict[int, TrainingConfig]]:
    """Return the configurations of ViT and CNN by cell, 0 where nothing is permuted."""
    from simulations.vision import runs

    steps = context.choose(quick=150, full=runs.STEPS_ON_PHOTOGRAPHS, thorough=1500)
    cnn_steps = context.choose(quick=100, full=runs.STEPS_OF_CNN, thorough=600)
    cells = context.choose(quick=(0, 2), full=(0, 2, 4), thorough=(0, 2, 4, 8))

    def configuration(kind: str, steps: int, cell: int) -> TrainingConfig:
        return runs.photographs(kind, steps, runs.CELLS if cell else runs.IMAGE, cell)

    return {
        VIT: {cell: configuration("position", steps, cell) for cell in (0, SMALLEST)},
        CNN: {cell: configuration("cnn", cnn_steps, cell) for cell in cells},
    }


def _in_double_precision(context: Context) -> Iterator[dict[str, Any]]:
    """Yield the difference between runs on images and on permuted patches, by attention."""
    from simulations.vision.models import Model
    from simulations.vision.runs import image_set
    from simulations.vision.tasks import Settings
    from simulations.vision.training import permutation_deviation

    images = image_set("photographs", context.seed, 0)
    settings = Settings(steps=COMPARED, batch=16)
    order = np.random.default_rng(context.seed).permutation(64)
    for name, kind in (("vanilla", "content"), ("positional", "position")):
        model = Model(kind, width=16, depth=1, hidden=16)
        arguments = (images, model, settings, order, context.seed)
        yield {
            "attention": name,
            "deviation": max(permutation_deviation(*arguments)),
            "apart": permutation_deviation(*arguments, permute_encodings=False)[0],
        }


def error_rows(
    models: Mapping[str, Mapping[int, Sequence[Run]]], visible_mean: float
) -> Iterator[dict[str, Any]]:
    """Yield the error of each run."""
    for model, by_cell in models.items():
        for cell, runs in by_cell.items():
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


def _figure(
    models: Mapping[str, Mapping[int, Sequence[Run]]], visible_mean: float, pictures: np.ndarray
) -> Figure:
    return report_figure(
        "figure-5",
        "Figure 5 on masked photographs: permuted patches",
        "(a) Squared error on masked pixels of test crops against the side of the cells that are "
        "permuted, mean and range over runs; dashed: not permuted; dotted: the mean of the visible "
        "pixels. The ViT is positional and trained at cells of 2 pixels only: with P(0) permuted "
        "along it is the same run at any. (b) A crop, and the same with cells of 2 and of 4 pixels "
        "permuted. (c) Cosines of the encodings of three patches with all others after training on "
        "permuted patches (cells of 2 pixels, first run): in the order shown, and below with the "
        "permutation undone. (d) The same encodings along their two principal directions, "
        "neighbours in the image before it is permuted joined.",
        permuted.draw,
        to_dataset(models, visible_mean, pictures),
        (11.0, 4.3),
    )


def to_dataset(
    models: Mapping[str, Mapping[int, Sequence[Run]]], visible_mean: float, pictures: np.ndarray
) -> xarray.Dataset:
    """Return errors by cell (0: not permuted), a crop and its permutations, and P in both orders.

    ``pictures`` are test crops (N, height, width, 1).
    """
    run = models[VIT][SMALLEST][0]
    crop = max(pictures[:200], key=_detail)[..., 0]
    shown = [crop, *(_permuted_picture(crop, cell) for cell in (2, 4))]
    errors = {
        name: (
            (f"{name}_cell", "run"),
            [[run.error for run in runs] for runs in models[model].values()],
        )
        for name, model in (("vit", VIT), ("cnn", CNN))
    }
    encodings = {"image": run.encodings, "shown": run.encodings[run.order]}
    variables: dict[str, Any] = {
        **errors,
        "picture": (("picture_cell", "row", "column"), shown),
        "place": ("patch", np.argsort(run.order)),
    }
    return (
        encodings_dataset(encodings)
        .assign(variables)
        .assign_coords(
            vit_cell=list(models[VIT]), cnn_cell=list(models[CNN]), picture_cell=[0, 2, 4]
        )
        .assign_attrs(blind=visible_mean)
    )


def _detail(crop: np.ndarray) -> float:
    """Return how much the four quarters of a crop differ within and among themselves."""
    quarters = unfold(crop[None], crop.shape[0] // 4)[0]
    return float(min(quarters.std(axis=1).mean(), quarters.mean(axis=1).std()))


def _permuted_picture(crop: np.ndarray, cell: int) -> np.ndarray:
    """Return a crop with its cells in another order."""
    grid = crop.shape[0] // cell, crop.shape[1] // cell
    order = np.random.default_rng(0).permutation(grid[0] * grid[1])
    return np.asarray(fold(unfold(crop[None, ..., None], cell)[:, order], grid, cell)[0, ..., 0])


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    errors = tables["errors"].data.test_error
    return {
        "plain": _range(errors, 0),
        "permuted": _range(errors, SMALLEST),
        "deviation": tables["equivariance"].data.deviation.max(),
    }


def _range(errors: pd.Series[float], cell: int) -> str:
    """Return the least and greatest error of the CNN over runs."""
    runs = errors.xs((CNN, cell), level=("model", "cell"))
    return f"{runs.min():.2f} to {runs.max():.2f}"


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
            t.test_error >= WORSE * t.visible_mean
        ),
    },
    judged=lambda t: (
        (t.index.get_level_values("model") == CNN) & (t.index.get_level_values("cell") == SMALLEST)
    ),
)
LOCALITY = Table(
    index=("run",),
    columns={
        "p": Column("p of the precision of P, permutation undone", rtol=math.inf),
        "shown_z": Column("z of the precision of P in the order shown", rtol=math.inf),
    },
    predicates={"P is local with the permutation undone": lambda t: t.p <= LOCAL},
)
ORDER_SHOWN = Table(
    index=(),
    columns={
        "mean_shown_z": Column("z of the precision of P in the order shown, mean", rtol=math.inf)
    },
    predicates={"P is not local in the order shown": lambda t: t.mean_shown_z.abs() < CALM},
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
        "Runs of ViTs in double precision on photographs and on the same with permuted patches; "
        "error of a positional ViT and of a CNN on permuted cells of several sizes; locality of P "
        "in the order shown and with the permutation undone."
    ),
    criterion=(
        "HOLDS if (a) a ViT, vanilla or positional, on permuted patches with P(0) permuted along "
        "has the same losses and the permuted P to 1e-14 (an identity of the architecture, which "
        "only a wrong implementation could miss; no evidence for the paper); the CNN on permuted "
        "cells of 2 pixels does no better than 5 % below the mean of the visible pixels in every "
        "run; (c) P is local in every run with the permutation undone (precision, p <= .005) and "
        "not in the order shown (mean |z| < 2). FAILS if (a) does not hold for the ViT. Otherwise "
        "a finding. Five runs."
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
        "crops that packages ship (not CIFAR-100); a CNN of six convolutions of width 16; "
        "dynamics.locality and its null"
    ),
    group="vision",
    alone_if_quick=True,
)
