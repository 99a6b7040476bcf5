"""Regime maps of masked image modelling: one phase or two, over the exponents of the areas."""

import math

import numpy as np
import xarray

from dynamics.masked import MaskedProblem
from simulations.maps import Map, Overlay, Sweep, cases_of


def _of_problem(sweep: Sweep, plane: xarray.Dataset, number: str) -> np.ndarray:
    """Return a number of the problem of each cell; NaN if the problem is invalid."""
    numbers = [
        math.nan if case is None else NUMBERS[number](case.problem)
        for case in cases_of(sweep, plane)
    ]
    return np.array(numbers).reshape(plane["status"].shape)


def _ratio_at_start(problem: MaskedProblem) -> float:
    """Return log((1 - mask_ratio) C_1^2 / (P C_n)), an estimate of the log initial speed ratio."""
    large = problem.sizes[0]
    return math.log((1.0 - problem.mask_ratio) * large**2 / problem.P / problem.own_size())


NUMBERS = {"Delta": lambda problem: problem.information_gap, "finite P": _ratio_at_start}

DELTA = Overlay(
    "Delta", r"information gap $\Delta=0$", lambda sweep, plane: _of_problem(sweep, plane, "Delta")
)
FINITE = Overlay(
    "finite P",
    r"$(1-m)\,C_1^2=P\,C_n$ ($m$: mask ratio)",
    lambda sweep, plane: _of_problem(sweep, plane, "finite P"),
)

MAPS = (
    Map(
        "ratio",
        "Which correlation moves first",
        r"$|d\Phi_1/dt|\,/\,(d\Phi_n/dt)$ at the start",
        lambda _, data: data["initial_ratio"],
        levels=(1e-2, 1.0, 1e2, 1e4),
        overlays=(DELTA, FINITE),
    ),
    Map(
        "global-falls",
        r"Decrease of $\Phi_1$ before $\Phi_n$ grows",
        r"$-\Phi_1$ at the switch",
        lambda _, data: (-data["rival_at_switch"]).where(data["phases"] == 2.0),
        r"one phase: $\Phi_n$ leads from the start",
        "linear",
        overlays=(DELTA, FINITE),
    ),
    Map(
        "learned",
        "When the area of p is learned",
        r"time until $(1-a_n)^2\leq\epsilon$",
        lambda _, data: data["learned"],
        "not learned within the run",
        overlays=(DELTA,),
    ),
    Map(
        "positions",
        "Size of position correlations",
        r"$\max|\Upsilon|\,/\,\Phi_n$ at the end",
        lambda _, data: data["upsilon_ratio"],
        levels=(1e-4, 1e-3, 1e-2, 1e-1),
    ),
    Map(
        "excess", "Final loss above its floor", "excess of the loss", lambda _, data: data["excess"]
    ),
)


def maps_of(_: Sweep) -> tuple[Map, ...]:
    """Return the maps of a sweep."""
    return MAPS
