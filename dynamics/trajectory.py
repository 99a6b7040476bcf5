"""What a solver returns: recorded states, how the run ended, and what it violated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.attention import attention_along
from dynamics.errors import ToleranceError
from dynamics.invariants import REDUCED_INVARIANTS
from dynamics.problem import Problem, State
from dynamics.provenance import provenance

if TYPE_CHECKING:
    import xarray

    from dynamics.population import Population


class Status(Enum):
    """How a run ended; the value is a sentence a person can act on."""

    COMPLETED = "the run reached its end"
    DIVERGED = "the iterates grew without bound: lower the learning rate"
    UNSTABLE = "the loss rose along the run: lower the learning rate"
    OVERFLOW = "the output F overflowed: start from a smaller alpha or use a smaller p"
    INACCURATE = "the expectation could not be kept within its tolerance: relax it"
    STALLED = "the integrator could not reach its tolerance: relax rtol or the population tolerance"
    INTERRUPTED = "the run was interrupted; what was computed until then is kept"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; ``trajectory`` holds what had been computed."""

    def __init__(self, trajectory: Trajectory) -> None:
        super().__init__(trajectory.status.value)
        self.trajectory = trajectory


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States along a run of gradient descent or of its flow.

    Attributes
    ----------
    time
        Flow time = learning rate x steps, shape (n,), starting at 0.
    states
        Rows (alpha, gamma, rho), shape (n, 3).
    loss, test_error, mean_sigmoid, bound
        Population risk, ``P[F <= 0]``, ``E[s(-F)]`` and the certified error (three standard
        errors for sampling) of loss and gradient at these states, shape (n,).
    status, message
        How the run ended, and a sentence with the numbers.
    resolution
        Differences between order parameters below this are numerical noise.
    stats
        Costs: evaluations, steps, and what the solver counted.
    """

    problem: Problem
    solver: str
    time: np.ndarray
    states: np.ndarray
    loss: np.ndarray
    test_error: np.ndarray
    mean_sigmoid: np.ndarray
    bound: np.ndarray
    status: Status
    message: str
    resolution: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, float] = field(default_factory=dict)
    interpolant: Callable[[float], np.ndarray] | None = None

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
    def final(self) -> State:
        """The last state."""
        return State(*self.states[-1].tolist())

    def at(self, time: float) -> State:
        """Return the state at a time within the run (dense output, else linear between records)."""
        if self.interpolant is not None:
            return State(*np.asarray(self.interpolant(time)).tolist())
        return State(*(float(np.interp(time, self.time, column)) for column in self.states.T))

    def violations(self) -> dict[str, float]:
        """Return the worst violation of each invariant, 0.0 where it holds."""
        return {invariant.name: invariant.worst(self) for invariant in REDUCED_INVARIANTS}

    def to_dataset(self) -> xarray.Dataset:
        """Return the run as a labelled dataset that carries its provenance (NetCDF-safe)."""
        import xarray

        columns = {
            "alpha": (self.alpha, "v = alpha w*"),
            "gamma": (self.gamma, "attention logit, same set"),
            "rho": (self.rho, "attention logit, different sets"),
            "loss": (self.loss, "population risk"),
            "test_error": (self.test_error, "P[F <= 0]"),
            "mean_sigmoid": (self.mean_sigmoid, "E[1/(1+exp(F))]"),
            "bound": (self.bound, "absolute error of loss and gradient"),
        }
        for index, name in enumerate(("Lambda", "Gamma", "Xi", "G")):
            columns[name] = (self.attention[:, index], f"{name} of Section 4.1")
        return xarray.Dataset(
            {
                name: ("time", values, {"long_name": text})
                for name, (values, text) in columns.items()
            },
            coords={"time": ("time", self.time, {"long_name": "learning rate x steps"})},
            attrs={
                "solver": self.solver,
                "status": self.status.name.lower(),
                "message": self.message,
                "problem": json.dumps(asdict(self.problem)),
                "settings": json.dumps(dict(self.settings)),
                "provenance": json.dumps(provenance()),
            },
        )


def assemble(
    population: Population,
    solver: str,
    time: np.ndarray,
    states: np.ndarray,
    status: Status,
    message: str,
    **rest: Any,
) -> Trajectory:
    """Evaluate the recorded states and return the trajectory, cut where evaluation fails."""
    rows = []
    for state in states.tolist():
        try:
            value = population.evaluate(State(*state))
        except (OverflowError, ToleranceError) as failure:
            if status is Status.COMPLETED:
                overflow = isinstance(failure, OverflowError)
                status = Status.OVERFLOW if overflow else Status.INACCURATE
                message = str(failure)
            break
        rows.append((value.loss, value.test_error, value.mean_sigmoid, value.bound))
    kept = len(rows)
    loss, test_error, mean_sigmoid, bound = np.array(rows).reshape(kept, 4).T
    rest["settings"] = {
        "expectation": population.method,
        "population_tolerance": population.tolerance,
        **rest.get("settings", {}),
    }
    return Trajectory(
        problem=population.problem,
        solver=solver,
        time=time[:kept],
        states=states[:kept],
        loss=loss,
        test_error=test_error,
        mean_sigmoid=mean_sigmoid,
        bound=bound,
        status=status,
        message=message,
        **rest,
    )
