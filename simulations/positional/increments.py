"""Lemma 4.3 along a trajectory: exact increments, leading terms, and the factors of the lemma."""

from typing import NamedTuple

import numpy as np
import xarray

from dynamics import Population, Problem, State, Trajectory
from dynamics.core.schedule import thinned
from dynamics.positional import _emitted
from dynamics.positional.attention import attention_along
from simulations.positional import reference_runs as runs

#: Resolution of an increment of gamma, a difference of larger terms at a state known to 1e-10.
RESOLUTION = 1e-10


def increments(
    run: Trajectory, population: Population, first: float = 1e-3, records: int = 300
) -> xarray.Dataset:
    r"""Return the increments of gamma and rho per learning rate, with their leading terms.

    Parameters
    ----------
    run
        Trajectory with mean weights (`Population.observe`).
    population
        Population expectation. Late increments are small: it should be more accurate than the
        expectation of the run.
    first
        Earliest time, in addition to the start.
    records
        Largest number of times.

    Returns
    -------
    xarray.Dataset
        Over ``time``:

        ``gamma_increment``, ``rho_increment``
            Exact, :math:`-\partial L/\partial A_{ij}`.
        ``gamma_ratio``, ``rho_ratio``
            Exact increment over its leading term (the signal set alone, R = 0) times E[s(-F)].
        ``gamma_factor``
            Value of polylog(d) in :math:`\Delta\gamma=\eta\,\mathrm{polylog}(d)\,\alpha^p
            \Gamma G^{p-1}`.
        ``rho_factor``
            Smallest value of polylog(d) in :math:`|\rho(t+1)|\le|\rho(t)|+\eta\,
            \mathrm{polylog}(d)\,\alpha^p(1/D+\Gamma G^{p-1}/D)`; negative where \|rho\| falls.
        ``rho_share``
            Size of the increment of rho over the one of gamma; NaN if the latter is not resolved.
    """
    problem = run.problem
    constants = (
        float(problem.C),
        float(problem.D),
        problem.kappa,
        problem.tau,
        problem.p,
        problem.nu,
    )
    chosen = [i for i in thinned(run.time.size, records) if i == 0 or run.time[i] >= first]
    factors = lemma_factors(problem, run.states[chosen], population)
    alpha = run.alpha[chosen]
    Lambda, Gamma, Xi, _ = run.attention[chosen].T
    weight = run.mean_sigmoid[chosen]
    rows = np.array([alpha, Lambda, Gamma, Xi]).T
    leading_gamma = [_emitted.gamma_leading_term(*row[:3], *constants) for row in rows]
    leading_rho = [_emitted.rho_leading_term(*row, *constants) for row in rows]
    columns = factors._asdict() | {
        "gamma_ratio": factors.gamma_increment / (weight * leading_gamma),
        "rho_ratio": factors.rho_increment / (weight * leading_rho),
        "mean_sigmoid": weight,
    }
    return xarray.Dataset(
        {name: ("time", values) for name, values in columns.items()},
        coords={"time": run.time[chosen]},
        attrs={"problem": runs.describe(problem)},
    )


class Factors(NamedTuple):
    """Increments per learning rate and factors of Lemma 4.3 at states, (n,); see `increments`."""

    gamma_increment: np.ndarray
    rho_increment: np.ndarray
    gamma_factor: np.ndarray
    rho_factor: np.ndarray
    rho_share: np.ndarray


def lemma_factors(problem: Problem, states: np.ndarray, population: Population) -> Factors:
    """Return the factors of Lemma 4.3 at states (n, 3)."""
    D, p = float(problem.D), problem.p
    gradients = [population.gradient(State(*row)) for row in states.tolist()]
    d_gamma, d_rho = -np.array([(gradient.gamma, gradient.rho) for gradient in gradients]).T
    alpha, _, rho = states.T
    _, Gamma, _, G = attention_along(problem, states).T
    columns = zip(alpha, rho, Gamma, G, np.full(alpha.size, D), d_gamma, d_rho)
    factors = [_emitted.lemma_factors(*map(float, row), p) for row in columns]
    gamma_factor, rho_factor = np.array(factors).reshape(-1, 2).T
    resolved = np.abs(d_gamma) > RESOLUTION
    return Factors(
        gamma_increment=d_gamma,
        rho_increment=d_rho,
        gamma_factor=gamma_factor,
        rho_factor=rho_factor,
        rho_share=np.abs(d_rho) / np.where(resolved, np.abs(d_gamma), np.nan),
    )
