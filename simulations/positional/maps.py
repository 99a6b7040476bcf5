"""Regime maps of positional attention: the predictions of Section 4.1 over planes of parameters."""

import math

import numpy as np
import xarray

from simulations.maps import Map, Overlay, Sweep, cases_of
from simulations.positional.symmetric_line import line_drift

#: Smallest excess of the test error that is drawn: the error of the expectation.
LEAST_EXCESS = 1e-6


def _times(_: Sweep, data: xarray.Dataset) -> xarray.DataArray:
    return data["T1"].where(data["association"] == 1.0)


def _violation(_: Sweep, data: xarray.Dataset) -> xarray.DataArray:
    worst = data["worst gamma >= rho"]
    return worst.where(worst > 0.0)


def _rise(_: Sweep, data: xarray.Dataset) -> xarray.DataArray:
    return (data["rise"] - 1.0).where(data["rise"] > 1.0)


def _excess(_: Sweep, data: xarray.Dataset) -> xarray.DataArray:
    return (data["test_error"] - data["best_test_error"]).clip(min=LEAST_EXCESS)


def _rates(sweep: Sweep, plane: xarray.Dataset) -> np.ndarray:
    rates = [
        math.nan if case is None else case.settings.get("learning_rate", math.nan)
        for case in cases_of(sweep, plane)
    ]
    return np.array(rates).reshape(plane["status"].shape)


def _start(_: Sweep, plane: xarray.Dataset) -> np.ndarray:
    return np.asarray(np.log(plane["initial_alpha"] / plane["alpha_star"]))


def _floor(_: Sweep, plane: xarray.Dataset) -> np.ndarray:
    return np.log10(np.maximum(plane["best_test_error"].values, 1e-300)) + 2.0


def _stable(sweep: Sweep, plane: xarray.Dataset) -> np.ndarray:
    return np.asarray(np.log(_rates(sweep, plane) / plane["stable_learning_rate"].values))


def _balance(sweep: Sweep, plane: xarray.Dataset) -> np.ndarray:
    """Return d(gamma - rho)/dt at (alpha, 0, 0) over the sum of the moduli of its two parts.

    It is the smaller value at two alpha: the initial one, and the quasi-steady one that alpha
    reaches before the attention moves.
    """
    settled = plane["alpha_star"].values.ravel()
    field = np.full(settled.size, math.nan)
    for index, case in enumerate(cases_of(sweep, plane)):
        if case is None or not math.isfinite(settled[index]):
            continue
        balance = []
        for alpha in (case.settings["initial"].alpha, settled[index]):
            drift = line_drift(case.problem, alpha)
            balance.append(drift.total / max(drift.signal_wins - drift.outvoted, 1e-300))
        field[index] = min(balance)
    return field.reshape(plane["status"].shape)


START = Overlay("alpha(0)", r"$\alpha(0)=\alpha^*$", _start)
LEAVES = Overlay(
    "leaves the line",
    r"$\frac{d}{dt}(\gamma-\rho)=0$ at $\gamma=\rho=0$ (exact)",
    _balance,
)
FLOOR = Overlay("floor", "best test error 0.01 (law of $f^*$)", _floor)
RATE = Overlay("learning rate", "largest stable rate at the start and after Event I", _stable)

MAPS = (
    Map(
        "association",
        "When patch association is learned",
        r"$T_1$ (learning rate × steps)",
        _times,
        "not learned: no $T_1$, or no association at the end",
    ),
    Map(
        "gamma-rho",
        r"Where $\gamma\geq\rho$ is violated on the way",
        r"largest $\rho-\gamma$",
        _violation,
        r"$\gamma\geq\rho$ throughout",
        overlays=(LEAVES,),
    ),
    Map(
        "second-rise",
        r"Where $\alpha$ rises again (Event III)",
        r"factor of the rise, minus 1",
        _rise,
        r"$\alpha$ does not rise again",
        overlays=(START,),
    ),
    Map(
        "test-error",
        "Final test error above the best possible",
        r"$P[yF\leq 0]$ minus the best",
        _excess,
        levels=(1e-4, 1e-3, 1e-2, 1e-1),
        overlays=(FLOOR,),
    ),
    Map("risk", "Final population risk", "population risk", lambda _, data: data["loss"]),
    Map(
        "alpha",
        r"$\alpha(0)$ against its quasi-steady value",
        r"$\alpha(0)\,/\,\alpha^*$",
        lambda _, data: data["initial_alpha"] / data["alpha_star"],
        levels=(0.1, 10.0),
        overlays=(START,),
    ),
)
STABILITY = Map(
    "stability",
    "Where gradient descent is stable",
    r"learning rate / largest stable one",
    lambda sweep, data: (1.0 / data["stable_learning_rate"]) * _rates(sweep, data),
    levels=(0.01, 0.1),
    overlays=(RATE,),
)


def maps_of(sweep: Sweep) -> tuple[Map, ...]:
    """Return the maps of a sweep, including stability if gradient descent was run."""
    descent = sweep.config.fixed.get("solver") == "gd" or "learning_rate" in sweep.axes
    return (STABILITY, *MAPS) if descent else MAPS
