"""Trajectories of the order parameters (alpha, gamma, rho), and their invariants."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynamics.core.invariants import Invariant, loss_non_increasing
from dynamics.core.trajectory import Trajectory
from dynamics.positional._sizes import row_sum
from dynamics.positional.attention import attention_along
from dynamics.positional.problem import State

_ROUNDING = 1e-13  # rounding error of a sum of D softmax weights


def _simplex(run: Any) -> np.ndarray:
    """Return how far the softmax weights of a row are from adding up to 1, shape (n,)."""
    Lambda, Gamma, Xi, _ = run.attention.T
    return np.abs(row_sum(Lambda, Gamma, Xi, run.problem.C, run.problem.D) - 1.0)


def patch_association_fails(
    beta: float | np.ndarray, gamma: np.ndarray, rho: np.ndarray
) -> np.ndarray:
    """Return where Top_C of a row is not its set (Theorem 4.1), shape (n,), boolean.

    The comparison is exact, and a tie counts as failure.
    """
    return np.minimum(beta, gamma) <= rho


def _association(run: Any) -> np.ndarray:
    """Return 1 at the records after time 0 where the patch association fails, 0 elsewhere.

    At time 0, gamma = rho = 0 is a tie by Parametrization 3.1; the claim is about t > 0.
    """
    return patch_association_fails(run.problem.beta, run.gamma[1:], run.rho[1:]).astype(float)


def _by_construction(run: Any) -> np.ndarray:
    """Return no violation at any record, shape (n,)."""
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
    """Trajectory of (alpha, gamma, rho) on the population risk.

    Attributes
    ----------
    alpha, gamma, rho
        Order parameters at the records, shape (n,).
    attention
        Rows (Lambda, Gamma, Xi, G) at the records, shape (n, 4).
    test_error, mean_sigmoid
        ``P[F <= 0]`` and ``E[1 / (1 + e^F)]`` at the records, shape (n,). With the Fourier method
        each record needs a full evaluation (up to 0.1 s), so that solvers do not compute them:
        use the trajectory returned by ``population.observe(trajectory)``.
    """

    observables: ClassVar[tuple[str, ...]] = ("test_error", "mean_sigmoid")

    @staticmethod
    def state(vector: np.ndarray) -> State:
        """Return an array (alpha, gamma, rho) as a state."""
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
        """Properties that Section 4.1 and Theorem 4.1 state for every trajectory."""
        return REDUCED_INVARIANTS

    @property
    def test_error(self) -> np.ndarray:
        """``P[F <= 0]`` at the records, shape (n,); AttributeError if it was not computed."""
        return self.observation("test_error")

    @property
    def mean_sigmoid(self) -> np.ndarray:
        """``E[1 / (1 + e^F)]`` at the records, shape (n,); AttributeError if not computed."""
        return self.observation("mean_sigmoid")

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return the columns of a dataset, with the test error if it was computed.

        Returns
        -------
        dict
            From each column name to its values and its description.
        """
        attention = self.attention
        descriptions = {"test_error": "P[F <= 0]", "mean_sigmoid": "E[1/(1+exp(F))]"}
        return {
            "alpha": (self.alpha, "v = alpha w*"),
            "gamma": (self.gamma, "attention logit, same set"),
            "rho": (self.rho, "attention logit, different sets"),
            "loss": (self.loss, "population risk"),
            **{name: (values, descriptions[name]) for name, values in self.observed.items()},
            "bound": (self.bound, "absolute error of loss and gradient"),
            **{
                name: (attention[:, index], f"{name} of Section 4.1")
                for index, name in enumerate(("Lambda", "Gamma", "Xi", "G"))
            },
        }
