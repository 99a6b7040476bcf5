"""Where locality comes from on centred digits: from training on shifted images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from dynamics.locality import attention_locality, encoding_locality, similarity
from simulations.figures import report_figure
from simulations.reproduction import intervals
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import PARTS, CheckedTable, Column, Table, parts
from simulations.vision.extra import needs_extra
from simulations.vision.figures import augmented

if TYPE_CHECKING:
    import pandas as pd

    from simulations.vision.runs import Run, TrainingConfig

VANILLA, POSITIONAL = "vanilla", "positional"
SHIFTS, NONE, NOISE = "shifts", "none", "noise"
#: Smallest mean z that counts as local: that at which a single run would, at about 95 %.
LEAST = 2.0
#: Standard deviation of the noise on pixels, in units of that of the pixels.
_NOISE = 0.35
#: Runs by kind of attention and augmentation.
Models = Mapping[tuple[str, str], Sequence["Run"]]


@needs_extra
def measure(context: Context) -> Measurement:
    """Train on digits with shifts, without, and with noise instead, and measure how local P is."""
    from simulations.vision import runs

    count = 3 if context.quick else 5
    configurations = _configurations(context)
    trained = runs.trained(context, list(configurations.values()), count)
    models = {key: trained[configuration] for key, configuration in configurations.items()}
    rows = RUNS.frame(run_rows(models))
    locality = LOCALITY.frame(locality_rows(rows))
    with_shifts = locality.xs(SHIFTS, level="augmentation")
    return Measurement(
        {
            "locality": locality,
            "parts": parts(local(with_shifts), not_local(with_shifts)),
            "runs": rows,
        },
        runs.parameters(list(configurations.values()), count, context.seed),
        (_figure(models, rows, locality),),
    )


def _configurations(context: Context) -> dict[tuple[str, str], TrainingConfig]:
    from simulations.vision.runs import digits

    steps = context.choose(quick=150, full=500, thorough=1200)
    configurations = {}
    for name, kind in ((VANILLA, "content"), (POSITIONAL, "position")):
        configurations[name, SHIFTS] = digits(kind, steps, 1)
        configurations[name, NONE] = digits(kind, steps, 0)
        if context.thorough or (name == VANILLA and not context.quick):
            configurations[name, NOISE] = digits(kind, steps, 0, _NOISE)
    return configurations


def run_rows(models: Models) -> Iterator[dict[str, Any]]:
    """Yield the locality of P and of the attention in each run, on the grid of 4 x 4 patches."""
    for (kind, augmentation), runs in models.items():
        for number, run in enumerate(runs, start=1):
            anywhere = encoding_locality(run.encodings)
            lift = attention_locality(run.attention, draws=1).lift
            assert lift is not None
            yield {
                "model": kind,
                "augmentation": augmentation,
                "run": number,
                "z": float(anywhere.mantel.z),
                "mantel": float(anywhere.mantel.value),
                "ring_z": float(encoding_locality(run.encodings, null="ring").mantel.z),
                "precision": float(anywhere.precision.value),
                "precision_z": float(anywhere.precision.z),
                "lift": float(lift.value.mean()),
                "accuracy": 1.0 - run.error,
                "training_loss": float(run.losses[-20:].mean()),
            }


def locality_rows(runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the mean z and its interval for each kind of attention and augmentation."""
    for (kind, augmentation), rows in runs.groupby(["model", "augmentation"], sort=False):
        cells = intervals.cells("mean_z", intervals.mean_of(rows.z.to_numpy()))
        yield {"model": kind, "augmentation": augmentation, **cells}


def local(t: pd.DataFrame) -> pd.Series[bool]:
    """Return whether P is local: the interval of z lies above 0."""
    return t.mean_z_low > 0.0


def not_local(t: pd.DataFrame) -> pd.Series[bool]:
    """Return whether P is not local: the interval of z ends below `LEAST`."""
    return ~local(t) & (t.mean_z_high < LEAST)


def _figure(models: Models, runs: pd.DataFrame, locality: pd.DataFrame) -> Figure:
    return report_figure(
        "augmentation-makes-locality",
        "Locality of P on digits comes from shifted images",
        "(a) z of the rank correlation between cosines of encodings and closeness of patches, one "
        "dot a run, the bar its mean with the 95 % interval; grey: within two standard deviations "
        "of patches put anywhere. (b, c) Mean cosines over the runs, vanilla attention, for each "
        "of the 4 x 4 patches a tile with all others, trained with shifts of up to one pixel and "
        "without augmentation.",
        augmented.draw,
        to_dataset(models, runs, locality),
        (10.0, 4.0),
    )


def to_dataset(models: Models, runs: pd.DataFrame, locality: pd.DataFrame) -> xarray.Dataset:
    """Return z (case, run), its interval (case, 2), and mean cosines (case, patch, other)."""
    cosines = [
        np.mean([similarity(run.encodings) for run in runs], axis=0) for runs in models.values()
    ]
    return xarray.Dataset(
        {
            "z": (
                ("case", "run"),
                [runs.z.xs(key, level=("model", "augmentation")) for key in models],
            ),
            "interval": (
                ("case", "end"),
                [locality.loc[key, ["mean_z_low", "mean_z_high"]].to_list() for key in models],
            ),
            "cosine": (("case", "patch", "other"), cosines),
            "kind": ("case", [kind for kind, _ in models]),
            "augmentation": ("case", [augmentation for _, augmentation in models]),
        }
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence: intervals of z, vanilla and positional."""
    data = tables["locality"].data
    return {
        name: " and ".join(
            f"{data.mean_z_low[kind, name]:.1f} to {data.mean_z_high[kind, name]:.1f}"
            for kind in (VANILLA, POSITIONAL)
        )
        for name in (SHIFTS, NONE)
    }


LOCALITY = Table(
    index=("model", "augmentation"),
    columns=intervals.columns(
        "mean_z", "z of the rank correlation of similarity and closeness", rtol=math.inf
    ),
    predicates={"P is local": local},
)
RUNS = Table(
    index=("model", "augmentation", "run"),
    columns={
        name: Column(label, rtol=math.inf)
        for name, label in {
            "z": "z of the rank correlation of similarity and closeness",
            "mantel": "rank correlation of similarity and closeness",
            "ring_z": "z against patches moved in their ring",
            "precision": "neighbours among the most similar encodings",
            "precision_z": "z of the precision",
            "lift": "attention to a neighbour over attention to another",
            "accuracy": "test accuracy",
            "training_loss": "training loss of the last 20 steps",
        }.items()
    },
)

CLAIM = Claim(
    id="augmentation-makes-locality",
    place="Section 6, beside Figure 1a",
    statement=(
        "After training, closer patches have more similar positional encodings (Figure 1a); the "
        "models are trained with standard augmentation techniques, and nothing is said of their "
        "part in it."
    ),
    method=(
        "Locality of P after training on centred digits of 8 x 8 pixels with shifts of up to one "
        "pixel, without augmentation, and with noise instead (which keeps the training error up "
        "and moves nothing), for vanilla and positional attention."
    ),
    criterion=(
        "P is local where the 95 % interval over runs of the z of the rank correlation between "
        "similarity and closeness, against patches put anywhere, is above 0, not local where it "
        "ends below 2. HOLDS if it is local with every augmentation and without, for both kinds of "
        "attention: the statement makes no reservation. FAILS if it is not local with shifts for "
        "either. Otherwise a finding. Five runs, each with its own split."
    ),
    tables={"locality": LOCALITY, "parts": PARTS, "runs": RUNS},
    measure=measure,
    headline=headline,
    finding=("z of P (95 %; vanilla, positional): {shifts} on shifted digits, {none} without."),
    quick_note="150 steps instead of 500, three runs, no noise",
    thorough_note="1,200 steps instead of 500, and noise for positional attention too",
    amended=(
        "An interval that reached below 0 counted as not local at first. It must now also end "
        "below 2, and is undecided otherwise, since an interval that is merely wide shows nothing."
    ),
    assumptions="the digits of scikit-learn (not CIFAR); dynamics.locality and its nulls",
    group="vision",
)
