"""What a solver returns: recorded states, how the run ended, and what it violated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from dynamics.core.errors import ToleranceError
from dynamics.core.invariants import Invariant, Violation, loss_non_increasing
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


class DenseOutput(Protocol):
    """The order parameters between the records of a run, as data."""

    def at(self, time: float) -> np.ndarray:
        """Return them at a time within the run, shape (len(order_parameters),)."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States along a run of gradient descent or of its flow, in any theory: a record.

    It holds numbers and the constants of the problem, not the risk that was descended. A theory
    derives from it: :meth:`state` makes its own states, :attr:`observables` names what an
    evaluation knows of them, :attr:`invariants` what should hold, :meth:`columns` adds what follows
    from the states alone.

    Attributes
    ----------
    problem
        The constants of the problem.
    order_parameters
        Names of the columns of ``states``.
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
    observed
        What else was evaluated at the records: one array (n, ...) for each of ``observables``, or
        for none where that costs far more than the loss; ``population.observe(run)`` adds them.
    settings
        Of the solver and of the expectation.
    stats
        Costs: evaluations of the gradient, steps, and what the solver counted.
    interpolant
        Dense output; ``None`` where the solver has none.
    """

    observables: ClassVar[tuple[str, ...]] = ()

    problem: Any
    order_parameters: tuple[str, ...]
    solver: str
    time: np.ndarray
    states: np.ndarray
    loss: np.ndarray
    bound: np.ndarray
    status: Status
    message: str
    resolution: float
    observed: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, float] = field(default_factory=dict)
    interpolant: DenseOutput | None = None

    if TYPE_CHECKING:  # names that the subclass of a theory adds

        def __getattr__(self, name: str) -> Any: ...

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """What should hold along the run."""
        return (loss_non_increasing,)

    def column(self, name: str) -> np.ndarray:
        """Return one order parameter along the run, shape (n,)."""
        return self.states[:, self.order_parameters.index(name)]

    @staticmethod
    def state(vector: np.ndarray) -> Any:
        """Return the theory's own state for a row of ``states``; by default a copy of it."""
        return np.array(vector, float)

    def observation(self, name: str) -> np.ndarray:
        """Return one of :attr:`observed`, shape (n, ...).

        Raises
        ------
        AttributeError
            If the run does not hold it.
        """
        if name not in self.observed:
            raise AttributeError(f"the run does not hold {name}: population.observe(run) does")
        return self.observed[name]

    @property
    def is_observed(self) -> bool:
        """Whether the run holds all :attr:`observables`."""
        return all(name in self.observed for name in self.observables)

    @property
    def final(self) -> Any:
        """The last state; raises ToleranceError where the loss could be had at none."""
        if not len(self.states):
            raise ToleranceError(f"the run holds no state: {self.message}")
        return self.state(self.states[-1])

    def at(self, time: float) -> Any:
        """Return the state at a time within the run (dense output, else linear between records)."""
        if self.interpolant is not None:
            return self.state(self.interpolant.at(time))
        columns = [float(np.interp(time, self.time, column)) for column in self.states.T]
        return self.state(np.array(columns))

    def at_records(self, indices: list[int]) -> Trajectory:
        """Return the run with some of its records only."""
        kept = {name: getattr(self, name)[indices] for name in ("time", "states", "loss", "bound")}
        observed = {name: values[indices] for name, values in self.observed.items()}
        return replace(self, **kept, observed=observed)

    def violations(self) -> dict[str, float]:
        """Return the worst violation of each invariant, 0.0 where it holds."""
        return {invariant.name: invariant.worst(self) for invariant in self.invariants}

    def violated(self) -> dict[str, Violation]:
        """Return when each invariant is violated that does not hold throughout."""
        found = {invariant.name: invariant.violated(self) for invariant in self.invariants}
        return {name: violation for name, violation in found.items() if violation is not None}

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return what a dataset holds: name -> (one number per record, what it is)."""
        return {
            **{name: (self.column(name), "order parameter") for name in self.order_parameters},
            "loss": (self.loss, "population risk"),
            "bound": (self.bound, "absolute error of loss and gradient"),
        }

    def to_dataset(self) -> xarray.Dataset:
        """Return the run as a labelled dataset that carries its provenance (NetCDF-safe).

        What a run does not hold is not in it: ask for ``population.observe(run).to_dataset()``.
        """
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

    What else is known then of the observables is kept. A run that is complete or stalled is cut
    where its risk doubts it. ``population`` is a :class:`dynamics.core.risk.Risk`.
    """
    read = ("loss", "bound", *population.trajectory.observables)
    rows: list[dict[str, Any]] = []
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
        rows.append({name: getattr(value, name) for name in read if hasattr(value, name)})
    kept = len(rows)
    known = {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else read)}
    rest["settings"] = {**population.settings, **rest.get("settings", {})}
    run = population.trajectory(
        problem=population.problem,
        order_parameters=tuple(population.order_parameters),
        solver=solver,
        time=time[:kept],
        states=states[:kept],
        loss=known.pop("loss"),
        bound=known.pop("bound"),
        status=status,
        message=message,
        observed=known,
        **rest,
    )
    if status not in (Status.COMPLETED, Status.STALLED):
        return run
    certain, sentence = population.doubt(run)
    if certain == kept:
        return run
    cut = run.at_records(list(range(certain)))
    return replace(cut, status=Status.INACCURATE, message=sentence)
