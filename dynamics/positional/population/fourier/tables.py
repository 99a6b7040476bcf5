"""Contributions of a set to F and to its derivatives, for every total R.

Given ``R = r`` a set of type ``(a, b)`` contributes ``x(type; r)`` to F and ``y_k(type; r)`` to its
derivatives in alpha, gamma and rho, minus those of an empty set; ``base`` is F of the signal set
with L - 1 empty sets (notebook ``fourier_method``, Section 4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional._emitted import attention_weights, row_gradient
from dynamics.positional.problem import Problem, State

#: Bound of the effect of underflow on a number that is not multiplied later.
_LEAST = 1e-320


class Model(NamedTuple):
    """Attention weights at one state, and the constants of the problem.

    ``LG = Lambda - Gamma`` and ``GX = Gamma - Xi`` are computed without cancellation.
    """

    p: int
    alpha: float
    Lambda: float
    Gamma: float
    Xi: float
    LG: float
    GX: float
    D: float
    kappa: float
    tau: float
    nu: float

    @classmethod
    def at(cls, problem: Problem, state: State) -> Model:
        """Return the model of a problem at a state."""
        alpha, gamma, rho = map(float, state)
        D = float(problem.D)
        Lambda, Gamma, Xi, LG, GX = attention_weights(
            problem.beta, gamma, rho, problem.tau, problem.C, D
        )
        return cls(
            problem.p, alpha, Lambda, Gamma, Xi, LG, GX, D, problem.kappa, problem.tau, problem.nu
        )


class Tables(NamedTuple):
    """Contributions by total ``R = first, first + 1, ...``.

    ``x[type]`` and ``y[3, type]``: contributions to F and its derivatives; ``base[5]``: F and its
    three derivatives for the signal set with empty sets, and 1.
    """

    first: int
    x: np.ndarray
    y: np.ndarray
    base: np.ndarray


@kernel(inner=True)
def tabulate(law, model, reach):
    """Return the :class:`Tables` of the totals ``-reach ... reach``."""
    count, types = 2 * reach + 1, len(law.n)
    x, y, base = np.zeros((types, count)), np.zeros((3, types, count)), np.empty((5, count))
    tables = Tables(-reach, x, y, base)
    _add_patches(law, model, tables, np.empty((4, count)), np.empty((4, count)))
    return tables


@kernel(borrows=True)
def _add_patches(law, model, tables, rows, empty):
    """Fill ``base``, and add up ``x`` and ``y`` by patches; ``rows`` and ``empty`` are scratch."""
    C, first, x, y, base = law.C, tables.first, tables.x, tables.y, tables.base
    types, count = x.shape
    _patch(0, 0, first, C, model, empty)
    for j in range(4):
        for i in range(count):
            base[j, i] = (law.L - 1.0) * C * empty[j, i]
    for i in range(count):
        base[4, i] = 1.0
        empty[2, i] = empty[3, i] = 0.0  # no attention derivatives in excess
    for s in range(-1, 2):
        for n in range(max(s + 1 - C, -C), min(s + C - 1, C) + 1):
            _patch(s, n, first, C, model, rows)
            if s == 1 and n == C:
                for j in range(4):
                    _add(float(C), rows[j], base[j])
            for j in range(4):
                _add(-1.0, empty[j], rows[j])
            for k in range(types):
                patches = patches_of(law, k, s)
                if law.level_index[k] == n + C and patches > 0.0:
                    _add(patches, rows[0], x[k])
                    for j in range(3):
                        _add(patches, rows[1 + j], y[j, k])


@kernel(borrows=True)
def patches_of(law, k, s):
    """Return the number of patches with coefficient s in a set of type k."""
    if s == 0:
        return law.C - law.plus[k] - law.minus[k]
    return law.plus[k] if s == 1 else law.minus[k]


@kernel(borrows=True, fastmath=REORDER)
def _add(factor, row, target):
    """Add a multiple of a row to another."""
    for i in range(len(row)):
        target[i] += factor * row[i]


@kernel(borrows=True)
def _patch(s, n, first, C, model, rows):
    """Fill the activation of a patch and its derivatives for T = C + first, C + first + 1, ..."""
    F, F_alpha, F_gamma, F_rho = rows[0], rows[1], rows[2], rows[3]
    if model.p == 3:  # vectorized once the power is known to the compiler
        for i in range(len(F)):
            F[i], F_alpha[i], F_gamma[i], F_rho[i] = _activation(s, n, first + i, C, model, 3)
    else:
        for i in range(len(F)):
            F[i], F_alpha[i], F_gamma[i], F_rho[i] = _activation(s, n, first + i, C, model, model.p)


@kernel(inner=True)
def _activation(s, n, r, C, model, p):
    """Return the activation of a patch and its derivatives in alpha, gamma, rho."""
    return row_gradient(
        1.0 * s,
        1.0 * n,
        r + 1.0 * C,
        model.alpha,
        model.Lambda,
        model.Gamma,
        model.Xi,
        model.LG,
        model.GX,
        C,
        model.D,
        model.kappa,
        model.tau,
        p,
        model.nu,
    )


def underflow(problem: Problem, model: Model, crude: np.ndarray) -> list[float]:
    """Return bounds of the effect of underflow in ``row_gradient`` on loss, derivatives, E[s(-F)].

    With ``x = kappa |alpha|``, ``m = 1 + x^(p-1)`` and ``t`` for ``_LEAST``, the error of a patch's
    activation is ``t (1 + nu + p m)``, and that of its derivative in alpha ``t kappa p`` more. The
    error of the pull is ``4 t p^2 (1 + x) m``, of the turn ``dc`` it is ``t (1 + 8 D + 1 / tau)``;
    ``|pull|`` is at most ``2 p x m`` and ``|dc|`` at most ``2 same / tau``, ``2 others / tau``.
    ``crude`` contains products of these (:meth:`.method.FourierExpectation._crude`).
    """
    D, p, nu, tau, kappa = problem.D, problem.p, problem.nu, problem.tau, problem.kappa
    x = kappa * abs(model.alpha)
    m = 1.0 + x ** (p - 1)
    of_F = D * (_LEAST * (1.0 + nu + p * m))
    lost = [of_F * float(size) for size in crude]
    lost[0] = lost[4] = of_F
    lost[1] += of_F + D * p * (_LEAST * kappa)
    of_pull, of_turn = 4.0 * p * p * (_LEAST * (1.0 + x)) * m, _LEAST * (1.0 + 8.0 * D + 1.0 / tau)
    for k, weights in ((2, model.Gamma * problem.C), (3, model.Xi * D)):
        lost[k] += D * (2.0 * weights / tau * of_pull + 2.0 * p * x * m * of_turn + _LEAST)
    return lost
