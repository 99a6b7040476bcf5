"""How far the full-matrix oracle may be off by rounding: its summands, which may cancel."""

import sys
from typing import NamedTuple


class OracleRounding(NamedTuple):
    """Rounding of the loss, of <dL/dv, w*> and of an entry of dL/dA."""

    loss: float
    alpha: float
    entry: float


def oracle_rounding(problem, alpha):
    """Return eps times the largest sums of sizes at ``v = alpha w*``, for any logits.

    |O_i| <= m = kappa |alpha|. F has D terms act(O_i), dF/dalpha D terms kappa act'(O_i), and
    dF/dA_ij two terms of kappa alpha act'(O_i) / tau. The logistic weight of each pattern moves by
    a quarter of the rounding of F, which does not cancel where the terms of F do.
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
