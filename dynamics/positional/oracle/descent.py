"""The full ``D x D`` model of Jelassi et al. (2022): exact population gradient and its own descent.

This is the oracle for the reduced dynamics (Lemmas 4.1 and 4.2). It shares no code with the reduced
model and assumes none of its symmetries. `FullPopulation` describes which quantities are exact.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.core.arrays import real_array, unit_vector
from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.positional.oracle.expectation import (
    MAX_PATTERNS,
    Array,
    FullPopulation,
    FullValue,
)
from dynamics.positional.partition import checked_partition
from dynamics.positional.problem import Problem, State

__all__ = [
    "MAX_PATTERNS",
    "FullPopulation",
    "FullTrajectory",
    "FullValue",
    "embed",
    "gradient_descent",
    "population_gradient",
    "project",
]


def population_gradient(
    problem: Problem, A: ArrayLike, v: ArrayLike, w_star: ArrayLike, partition: Any = None
) -> tuple[float, Array, Array]:
    r"""Return the population risk of the full model and its gradient, by exact enumeration.

    .. math:: \frac{\partial\mathcal L}{\partial A_{ij}} = -\frac{S_{ij}}{\tau}
       \mathbb E[y\,s(-yF)\,\mathrm{act}'(O_i)(\kappa\langle v,X_j\rangle-O_i)],\qquad
       \frac{\partial\mathcal L}{\partial v}
       = -\kappa\,\mathbb E\Big[y\,s(-yF)\sum_i\mathrm{act}'(O_i)\sum_jS_{ij}X_j\Big]

    (risk (P), Jelassi et al. 2022, Section 2), ``s`` the logistic sigmoid. Exact up to rounding for
    ``v`` in span(w*) or ``sigma = 0``; otherwise to first order in ``sigma^2 |v_perp|^2``, see
    `FullPopulation`. Build a `FullPopulation` once for many evaluations.

    Parameters
    ----------
    problem
        Constants; ``L 3^(D-C)`` at most `MAX_PATTERNS`.
    A, v
        Attention scores (D, D), including the diagonal, and value vector (d,).
    w_star
        Feature, a unit vector (d,).
    partition
        Sets, (L, C) patch indices; ``None`` means contiguous blocks.

    Returns
    -------
    loss : float
        Population risk.
    dA : ndarray, shape (D, D)
        Gradient in A, with zero diagonal: the diagonal is not trained.
    dv : ndarray, shape (d,)
        Gradient in v.

    Raises
    ------
    ParameterError
        If an argument is invalid, or if the state cannot be evaluated.
    """
    value = FullPopulation(problem, w_star, partition).evaluate(A, v)
    return value.loss, value.dA, value.dv


def embed(
    problem: Problem,
    state: State,
    w_star: ArrayLike,
    partition: Any = None,
    *,
    diagonal: float | None = None,
) -> tuple[Array, Array]:
    """Return the full weights ``(A, v)`` of a state (Lemmas 4.1 and 4.2).

    Parameters
    ----------
    problem
        Constants.
    state
        Order parameters.
    w_star
        Feature, a unit vector (d,).
    partition
        Sets, (L, C) patch indices; ``None`` means contiguous blocks.
    diagonal
        Diagonal of A; ``None`` means ``beta``.

    Returns
    -------
    A : ndarray, shape (D, D)
        Scores: ``gamma`` within sets, ``rho`` across sets, and the diagonal.
    v : ndarray, shape (d,)
        ``alpha w*``.
    """
    alpha, gamma, rho = (finite(name, value) for name, value in zip(State._fields, state))
    same = _same_set(problem, checked_partition(problem, partition))
    A = np.where(same, gamma, rho)
    np.fill_diagonal(A, problem.beta if diagonal is None else finite("diagonal", diagonal))
    return A, alpha * unit_vector("w_star", w_star, problem.dimension)


def project(
    problem: Problem, A: ArrayLike, v: ArrayLike, w_star: ArrayLike, partition: Any = None
) -> State:
    """Return the order parameters of full weights: the left inverse of `embed`.

    They are ``<v, w*>`` and the averages of ``A`` within sets, without the diagonal, and across
    sets.

    Parameters
    ----------
    problem
        Constants.
    A, v
        Attention scores (D, D) and value vector (d,).
    w_star
        Feature, a unit vector (d,).
    partition
        Sets, (L, C) patch indices; ``None`` means contiguous blocks.
    """
    A = real_array("A", A, (problem.D, problem.D))
    v = real_array("v", v, (problem.dimension,))
    w = unit_vector("w_star", w_star, problem.dimension)
    same = _same_set(problem, checked_partition(problem, partition))
    inside = same & ~np.eye(problem.D, dtype=bool)
    return State(float(v @ w), float(A[inside].mean()), float(A[~same].mean()))


@dataclass(frozen=True)
class FullTrajectory:
    """Recorded states of gradient descent in the full model.

    Attributes
    ----------
    problem, w_star, partition, learning_rate
        Arguments of the run.
    step, time
        Number of steps and learning rate x step, (T,).
    A, v, loss
        Scores (T, D, D), value vectors (T, d) and population risk (T,).
    train_diagonal
        Whether the diagonal of ``A`` was trained.
    """

    problem: Problem
    w_star: Array
    partition: NDArray[np.intp]
    learning_rate: float
    step: NDArray[np.int64]
    A: Array
    v: Array
    loss: Array
    train_diagonal: bool = False

    @property
    def time(self) -> Array:
        """Flow time of each record, learning rate x step."""
        return np.asarray(self.learning_rate * self.step, dtype=float)

    def states(self) -> Array:
        """Return the projections ``(alpha, gamma, rho)`` of the records, (T, 3)."""
        pairs = zip(self.A, self.v)
        return np.array(
            [project(self.problem, *pair, self.w_star, self.partition) for pair in pairs]
        )

    def diagonal(self) -> Array:
        """Return the average diagonal entry of ``A`` at the records, (T,)."""
        return np.asarray(np.diagonal(self.A, axis1=1, axis2=2).mean(axis=1))

    def violations(self) -> dict[str, float]:
        """Return the largest violation of each property in Lemmas 4.1 and 4.2.

        Returns
        -------
        dict
            Absolute violations, 0.0 where a property holds exactly: largest ``|A_ij - A_ji|``;
            largest distance of ``v`` from span(w*); largest distance of an entry of ``A`` from its
            projection to three values (``beta``, ``gamma``, ``rho``); largest change of a diagonal
            entry. For a trained diagonal ``beta`` is its average, and the last one is left out.
        """
        states = self.states()
        betas = self.diagonal() if self.train_diagonal else [None] * len(states)
        off_manifold = [
            np.abs(A - self._embedded(state, beta)).max()
            for A, state, beta in zip(self.A, states, betas)
        ]
        diagonal = np.diagonal(self.A, axis1=1, axis2=2)
        fixed = {"diagonal of A fixed": float(np.abs(diagonal - diagonal[0]).max())}
        v_perp = self.v - states[:, :1] * self.w_star
        return {
            "symmetry of A": float(np.abs(self.A - self.A.transpose(0, 2, 1)).max()),
            "v in span(w*)": float(np.linalg.norm(v_perp, axis=1).max()),
            "A takes three values": float(max(off_manifold)),
            **({} if self.train_diagonal else fixed),
        }

    def _embedded(self, state: Array, diagonal: float | None) -> Array:
        """Return the scores A of a projected state."""
        sets = self.w_star, self.partition
        return embed(self.problem, State(*state), *sets, diagonal=diagonal)[0]

    def leakage(self) -> float:
        """Return the largest of `violations`: the distance of the trajectory from the manifold."""
        return max(self.violations().values())


def gradient_descent(
    problem: Problem,
    A: ArrayLike,
    v: ArrayLike,
    w_star: ArrayLike,
    *,
    learning_rate: float,
    steps: int,
    partition: Any = None,
    record_every: int = 1,
    train_diagonal: bool = False,
) -> FullTrajectory:
    """Run gradient descent on the population risk of the full model.

    Parameters
    ----------
    problem
        Constants; ``L 3^(D-C)`` at most `MAX_PATTERNS`.
    A, v
        Initial attention scores (D, D) and value vector (d,).
    w_star
        Feature, a unit vector (d,).
    learning_rate, steps
        Step size (> 0) and number of steps (>= 1).
    partition
        Sets, (L, C) patch indices; ``None`` means contiguous blocks.
    record_every
        Number of steps between records. The first and the last state are always recorded.
    train_diagonal
        Whether to train the diagonal of A, which Simplification 3.1 freezes.

    Raises
    ------
    ParameterError
        If an argument is invalid, or if a state cannot be evaluated; the message contains the step.
    """
    learning_rate = finite("learning_rate", learning_rate)
    require(learning_rate > 0.0, "learning_rate", learning_rate, "greater than 0")
    steps = integer("steps", steps, 1)
    record_every = integer("record_every", record_every, 1)
    population = FullPopulation(problem, w_star, partition, train_diagonal=train_diagonal)
    A = real_array("A", A, (problem.D, problem.D))
    v = real_array("v", v, (problem.dimension,))
    records = []
    for step in range(steps + 1):
        value = population.evaluate(A, v) if step == 0 else _evaluate(population, A, v, step)
        if step % record_every == 0 or step == steps:
            records.append((step, A, v, value.loss))
        A = A - learning_rate * value.dA
        v = v - learning_rate * value.dv
    numbers, scores, values, losses = zip(*records)
    return FullTrajectory(
        problem=problem,
        w_star=population.w_star,
        partition=population.partition,
        learning_rate=learning_rate,
        step=np.array(numbers),
        A=np.stack(scores),
        v=np.stack(values),
        loss=np.array(losses),
        train_diagonal=train_diagonal,
    )


def _evaluate(population: FullPopulation, A: Array, v: Array, step: int) -> FullValue:
    """Return the value at a step; add the step to the message of an error."""
    try:
        return population.evaluate(A, v)
    except ParameterError as error:
        raise ParameterError(f"gradient descent stopped at step {step}: {error}") from None


def _same_set(problem: Problem, partition: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return whether two patches belong to the same set, boolean (D, D)."""
    owner = np.empty(problem.D, dtype=np.intp)
    owner[partition] = np.arange(problem.L)[:, None]
    return np.asarray(owner[:, None] == owner)
