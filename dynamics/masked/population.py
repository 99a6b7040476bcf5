"""The patch loss of masked image modelling behind one door, whichever method computes it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynamics.core.checks import finite, require, scale
from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.core.risk import Risk
from dynamics.masked import scenarios
from dynamics.masked.control import Control, all_moments, change
from dynamics.masked.expectation import ScenarioPlan, gradient_within, hessian
from dynamics.masked.problem import MaskedProblem
from dynamics.masked.trajectory import MaskedTrajectory
from dynamics.masked.value import MaskedValue

MOVING = ("all", "features", "positions")
METHODS = ("auto", "enumeration", "sampling", "mean_field")
DEFAULT_TOLERANCE = 1e-7
_MOST_VECTORS = 2e5  # vectors of counts that "auto" still enumerates
_FIRST_NODES, _MOST_NODES = 4, 64  # of the quadrature over each scale
_SAFETY = 2.0  # factor for fluctuations beyond second order, which are not estimated
_ROUNDING = 64 * 2.0**-52  # of sums over a few cells, weights good to a few ulp


class MaskedPopulation(Risk):
    """Loss of one query patch as a function of its correlations Phi and Upsilon.

    Parameters
    ----------
    problem
        The constants and the query.
    method
        ``"enumeration"``: all numbers of unmasked patches per cell, exact. ``"sampling"``: masks
        and scales drawn once, with error bars. ``"mean_field"``: counts are their means, which is
        the limit of many patches per area; any P. ``"auto"``: enumeration where it is cheap,
        else the mean field.
    tolerance
        Largest ``bound`` that :meth:`evaluate` may return, absolute for loss and gradient below 1,
        else relative to the larger; a state at which it is missed is refused. ``None``: nothing is
        refused, the bound tells.
    quadrature
        Relative accuracy asked of the quadrature over random scales, tested at the start and where
        p's own correlation has grown. ``None``: the tolerance, or 1e-7 without one.
    nodes
        Gauss-Legendre nodes per scale; ``None``: as many as ``quadrature`` needs.
    samples, seed
        Size and root seed of ``"sampling"``.
    moving
        Which correlations are trained: ``"all"``, ``"features"`` (Phi) or ``"positions"``
        (Upsilon, the mechanism of Jelassi et al. 2022). The others have gradient 0. With K > 1
        clusters ``"positions"`` needs explicit partitions.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    ToleranceError
        If the tables that the method needs are too large, or the tolerance cannot be met; its
        message names the size or the bound that can be reached.
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
        for name, asked in (("tolerance", tolerance), ("quadrature", quadrature)):
            if asked is not None:
                require(finite(name, asked) > 0.0, name, asked, "greater than 0")
        if nodes is not None:
            require(
                2 <= finite("nodes", nodes) <= _MOST_NODES, "nodes", nodes, f"in 2..{_MOST_NODES}"
            )
        require(moving in MOVING, "moving", moving, f"one of {', '.join(MOVING)}")
        if moving == "positions" and problem.partitions is None and problem.K > 1:
            raise ParameterError(
                "moving = positions is not allowed with exponents and K > 1, where cells hold "
                "fractions of a patch that positions could attend to: give partitions"
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
        self._asked = tolerance is not None
        self.samples, self.seed, self.moving = int(samples), int(seed), moving
        self.evaluations = 0
        self._method, self.reason = _chosen(problem, method)
        self.nodes = self._nodes_for() if nodes is None else int(nodes)
        self._plan = self._build(self.nodes)
        self._hidden = self._hidden_areas()
        self._controls = self._neglected()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made from: trajectories carry it, but not its tables."""
        nodes = self.nodes if self.nodes > 1 else None
        tolerance = self.tolerance if self._asked else None
        recipe = (
            self.problem,
            self.method,
            tolerance,
            self.quadrature,
            nodes,
            self.samples,
            self.seed,
        )
        kept = {"evaluations": self.evaluations, "reason": self.reason}
        return _again, (*recipe, self.moving, kept)

    @property
    def method(self) -> str:
        """The method in use; :attr:`reason` says why."""
        return self._method

    @property
    def settings(self) -> dict[str, Any]:
        """What, with the problem, an equal expectation is made from."""
        tolerance = self.tolerance if self._asked else None
        found = {
            "expectation": self.method,
            "population_tolerance": tolerance,
            "moving": self.moving,
            "quadrature": self.quadrature,
        }
        if self._method == "sampling":
            return found | {"samples": self.samples, "seed": self.seed}
        return found | {"nodes": self.nodes if self.nodes > 1 else None}

    def gradient_plan(self, state: Any) -> ScenarioPlan:
        """Return the scenarios, for a compiled loop: the same ones at every state."""
        return self._plan

    def gradient(self, state: Any) -> Any:
        """Return the gradient per entry of ``e_p^T Q``, (slots,)."""
        self.evaluations += 1
        out = np.empty(len(self.order_parameters))
        gradient_within(self._plan, np.asarray(state, float), out)
        return _finite(out, state)

    def jacobian(self, state: Any) -> np.ndarray:
        """Return d gradient_i / d state_k, (slots, slots): a Hessian with rows per entry of Q."""
        slots = len(self.order_parameters)
        if float(slots) ** 2 > scenarios.MOST_NUMBERS:
            raise ToleranceError(
                f"the second derivatives in {slots} order parameters are {float(slots) ** 2:.1e} "
                "numbers, too many: use gradient descent"
            )
        total = np.zeros((slots, slots))
        hessian(self._plan, np.asarray(state, float), total)
        total *= self._plan.chance / self.problem.K
        return total / self._plan.entries[:, None]

    def evaluate(self, state: Any) -> MaskedValue:
        """Return loss, gradient, area attentions and their bounds at ``state``.

        Raises
        ------
        ToleranceError
            If a tolerance was asked for and the bound is larger.
        """
        self.evaluations += 1
        theta = np.array(self.checked(state), float)
        first, second, attention = all_moments(self._plan, theta)
        mean = self._plan.chance * first.mean(axis=0)
        loss, gradient = float(mean[0]), _finite(mean[1:], state) / self._plan.entries
        bounds = {"rounding": _ROUNDING * max(loss, float(np.max(np.abs(gradient))))}
        if self._method == "sampling":
            variance = np.maximum(second - first**2, 0.0).sum(axis=0) / (self.samples - 1.0)
            error = self._plan.chance * np.sqrt(variance) / self.problem.K
            error[1:] /= self._plan.entries
            bounds["three standard errors"] = 3.0 * float(error.max())
        for name, control in self._controls.items():
            bounds[name] = control.estimate(theta)
        if self._method == "mean_field":
            bounds["hidden areas"] = self.problem.floor
        self._within(bounds, scale((loss, *gradient.tolist())))
        slots = np.zeros(self.problem.layout.phi_slots)
        np.add.at(slots, self._plan.area_slot.ravel(), attention[:, 0].ravel())
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

    def _within(self, bounds: Mapping[str, float], size: float) -> None:
        """Refuse a bound above the tolerance that was asked for."""
        bound = math.fsum(bounds.values())
        if self._asked and not bound <= self.tolerance * size:
            largest = max(bounds, key=lambda name: bounds[name])
            raise ToleranceError(
                f"tolerance = {self.tolerance:g} cannot be met by {self._method} at this state: "
                f"its bound is {bound:.2g} ({largest}), so ask for a larger one, or for none",
                bound,
            )

    @property
    def floor(self) -> float:
        """Loss that no state removes, under the method's own counts (0 in the mean field)."""
        return self._hidden[1]

    def own_attention(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return ``own_attention`` and ``shortfall`` of :meth:`evaluate` without the bounds."""
        self.evaluations += 1
        return self._own(all_moments(self._plan, np.asarray(state, float))[2])

    def _own(self, attention: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, clusters = self._plan.own, np.arange(self.problem.K)
        hidden = attention[clusters, 1, own] - self._hidden[0]
        return attention[clusters, 0, own], hidden

    def _build(self, nodes: int) -> ScenarioPlan:
        if self._method == "enumeration":
            plan = scenarios.enumerated(self.problem, nodes)
        elif self._method == "sampling":
            plan = scenarios.sampled(self.problem, self.samples, self.seed)
        else:
            plan = scenarios.averaged(self.problem, nodes)
        return self._frozen(plan)

    def _frozen(self, plan: ScenarioPlan) -> ScenarioPlan:
        """Spread what is not trained over infinitely many entries: its gradient is exactly 0."""
        entries, first = plan.entries.copy(), self.problem.layout.phi_slots
        if self.moving == "features":
            entries[first:] = math.inf
        elif self.moving == "positions":
            entries[:first] = math.inf
        return plan._replace(entries=entries)

    def _nodes_for(self) -> int:
        """Double the nodes until loss and gradient at two probes agree within the tolerance."""
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
            if all(change(coarse, fine, theta) <= self.quadrature for theta in self._probes()):
                return 2 * nodes
            nodes, coarse = 2 * nodes, fine

    def _probes(self) -> list[np.ndarray]:
        """The start, and a state at which p attends to its own areas."""
        start = self.problem.initial_state
        late = start.copy()
        for k, areas in enumerate(self.problem.layout.clusters):
            lead = math.log(self.problem.P / self.problem.own_size(k)) + 3.0
            late[areas.own_slot] = lead / self.problem.z_low
        return [start, late]

    def _neglected(self) -> dict[str, Control]:
        """What estimates the error of the method, by name."""
        controls = {}
        if self._method != "sampling" and not self.problem.z_is_fixed:
            coarse = self._build(max(2, self.nodes // 2))
            controls["quadrature"] = Control(self._plan, [[coarse]])
        if self._method == "mean_field":
            nodes = min(self.nodes, _FIRST_NODES)
            spread = scenarios.deviations(self.problem, nodes)
            controls["fluctuations, estimated"] = Control(
                self._build(nodes), [[self._frozen(x) for x in group] for group in spread], _SAFETY
            )
        return controls

    def _hidden_areas(self) -> tuple[np.ndarray, float]:
        """Return the chance that p's whole area is masked, (K,), and the loss that this leaves."""
        plan, chance, total = self._plan, np.zeros(self.problem.K), 0.0
        for k in range(self.problem.K):
            counts = plan.counts[min(k, plan.counts.shape[0] - 1)]
            none = ~np.any(counts[:, plan.area[k] == plan.own[k]] > 0.0, axis=1)
            chance[k] = float(plan.weight[none].sum())
            z = plan.z[k, :, plan.own[k]] ** 2
            mean = np.sum(plan.weight[none] * z[none]) if plan.paired else z @ plan.z_weight[k]
            total += float(mean) if plan.paired else chance[k] * float(mean)
        return chance, 0.5 * plan.chance * total / self.problem.K


def _again(
    problem: MaskedProblem,
    method: str,
    tolerance: float | None,
    quadrature: float,
    nodes: int | None,
    samples: int,
    seed: int,
    moving: str,
    kept: dict[str, Any],
) -> MaskedPopulation:
    """Make a population anew from its recipe."""
    population = MaskedPopulation(
        problem,
        method,
        tolerance,
        quadrature=quadrature,
        nodes=nodes,
        samples=samples,
        seed=seed,
        moving=moving,
    )
    vars(population).update(kept)
    return population


def _chosen(problem: MaskedProblem, method: str) -> tuple[str, str]:
    """Return the method and why."""
    if method != "auto":
        if method != "mean_field" and problem.partitions is None and problem.K > 1:
            raise ParameterError(
                f"method = {method!r} is not allowed: with exponents and K > 1 the areas meet in "
                "fractions of patches, so method must be 'mean_field', or give partitions"
            )
        return method, f"{method}, as requested"
    if problem.partitions is None and problem.K > 1:
        return "mean_field", "mean_field: the partitions are given on average only"
    cells = problem.layout.copies.sum()
    if cells > 200:
        return "mean_field", f"mean_field: P = {problem.P} is too large to enumerate"
    layout = problem.layout.expanded()
    vectors = scenarios.count_vectors(layout.size[:-1], problem.P - problem.masked)
    widest = max(areas.slot.size for areas in layout.clusters)
    draws = 1.0 if problem.z_is_fixed else 16.0**widest
    if vectors * draws <= _MOST_VECTORS:
        return "enumeration", f"enumeration: {vectors:.0f} vectors of counts"
    return "mean_field", f"mean_field: {vectors * draws:.1e} scenarios are too many to enumerate"


def _finite(numbers: np.ndarray, state: Any) -> np.ndarray:
    if not np.all(np.isfinite(numbers)):
        raise OverflowError(f"the loss or its derivatives are not finite at {np.asarray(state)}")
    return numbers
