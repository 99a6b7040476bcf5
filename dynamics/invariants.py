"""Invariants of the learning dynamics as named objects that a trajectory can be asked about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_ROUNDING = 1e-13  # of a sum of D softmax weights


@dataclass(frozen=True)
class Invariant:
    """A statement that should hold along a run.

    ``violation`` maps a trajectory to one number per record, at most 0 where the statement holds;
    ``noise`` maps it to the size below which a positive number is numerical noise.
    """

    name: str
    statement: str
    place: str
    violation: Callable[[Any], np.ndarray]
    noise: Callable[[Any], float] = lambda trajectory: 0.0

    def worst(self, trajectory: Any) -> float:
        """Return the largest violation along the run, 0.0 where the statement holds throughout."""
        worst = float(np.max(self.violation(trajectory), initial=0.0))
        return worst if worst > self.noise(trajectory) else 0.0


def _simplex(run: Any) -> np.ndarray:
    Lambda, Gamma, Xi, _ = run.attention.T
    D, C = run.problem.D, run.problem.C
    return np.abs(Lambda + (C - 1) * Gamma + (D - C) * Xi - 1.0)


def patch_association_fails(beta: float, gamma: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Return where Top_C of a row is not its set: exact comparison, a tie counts as failure."""
    return np.minimum(beta, gamma) <= rho


def _association(run: Any) -> np.ndarray:
    # At time 0, gamma = rho = 0 is a tie by Parametrization 3.1: the claim is about t > 0.
    return patch_association_fails(run.problem.beta, run.gamma[1:], run.rho[1:]).astype(float)


def _loss_rise(run: Any) -> np.ndarray:
    return np.diff(run.loss) - run.bound[1:] - run.bound[:-1]


def _by_construction(run: Any) -> np.ndarray:
    return np.zeros(run.time.size)


simplex = Invariant(
    "simplex",
    "Lambda + (C-1) Gamma + (D-C) Xi = 1",
    "Section 4.1",
    _simplex,
    lambda run: _ROUNDING,
)
gamma_ge_rho = Invariant(
    "gamma >= rho",
    "gamma(t) >= rho(t) for all t >= 0",
    "after Lemma 4.3",
    lambda run: run.rho - run.gamma,
    lambda run: run.resolution,
)
patch_association = Invariant(
    "patch association",
    "Top_C(A_i) = S_l for every row i of S_l and all t > 0 (1 where it fails)",
    "Theorem 4.1, item 1",
    _association,
)
loss_non_increasing = Invariant(
    "loss non-increasing",
    "the population risk never rises along the flow",
    "Section 3, (P)",
    _loss_rise,
)
v_in_span = Invariant(
    "v in span(w*)",
    "v(t) = alpha(t) w* (holds by construction of a reduced run)",
    "Lemma 4.2",
    _by_construction,
)
symmetry_of_A = Invariant(
    "symmetry of A",
    "A(t) = A(t)^T (holds by construction of a reduced run)",
    "Lemma 4.1",
    _by_construction,
)

REDUCED_INVARIANTS = (
    simplex,
    gamma_ge_rho,
    patch_association,
    loss_non_increasing,
    v_in_span,
    symmetry_of_A,
)
