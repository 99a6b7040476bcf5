"""What is drawn in ``figures/course.py``."""

from collections.abc import Sequence

import numpy as np
import xarray

from dynamics.masked import MaskedProblem
from simulations.masked import runs
from simulations.masked.figures.course import NAMES
from simulations.masked.runs import Regime, describe
from simulations.masked.system import SYSTEM


def gather(
    problems: Sequence[MaskedProblem], law: bool = False, until: float = 3.0
) -> xarray.Dataset:
    """Return observables of the runs (run, record); ``law`` adds -Delta/2z log P.

    Each run is shown until that many times the moment at which it has learned.
    """
    parts = []
    moments: dict[str, list[float]] = {name: [] for name in ("switch", "learned", "law")}
    for problem in problems:
        run, events = runs.flow(problem), runs.events(problem)
        end = min(until * events.learned.time, float(run.time[-1]))
        keep = run.time <= end
        columns = SYSTEM.observe(SYSTEM.build({}), run)
        width = run.time.size
        parts.append({name: np.where(keep, columns[name], np.nan) for name in ("time", *NAMES)})
        parts[-1]["excess"] = parts[-1]["excess"] / parts[-1]["excess"][0]
        moments["switch"].append(events.switch.time if events.phases == 2 else np.nan)
        moments["learned"].append(events.learned.time)
        moments["law"].append(-runs.log_gap(problem) / problem.z_top if law else np.nan)
    width = max(part["time"].size for part in parts)
    data = {
        name: (("run", "record"), np.stack([_padded(part[name], width) for part in parts]))
        for name in ("time", *NAMES)
    }
    titles = [_title(problem) for problem in problems]
    return xarray.Dataset(
        data | {name: ("run", values) for name, values in moments.items()}, coords={"run": titles}
    )


def _title(problem: MaskedProblem) -> str:
    if problem.kappa_c is None or problem.kappa_s is None:
        return describe(problem)
    return Regime(problem.kappa_c, problem.kappa_s, problem.roles[0]).name


def _padded(values: np.ndarray, width: int) -> np.ndarray:
    return np.concatenate([values, np.full(width - values.size, np.nan)])
