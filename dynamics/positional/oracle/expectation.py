"""Expectations of the full ``D x D`` model: all data patterns, and the noise to leading order.

They are computed from the model (T) and the data of Assumption 1 alone. No symmetry is used: not
the three values of ``A``, not ``v = alpha w*``, and not that the model is odd in ``X``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.core.arrays import real_array, unit_vector
from dynamics.core.errors import ParameterError
from dynamics.positional.partition import checked_partition
from dynamics.positional.problem import Problem

Array = NDArray[np.float64]

MAX_PATTERNS = 2_000_000
"""Largest number ``L 3^(D-C)`` of data patterns that is enumerated."""

NEGLIGIBLE = 1e-12
"""Largest accepted ratio of the first neglected term of the noise expansion to the loss.

It is a tenth of the accuracy 1e-11 of comparisons of trajectories. The expansion parameter is then
about 1e-6. This is also the relative error of the gradient in ``v_perp``, the only component in
which the neglected term appears divided by ``|v_perp|^2``.
"""

_ENTRIES = 2**14  # entries of one work array, 128 kB: about fifteen of them fit into the cache


class FullValue(NamedTuple):
    """Loss, its gradient and the test error at full weights ``(A, v)``.

    Attributes
    ----------
    loss
        Population risk.
    dA, dv
        Gradient in A (D, D), with zero diagonal unless that is trained, and in v (d,).
    test_error
        ``P[y F <= 0]`` without noise, exact for ``v`` in span(w*). ``F`` within rounding of 0
        counts as an error.
    neglected
        Bound of the first neglected term of the noise expansion of the loss; 0 in span(w*).
    """

    loss: float
    dA: Array
    dv: Array
    test_error: float
    neglected: float


@dataclass
class _Sums:
    """Expectations, added up over chunks of patterns; ``H_i`` denotes a derivative in ``O_i``."""

    loss: float
    test_error: float
    rows: Array  # (D, D): E[H_i s_j] of the noise-free loss
    laplacian: float = 0.0  # E[Q], Q the Laplacian of the loss in the projected noise
    laplacian_rows: Array | float = 0.0  # (D, D): E[H_i s_j] of Q
    laplacian_explicit: Array | float = 0.0  # (D, D): the part of dQ/dS_ij not through O_i
    neglected: float = 0.0

    def add(self, other: _Sums) -> None:
        """Add the expectations of another chunk."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class FullPopulation:
    r"""Population risk of the full model and its gradient, for repeated evaluation.

    .. math:: F(X)=\sum_i \mathrm{act}(O_i),\quad
       O_i=\kappa\sum_j S_{ij}\langle v,X_j\rangle,\quad S=\mathrm{softmax}(A/\tau),\quad
       \mathcal L=\mathbb E\log(1+e^{-yF})

    (model (T) and population risk (P), Jelassi et al. 2022, Section 2) over both labels, every
    signal set and every one of the ``3^(D-C)`` sign patterns of the other patches.

    If ``v`` is in span(w*) or ``sigma = 0``, all results are exact up to rounding: ``F`` does not
    depend on the noise ``xi_j ~ N(0, sigma^2 (I - w* w*^T))``. A ``v`` within 16 machine epsilons
    of the span is treated as an element of it.

    Otherwise, with ``v = a w* + v_perp`` and ``t = sigma^2 |v_perp|^2``, the projections
    ``u_j = <v, xi_j>`` are independent N(0, t) and the loss is expanded to first order in ``t``,

    .. math:: \mathcal L = \mathbb E\,\ell(yF) + \tfrac t2\,\mathbb E[Q] + O(t^2),\qquad
       Q=\Delta_u \ell(yF) = \ell''(yF)|\nabla_u F|^2 + y\,\ell'(yF)\Delta_u F,

    :math:`\partial_{u_j}F=\kappa\sum_i\mathrm{act}'(O_i)S_{ij}`,
    :math:`\Delta_uF=\kappa^2\sum_i\mathrm{act}''(O_i)\sum_jS_{ij}^2`. ``dA`` and ``dv`` are the
    exact gradient of this expression. The errors of ``dA`` and of ``<dv, w*>`` are ``O(t^2)``. The
    part of ``dv`` along ``v_perp``, ``sigma^2 E[Q] v_perp``, has the relative error ``O(t)``. The
    ``t^2`` term of the loss is bounded at every evaluation and must not exceed `NEGLIGIBLE` times
    the noise-free loss.

    Parameters
    ----------
    problem
        Constants; ``L 3^(D-C)`` at most `MAX_PATTERNS`.
    w_star
        Feature, a unit vector, (d,).
    partition
        Sets, (L, C) patch indices; ``None`` means contiguous blocks.
    train_diagonal
        Whether the gradient includes the diagonal of ``A``, which Simplification 3.1 freezes.

    Raises
    ------
    ParameterError
        If there are too many patterns, or if ``w_star`` or ``partition`` is invalid.
    """

    def __init__(
        self,
        problem: Problem,
        w_star: ArrayLike,
        partition: Any = None,
        *,
        train_diagonal: bool = False,
    ) -> None:
        require_enumerable(problem)
        self.train_diagonal = train_diagonal
        self.problem = problem
        self.w_star = unit_vector("w_star", w_star, problem.dimension)
        self.partition = checked_partition(problem, partition)
        self._coefficients, self._labels, self._weights = _patterns(problem, self.partition)

    def evaluate(self, A: ArrayLike, v: ArrayLike) -> FullValue:
        """Return the loss, its gradient and the test error at ``A`` (D, D) and ``v`` (d,).

        Raises
        ------
        ParameterError
            If a shape is wrong, an entry is not finite, ``F`` overflows, or ``v`` is too far from
            span(w*) for the noise expansion (the message contains the largest allowed distance).
        """
        problem, w = self.problem, self.w_star
        A = real_array("A", A, (problem.D, problem.D))
        v = real_array("v", v, (problem.dimension,))
        a = float(v @ w)
        v_perp = v - a * w
        if np.abs(v_perp).max() <= 16.0 * np.finfo(float).eps * np.abs(v).max():
            v_perp = np.zeros_like(v)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = problem.noise**2 * float(v_perp @ v_perp)
            S = _softmax_rows(A / problem.tau)
            sums = self._expectations(S, a, variance)
            value = self._assemble(S, a, v_perp, variance, sums)
        if not all(np.all(np.isfinite(part)) for part in value):
            raise ParameterError(
                f"v with entries up to {np.abs(v).max():.3g} is not allowed: "
                f"x^{problem.p} overflows at x = kappa <v, X_j> with kappa = {problem.kappa:.3g}"
            )
        allowed = NEGLIGIBLE * sums.loss
        if value.neglected > allowed:
            distance = float(np.linalg.norm(v_perp))
            largest = distance * (allowed / value.neglected) ** 0.25
            raise ParameterError(
                f"v at distance {distance:.3g} from span(w_star) is not allowed: the noise "
                f"expansion holds up to distance {largest:.3g} there (any distance if sigma = 0)"
            )
        return value

    def _expectations(self, S: Array, a: float, variance: float) -> _Sums:
        """Return the expectations over all patterns, for ``a = <v, w*>`` and the variance t."""
        D = self.problem.D
        total = _Sums(0.0, 0.0, np.zeros((D, D)))
        size = max(1, _ENTRIES // D)
        for start in range(0, len(self._labels), size):
            part = slice(start, start + size)
            s = self._coefficients[:, part].astype(float)
            total.add(
                _chunk(self.problem, S, a, variance, s, self._labels[part], self._weights[part])
            )
        return total

    def _assemble(
        self, S: Array, a: float, v_perp: Array, variance: float, sums: _Sums
    ) -> FullValue:
        kappa, half = self.problem.kappa, 0.5 * variance
        rows = sums.rows + half * sums.laplacian_rows
        dS = kappa * a * rows + half * sums.laplacian_explicit
        dA = S * (dS - np.sum(S * dS, axis=1, keepdims=True)) / self.problem.tau
        if not self.train_diagonal:
            np.fill_diagonal(dA, 0.0)
        along = kappa * float(np.sum(S * rows))
        dv = along * self.w_star + self.problem.noise**2 * sums.laplacian * v_perp
        loss = sums.loss + half * sums.laplacian
        return FullValue(float(loss), dA, dv, float(sums.test_error), float(sums.neglected))


def _chunk(
    problem: Problem, S: Array, a: float, variance: float, s: Array, y: Array, weight: Array
) -> _Sums:
    """Return the sums over patterns: coefficients s (D, N), labels (N,), probabilities (N,)."""
    kappa, eps = problem.kappa, np.finfo(float).eps
    O = (kappa * a * S) @ s  # noqa: E741 - the paper's name
    slope = _activation(problem, O, 1)
    margin = y * _activation(problem, O, 0).sum(axis=0)
    small = np.exp(-np.abs(margin))
    wrong = np.where(margin > 0.0, small, 1.0) / (1.0 + small)  # sigmoid(-yF) = -ell'
    # Forward error of F: |O_i| <= kappa |a|, and O_i has the error D eps relative to this bound.
    rounding = 4.0 * problem.D * eps * kappa * abs(a) * slope.sum(axis=0)
    sums = _Sums(
        loss=weight @ (np.log1p(small) + np.maximum(-margin, 0.0)),
        test_error=weight @ (margin <= rounding),
        rows=-(weight * y * wrong * slope) @ s.T,
    )
    if variance > 0.0:
        right = np.where(margin > 0.0, 1.0, small) / (1.0 + small)
        derivatives = [slope] + [_activation(problem, O, order) for order in (2, 3, 4)]
        h = kappa * np.sqrt(variance * np.sum(S * S, axis=1))  # noise of O_i, (D,)
        sums.neglected = float((weight * wrong) @ _fourth_order(derivatives, h))
        _add_laplacian(kappa, S, derivatives, s, y, weight, wrong, right, sums)
    return sums


def _add_laplacian(
    kappa: float,
    S: Array,
    derivatives: list[Array],
    s: Array,
    y: Array,
    weight: Array,
    wrong: Array,
    right: Array,
    sums: _Sums,
) -> None:
    r"""Add ``E[Q]`` and its derivatives, ``Q = ell'' |grad F|^2 + y ell' Delta F`` in ``u``.

    With :math:`\ell'=-s(-m)`, :math:`\ell''=s(m)s(-m)`, :math:`\ell'''=\ell''(s(-m)-s(m))` and
    :math:`r_i=\sum_jS_{ij}^2`,

    .. math:: \partial_{O_i}Q = (y\,\ell'''|\nabla F|^2+\ell''\Delta F)\,\mathrm{act}'_i
       + 2\kappa\,\ell''\,\mathrm{act}''_i\,(S\nabla F)_i + y\,\ell'\kappa^2\,\mathrm{act}'''_i r_i
    """
    first, second, third = derivatives[:3]
    squares = np.sum(S * S, axis=1)
    gradient = (kappa * S.T) @ first  # (D, N)
    norm = np.einsum("jn,jn->n", gradient, gradient)
    laplacian = kappa**2 * (squares @ second)
    curvature = weight * wrong * right
    signed = -weight * y * wrong
    sums.laplacian = float(curvature @ norm + signed @ laplacian)
    H = curvature * (y * (wrong - right) * norm + laplacian) * first
    H += (2.0 * kappa * curvature) * second * (S @ gradient)
    H += np.outer(kappa**2 * squares, signed) * third
    sums.laplacian_rows = H @ s.T
    sums.laplacian_explicit = 2.0 * kappa * (curvature * first) @ gradient.T
    sums.laplacian_explicit += 2.0 * kappa**2 * S * (second @ signed)[:, None]


def _fourth_order(derivatives: list[Array], h: Array) -> Array:
    r"""Return bounds (N,) of the fourth-order noise term of each pattern, divided by ``s(-yF)``.

    ``|ell^(k)| <= s(-yF)`` for ``k = 1 .. 4``, so ``s(-yF) exp(phi)`` majorizes the expansion, with
    :math:`\phi_k=\sum_i|\mathrm{act}^{(k)}(O_i)|h_i^k/k!`; Gaussian products of order four have
    absolute mean at most ``3 h_i h_j h_k h_l``.
    """
    phi1, phi2, phi3, phi4 = (
        (h**k / math.factorial(k)) @ np.abs(derivative)
        for k, derivative in enumerate(derivatives, start=1)
    )
    total = phi4 + phi1 * phi3 + 0.5 * phi2**2 + 0.5 * phi1**2 * phi2 + phi1**4 / 24.0
    return np.asarray(3.0 * total)


def _activation(problem: Problem, x: Array, order: int) -> Array:
    """Return a derivative of ``act(x) = x^p + nu x``; order 0 is the function itself."""
    p = problem.p
    factor = float(math.perm(p, order))
    if factor == 0.0:
        return np.zeros_like(x)
    value = factor * _power(x, p - order)
    if order == 0:
        value += problem.nu * x
    elif order == 1:
        value += problem.nu
    return value


def _power(x: Array, n: int) -> Array:
    """Return ``x**n`` by repeated squaring, several times faster than NumPy's general power."""
    if n <= 1:
        return x if n else np.ones_like(x)
    half = _power(x, n // 2)
    return half * half * x if n % 2 else half * half


def _softmax_rows(scores: Array) -> Array:
    """Return the softmax of each row."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _patterns(problem: Problem, partition: NDArray[np.intp]) -> tuple[NDArray[Any], Array, Array]:
    """Return coefficients of w* (D, N), labels (N,), probabilities (N,); ``N = 2 L 3^(D-C)``."""
    free = problem.D - problem.C
    count = 3**free
    signs = np.empty((free, count), dtype=np.int8)
    for k in range(free):
        period = np.repeat(np.array([-1, 0, 1], dtype=np.int8), 3**k)
        signs[k] = np.tile(period, 3 ** (free - k - 1))
    nonzero = np.count_nonzero(signs, axis=0)
    probability = (0.5 * problem.q) ** nonzero * (1.0 - problem.q) ** (free - nonzero)
    coefficients = np.empty((problem.D, problem.L, 2, count), dtype=np.int8)
    for number, signal_set in enumerate(partition):
        others = np.setdiff1d(np.arange(problem.D), signal_set)
        for label, y in enumerate((1, -1)):
            coefficients[signal_set, number, label] = y
            coefficients[others, number, label] = signs
    labels = np.tile(np.repeat([1.0, -1.0], count), problem.L)
    weights = np.tile(probability / (2 * problem.L), 2 * problem.L)
    return coefficients.reshape(problem.D, -1), labels, weights


def require_enumerable(problem: Problem) -> None:
    """Raise ParameterError if the problem has more than `MAX_PATTERNS` patterns."""
    free = problem.D - problem.C
    if problem.L * 3 ** min(free, 20) > MAX_PATTERNS:
        raise ParameterError(
            f"D = {problem.D}, C = {problem.C} is not allowed: the full-matrix oracle enumerates "
            f"L 3^(D-C) = {problem.L} * 3^{free} patterns, which must be at most {MAX_PATTERNS}"
        )
