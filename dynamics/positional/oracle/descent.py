"""The full ``D x D`` model of Jelassi et al. (2022): exact population gradient and its own descent.

The oracle for the reduced dynamics (Lemmas 4.1 and 4.2). It shares no code with them and assumes
none of their symmetries; `full_expectation` says what is exact.
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
        Attention scores (D, D), used as given (diagonal too), and value vector (d,).
    w_star
        Feature, a unit vector (d,).
    partition
        Sets, (L, C) patch indices; ``None`` means contiguous blocks.

    Returns
    -------
    loss, dA, dv
        A float, (D, D) with zero diagonal (the diagonal is not trained), and (d,).

    Raises
    ------
    ParameterError
        One sentence on the argument at fault.
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
    """Return ``(A, v)`` on the invariant manifold of Lemmas 4.1 and 4.2.

    ``v = alpha w*`` (d,); ``A`` (D, D) holds ``diagonal`` (``None``: ``beta``) on the diagonal,
    ``gamma`` within sets, ``rho`` between them.
    """
    alpha, gamma, rho = (finite(name, value) for name, value in zip(State._fields, state))
    same = _same_set(problem, checked_partition(problem, partition))
    A = np.where(same, gamma, rho)
    np.fill_diagonal(A, problem.beta if diagonal is None else finite("diagonal", diagonal))
    return A, alpha * unit_vector("w_star", w_star, problem.dimension)


def project(
    problem: Problem, A: ArrayLike, v: ArrayLike, w_star: ArrayLike, partition: Any = None
) -> State:
    """Return ``<v, w*>`` and the averages of ``A`` within sets (diagonal apart) and between them.

    A left inverse of `embed`; on the manifold of Lemmas 4.1 and 4.2 nothing is lost.
    """
    A = real_array("A", A, (problem.D, problem.D))
    v = real_array("v", v, (problem.dimension,))
    w = unit_vector("w_star", w_star, problem.dimension)
    same = _same_set(problem, checked_partition(problem, partition))
    inside = same & ~np.eye(problem.D, dtype=bool)
    return State(float(v @ w), float(A[inside].mean()), float(A[~same].mean()))


@dataclass(frozen=True)
class FullTrajectory:
    """Recorded states of full-matrix gradient descent; time = learning rate x step.

    ``step`` and ``time`` (T,), ``A`` (T, D, D), ``v`` (T, d), ``loss`` (T,); ``train_diagonal``
    tells whether the diagonal of ``A`` was trained.
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
        """Return the worst violation over the records of each thing Lemmas 4.1 and 4.2 assert.

        Absolute sizes, 0.0 where it holds exactly: largest ``|A_ij - A_ji|``; largest distance of
        ``v`` from span(w*); largest distance of an entry of ``A`` from its three-value projection
        (``beta``, ``gamma``, ``rho``); largest move of a diagonal entry since the start. Where the
        diagonal is trained ``beta`` is its average, and it may move.
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
        sets = self.w_star, self.partition
        return embed(self.problem, State(*state), *sets, diagonal=diagonal)[0]

    def leakage(self) -> float:
        """Return the largest of `violations`: how far the path left the manifold."""
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
    """Run plain gradient descent on the population risk of the full model.

    ``v <- v - learning_rate dL/dv`` and the same for every off-diagonal entry of ``A``, and for the
    diagonal too if ``train_diagonal`` (Simplification 3.1 freezes it). Every ``record_every``-th
    step is recorded, and always the first and the last state.

    Raises
    ------
    ParameterError
        As `population_gradient`; ``learning_rate`` not positive, ``steps`` or ``record_every`` not
        positive integers, or a state that cannot be evaluated on the way (the step is named).
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
    try:
        return population.evaluate(A, v)
    except ParameterError as error:
        raise ParameterError(f"gradient descent stopped at step {step}: {error}") from None


def _same_set(problem: Problem, partition: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which pairs of patches share a set, (D, D), the diagonal included."""
    owner = np.empty(problem.D, dtype=np.intp)
    owner[partition] = np.arange(problem.L)[:, None]
    return np.asarray(owner[:, None] == owner)
