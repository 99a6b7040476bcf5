"""The trajectory of the three scalars (alpha, gamma, rho), and what the paper says about it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynamics.core.invariants import Invariant, loss_non_increasing
from dynamics.core.trajectory import Trajectory
from dynamics.positional._sizes import row_sum
from dynamics.positional.attention import attention_along
from dynamics.positional.problem import State

_ROUNDING = 1e-13  # of a sum of D softmax weights


def _simplex(run: Any) -> np.ndarray:
    Lambda, Gamma, Xi, _ = run.attention.T
    return np.abs(row_sum(Lambda, Gamma, Xi, run.problem.C, run.problem.D) - 1.0)


def patch_association_fails(
    beta: float | np.ndarray, gamma: np.ndarray, rho: np.ndarray
) -> np.ndarray:
    """Return where Top_C of a row is not its set: exact comparison, a tie counts as failure."""
    return np.minimum(beta, gamma) <= rho


def _association(run: Any) -> np.ndarray:
    # At time 0, gamma = rho = 0 is a tie by Parametrization 3.1: the claim is about t > 0.
    return patch_association_fails(run.problem.beta, run.gamma[1:], run.rho[1:]).astype(float)


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
    graded=False,
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


@dataclass(frozen=True, eq=False)
class ReducedTrajectory(Trajectory):
    """States (alpha, gamma, rho) along a run on (P).

    Attributes
    ----------
    test_error, mean_sigmoid
        ``P[F <= 0]`` and ``E[s(-F)]`` at the records, shape (n,). By the Fourier method they cost
        a full evaluation each (up to 0.1 s), so a run does not hold them there: ask for
        ``population.observe(run)``.
    """

    observables: ClassVar[tuple[str, ...]] = ("test_error", "mean_sigmoid")

    @staticmethod
    def state(vector: np.ndarray) -> State:
        """Return (alpha, gamma, rho)."""
        return State(*vector.tolist())

    @property
    def alpha(self) -> np.ndarray:
        """Coefficient of v along w*, shape (n,)."""
        return self.states[:, 0]

    @property
    def gamma(self) -> np.ndarray:
        """Attention logit within a set, shape (n,)."""
        return self.states[:, 1]

    @property
    def rho(self) -> np.ndarray:
        """Attention logit across sets, shape (n,)."""
        return self.states[:, 2]

    @property
    def attention(self) -> np.ndarray:
        """Rows (Lambda, Gamma, Xi, G), shape (n, 4)."""
        return attention_along(self.problem, self.states)

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """What Section 4.1 and Theorem 4.1 say about every run."""
        return REDUCED_INVARIANTS

    @property
    def test_error(self) -> np.ndarray:
        """``P[F <= 0]`` at the records, shape (n,); raises AttributeError where not held."""
        return self.observation("test_error")

    @property
    def mean_sigmoid(self) -> np.ndarray:
        """``E[1 / (1 + e^F)]`` at the records, shape (n,); raises as :attr:`test_error` does."""
        return self.observation("mean_sigmoid")

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return what a dataset holds, test error included where the run holds it."""
        attention = self.attention
        meanings = {"test_error": "P[F <= 0]", "mean_sigmoid": "E[1/(1+exp(F))]"}
        return {
            "alpha": (self.alpha, "v = alpha w*"),
            "gamma": (self.gamma, "attention logit, same set"),
            "rho": (self.rho, "attention logit, different sets"),
            "loss": (self.loss, "population risk"),
            **{name: (values, meanings[name]) for name, values in self.observed.items()},
            "bound": (self.bound, "absolute error of loss and gradient"),
            **{
                name: (attention[:, index], f"{name} of Section 4.1")
                for index, name in enumerate(("Lambda", "Gamma", "Xi", "G"))
            },
        }
