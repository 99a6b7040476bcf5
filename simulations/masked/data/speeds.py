"""What is drawn in ``figures/speeds.py``."""

from collections.abc import Mapping

import numpy as np
import xarray

from dynamics.core.schedule import thinned
from simulations.masked.runs import Speeds

_RECORDS = 300


def gather(courses: Mapping[str, Speeds]) -> xarray.Dataset:
    """Return the speeds of several runs (run, record), nan behind the last record."""
    names = ("time", "own", "first", "rest", "fastest", "positions")
    columns = {name: np.full((len(courses), _RECORDS), np.nan) for name in names}
    for number, course in enumerate(courses.values()):
        index = thinned(course.time.size, _RECORDS)
        others = [m for m in range(course.features.shape[1]) if m not in (course.own, course.first)]
        rows = {
            "time": course.time,
            "own": course.features[:, course.own],
            "first": course.features[:, course.first],
            "rest": np.abs(course.features[:, others]).max(axis=1, initial=0.0),
            "fastest": np.abs(course.features).max(axis=1),
            "positions": np.nanmax(np.abs(course.positions), axis=1),
        }
        for name, values in rows.items():
            columns[name][number, : index.size] = values[index]
    return xarray.Dataset(
        {name: (("run", "record"), values) for name, values in columns.items()},
        coords={"run": list(courses)},
    )
