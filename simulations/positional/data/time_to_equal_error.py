"""What is drawn in ``figures/time_to_equal_error.py``."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xarray

from dynamics import Population, Problem, State
from dynamics.core.errors import ToleranceError
from dynamics.positional.population.enumeration import SECONDS_PER_STATE, predicted_states
from dynamics.positional.population.expectation import risk_sums


def gather(
    problem: Problem,
    state: State,
    reference_tolerance: float,
    tolerances: Iterable[float],
    samples: Sequence[int],
    seeds: Sequence[int],
    patience: float,
) -> xarray.Dataset:
    """Return seconds, error and bound of every method and setting, along the dimension ``run``.

    Errors are relative to the largest gradient entry. ``patience``: seconds spent timing each.
    """
    reference = Population(problem, "fourier", reference_tolerance).evaluate(state)
    exact = np.array(reference.gradient)
    size = float(np.abs(exact).max())
    rows: list[dict[str, Any]] = []

    def certified(method: str, tolerance: float) -> None:
        population = Population(problem, method, tolerance)
        value = population.evaluate(state)
        rows.append(
            {
                "method": method,
                "setting": tolerance,
                "certified": True,
                "measured": True,
                "error": np.abs(np.array(population.gradient(state)) - exact).max() / size,
                "bound": value.bound / size,
                "seconds": seconds_of(lambda: population.gradient(state), patience),
            }
        )

    for tolerance in map(float, tolerances):
        certified("fourier", tolerance)
        try:
            certified("enumeration", tolerance)
        except ToleranceError:
            rows.append(_out_of_reach(problem, tolerance, size))
    z = 0.0
    for count in samples:
        row, z = _sampled(problem, state, count, seeds, patience, reference)
        rows.append(row)
    attrs = {
        "D": problem.D,
        "C": problem.C,
        "qD": problem.q * problem.D,
        "sampling_z": z,
        "reference_bound": reference.bound / size,
        "largest_entry": size,
    }
    if any(row["method"] == "enumeration" and row["measured"] for row in rows):
        other = Population(problem, "enumeration", reference_tolerance).gradient(state)
        attrs["enumeration_difference"] = float(np.abs(np.array(other) - exact).max() / size)
    return xarray.Dataset(
        {name: ("run", [row[name] for row in rows]) for name in rows[0]}, attrs=attrs
    )


def _out_of_reach(problem: Problem, tolerance: float, size: float) -> dict[str, Any]:
    """Return what enumeration would cost, from its number of states."""
    return {
        "method": "enumeration",
        "setting": tolerance,
        "certified": True,
        "measured": False,
        "error": tolerance / size,
        "bound": tolerance / size,
        "seconds": SECONDS_PER_STATE * predicted_states(problem, tolerance),
    }


def _sampled(
    problem: Problem,
    state: State,
    count: int,
    seeds: Sequence[int],
    patience: float,
    reference: Any,
) -> tuple[dict[str, Any], float]:
    """Return the row of one sample size, and the deviation of all seeds' mean in standard errors.

    The deviation is the largest of the loss and the three derivatives.
    """
    exact = np.array([reference.loss, *reference.gradient])
    values, variances, bounds = [], [], []
    for seed in seeds:
        population = Population(problem, "sampling", samples=count, seed=seed)
        value = population.evaluate(state)
        values.append([value.loss, *value.gradient])
        bounds.append(value.bound)
        sample = population.expectation
        sums = risk_sums(sample.states, sample.constants, *state)[0]
        variance = count * sums[1, [0, 2, 3, 4]] ** 2
        variances.append(variance / np.array([1.0, *problem.multiplicity]) ** 2)
    error = np.array(values) - exact
    standard = np.sqrt(np.mean(variances, axis=0) / (count * len(seeds)))
    size = np.abs(exact[1:]).max()
    row = {
        "method": "sampling",
        "setting": float(count),
        "certified": False,
        "measured": True,
        "error": np.sqrt((np.abs(error[:, 1:]).max(axis=1) ** 2).mean()) / size,
        "bound": np.mean(bounds) / size,
        "seconds": seconds_of(lambda: population.gradient(state), patience),
    }
    return row, float(np.max(np.abs(error.mean(axis=0)) / standard))


def seconds_of(call: Callable[[], Any], patience: float) -> float:
    """Return the shortest of at least five timed calls, after one that is not counted."""
    call()
    times: list[float] = []
    while len(times) < 5 or sum(times) < patience:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        if sum(times) > 10.0 * patience:
            break
    return min(times)


def join(panels: Sequence[xarray.Dataset]) -> xarray.Dataset:
    """Return all panels in one data set, their numbers along the dimension ``panel``."""
    runs = [
        data.assign(panel_of=("run", np.full(data.sizes["run"], i)))
        for i, data in enumerate(panels)
    ]
    joined = xarray.concat([data.drop_attrs() for data in runs], "run")
    for name in ("qD", "reference_bound", "largest_entry"):
        joined[name] = ("panel", [float(data.attrs[name]) for data in panels])
    return joined.assign_attrs(D=panels[0].attrs["D"], C=panels[0].attrs["C"])
