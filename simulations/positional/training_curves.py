"""Training runs as datasets, for ``figures/training.py``."""

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
    """Return the records of training runs.

    Parameters
    ----------
    runs
        Runs of each setting.
    settings
        Setting and number of runs, with the same keys.

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
