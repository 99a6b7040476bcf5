"""What is drawn in ``figures/training.py``."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray

from dynamics.positional.labelling import label_error
from dynamics.positional.samples.partitions import same_set, set_of
from simulations.positional.training_runs import Setting, Training

_CURVES = ("test_error", "control", "cosine")


def training_dataset(
    runs: Mapping[str, Sequence[Training]], settings: Mapping[str, tuple[Setting, int]]
) -> xarray.Dataset:
    """Return the records (setting, run, record), nan beyond the runs of a setting.

    ``association`` (setting, run, every_step) is known at every step, nan beyond the last.
    """
    most = max(map(len, runs.values()))
    steps = max(some[0].association.size for some in runs.values())
    association = np.full((len(runs), most, steps), np.nan)
    records = max(len(some[0].history.step) for some in runs.values())
    columns = {name: np.full((len(runs), most, records), np.nan) for name in _CURVES}
    step = np.full((len(runs), records), np.nan)
    best = []
    for row, some in enumerate(runs.values()):
        step[row, : some[0].history.step.size] = some[0].history.step
        for number, run in enumerate(some):
            association[row, number, : run.association.size] = run.association
            for name in _CURVES:
                values = run.control if name == "control" else getattr(run.history, name)
                columns[name][row, number, : values.size] = values
    for name in runs:
        best.append(best_error(settings[name][0]))
    return xarray.Dataset(
        {name: (("setting", "run", "record"), values) for name, values in columns.items()}
        | {
            "association": (("setting", "run", "every_step"), association),
            "step": (("setting", "record"), step),
            "best": ("setting", best),
        },
        coords={"setting": list(runs), "every_step": np.arange(steps)},
    )


def best_error(setting: Setting) -> float:
    """Return the error of f* with its ties decided by a coin, nan with noise along w*."""
    if not setting.projected:
        return float("nan")
    floor = label_error(setting.problem)
    return floor.error - floor.ties / 2


def figure_4_dataset(
    runs: Mapping[str, Sequence[Training]], settings: Mapping[str, tuple[Setting, int]]
) -> xarray.Dataset:
    """Return the records with the mask and the learned A of the first run of every setting."""
    data = training_dataset(runs, settings)
    for number, (name, some) in enumerate(runs.items()):
        first = some[0]
        mask = same_set(set_of(settings[name][0].problem, first.partition))
        dims = (f"patch_{number}", f"other_patch_{number}")
        data[f"mask_{number}"] = (dims, mask.astype(np.int8))
        data[f"A_{number}"] = (dims, first.A)
    return data
