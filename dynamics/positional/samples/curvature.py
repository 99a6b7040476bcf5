"""Second derivatives of the empirical risk (E), and the largest learning rate that is stable."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, eigsh

from dynamics.core.arrays import real_array
from dynamics.core.checks import finite, require
from dynamics.core.errors import ParameterError
from dynamics.positional.problem import Problem
from dynamics.positional.samples.data import check_data
from dynamics.positional.samples.gradient import softmax_rows, through_softmax

_BLOCK_ENTRIES = 2**21  # entries of X per block
_BLOCKS = ("both", "A", "v")


class Stability(NamedTuple):
    """Stability limit of gradient descent.

    Attributes
    ----------
    curvature
        Largest eigenvalue of the Hessian.
    learning_rate
        Largest stable learning rate ``2 (1 + momentum) / curvature``; infinite if the curvature is
        not positive.
    """

    curvature: float
    learning_rate: float


def hessian_product(
    problem: Problem,
    X: np.ndarray,
    y: np.ndarray,
    A: np.ndarray,
    v: np.ndarray,
    dA: np.ndarray,
    dv: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the derivative of the gradient of (E) along ``(dA, dv)``.

    It is computed by forward differentiation, written with a dot, of every line of the gradient:
    :math:`\dot O = \kappa(\dot u S^\top + u\dot S^\top)`, :math:`\dot F=\sum_i\mathrm{act}'\dot
    O_i`, :math:`\dot W = -s(1-s)\dot F\,\mathrm{act}' + s\,\mathrm{act}''\dot O`, and so on. The
    diagonal of A is fixed: the diagonal of ``dA`` is ignored, that of the result is zero.

    Parameters
    ----------
    problem, X, y
        Constants, data (N, D, d) and labels (N,).
    A, v
        Attention scores (D, D) and value vector (d,).
    dA, dv
        Direction, (D, D) and (d,).

    Returns
    -------
    tuple of ndarray
        Derivatives of the gradient in A (D, D) and in v (d,).
    """
    N, D, d = X.shape
    p, nu, kappa, tau = problem.p, problem.nu, problem.kappa, problem.tau
    dA = dA - np.diag(np.diag(dA))
    S = softmax_rows(A / tau)
    dS = (S / tau) * (dA - (S * dA).sum(axis=1, keepdims=True))
    weights = np.stack([v, dv], axis=1)
    M, dM, dG = np.zeros((D, D)), np.zeros((D, D)), np.zeros(d)
    block = max(1, _BLOCK_ENTRIES // (D * d))
    for first in range(0, N, block):
        part, sign = X[first : first + block], y[first : first + block, None]
        rows = part.reshape(-1, d)
        both = (rows @ weights.astype(X.dtype)).astype(float)
        u, du = (both[:, k].reshape(-1, D) * sign for k in (0, 1))
        O, dO = kappa * (u @ S.T), kappa * (du @ S.T + u @ dS.T)  # noqa: E741 - the paper's name
        slope, second = p * O ** (p - 1) + nu, p * (p - 1) * O ** (p - 2)
        F = (O**p + nu * O).sum(axis=1)
        s = 0.5 - 0.5 * np.tanh(0.5 * F)  # 1 / (1 + e^F) without overflow
        ds = -s * (1.0 - s) * (slope * dO).sum(axis=1)
        W, dW = s[:, None] * slope, ds[:, None] * slope + s[:, None] * second * dO
        M += W.T @ u
        dM += dW.T @ u + W.T @ du
        dZ = (dW @ S + W @ dS) * sign
        dG += dZ.reshape(-1).astype(X.dtype) @ rows
    factor = -kappa / N
    inner = (S * M).sum(axis=1, keepdims=True)
    change = through_softmax(S, factor * dM, tau)
    change += factor / tau * (dS * (M - inner) - S * (dS * M).sum(axis=1, keepdims=True))
    np.fill_diagonal(change, 0.0)
    return change, factor * dG


def stability(
    problem: Problem,
    X: np.ndarray,
    y: ArrayLike,
    A: ArrayLike,
    v: ArrayLike,
    *,
    block: str = "both",
    relative: tuple[float, float] = (1.0, 1.0),
    momentum: float = 0.0,
) -> Stability:
    """Return the largest eigenvalue of the Hessian of (E) and the largest stable learning rate.

    The eigenvalue is computed by Lanczos iteration with exact Hessian-vector products.

    Parameters
    ----------
    problem, X, y
        Constants, data (N, D, d) and labels (N,).
    A, v
        Attention scores (D, D) and value vector (d,).
    block
        ``"A"`` (off-diagonal scores), ``"v"``, or ``"both"`` jointly.
    relative
        Rates of A and of v as multiples of the returned learning rate. The curvature refers to
        coordinates in which both have the same rate.
    momentum
        Heavy-ball momentum of the descent.

    Raises
    ------
    ParameterError
        If an argument is outside its domain or F overflows.
    """
    y = np.asarray(y)
    check_data(problem, X, y)
    D, d = problem.D, problem.dimension
    A, v = real_array("A", A, (D, D)), real_array("v", v, (d,))
    require(block in _BLOCKS, "block", block, f"one of {', '.join(_BLOCKS)}")
    require(0.0 <= finite("momentum", momentum) < 1.0, "momentum", momentum, "in [0, 1)")
    root_A, root_v = (np.sqrt(finite("relative", rate)) for rate in relative)
    require(min(root_A, root_v) > 0.0, "relative", relative, "two positive numbers")
    off = ~np.eye(D, dtype=bool)
    in_A, in_v = D * (D - 1) * (block != "v"), d * (block != "A")

    def product(x: np.ndarray) -> np.ndarray:
        x = x.reshape(-1)
        dA, dv = np.zeros((D, D)), np.zeros(d)
        if in_A:
            dA[off] = root_A * x[:in_A]
        if in_v:
            dv = root_v * x[in_A:]
        to_A, to_v = hessian_product(problem, X, y, A, v, dA, dv)
        return np.concatenate([root_A * to_A[off][:in_A], root_v * to_v[:in_v]])

    size = in_A + in_v
    start = np.random.default_rng(0).standard_normal(size)
    with np.errstate(over="ignore", invalid="ignore"):
        image = product(start)
    if not np.isfinite(image).all():
        raise ParameterError(
            f"v with entries up to {np.abs(v).max():.3g} is not allowed: F overflows"
        )
    if size == 1 or not image.any():
        curvature = float(image[0] / start[0])
    else:
        operator = LinearOperator((size, size), matvec=product, dtype=float)
        curvature = float(eigsh(operator, 1, which="LA", v0=start, tol=1e-6)[0][0])
    rate = 2.0 * (1.0 + momentum) / curvature if curvature > 0.0 else float("inf")
    return Stability(curvature, rate)
