"""Figures 6 and 7: positional against vanilla attention, on three data sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from simulations.figures import report_figure
from simulations.reproduction import intervals
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import PARTS, CheckedTable, Column, Table, parts
from simulations.vision.extra import needs_extra
from simulations.vision.figures import compared

if TYPE_CHECKING:
    import pandas as pd

    from simulations.vision.runs import Run

#: Error by which positional attention may be behind and still compete: what it is behind on
#: ImageNet in Figure 6, where it does so by the statement (71.9 % against 68.9 %). This is a
#: difference of accuracies; the squared error on masked pixels has no margin of its own and gets
#: the same.
TOLERANCE = 0.03
#: Steps of the running mean of training losses.
_WINDOW = 20
#: Runs of positional and of vanilla attention.
Pair = tuple[Sequence["Run"], Sequence["Run"]]


@needs_extra
def measure(context: Context) -> Measurement:
    """Train both kinds of attention, each at its own rate, and compare their errors."""
    from simulations.vision import runs

    count = 3 if context.quick else 5
    configurations = runs.configurations_of_comparison(context)
    both = [entry for pair in configurations.values() for entry in pair]
    trained = runs.trained(context, both, count)
    models = {
        name: (trained[first], trained[other]) for name, (first, other) in configurations.items()
    }
    rows = DATA_SETS.frame(data_rows(models))
    competes = _competes(rows)
    return Measurement(
        {
            "data sets": rows,
            "parts": parts(competes, ~competes),
            "runs": RUNS.frame(run_rows(models)),
        },
        runs.parameters(both, count, context.seed),
        (_figure(models, rows),),
    )


def run_rows(models: Mapping[str, Pair]) -> Iterator[dict[str, Any]]:
    """Yield the errors of both kinds of attention in each run."""
    for name, pair in models.items():
        for number, (positional, vanilla) in enumerate(zip(*pair), start=1):
            yield {
                "data": name,
                "run": number,
                "positional_error": positional.error,
                "vanilla_error": vanilla.error,
            }


def data_rows(models: Mapping[str, Pair]) -> Iterator[dict[str, Any]]:
    """Yield mean errors, their paired difference and the ratio of costs on each data set."""
    for name, pair in models.items():
        positional, vanilla = (np.array([run.error for run in runs]) for runs in pair)
        fast, slow = (float(np.median([run.seconds for run in runs])) for runs in pair)
        yield {
            "data": name,
            "steps": pair[0][0].losses.size,
            "positional": positional.mean(),
            "vanilla": vanilla.mean(),
            **intervals.cells("difference", intervals.mean_of(positional - vanilla)),
            "cost": slow / fast,
        }


def _figure(models: Mapping[str, Pair], rows: pd.DataFrame) -> Figure:
    return report_figure(
        "figure-6-7",
        "Figures 6 and 7: positional against vanilla attention",
        "Above: training loss against step, mean over runs of a running mean over 20 steps, with "
        "the range over runs. Below: test error of every run (dots), mean and 95 % interval; the "
        "ratio is the processor time of a step of vanilla attention over one of positional "
        "attention. Both models have the same width, depth, heads and images, each its own rate.",
        compared.draw,
        to_dataset(models, rows.cost.to_dict()),
        (11.0, 5.2),
    )


def to_dataset(models: Mapping[str, Pair], cost: Mapping[str, float]) -> xarray.Dataset:
    """Return errors (data, kind, run) and losses (data, kind, run, step), NaN beyond the last."""
    sizes = [run.losses.size for pair in models.values() for runs in pair for run in runs]
    window, longest = min(_WINDOW, *sizes), max(sizes)
    errors = np.array([[[run.error for run in runs] for runs in pair] for pair in models.values()])
    losses = np.full((*errors.shape, longest - window + 1), np.nan)
    kernel = np.full(window, 1.0 / window)
    for row, pair in enumerate(models.values()):
        for column, runs in enumerate(pair):
            for number, run in enumerate(runs):
                smooth = np.convolve(run.losses, kernel, mode="valid")
                losses[row, column, number, : smooth.size] = smooth
    ends = [[intervals.of_mean(some) for some in pair] for pair in errors]
    return xarray.Dataset(
        {
            "error": (("data", "kind", "run"), errors),
            "interval": (("data", "kind", "end"), ends),
            "loss": (("data", "kind", "run", "step"), losses),
            "cost": ("data", [cost[name] for name in models]),
        },
        coords={
            "data": list(models),
            "kind": ["positional", "vanilla"],
            "step": np.arange(window, longest + 1),
        },
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    rows = tables["data sets"].data
    return {"behind": rows.difference_high.max(), "sets": len(rows), "margin": TOLERANCE}


def _competes(t: pd.DataFrame) -> pd.Series[bool]:
    return t.difference_high <= TOLERANCE


DATA_SETS = Table(
    index=("data",),
    columns={
        "steps": Column("steps"),
        "positional": Column("test error of positional attention, mean", rtol=math.inf),
        "vanilla": Column("test error of vanilla attention, mean", rtol=math.inf),
        **intervals.columns("difference", "positional minus vanilla", rtol=math.inf),
        "cost": Column("processor time of a step, vanilla over positional", rtol=math.inf),
    },
    predicates={"positional attention is at most 0.03 behind": _competes},
)
RUNS = Table(
    index=("data", "run"),
    columns={
        f"{kind}_error": Column(f"test error of {kind} attention", rtol=math.inf)
        for kind in ("positional", "vanilla")
    },
)

CLAIM = Claim(
    id="figure-6-7",
    place="Figures 6 and 7 (Section 6)",
    statement="ViTs with positional attention compete with vanilla ViTs on a range of data sets.",
    method=(
        "Test error and cost of a step of both kinds of attention on masked photographs, on digits "
        "with and without shifts, and on 5,000 MNIST digits, at a stated number of steps, each "
        "with its own learning rate, chosen on validation images."
    ),
    criterion=(
        "On a data set positional attention competes if the 95 % interval of its error minus that "
        "of vanilla attention, over runs, ends below .03: what it is behind on ImageNet in Figure "
        "6 (68.9 % against 71.9 %) where the paper says that it competes. That is a difference of "
        "accuracies; for masked pixels, whose squared error is in units of their variance, the "
        "paper gives no margin and the same .03 is used. HOLDS if it competes on all data sets, "
        "FAILS if on none, otherwise a finding. The intervals are reported. Five "
        "runs."
    ),
    tables={"data sets": DATA_SETS, "parts": PARTS, "runs": RUNS},
    measure=measure,
    headline=headline,
    finding=(
        "At most {behind:.3f} behind on {sets} data sets (95 %); the margin, {margin:g}, is "
        "ImageNet's in accuracy, for pixels too."
    ),
    tolerance=TOLERANCE,
    quick_note="150 steps instead of 400 and 500, three runs, no MNIST",
    thorough_note=(
        "1,500 steps on photographs, 1,200 on digits, 2,500 on MNIST instead of 400, 500 and 150"
    ),
    assumptions=(
        "images that packages ship (not CIFAR, SVHN, ImageNet); the learning rate of each kind on "
        "each data set did best among five to seven, a factor of two apart, on validation images "
        "of three runs with other seeds (.04 on photographs, .01 on digits, on MNIST .01 for "
        "positional and .005 for vanilla attention); nothing else was tuned"
    ),
    group="vision",
)
