"""Training and transfer runs as datasets, for their figures."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray

from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.baselines.set_knowledge import coupon_collector, least_error, least_samples
from dynamics.positional.labelling import label_error
from dynamics.positional.samples.partitions import same_set, set_of
from simulations.positional.training_runs import Setting, Training
from simulations.positional.transfer_statistics import Sweep, SweepConfig

_CURVES = ("test_error", "control", "cosine")


def training_dataset(
    runs: Mapping[str, Sequence[Training]], settings: Mapping[str, tuple[Setting, int]]
) -> xarray.Dataset:
    """Return the records of training runs.

    Parameters
    ----------
    runs
        Runs by name of the setting.
    settings
        Setting and number of runs by name.

    Returns
    -------
    xarray.Dataset
        ``test_error``, ``control`` and ``cosine`` (setting, run, record) at ``step`` (setting,
        record); ``association`` (setting, run, every_step) at every step; ``best``, the best
        possible error (setting). NaN where a setting has fewer runs, records or steps.
    """
    most = max(map(len, runs.values()))
    steps = max(trained[0].association.size for trained in runs.values())
    association = np.full((len(runs), most, steps), np.nan)
    records = max(len(trained[0].history.step) for trained in runs.values())
    columns = {name: np.full((len(runs), most, records), np.nan) for name in _CURVES}
    step = np.full((len(runs), records), np.nan)
    for row, trained in enumerate(runs.values()):
        step[row, : trained[0].history.step.size] = trained[0].history.step
        for number, run in enumerate(trained):
            association[row, number, : run.association.size] = run.association
            for name in _CURVES:
                values = run.control if name == "control" else getattr(run.history, name)
                columns[name][row, number, : values.size] = values
    return xarray.Dataset(
        {name: (("setting", "run", "record"), values) for name, values in columns.items()}
        | {
            "association": (("setting", "run", "every_step"), association),
            "step": (("setting", "record"), step),
            "best": ("setting", [best_error(settings[name][0]) for name in runs]),
        },
        coords={"setting": list(runs), "every_step": np.arange(steps)},
    )


def best_error(setting: Setting) -> float:
    """Return the error of f* with ties decided at random, NaN if there is noise along w*."""
    if not setting.projected:
        return float("nan")
    floor = label_error(setting.problem)
    return floor.error - floor.ties / 2


def figure_4_dataset(
    runs: Mapping[str, Sequence[Training]], settings: Mapping[str, tuple[Setting, int]]
) -> xarray.Dataset:
    """Return `training_dataset` with mask and learned A of the first run of each setting."""
    data = training_dataset(runs, settings)
    for number, (name, trained) in enumerate(runs.items()):
        first = trained[0]
        mask = same_set(set_of(settings[name][0].problem, first.partition))
        dims = (f"patch_{number}", f"other_patch_{number}")
        data[f"mask_{number}"] = (dims, mask.astype(np.int8))
        data[f"A_{number}"] = (dims, first.A)
    return data


def learning_curves(
    sweeps: Mapping[SweepConfig, Sweep],
    threshold: float,
    seed: int,
    thresholds: Mapping[float, float] | None = None,
) -> xarray.Dataset:
    """Return the errors of all sweeps, and the samples needed.

    Parameters
    ----------
    sweeps
        Sweeps by entry.
    threshold, thresholds
        Mean error to be reached, and exceptions by qD.
    seed
        Seed of the bootstrap intervals.

    Returns
    -------
    xarray.Dataset
        ``error`` (entry, size, run), NaN where there is no run; ``needed`` with its interval
        (entry); ``least`` (entry, size) and ``least_needed`` (entry), the exact bounds for learners
        that do not know the sets.
    """
    rows = list(sweeps.items())
    sizes = np.full((len(rows), max(len(entry.sizes) for entry, _ in rows)), np.nan)
    errors = np.full((*sizes.shape, max(entry.runs for entry, _ in rows)), np.nan)
    least = np.full_like(sizes, np.nan)
    levels = [(thresholds or {}).get(entry.qD, threshold) for entry, _ in rows]
    for number, (entry, sweep) in enumerate(rows):
        sizes[number, : len(entry.sizes)] = entry.sizes
        errors[number, : len(entry.sizes), : entry.runs] = sweep.errors
        least[number, : len(entry.sizes)] = [least_error(sweep.problem, N) for N in entry.sizes]
    needed = [sweep.interval(level, seed) for (_, sweep), level in zip(rows, levels)]
    return xarray.Dataset(
        {
            "samples": (("entry", "size"), sizes),
            "error": (("entry", "size", "run"), errors),
            "least": (("entry", "size"), least),
            "needed": ("entry", [interval.value for interval in needed]),
            "needed_low": ("entry", [interval.low for interval in needed]),
            "needed_high": ("entry", [interval.high for interval in needed]),
            "least_needed": (
                "entry",
                [least_samples(sweep.problem, level) for (_, sweep), level in zip(rows, levels)],
            ),
            "collected": ("entry", [coupon_collector(sweep.problem.L) for _, sweep in rows]),
            "linear": ("entry", [uniform_error(sweep.problem).coin for _, sweep in rows]),
        },
        coords={
            "learner": ("entry", [entry.learner for entry, _ in rows]),
            "qD": ("entry", [entry.qD for entry, _ in rows]),
            "D": ("entry", [entry.D for entry, _ in rows]),
            "threshold": ("entry", levels),
        },
        attrs={"set_size": rows[0][1].problem.C},
    )
