"""A map of 1,000 cells against the same map written with SciPy and NumPy, cell by cell.

The grid is that of the goal: (qD/C^2, nu) at D = 64, C = 4, each flow to time 1e6 at relative
tolerance 1e-6. The peer is what one writes without this package: the counts of features in a set
are enumerated by NumPy, the sum over the other sets is replaced by a sample (exact enumeration has
3^60 patterns), and SciPy's LSODA integrates with a numerical Jacobian. It certifies nothing and
locates no events. Both are timed on a subset that spreads over the grid; the whole is extrapolated
from the mean time of a cell.
"""

from time import process_time

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit

from simulations.sweep import cells
from simulations.sweep.config import parse
from simulations.theories import load

CELLS, CORES, GOAL = 1000, 2, 120.0
SETTINGS = {"D": 64, "C": 4, "horizon": 1e6, "rtol": 1e-6, "tolerance": 1e-6}
GRID = """\
[fixed]
D = 64
C = 4
[grid]
"qD/C^2" = { from = 0.01, to = 1.0, number = 40, scale = "log" }
nu = { from = 1e-4, to = 1.0, number = 25, scale = "log" }
[run]
horizon = 1e6
rtol = 1e-6
tolerance = 1e-6
"""
#: Every 37th cell: 37 shares no factor with the grid, so that the subset spreads over both axes.
STRIDE = 37


def subset():
    config = parse(GRID)
    assert config.size == CELLS
    return [config.values(cell) for cell in range(STRIDE // 2, CELLS, STRIDE)]


def naive_velocity(values, samples, rng):
    """The entrywise gradient flow of (alpha, gamma, rho) by sampling, straight from the model."""
    D, C, nu, p = values["D"], values["C"], values["nu"], 3
    q = values["qD/C^2"] * C**2 / D
    law = [q / 2, q / 2, 1 - q]
    s = rng.choice([1.0, -1.0, 0.0], p=law, size=(samples, D // C, C))
    s[:, 0, :] = 1.0
    own = s.sum(axis=2, keepdims=True)  # the sum of each set
    whole = own.sum(axis=1, keepdims=True)

    def velocity(_, state):
        alpha, gamma, rho = state
        weights = np.exp([1.0, gamma, rho])  # beta = tau = 1
        total = weights[0] + (C - 1) * weights[1] + (D - C) * weights[2]
        Lambda, Gamma, Xi = weights / total
        inner, outer = own - s, whole - own
        mixed = Lambda * s + Gamma * inner + Xi * outer
        O = D * alpha * mixed  # noqa: E741 - the paper's symbol
        F = (O**p + nu * O).sum(axis=(1, 2))
        pull = expit(-F)[:, None, None] * (p * O ** (p - 1) + nu)
        d_alpha = -(pull * D * mixed).sum(axis=(1, 2)).mean()
        within = Gamma * (inner - (C - 1) * mixed)  # d mixed / d gamma
        across = Xi * (outer - (D - C) * mixed)
        d_gamma = -(pull * D * alpha * within).sum(axis=(1, 2)).mean() / (D * (C - 1))
        d_rho = -(pull * D * alpha * across).sum(axis=(1, 2)).mean() / (D * (D - C))
        return -np.array([d_alpha, d_gamma, d_rho])

    return velocity


def naive_cell(values, samples=4096):
    """One cell of the naive sweep: its final state."""
    rng = np.random.default_rng(np.random.SeedSequence(0))
    start = [values["nu"] ** 0.5, 0.0, 0.0]
    velocity = naive_velocity(values, samples, rng)
    run = solve_ivp(
        velocity, (0.0, values["horizon"]), start, method="LSODA", rtol=1e-6, atol=1e-11
    )
    return run.y[:, -1]


def sweep_cells(chosen):
    theory = load("positional")
    return [cells.measure_cell(theory, values) for values in chosen]


def spent(function, *arguments):
    began = process_time()
    result = function(*arguments)
    return result, process_time() - began


@pytest.mark.benchmark(group="1,000-cell map")
def test_sweep(benchmark):
    chosen = subset() if benchmark.enabled else subset()[::9]
    cells.compile_kernels(load("positional"))
    sweep_cells([chosen[0], chosen[-1]])  # loads them: both methods
    rows, seconds = benchmark.pedantic(spent, args=(sweep_cells, chosen), rounds=1)
    assert all(row["status"] == "completed" for row in rows)
    each = seconds / len(chosen)
    benchmark.extra_info["CPU seconds per cell"] = each
    benchmark.extra_info["1,000 cells on two cores, extrapolated (s)"] = each * CELLS / CORES
    if benchmark.enabled:
        assert each * CELLS / CORES < GOAL


@pytest.mark.benchmark(group="1,000-cell map")
def test_same_sweep_with_scipy_and_numpy(benchmark):
    chosen = (
        subset()[::9]
        if benchmark.enabled
        else [{**SETTINGS, "horizon": 1.0, "qD/C^2": 0.1, "nu": 0.01}]
    )
    _, seconds = benchmark.pedantic(
        spent, args=(lambda some: [naive_cell(values) for values in some], chosen), rounds=1
    )
    each = seconds / len(chosen)
    benchmark.extra_info["CPU seconds per cell"] = each
    benchmark.extra_info["1,000 cells on two cores, extrapolated (s)"] = each * CELLS / CORES


def test_peer_solves_the_same_problem():

    values = {**SETTINGS, "D": 16, "C": 4, "qD/C^2": 0.1, "nu": 0.01, "horizon": 1.0}
    state = naive_cell(values, samples=20_000)
    row = load("positional").measure(load("positional").build(values))
    expected = [row[name] for name in ("alpha", "gamma", "rho")]
    assert state == pytest.approx(expected, rel=0.05, abs=1e-5)
