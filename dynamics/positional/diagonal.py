r"""A trained diagonal of A: a fourth order parameter beta(t) in addition to alpha, gamma and rho.

Simplification 3.1 of Jelassi et al. (2022) freezes A_ii = sigma_A. Under the same entrywise
descent all A_ii stay equal to one value beta, and (proved in `symbolic.positional.diagonal`)

.. math:: \frac{\partial\mathcal L}{\partial A_{ii}}
   = -\frac1D\Big(\frac{\partial\ell}{\partial\gamma}+\frac{\partial\ell}{\partial\rho}\Big),
   \qquad \beta+(C-1)\gamma+(D-C)\rho = \text{constant},

because the softmax does not change when a constant is added to a row of A. For the same reason the
expectation at the frozen diagonal ``problem.beta`` is enough: the state (alpha, gamma, rho, beta)
has the loss and the gradient of (alpha, gamma - b, rho - b) there, b = beta - ``problem.beta``.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.invariants import Invariant, loss_non_increasing
from dynamics.core.risk import Certified, Risk
from dynamics.positional._sizes import row_sum
from dynamics.positional.attention import attention_along
from dynamics.positional.population.population import Population
from dynamics.positional.population.value import Value
from dynamics.positional.problem import Problem, State
from dynamics.positional.slow_manifold import SlowManifold
from dynamics.positional.trajectory import (
    ReducedTrajectory,
    gamma_ge_rho,
    patch_association_fails,
    simplex,
)

_ROUNDING = 2.0 * float(np.finfo(float).eps)  # relative error of a row sum of A in one step


class DiagonalState(NamedTuple):
    """Order parameters of the model with a trained diagonal.

    Attributes
    ----------
    alpha
        Coefficient of the value vector, ``v = alpha w*``.
    gamma, rho
        Attention logits ``A_ij`` of two different patches in the same set, and in different sets.
    beta
        Attention logit ``A_ii`` of a patch to itself.
    """

    alpha: float
    gamma: float
    rho: float
    beta: float


class DiagonalProblem(Problem):
    """The constants of a problem whose diagonal starts at ``beta`` and is trained."""

    __slots__ = ()

    @property
    def initial_state(self) -> DiagonalState:  # type: ignore[override]  # four numbers
        """Parametrization 3.1: ``(nu^(1/(p-1)), 0, 0, sigma_A)``."""
        return DiagonalState(self.nu ** (1.0 / (self.p - 1)), 0.0, 0.0, self.beta)


def _association(run: Any) -> np.ndarray:
    """Return 1 at the records after time 0 where the patch association fails, 0 elsewhere.

    At time 0, gamma = rho = 0 is a tie by Parametrization 3.1; the claim is about t > 0.
    """
    return patch_association_fails(run.beta[1:], run.gamma[1:], run.rho[1:]).astype(float)


def _row_sum_change(run: Any) -> np.ndarray:
    """Return the change of the row sum of A since the start, shape (n,)."""
    return np.abs(run.row_sum - run.row_sum[0])


def _row_sum_rounding(run: Any) -> float:
    """Return the change of the row sum that rounding may cause."""
    gamma, rho, beta = np.abs(run.states[:, 1:]).T
    terms = row_sum(beta, gamma, rho, run.problem.C, run.problem.D)
    return float(_ROUNDING * run.stats["steps"] * max(1.0, terms.max()))


patch_association = Invariant(
    "patch association",
    "Top_C(A_i) = S_l for every row i of S_l and all t > 0 (1 where it fails)",
    "Theorem 4.1, item 1",
    _association,
    graded=False,
)
row_sum_conserved = Invariant(
    "row sum of A",
    "beta + (C-1) gamma + (D-C) rho is constant",
    "derived",
    _row_sum_change,
    _row_sum_rounding,
)


@dataclass(frozen=True, eq=False)
class DiagonalTrajectory(ReducedTrajectory):
    """Trajectory of (alpha, gamma, rho, beta) on the population risk with a trained diagonal."""

    @staticmethod
    def state(vector: np.ndarray) -> DiagonalState:  # type: ignore[override]  # four numbers
        """Return an array (alpha, gamma, rho, beta) as a state."""
        return DiagonalState(*vector.tolist())

    @property
    def beta(self) -> np.ndarray:
        """Attention logit of a patch to itself, shape (n,)."""
        return self.states[:, 3]

    @property
    def row_sum(self) -> np.ndarray:
        """Sum of a row of A, shape (n,)."""
        C, D = self.problem.C, self.problem.D
        return np.asarray(row_sum(self.beta, self.gamma, self.rho, C, D))

    @property
    def attention(self) -> np.ndarray:
        """Rows (Lambda, Gamma, Xi, G), shape (n, 4)."""
        shift = (self.beta - self.problem.beta)[:, None]  # relative to the frozen diagonal
        return attention_along(self.problem, self.states[:, :3] - shift * (0.0, 1.0, 1.0))

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """Properties that Section 4.1 states for every trajectory, and the constant of motion."""
        return simplex, gamma_ge_rho, patch_association, row_sum_conserved, loss_non_increasing

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return the columns of a dataset, with the attention logit on the diagonal."""
        return {**super().columns(), "beta": (self.beta, "attention logit of a patch to itself")}


class DiagonalPopulation(Risk):
    """Population risk with the diagonal of A trained like every other entry.

    Parameters
    ----------
    population
        Population risk with the frozen diagonal; its method and its tolerance are used.

    Raises
    ------
    ParameterError
        If ``population`` is not a :class:`Population`.

    Notes
    -----
    The bounds of ``population`` apply to alpha, gamma and rho. The gradient of beta is
    ``-(C-1) dL/dA_same - (D-C) dL/dA_different``: its error is up to D - 1 times theirs.
    """

    order_parameters = DiagonalState._fields
    trajectory = DiagonalTrajectory

    def __init__(self, population: Population) -> None:
        if not isinstance(population, Population):
            raise ParameterError(
                f"population = {population!r} is not allowed: it must be a Population"
            )
        self.population = population
        self.problem = DiagonalProblem(**asdict(population.problem))
        self.tolerance = population.tolerance
        self.evaluations = 0

    @property
    def method(self) -> str:
        """The method that computes the expectation."""
        return self.population.method

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that, with the problem, determine the expectation."""
        return self.population.settings

    def frozen(self, state: DiagonalState) -> State:
        """Return the state with the same attention weights at the frozen diagonal."""
        shift = state.beta - self.population.problem.beta
        return State(state.alpha, state.gamma - shift, state.rho - shift)

    def gradient(self, state: DiagonalState) -> DiagonalState:
        """Return (d ell/d alpha, dL/dA_ij same set, dL/dA_ij different sets, dL/dA_ii)."""
        self.evaluations += 1
        entries = self.population.gradient(self.frozen(DiagonalState(*state)))
        C, D = self.problem.C, self.problem.D
        return DiagonalState(*entries, -row_sum(0.0, entries.gamma, entries.rho, C, D))

    def jacobian(self, state: DiagonalState) -> np.ndarray:
        """Return the (4, 4) matrix d gradient_i / d state_k."""
        inner = self.population.jacobian(self.frozen(DiagonalState(*state)))
        full = np.empty((4, 4))
        full[:3, :3] = inner
        full[:3, 3] = -(inner[:, 1] + inner[:, 2])
        full[3] = -row_sum(0.0, full[1], full[2], self.problem.C, self.problem.D)
        return full

    def evaluate(self, state: DiagonalState) -> Value:
        """Return loss, test error and their bounds; the gradient has no entry for beta."""
        self.evaluations += 1
        return self.population.evaluate(self.frozen(self.checked(state)))

    def certified_loss(self, state: DiagonalState) -> Certified:
        """Return the loss and its bound."""
        self.evaluations += 1
        return self.population.certified_loss(self.frozen(self.checked(state)))

    def has_grown(self, start: np.ndarray, vector: np.ndarray) -> bool:
        """Return whether alpha has diverged; large attention logits are not a divergence."""
        return self.population.has_grown(start[:3], vector[:3])

    def largest_stable_learning_rate(self, state: Any) -> float:
        """Return the largest learning rate that is stable at a state and on the slow manifold."""
        here = self.checked(state)
        rates = [super().largest_stable_learning_rate(here)]
        try:
            inner = self.frozen(here)
            alpha = SlowManifold(self.population).alpha(inner.gamma, inner.rho, guess=here.alpha)
            rates.append(super().largest_stable_learning_rate(here._replace(alpha=alpha)))
        except ArithmeticError:
            pass  # no quasi-steady value: only the state limits the rate
        return min(rates)
