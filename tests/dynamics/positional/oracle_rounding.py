"""Rounding errors of the full-matrix oracle, from the sizes of its terms."""

import sys
from typing import NamedTuple


class OracleRounding(NamedTuple):
    """Rounding errors of the loss, of <dL/dv, w*> and of an entry of dL/dA."""

    loss: float
    alpha: float
    entry: float


def oracle_rounding(problem, alpha):
    """Return bounds of the rounding errors at ``v = alpha w*``, for any logits.

    |O_i| <= m = kappa |alpha|. F has D terms act(O_i), dF/dalpha has D terms kappa act'(O_i), and
    dF/dA_ij has two terms kappa alpha act'(O_i) / tau. The logistic weight of each pattern changes
    by a quarter of the rounding error of F, which remains when the terms of F cancel.
    """
    m = problem.kappa * abs(alpha)
    slope = problem.p * m ** (problem.p - 1) + problem.nu
    size = problem.D * (m**problem.p + problem.nu * m)
    eps = sys.float_info.epsilon
    weight = eps * (1.0 + size / 4.0)
    return OracleRounding(
        loss=eps * (1.0 + size),
        alpha=weight * problem.D * problem.kappa * slope,
        entry=weight * 2.0 * m * slope / problem.tau,
    )
