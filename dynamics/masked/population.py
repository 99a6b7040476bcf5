"""The population loss of one patch in masked image modelling, by three methods."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dynamics.core.checks import finite, require, scale
from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.core.risk import Risk
from dynamics.masked.expectation import (
    ErrorEstimate,
    Scenarios,
    difference,
    gradient_within,
    hessian,
    moments,
    per_entry,
)
from dynamics.masked.problem import MaskedProblem
from dynamics.masked.scenarios import (
    MOST_NUMBERS,
    averaged,
    count_vectors,
    deviations,
    enumerated,
    sampled,
)
from dynamics.masked.trajectory import MaskedTrajectory

MOVING = ("all", "features", "positions")
METHODS = ("auto", "enumeration", "sampling", "mean_field")
DEFAULT_TOLERANCE = 1e-7
_MOST_VECTORS = 2e5  # scenarios that "auto" enumerates
_FIRST_NODES, _MOST_NODES = 4, 64  # of the quadrature over each scale
_SAFETY = 2.0  # factor for fluctuations beyond second order, which are not estimated
_ROUNDING = 64 * 2.0**-52  # of sums over a few cells, with weights accurate to a few ulp


@dataclass(frozen=True, slots=True)
class MaskedValue:
    """Loss of the query patch and its gradient at a state, with their error.

    Attributes
    ----------
    loss
        ``L_p = (1/2K) sum_k E_k[1{p masked} |X_p - F_p|^2]``, equation (4.2).
    gradient
        Derivatives with respect to one entry of ``e_p^T Q`` per order parameter, (slots,).
    floor
        Loss that no attention removes, of masks that hide all patches of p's area, with the counts
        of the method.
    attention
        Mean attention to the unmasked patches of the area of each feature correlation, given that p
        is masked, (phi slots,). Equal areas are added up.
    own_attention, shortfall
        Mean attention to p's own area, and mean of (1 - attention)^2 minus the probability of masks
        that hide the whole area, for each cluster, given that p is masked, (K,).
    bound
        Absolute error of loss and gradient. It includes rounding and quadrature; for sampling three
        standard errors; for the mean field estimates of the contributions of fluctuations of the
        counts (twice the second order) and of masks that hide the whole area.
    bounds
        Mapping from the name of each part of ``bound`` to its value.
    """

    loss: float
    gradient: np.ndarray
    floor: float
    attention: np.ndarray
    own_attention: np.ndarray
    shortfall: np.ndarray
    bound: float
    bounds: Mapping[str, float]

    @property
    def excess(self) -> float:
        """Loss above its floor."""
        return self.loss - self.floor


class MaskedPopulation(Risk):
    """Loss of one query patch as a function of its correlations Phi and Upsilon.

    Parameters
    ----------
    problem
        Constants and query.
    method
        ``"enumeration"``: exact, over all numbers of unmasked patches in the cells.
        ``"sampling"``: over a fixed random sample of masks and scales, with error bars.
        ``"mean_field"``: with counts at their means, the limit of many patches in each area, for
        any P. ``"auto"``: enumeration if it is cheap, otherwise the mean field.
    tolerance
        Largest ``bound`` that :meth:`evaluate` may return, multiplied by the loss or the largest
        modulus of the gradient if one of them exceeds 1. ``None``: no limit.
    quadrature
        Relative accuracy of the quadrature over random scales, tested at the start and at a state
        with a large own correlation. The default is the tolerance, or 1e-7 without one.
    nodes
        Gauss-Legendre nodes per scale; ``None``: as many as ``quadrature`` requires.
    samples, seed
        Number of samples and root seed of ``"sampling"``.
    moving
        Trained correlations: ``"all"``, ``"features"`` (Phi) or ``"positions"`` (Upsilon, the
        mechanism of Jelassi et al. 2022). The others have gradient 0. With K > 1 clusters
        ``"positions"`` requires explicit partitions.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    ToleranceError
        If the tables of the method are too large, or ``quadrature`` cannot be reached. The message
        states the size or the accuracy.
    """

    trajectory = MaskedTrajectory

    def __init__(
        self,
        problem: MaskedProblem,
        method: str = "auto",
        tolerance: float | None = None,
        *,
        quadrature: float | None = None,
        nodes: int | None = None,
        samples: int = 4096,
        seed: int = 0,
        moving: str = "all",
    ) -> None:
        if not isinstance(problem, MaskedProblem):
            raise ParameterError(f"problem = {problem!r} is not allowed: it must be MaskedProblem")
        require(method in METHODS, "method", method, f"one of {', '.join(METHODS)}")
        for name, accuracy in (("tolerance", tolerance), ("quadrature", quadrature)):
            if accuracy is not None:
                require(finite(name, accuracy) > 0.0, name, accuracy, "greater than 0")
        if nodes is not None:
            require(
                2 <= finite("nodes", nodes) <= _MOST_NODES, "nodes", nodes, f"in 2..{_MOST_NODES}"
            )
        require(moving in MOVING, "moving", moving, f"one of {', '.join(MOVING)}")
        if moving == "positions" and problem.partitions is None and problem.K > 1:
            raise ParameterError(
                "moving = positions is not allowed with exponents and K > 1, where cells contain "
                "fractions of a patch: give partitions"
            )
        require(
            100 <= finite("samples", samples) <= 10**7,
            "samples",
            samples,
            "at least 100 and at most 10^7",
        )
        self.problem = problem
        self.order_parameters = problem.order_parameters
        self.tolerance = DEFAULT_TOLERANCE if tolerance is None else float(tolerance)
        self.quadrature = self.tolerance if quadrature is None else float(quadrature)
        self._has_tolerance = tolerance is not None
        self.samples, self.seed, self.moving = int(samples), int(seed), moving
        self.evaluations = 0
        self._method, self.reason = _method_and_reason(problem, method)
        self.nodes = self._sufficient_nodes() if nodes is None else int(nodes)
        self._scenarios = self._build(self.nodes)
        self._hidden_probability, self._floor = self._hidden_areas()
        self._estimates = self._error_estimates()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments; the tables are computed again."""
        arguments = self._arguments() | {"samples": self.samples, "seed": self.seed}
        state = {"evaluations": self.evaluations, "reason": self.reason}
        create = partial(MaskedPopulation, self.problem, self.method, **arguments)
        return create, (), state

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor that `settings` records for all methods."""
        return {
            "tolerance": self.tolerance if self._has_tolerance else None,
            "moving": self.moving,
            "quadrature": self.quadrature,
            "nodes": self.nodes if self.nodes > 1 else None,
        }

    @property
    def method(self) -> str:
        """Method that computes the expectation; :attr:`reason` explains the choice."""
        return self._method

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that reproduce the expectation, given the problem."""
        arguments = self._arguments()
        recorded = {
            "expectation": self.method,
            "population_tolerance": arguments["tolerance"],
            "moving": self.moving,
            "quadrature": self.quadrature,
        }
        if self._method == "sampling":
            return recorded | {"samples": self.samples, "seed": self.seed}
        return recorded | {"nodes": arguments["nodes"]}

    @property
    def trained(self) -> np.ndarray:
        """1 for each correlation that ``moving`` names, 0 for the others, (slots,)."""
        return np.asarray(np.isfinite(self._scenarios.entries), float)

    def gradient_plan(self, state: Any) -> Scenarios:
        """Return the scenarios, the same at every state."""
        return self._scenarios

    def gradient(self, state: Any) -> Any:
        """Return the gradient per entry of ``e_p^T Q``, (slots,)."""
        self.evaluations += 1
        out = np.empty(len(self.order_parameters))
        gradient_within(self._scenarios, np.asarray(state, float), out)
        return _finite(out, state)

    def jacobian(self, state: Any) -> np.ndarray:
        """Return d gradient_i / d state_k, (slots, slots): a Hessian with rows per entry of Q."""
        slots = len(self.order_parameters)
        if float(slots) ** 2 > MOST_NUMBERS:
            raise ToleranceError(
                f"the second derivatives in {slots} order parameters are {float(slots) ** 2:.1e} "
                "numbers, too many: use gradient descent"
            )
        total = np.zeros((slots, slots))
        hessian(self._scenarios, np.asarray(state, float), total)
        total *= self._scenarios.masked_probability / self.problem.K
        return total / self._scenarios.entries[:, None]

    def evaluate(self, state: Any) -> MaskedValue:
        """Return loss, gradient, area attentions and their bounds at ``state``.

        Raises
        ------
        ToleranceError
            If there is a tolerance and the bound is larger.
        """
        self.evaluations += 1
        theta = np.array(self.checked(state), float)
        first, second, attention = moments(self._scenarios, theta)
        mean = per_entry(self._scenarios, first)
        loss, gradient = float(mean[0]), _finite(mean[1:], state)
        bounds = {"rounding": _ROUNDING * max(loss, float(np.max(np.abs(gradient))))}
        if self._method == "sampling":
            variance = np.maximum(second - first**2, 0.0).sum(axis=0) / (self.samples - 1.0)
            error = self._scenarios.masked_probability * np.sqrt(variance) / self.problem.K
            error[1:] /= self._scenarios.entries
            bounds["three standard errors"] = 3.0 * float(error.max())
        for name, estimate in self._estimates.items():
            bounds[name] = estimate.evaluate(theta)
        if self._method == "mean_field":
            bounds["hidden areas"] = self.problem.floor
        self._require_tolerance(bounds, scale((loss, *gradient.tolist())))
        slots = np.zeros(self.problem.layout.phi_slots)
        np.add.at(slots, self._scenarios.area_slot.ravel(), attention[:, 0].ravel())
        own_attention, shortfall = self._own(attention)
        return MaskedValue(
            loss=loss,
            gradient=gradient,
            floor=self.floor,
            attention=slots,
            own_attention=own_attention,
            shortfall=shortfall,
            bound=math.fsum(bounds.values()),
            bounds=bounds,
        )

    def _require_tolerance(self, bounds: Mapping[str, float], size: float) -> None:
        """Raise ToleranceError if there is a tolerance and the bound is larger."""
        bound = math.fsum(bounds.values())
        if self._has_tolerance and not bound <= self.tolerance * size:
            largest = max(bounds, key=lambda name: bounds[name])
            raise ToleranceError(
                f"tolerance = {self.tolerance:g} cannot be met by {self._method} at this state: "
                f"its bound is {bound:.2g} ({largest}), so use a larger tolerance, or none",
                bound,
            )

    @property
    def floor(self) -> float:
        """Loss that no state removes, with the counts of the method (0 in the mean field)."""
        return self._floor

    def own_attention(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return ``own_attention`` and ``shortfall`` of :meth:`evaluate`, (K,) each."""
        self.evaluations += 1
        return self._own(moments(self._scenarios, np.asarray(state, float)).attention)

    def _own(self, attention: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, clusters = self._scenarios.own, np.arange(self.problem.K)
        shortfall = attention[clusters, 1, own] - self._hidden_probability
        return attention[clusters, 0, own], shortfall

    def _build(self, nodes: int) -> Scenarios:
        """Return the scenarios of the method."""
        if self._method == "enumeration":
            scenarios = enumerated(self.problem, nodes)
        elif self._method == "sampling":
            scenarios = sampled(self.problem, self.samples, self.seed)
        else:
            scenarios = averaged(self.problem, nodes)
        return self._frozen(scenarios)

    def _frozen(self, scenarios: Scenarios) -> Scenarios:
        """Make the gradient of correlations that are not trained exactly 0.

        Their number of entries becomes infinite.
        """
        entries, first = scenarios.entries.copy(), self.problem.layout.phi_slots
        if self.moving == "features":
            entries[first:] = math.inf
        elif self.moving == "positions":
            entries[:first] = math.inf
        return scenarios._replace(entries=entries)

    def _sufficient_nodes(self) -> int:
        """Double the nodes until loss and gradient at two states change by less than allowed."""
        if self.problem.z_is_fixed or self._method == "sampling":
            return 1
        nodes, coarse = _FIRST_NODES, self._build(_FIRST_NODES)
        while True:
            if 2 * nodes > _MOST_NODES:
                name = "tolerance" if self.quadrature == self.tolerance else "quadrature"
                raise ToleranceError(
                    f"{name} = {self.quadrature:g} needs more than {_MOST_NODES} nodes per scale"
                )
            fine = self._build(2 * nodes)
            if all(difference(coarse, fine, x) <= self.quadrature for x in self._test_states()):
                return 2 * nodes
            nodes, coarse = 2 * nodes, fine

    def _test_states(self) -> list[np.ndarray]:
        """Return the start, and a state at which p attends to its own areas."""
        start = self.problem.initial_state
        late = start.copy()
        for k, areas in enumerate(self.problem.layout.clusters):
            lead = math.log(self.problem.P / self.problem.own_size(k)) + 3.0
            late[areas.own_slot] = lead / self.problem.z_low
        return [start, late]

    def _error_estimates(self) -> dict[str, ErrorEstimate]:
        """Return a mapping from the source of an error to its estimate."""
        estimates = {}
        if self._method != "sampling" and not self.problem.z_is_fixed:
            coarse = self._build(max(2, self.nodes // 2))
            estimates["quadrature"] = ErrorEstimate(self._scenarios, [[coarse]])
        if self._method == "mean_field":
            nodes = min(self.nodes, _FIRST_NODES)
            groups = [
                [self._frozen(member) for member in group]
                for group in deviations(self.problem, nodes)
            ]
            estimates["fluctuations, estimated"] = ErrorEstimate(
                self._build(nodes), groups, _SAFETY
            )
        return estimates

    def _hidden_areas(self) -> tuple[np.ndarray, float]:
        """Return the probability that p's whole area is masked, (K,), and the loss that remains."""
        scenarios, K = self._scenarios, self.problem.K
        probability, total = np.zeros(K), 0.0
        for k in range(K):
            counts = scenarios.counts[min(k, scenarios.counts.shape[0] - 1)]
            none = ~np.any(counts[:, scenarios.area[k] == scenarios.own[k]] > 0.0, axis=1)
            probability[k] = float(scenarios.weight[none].sum())
            squares = scenarios.z[k, :, scenarios.own[k]] ** 2
            if scenarios.paired:
                total += float(np.sum(scenarios.weight[none] * squares[none]))
            else:
                total += probability[k] * float(squares @ scenarios.z_weight[k])
        return probability, 0.5 * scenarios.masked_probability * total / K


def _method_and_reason(problem: MaskedProblem, method: str) -> tuple[str, str]:
    """Return the method, and the reason for its choice."""
    on_average = problem.partitions is None and problem.K > 1
    if method != "auto":
        if method != "mean_field" and on_average:
            raise ParameterError(
                f"method = {method!r} is not allowed: with exponents and K > 1 areas have "
                "fractions of patches in common, so method must be 'mean_field', or give partitions"
            )
        return method, f"{method}, as requested"
    if on_average:
        return "mean_field", "mean_field: exponents determine several partitions on average only"
    if problem.layout.copies.sum() > 200:
        return "mean_field", f"mean_field: P = {problem.P} is too large to enumerate"
    layout = problem.layout.expanded()
    vectors = count_vectors(layout.size[:-1], problem.P - problem.masked)
    widest = max(areas.slot.size for areas in layout.clusters)
    scenarios = vectors * (1.0 if problem.z_is_fixed else 16.0**widest)
    if scenarios <= _MOST_VECTORS:
        return "enumeration", f"enumeration: {vectors:.0f} vectors of counts"
    return "mean_field", f"mean_field: {scenarios:.1e} scenarios are too many to enumerate"


def _finite(numbers: np.ndarray, state: Any) -> np.ndarray:
    if not np.all(np.isfinite(numbers)):
        raise OverflowError(f"the loss or its derivatives are not finite at {np.asarray(state)}")
    return numbers
