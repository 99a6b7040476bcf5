"""What is drawn in ``figures/transfer.py``."""

from collections.abc import Mapping

import numpy as np
import xarray

from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.baselines.set_knowledge import coupon_collector, least_error, least_samples
from simulations.positional.transfer_runs import Entry
from simulations.positional.transfer_statistics import Sweep


def gather(
    found: Mapping[Entry, Sweep],
    threshold: float,
    seed: int,
    special: Mapping[float, float] | None = None,
) -> xarray.Dataset:
    """Return errors (entry, size, run), nan where there is none, and what each entry is.

    ``needed`` with its ends is for a mean error of ``threshold``, of ``special[qD]`` where given;
    ``least`` and ``least_needed`` are the exact bounds for learners that do not know the sets.
    """
    rows = list(found.items())
    sizes = np.full((len(rows), max(len(entry.sizes) for entry, _ in rows)), np.nan)
    errors = np.full((*sizes.shape, max(entry.runs for entry, _ in rows)), np.nan)
    least = np.full_like(sizes, np.nan)
    levels = [(special or {}).get(entry.qD, threshold) for entry, _ in rows]
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
            "needed": ("entry", [one.value for one in needed]),
            "needed_low": ("entry", [one.low for one in needed]),
            "needed_high": ("entry", [one.high for one in needed]),
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
