"""Attention weights on the invariant manifold (Jelassi et al. 2022, Section 4.1)."""

from typing import NamedTuple

import numpy as np

from dynamics.positional._emitted import attention_weights
from dynamics.positional._sizes import set_mass
from dynamics.positional.problem import Problem, State


class Attention(NamedTuple):
    """Softmax weights of the reduced model (Section 4.1).

    Attributes
    ----------
    Lambda, Gamma, Xi
        Weight of a patch on itself, on another patch of its set, and on a patch of another set.
    G
        Attention of a patch to its set times D: ``D (Lambda + (C-1) Gamma)``.
    """

    Lambda: float
    Gamma: float
    Xi: float
    G: float


def attention(problem: Problem, state: State) -> Attention:
    r"""Return the softmax weights on the diagonal, within a set and across sets.

    :math:`\Lambda=e^{\beta/\tau}/Z,\ \Gamma=e^{\gamma/\tau}/Z,\ \Xi=e^{\rho/\tau}/Z` with
    :math:`Z=e^{\beta/\tau}+(C-1)e^{\gamma/\tau}+(D-C)e^{\rho/\tau}` (Section 4.1).

    Parameters
    ----------
    problem
        Constants of the model.
    state
        Order parameters; any finite values, without overflow.

    Returns
    -------
    Attention
        Lambda, Gamma, Xi and G.
    """
    C, D = float(problem.C), float(problem.D)
    Lambda, Gamma, Xi, _, _ = attention_weights(
        problem.beta, float(state.gamma), float(state.rho), problem.tau, C, D
    )
    return Attention(Lambda, Gamma, Xi, set_mass(Lambda, Gamma, C, D))


def attention_along(problem: Problem, states: np.ndarray) -> np.ndarray:
    """Return rows (Lambda, Gamma, Xi, G), shape (n, 4), for rows (alpha, gamma, rho)."""
    return np.array([attention(problem, State(*row)) for row in states.tolist()]).reshape(-1, 4)
