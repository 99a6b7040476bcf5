"""What is drawn in ``figures/span_stability.py``."""

from __future__ import annotations

import numpy as np
import xarray

from dynamics import Problem, State
from dynamics.positional.oracle import descent as full
from simulations.positional import runs

_HORIZON = 1e4
_SIZE = 1e-5  # of the component beside the span, relative to alpha: within the noise expansion


def gather(problem: Problem, points: int, seed: int = 0) -> xarray.Dataset:
    r"""Return the rate :math:`-\langle\partial_v L,u\rangle/\epsilon` at v = alpha w* + epsilon u.

    ``growth`` is the factor by which the component has grown, the exponential of the integral.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(problem.D,)))
    w_star = runs.random_direction(rng, problem.dimension)
    u = rng.normal(size=problem.dimension)
    u -= (u @ w_star) * w_star
    u /= np.linalg.norm(u)
    model = full.FullPopulation(problem, w_star)
    flow = runs.flow(problem, 1e-10, _HORIZON)
    times = np.concatenate([[0.0], np.geomspace(1e-4, _HORIZON, points)])
    rates, alphas, own = [], [], []
    for time in times:
        state = State(*flow.at(float(time)))
        A, v = full.embed(problem, state, w_star)
        size = _SIZE * state.alpha
        dv = model.evaluate(A, v + size * u).dv
        rates.append(-(dv @ u) / size)
        own.append(-(dv @ w_star) / state.alpha)
        alphas.append(state.alpha)
    rate = np.array(rates)
    integral = np.concatenate([[0.0], np.cumsum(np.diff(times) * (rate[1:] + rate[:-1]) / 2)])
    return xarray.Dataset(
        {
            "rate": ("time", rate, {"long_name": "d log|v_perp| / dt"}),
            "alpha_rate": ("time", np.array(own), {"long_name": "d log(alpha) / dt"}),
            "growth": ("time", np.exp(integral)),
            "alpha": ("time", np.array(alphas)),
        },
        coords={"time": times},
    )
