"""Population hinge loss of the shallow transformer by enumeration of token counts."""

from typing import Any, NamedTuple

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.risk import Risk
from dynamics.shallow import kernels
from dynamics.shallow.data import normalized_samples, representatives
from dynamics.shallow.kernels import GradientData
from dynamics.shallow.problem import ShallowProblem
from dynamics.shallow.training import is_at_kink
from dynamics.shallow.trajectory import ShallowTrajectory

_STEP = 1e-6  # of the differences in `ShallowPopulation.jacobian`


class ShallowValue(NamedTuple):
    """Hinge loss and observables of the population at a state.

    Attributes
    ----------
    loss
        Mean of max(0, 1 - yF).
    bound
        Estimate of the rounding error of the loss.
    test_error
        P[yF <= 0].
    attention
        Attention on relevant tokens, mean over samples and queries.
    margin, least_margin
        Mean of yF, and its minimum over the samples that can occur.
    """

    loss: float
    bound: float
    test_error: float
    attention: float
    margin: float
    least_margin: float


class ShallowPopulation(Risk):
    r"""Population risk as a function of the order parameters of a symmetric state.

    Parameters
    ----------
    problem
        Constants of data, network and initial state.

    Raises
    ------
    ParameterError
        If there are more than `dynamics.shallow.data.MOST_CELLS` distinct samples.

    Notes
    -----
    Samples of label +1 are enumerated up to permutations of the irrelevant patterns; the average of
    their gradient over the symmetries is the population gradient. Time is eta x steps, where eta is
    the learning rate of W_O and V. The learning rate of K and Q is ``attention_rate`` times eta.

    The gradient jumps where a ReLU or the hinge switches, and a trajectory may slide along such a
    kink. Descent with finite steps follows the kink. The flow stalls there: use it for earlier
    times only.
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
        self._samples = normalized_samples(
            cells.counts, cells.queried, cells.labels, cells.probability
        )
        layout, M = problem.layout, problem.M
        slots = (layout.W, layout.V, layout.K, layout.Q)
        copies = problem.neurons / (2.0 * M)
        size = problem.output_scale / np.sqrt(problem.neurons)
        self._data = GradientData(
            self._samples,
            np.arange(len(cells.labels)),
            *slots,
            entries=np.bincount(np.concatenate([x.ravel() for x in slots])),
            a=copies * size * np.repeat([1.0, -1.0], M),
            copies=copies,
            rate=problem.attention_rate if problem.attention == "trained" else 0.0,
            attend=problem.attention != "none",
            train_value=problem.train_value,
        )

    @property
    def cells(self) -> int:
        """Number of samples of label +1 up to permutations of the irrelevant patterns."""
        return len(self._data.indices)

    @property
    def trained(self) -> np.ndarray:
        """0 for the entries of a fixed V, and of K and Q without trained attention, else 1."""
        trained, layout = np.ones(len(self.order_parameters)), self.problem.layout
        trained[layout.V] = self.problem.train_value
        for slots in (layout.K, layout.Q):
            trained[slots] = self.problem.attention == "trained"
        return trained

    @property
    def sample_weights(self) -> np.ndarray:
        """Probabilities of the samples of label +1 up to symmetry, (cells,)."""
        return np.asarray(self._samples.weights)

    def weighted_gradient(self, state: Any, weights: np.ndarray) -> np.ndarray:
        """Return the gradient (n,) with other probabilities of the samples (cells,)."""
        self.evaluations += 1
        out = np.empty(len(self.order_parameters))
        samples = self._samples._replace(weights=np.asarray(weights, float))
        data = self._data._replace(samples=samples)
        kernels.gradient_within(data, np.asarray(state, float), out)
        return out

    def gradient_plan(self, state: Any) -> GradientData:
        """Return the data of the compiled gradient, the same at all states."""
        return self._data

    @property
    def samples(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Key and query fractions (cells, M) of the label +1, and their probabilities (cells,)."""
        return self._samples.keys, self._samples.queries, self._samples.weights

    def descent(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the descent directions of H and A for label +1, not averaged over symmetries.

        Parameters
        ----------
        state
            Order parameters, (n,).

        Returns
        -------
        D : ndarray
            Minus the gradient in H, (2M, M); a row is that of one neuron of each class.
        G : ndarray
            Minus the gradient in A, (M, M).

        Raises
        ------
        OverflowError
            If the logits, the loss or its derivatives are not finite.
        """
        A, H = self._products(state)
        D, G = np.empty(H.shape), np.empty(A.shape)
        data, samples = self._data, self._samples
        loss = kernels.gradient(
            samples, data.indices, samples.weights, A, H, data.a, data.attend, D, G
        )
        if not np.isfinite(loss):
            raise OverflowError("the loss or its derivatives are not finite")
        return D.T / data.copies, G

    def gradient(self, state: Any) -> Any:
        """Return the gradient at a state: minus the velocity of each order parameter, (n,)."""
        self.evaluations += 1
        out = np.empty(len(self.order_parameters))
        kernels.gradient_within(self._data, np.asarray(state, float), out)
        if not np.isfinite(out).all():
            raise OverflowError("the loss or its derivatives are not finite")
        return out

    def jacobian(self, state: Any) -> np.ndarray:
        """Return d gradient_i / d state_k by central differences, (n, n).

        It controls the implicit steps of the flow and the largest stable learning rate; no result
        is computed from it.
        """
        theta = np.array(state, float)
        columns = []
        for k in range(theta.size):
            width = _STEP * max(1.0, abs(theta[k]))
            gradients = []
            for end in (theta[k] + width, theta[k] - width):
                shifted = theta.copy()
                shifted[k] = end
                gradients.append(self.gradient(shifted))
            columns.append((gradients[0] - gradients[1]) / (2.0 * width))
        return np.array(columns).T

    def evaluate(self, state: Any) -> ShallowValue:
        """Return loss, test error, attention and margins at a state."""
        self.evaluations += 1
        F, attention, _ = self._outputs(state)
        probability = self._samples.weights
        if not np.isfinite(F).all():
            raise OverflowError("the outputs of the network are not finite")
        largest = float(np.abs(self._data.a).sum() * np.abs(self._products(state)[1]).max())
        return ShallowValue(
            loss=float(probability @ np.maximum(0.0, 1.0 - F)),
            bound=64.0 * np.finfo(float).eps * max(1.0, largest),
            test_error=float(probability @ (F <= 0.0)),
            attention=float(probability @ attention),
            margin=float(probability @ F),
            least_margin=float(F.min()),
        )

    def checked(self, state: Any) -> np.ndarray:
        """Return a state given by the user as floats.

        Raises
        ------
        ParameterError
            If it is not a sequence of n finite numbers, or a neuron is at the kink of its ReLU.
        """
        theta = np.asarray(super().checked(state))
        if is_at_kink(self._outputs(theta)[2].min(), self._products(theta)[1]):
            raise ParameterError(
                "state is not allowed: a neuron is at the kink of its ReLU in a sample that can "
                "occur; perturb the rows of W_O (spread and xi of the problem, or P_*, U_*, I_*)"
            )
        return theta

    def _products(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return A (M, M) and H transposed (M, 2M); raise OverflowError if they are not finite."""
        W, V, K, Q = self.problem.matrices(state)
        with np.errstate(over="ignore", invalid="ignore"):
            A, H = K.T @ Q, V.T @ W.T
        if not (np.isfinite(A).all() and np.isfinite(H).all()):
            raise OverflowError("the attention logits or the hidden layer are not finite")
        return A, H

    def _outputs(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return output, attention and distance to a kink of each cell, (cells,)."""
        A, H = self._products(state)
        data = self._data
        F, attention, nearest = (np.empty(self.cells) for _ in range(3))
        kernels.outputs(self._samples, A, H, data.a, data.attend, F, attention, nearest)
        return F, attention, nearest
