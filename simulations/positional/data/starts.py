"""What is drawn in ``figures/starts.py``."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray

from simulations.positional.start_runs import Followed


def gather(
    courses: Mapping[str, Sequence[Followed]],
    places: Mapping[str, Sequence[Followed]],
    A: np.ndarray | None = None,
) -> xarray.Dataset:
    """Return shares (start, run, step) and test errors (start, run), and shares by place."""
    data = xarray.Dataset(
        {
            "share": (
                ("start", "run", "step"),
                np.array([[run.share for run in some] for some in courses.values()]),
            ),
            "error": (
                ("start", "run"),
                np.array([[run.test_error for run in some] for some in courses.values()]),
            ),
        },
        coords={"start": list(courses)},
    )
    if places:
        ends = [[run.share[-1] for run in some] for some in places.values()]
        best = [[run.share.max() for run in some] for some in places.values()]
        data["end"] = (("place", "run"), np.array(ends))
        data["best"] = (("place", "run"), np.array(best))
        data = data.assign_coords(place=list(places))
    if A is not None:
        data["A"] = (("patch", "other_patch"), A)
    return data
