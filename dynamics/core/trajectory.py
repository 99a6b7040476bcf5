"""Trajectories: recorded states, losses, the exit status and violated invariants."""

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
    """Exit status of a solver; the value is a message that says what to do."""

    COMPLETED = "the run reached its end"
    DIVERGED = "the iterates grew without bound: lower the learning rate"
    UNSTABLE = "the loss rose along the run: lower the learning rate"
    OVERFLOW = "the risk or its gradient overflowed: start from a smaller state"
    INACCURATE = "the expectation did not stay within its tolerance: relax it"
    STALLED = "the integrator could not reach its tolerance: relax rtol or the population tolerance"
    INTERRUPTED = "the run was interrupted; the results up to that point are preserved"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; the attribute ``trajectory`` is the run up to that point."""

    def __init__(self, trajectory: Trajectory) -> None:
        super().__init__(trajectory.status.value)
        self.trajectory = trajectory


class DenseOutput(Protocol):
    """Interpolant of the order parameters between the records of a trajectory."""

    def at(self, time: float) -> np.ndarray:
        """Return the order parameters at a time, shape (len(order_parameters),)."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Recorded states of gradient descent or gradient flow.

    A trajectory stores numbers and the constants of the problem, not the risk. A theory may
    override :meth:`state` (its type of states), :attr:`observables` (names of what `Risk.evaluate`
    returns in addition to the loss), :attr:`invariants` and :meth:`columns`.

    Attributes
    ----------
    problem
        Constants of the problem.
    order_parameters
        Names of the columns of ``states``.
    solver
        ``"gradient descent"`` or ``"gradient flow"``.
    time
        Flow time = learning rate x steps, shape (n,), starting at 0.
    states
        Order parameters at each record, shape (n, len(order_parameters)).
    loss, bound
        Population risk, and the certified error (three standard errors for sampling) of loss and
        gradient, shape (n,).
    status, message
        Exit status, and a sentence with the numbers.
    resolution
        Differences between order parameters below this are numerical noise.
    observed
        Mapping from each of ``observables`` to an array (n, ...). Empty where the observables cost
        far more than the loss; ``population.observe(run)`` adds them.
    settings
        Settings of the solver and of the expectation.
    stats
        Counts of gradient evaluations, steps and other operations of the solver.
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

    if TYPE_CHECKING:  # attributes of the subclass of a theory

        def __getattr__(self, name: str) -> Any: ...

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """Statements that should hold along the trajectory."""
        return (loss_non_increasing,)

    def column(self, name: str) -> np.ndarray:
        """Return an order parameter at all records, shape (n,)."""
        return self.states[:, self.order_parameters.index(name)]

    @staticmethod
    def state(vector: np.ndarray) -> Any:
        """Convert a row of ``states`` to a state of the theory; by default a copy."""
        return np.array(vector, float)

    def observation(self, name: str) -> np.ndarray:
        """Return an observable at all records, shape (n, ...).

        Raises
        ------
        AttributeError
            If the trajectory does not contain it.
        """
        if name not in self.observed:
            raise AttributeError(
                f"the trajectory does not contain {name}: use population.observe(trajectory)"
            )
        return self.observed[name]

    @property
    def is_observed(self) -> bool:
        """Whether the trajectory contains all :attr:`observables`."""
        return all(name in self.observed for name in self.observables)

    @property
    def final(self) -> Any:
        """The last state.

        Raises
        ------
        ToleranceError
            If the trajectory is empty: the loss was within its tolerance at no state.
        """
        if not len(self.states):
            raise ToleranceError(f"the trajectory contains no state: {self.message}")
        return self.state(self.states[-1])

    def at(self, time: float) -> Any:
        """Return the state at a time, by dense output or else linear interpolation."""
        if self.interpolant is not None:
            return self.state(self.interpolant.at(time))
        columns = [float(np.interp(time, self.time, column)) for column in self.states.T]
        return self.state(np.array(columns))

    def at_records(self, indices: list[int]) -> Trajectory:
        """Return the trajectory restricted to the records with these indices."""
        names = ("time", "states", "loss", "bound")
        arrays = {name: getattr(self, name)[indices] for name in names}
        observed = {name: values[indices] for name, values in self.observed.items()}
        return replace(self, **arrays, observed=observed)

    def violations(self) -> dict[str, float]:
        """Return a mapping from invariant name to worst violation, 0.0 where it holds."""
        return {invariant.name: invariant.worst(self) for invariant in self.invariants}

    def violated(self) -> dict[str, Violation]:
        """Return a mapping from the names of violated invariants to times and size."""
        results = {invariant.name: invariant.violated(self) for invariant in self.invariants}
        return {name: violation for name, violation in results.items() if violation is not None}

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return the dataset variables: name -> (array of shape (n,), long name)."""
        return {
            **{name: (self.column(name), "order parameter") for name in self.order_parameters},
            "loss": (self.loss, "population risk"),
            "bound": (self.bound, "absolute error of loss and gradient"),
        }

    def to_dataset(self) -> xarray.Dataset:
        """Return a labelled dataset with provenance that can be written to NetCDF.

        Observables are included if the trajectory contains them; ``population.observe(run)`` adds
        them.
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
                "problem": json.dumps(asdict(self.problem), default=_to_list),
                "settings": json.dumps(dict(self.settings)),
                "provenance": json.dumps(provenance()),
            },
        )


def _to_list(value: Any) -> Any:
    """Convert arrays and NumPy scalars for JSON."""
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
    """Build a trajectory: evaluate loss and bound at the states, truncated where that fails.

    Parameters
    ----------
    population
        The :class:`dynamics.core.risk.Risk`.
    solver, time, states, status, message
        Fields of the trajectory.
    **rest
        Its other fields; ``settings`` are merged with those of the risk.

    Returns
    -------
    Trajectory
        With the observables that `Risk.certified_loss` returns. A completed or stalled trajectory
        is truncated after its reliable records (`Risk.reliable_records`).
    """
    names = ("loss", "bound", *population.trajectory.observables)
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
        rows.append({name: getattr(value, name) for name in names if hasattr(value, name)})
    count = len(rows)
    known = {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else names)}
    rest["settings"] = {**population.settings, **rest.get("settings", {})}
    run = population.trajectory(
        problem=population.problem,
        order_parameters=tuple(population.order_parameters),
        solver=solver,
        time=time[:count],
        states=states[:count],
        loss=known.pop("loss"),
        bound=known.pop("bound"),
        status=status,
        message=message,
        observed=known,
        **rest,
    )
    if status not in (Status.COMPLETED, Status.STALLED):
        return run
    reliable, reason = population.reliable_records(run)
    if reliable == count:
        return run
    truncated = run.at_records(list(range(reliable)))
    return replace(truncated, status=Status.INACCURATE, message=reason)
