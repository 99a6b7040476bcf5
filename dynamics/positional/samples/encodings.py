r"""Descent on (E) in the positional encodings: ``A = P^T P`` with P trained (Definition 2.2).

Simplification 3.1 trains A itself. Here the scores, including the diagonal, are the Gram matrix of
the encodings P (m, D), so that A is symmetric and positive semidefinite.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynamics.core.arrays import real_array
from dynamics.core.checks import finite, integer, require
from dynamics.positional.problem import Problem
from dynamics.positional.samples.gradient import EmpiricalRisk


class EncodingsGradient(NamedTuple):
    """Empirical risk, and its gradients in P (m, D) and in v (d,)."""

    loss: float
    dP: np.ndarray
    dv: np.ndarray


class EncodingsResult(NamedTuple):
    """Result of descent in the encodings.

    Attributes
    ----------
    P, v
        Encodings (m, D) and value vector (d,) at the end.
    A, v_path, loss
        Scores (steps + 1, D, D), value vectors (steps + 1, d) and losses (steps + 1,) at all steps.
    """

    P: np.ndarray
    v: np.ndarray
    A: np.ndarray
    v_path: np.ndarray
    loss: np.ndarray


def initial_encodings(
    problem: Problem, rng: np.random.Generator, m: int | None = None
) -> np.ndarray:
    r"""Return random encodings P (m, D) with entries :math:`\mathcal N(0,\sigma_A/m)`.

    This is the distribution below Parametrization 3.1: ``A_ii = |p_i|^2`` is about
    ``sigma_A = beta``, and ``A_ij`` is of the order ``sigma_A / sqrt(m)``.

    Parameters
    ----------
    problem
        Constants.
    rng
        Random generator.
    m
        Dimension of the encodings; ``None`` means D.

    Raises
    ------
    ParameterError
        If beta is negative, because A is a Gram matrix, or if m is not a positive integer.
    """
    require(problem.beta >= 0.0, "beta", problem.beta, "at least 0 for a Gram matrix")
    m = problem.D if m is None else integer("m", m, 1)
    return np.sqrt(problem.beta / m) * rng.standard_normal((m, problem.D))


def encodings_gradient(risk: EmpiricalRisk, P: ArrayLike, v: ArrayLike) -> EncodingsGradient:
    r"""Return the empirical risk at ``A = P^T P`` and its gradient.

    .. math:: \frac{\partial\hat{\mathcal L}}{\partial P} = P\,(G + G^\top),\qquad
       G_{ij} = \frac{\partial\hat{\mathcal L}}{\partial A_{ij}}

    with the diagonal of G included. The softmax does not change when a constant is added to a row,
    so that every row of G sums to 0. This determines the diagonal.

    Parameters
    ----------
    risk
        The risk on fixed samples.
    P, v
        Encodings (m, D) and value vector (d,).
    """
    P = np.asarray(P, dtype=float)
    require(P.ndim == 2, "the shape of P", P.shape, f"(m, {risk.problem.D})")
    P = real_array("P", P, (P.shape[0], risk.problem.D))
    loss, G, dv = risk.gradient(P.T @ P, np.asarray(v, dtype=float))
    np.fill_diagonal(G, -G.sum(axis=1))
    return EncodingsGradient(loss, P @ (G + G.T), dv)


def train_encodings(
    problem: Problem,
    X: np.ndarray,
    y: ArrayLike,
    *,
    initial: tuple[ArrayLike, ArrayLike],
    learning_rate_P: float,
    learning_rate_v: float,
    steps: int,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> EncodingsResult:
    """Run full-batch gradient descent on (E) in the encodings P and in v.

    Parameters
    ----------
    problem, X, y
        Constants, data (N, D, d) and labels (N,).
    initial
        Initial encodings (m, D) and value vector (d,).
    learning_rate_P, learning_rate_v
        Learning rates of P and of v.
    steps
        Number of steps.
    threads
        Largest number of threads; the result does not depend on it.
    progress
        Called with the completed fraction at each step.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    FloatingPointError
        If the run diverges; the message contains the step.
    """
    for name, rate in (("learning_rate_P", learning_rate_P), ("learning_rate_v", learning_rate_v)):
        require(finite(name, rate) > 0.0, name, rate, "greater than 0")
    steps = integer("steps", steps, 1)
    risk = EmpiricalRisk(problem, X, y, threads=threads)
    P = np.array(initial[0], dtype=float)
    v = real_array("v", initial[1], (problem.dimension,)).copy()
    scores, values, losses = [], [], []
    for step in range(steps + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = encodings_gradient(risk, P, v)
        if not all(bool(np.isfinite(part).all()) for part in gradient):
            raise FloatingPointError(
                f"descent in P diverged at step {step}: use smaller learning rates"
            )
        scores.append(P.T @ P)
        values.append(v)
        losses.append(gradient.loss)
        if step < steps:
            P = P - learning_rate_P * gradient.dP
            v = v - learning_rate_v * gradient.dv
        if progress is not None:
            progress(step / steps)
    return EncodingsResult(P, v, np.array(scores), np.array(values), np.array(losses))
