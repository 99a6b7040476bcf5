"""What a solver returns: recorded states, how the run ended, and what it violated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.core.errors import ToleranceError
from dynamics.core.invariants import Invariant, loss_non_increasing
from dynamics.core.provenance import provenance

if TYPE_CHECKING:
    import xarray


class Status(Enum):
    """How a run ended; the value is a sentence a person can act on."""

    COMPLETED = "the run reached its end"
    DIVERGED = "the iterates grew without bound: lower the learning rate"
    UNSTABLE = "the loss rose along the run: lower the learning rate"
    OVERFLOW = "the risk or its gradient overflowed: start from a smaller state"
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
    """States along a run of gradient descent or of its flow, in any theory.

    A theory derives from it: :meth:`state` makes its own states, :attr:`invariants` names what
    should hold, :meth:`columns` adds what it derives from the states.

    Attributes
    ----------
    population
        The risk that was descended; it answers what the records do not hold.
    time
        Flow time = learning rate x steps, shape (n,), starting at 0.
    states
        One row of order parameters per record, shape (n, len(order_parameters)).
    loss, bound
        Population risk and the certified error (three standard errors for sampling) of loss and
        gradient at these states, shape (n,).
    status, message
        How the run ended, and a sentence with the numbers.
    resolution
        Differences between order parameters below this are numerical noise.
    stats
        Costs: evaluations, steps, and what the solver counted.
    """

    population: Any
    solver: str
    time: np.ndarray
    states: np.ndarray
    loss: np.ndarray
    bound: np.ndarray
    status: Status
    message: str
    resolution: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, float] = field(default_factory=dict)
    interpolant: Callable[[float], np.ndarray] | None = None

    if TYPE_CHECKING:  # names that the subclass of a theory adds

        def __getattr__(self, name: str) -> Any: ...

    @property
    def problem(self) -> Any:
        """The constants of the problem."""
        return self.population.problem

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Names of the columns of :attr:`states`."""
        return tuple(self.population.order_parameters)

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """What should hold along the run."""
        return (loss_non_increasing,)

    def column(self, name: str) -> np.ndarray:
        """Return one order parameter along the run, shape (n,)."""
        return self.states[:, self.order_parameters.index(name)]

    def state(self, vector: np.ndarray) -> Any:
        """Return the theory's own state for a row of :attr:`states`."""
        return self.population.state(vector)

    def value(self, record: int) -> Any:
        """Return everything the expectation knows at one record.

        Raises
        ------
        OverflowError, ToleranceError
            If it cannot be had there to its tolerance.
        """
        return self.population.evaluate(self.state(self.states[record]))

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """Everything the expectation knows at all records: one pass, when first asked for."""
        return tuple(self.value(record) for record in range(len(self.states)))

    @property
    def final(self) -> Any:
        """The last state; raises ToleranceError where the loss could be had at none."""
        if not len(self.states):
            raise ToleranceError(f"the run holds no state: {self.message}")
        return self.state(self.states[-1])

    def at(self, time: float) -> Any:
        """Return the state at a time within the run (dense output, else linear between records)."""
        if self.interpolant is not None:
            return self.state(np.asarray(self.interpolant(time)))
        columns = [float(np.interp(time, self.time, column)) for column in self.states.T]
        return self.state(np.array(columns))

    def at_records(self, indices: list[int]) -> Trajectory:
        """Return the run with some of its records only."""
        kept = {name: getattr(self, name)[indices] for name in ("time", "states", "loss", "bound")}
        return replace(self, **kept)

    def violations(self) -> dict[str, float]:
        """Return the worst violation of each invariant, 0.0 where it holds."""
        return {invariant.name: invariant.worst(self) for invariant in self.invariants}

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return what a dataset holds: name -> (one number per record, what it is)."""
        return {
            **{name: (self.column(name), "order parameter") for name in self.order_parameters},
            "loss": (self.loss, "population risk"),
            "bound": (self.bound, "absolute error of loss and gradient"),
        }

    def to_dataset(self) -> xarray.Dataset:
        """Return the run as a labelled dataset that carries its provenance (NetCDF-safe)."""
        import xarray

        return xarray.Dataset(
            {
                name: ("time", values, {"long_name": text})
                for name, (values, text) in self.columns().items()
            },
            coords={"time": ("time", self.time, {"long_name": "learning rate x steps"})},
            attrs={
                "solver": self.solver,
                "status": self.status.name.lower(),
                "message": self.message,
                "problem": json.dumps(asdict(self.problem), default=_listed),
                "settings": json.dumps(dict(self.settings)),
                "provenance": json.dumps(provenance()),
            },
        )


def _listed(value: Any) -> Any:
    """Return arrays and NumPy numbers inside a problem as JSON knows them."""
    return np.asarray(value).tolist()


def assemble(
    population: Any,
    solver: str,
    time: np.ndarray,
    states: np.ndarray,
    status: Status,
    message: str,
    **rest: Any,
) -> Any:
    """Evaluate loss and bound at the recorded states; cut the trajectory where that fails.

    ``population`` is a :class:`dynamics.core.risk.Risk`.
    """
    rows = []
    for row in states:
        try:
            value = population.certified_loss(population.state(row))
            if not np.isfinite(value.loss):
                raise OverflowError(Status.OVERFLOW.value)
        except (OverflowError, ToleranceError) as failure:
            if status is Status.COMPLETED:
                overflow = isinstance(failure, OverflowError)
                status = Status.OVERFLOW if overflow else Status.INACCURATE
                message = str(failure)
            break
        rows.append((value.loss, value.bound))
    kept = len(rows)
    loss, bound = np.array(rows).reshape(kept, 2).T
    rest["settings"] = {
        "expectation": population.method,
        "population_tolerance": population.tolerance,
        **rest.get("settings", {}),
    }
    return population.trajectory(
        population=population,
        solver=solver,
        time=time[:kept],
        states=states[:kept],
        loss=loss,
        bound=bound,
        status=status,
        message=message,
        **rest,
    )
