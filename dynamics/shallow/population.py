"""Population hinge loss of the shallow transformer by enumeration of counts, tau = 0."""

from typing import Any

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.risk import Risk
from dynamics.shallow import kernels
from dynamics.shallow.compiled_gradient import ShallowPlan, gradient_within
from dynamics.shallow.data import as_samples, representatives
from dynamics.shallow.problem import ShallowProblem
from dynamics.shallow.trajectory import ShallowTrajectory
from dynamics.shallow.value import ShallowValue

_STEP = 1e-6  # of the differences in `ShallowPopulation.jacobian`
_TIE = 1e-13


class ShallowPopulation(Risk):
    r"""The population risk in the numbers of a symmetric state; the house's solvers descend it.

    Samples of label +1 are enumerated up to permutations of the irrelevant patterns; the average of
    their gradient over the symmetries is the population gradient. Time is eta x steps, where eta
    moves W_O and V; K and Q move at ``attention_rate`` times that.

    The gradient jumps where a ReLU or the hinge switches, and a run may come to slide along such a
    kink. Steps of finite size follow it; the integrator of the flow does not and says that it
    stalled, so that the flow serves the time before.

    Raises
    ------
    ParameterError
        If there are more cells than are enumerated (`dynamics.shallow.data.MOST_CELLS`).
    """

    trajectory = ShallowTrajectory
    method = "enumeration"
    reason = "enumeration of counts: exact up to rounding"
    tolerance = 1e-12

    def __init__(self, problem: ShallowProblem) -> None:
        self.problem = problem
        self.order_parameters = problem.order_parameters
        self.evaluations = 0
        cells = representatives(problem)
        self._samples = as_samples(cells.counts, cells.queried, cells.labels, cells.chance)
        self._layout, M = problem.layout, problem.M
        self._copies = problem.neurons / (2.0 * M)
        size = problem.output_scale / np.sqrt(problem.neurons)
        self._a = self._copies * size * np.repeat([1.0, -1.0], M)
        index, attention = np.arange(len(cells.labels)), problem.attention
        slots = (self._layout.W, self._layout.V, self._layout.K, self._layout.Q)
        self._plan = ShallowPlan(
            self._samples,
            index,
            *slots,
            np.bincount(np.concatenate([x.ravel() for x in slots])),
            self._a,
            self._copies,
            problem.attention_rate if attention == "trained" else 0.0,
            attention != "none",
            problem.train_value,
        )

    @property
    def cells(self) -> int:
        """Number of samples of label +1 that differ by more than irrelevant names."""
        return len(self._plan.everything)

    @property
    def trained(self) -> np.ndarray:
        """0 for the entries of a fixed V, and of K and Q without trained attention, else 1."""
        trained = np.ones(len(self.order_parameters))
        trained[self._layout.V] = self.problem.train_value
        for slots in (self._layout.K, self._layout.Q):
            trained[slots] = self.problem.attention == "trained"
        return trained

    def gradient_plan(self, state: Any) -> ShallowPlan:
        """Return the samples and slots, for a compiled loop: the same ones at every state."""
        return self._plan

    @property
    def samples(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Key fractions and query fractions (cells, M) of the label +1, and their chances."""
        return self._samples.keys, self._samples.queries, self._samples.weights

    def descent(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return D (2M, M), a row of it for one neuron of each class, and G (M, M) of label +1.

        Both before the average over the symmetries.
        """
        A, H = self._products(state)
        D, G = np.empty(H.shape), np.empty(A.shape)
        loss = kernels.gradient(
            self._samples,
            self._plan.everything,
            self._samples.weights,
            A,
            H,
            self._a,
            self._plan.attend,
            D,
            G,
        )
        if not np.isfinite(loss):
            raise OverflowError("the loss or its derivatives are not finite")
        return D.T / self._copies, G

    def gradient(self, state: Any) -> Any:
        """Return minus the direction in which each order parameter moves, (28,) or (40,)."""
        self.evaluations += 1
        out = np.empty(len(self.order_parameters))
        gradient_within(self._plan, np.asarray(state, float), out)
        if not np.isfinite(out).all():
            raise OverflowError("the loss or its derivatives are not finite")
        return out

    def jacobian(self, state: Any) -> np.ndarray:
        """Return d gradient_i / d state_k by central differences.

        They steer the implicit steps of the flow and the largest stable rate, and enter no result.
        """
        theta = np.array(state, float)
        columns = []
        for k in range(theta.size):
            width = _STEP * max(1.0, abs(theta[k]))
            ends = []
            for end in (theta[k] + width, theta[k] - width):
                moved = theta.copy()
                moved[k] = end
                ends.append(self.gradient(moved))
            columns.append((ends[0] - ends[1]) / (2.0 * width))
        return np.array(columns).T

    def evaluate(self, state: Any) -> ShallowValue:
        """Return loss, test error, attention and margins at a state."""
        self.evaluations += 1
        F, attention, _ = self._outputs(state)
        chance = self._samples.weights
        if not np.isfinite(F).all():
            raise OverflowError("the outputs of the network are not finite")
        loss = float(chance @ np.maximum(0.0, 1.0 - F))
        largest = float(np.abs(self._a).sum() * np.abs(self._products(state)[1]).max())
        return ShallowValue(
            loss=loss,
            bound=64.0 * np.finfo(float).eps * max(1.0, largest),
            test_error=float(chance @ (F <= 0.0)),
            attention=float(chance @ attention),
            margin=float(chance @ F),
            least_margin=float(F.min()),
        )

    def checked(self, state: Any) -> np.ndarray:
        """Return a state as floats; raise ParameterError where a ReLU stands at its kink."""
        theta = np.asarray(super().checked(state))
        nearest = self._outputs(theta)[2]
        scale = float(np.abs(self._products(theta)[1]).max())
        if nearest.min() <= _TIE * scale:
            raise ParameterError(
                "state is not allowed: a neuron stands at the kink of its ReLU in a sample that "
                "occurs; perturb the rows of W_O (spread and xi of the problem, or P_*, U_*, I_*)"
            )
        return theta

    def _products(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return A (M, M) and H transposed (M, 2M); raise OverflowError if one is not finite."""
        W, V, K, Q = self.problem.matrices(state)
        with np.errstate(over="ignore", invalid="ignore"):
            A, H = K.T @ Q, V.T @ W.T
        if not (np.isfinite(A).all() and np.isfinite(H).all()):
            raise OverflowError("the attention logits or the hidden layer are not finite")
        return A, H

    def _outputs(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        A, H = self._products(state)
        F, attention, nearest = (np.empty(self.cells) for _ in range(3))
        kernels.outputs(self._samples, A, H, self._a, self._plan.attend, F, attention, nearest)
        return F, attention, nearest
