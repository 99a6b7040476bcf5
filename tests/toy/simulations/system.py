"""The toy theory as the tools see it."""

from dataclasses import dataclass
from typing import Annotated

from dynamics.core.annotations import Doc, above
from simulations.case import COST, Quantity
from simulations.solver_options import Solver, error_of_states
from simulations.system import System
from tests.toy.dynamics.population import ToyPopulation, ToyProblem


@dataclass(frozen=True)
class ToySolver(Solver):
    horizon: Annotated[float, above(0), Doc("final time")] = 100.0


class Toy(System):
    name = "toy"
    title = "a deep linear scalar"
    tolerance = 1e-12
    problem = ToyProblem
    solver = ToySolver
    outcomes = (
        Quantity("time", "flow time reached", "time"),
        Quantity("product", "final a b"),
        Quantity("loss", "final risk"),
        *COST,
    )
    observables = (
        Quantity("time", "learning rate x steps", "time"),
        Quantity("a", "first scalar"),
        Quantity("b", "second scalar"),
        Quantity("loss", "risk"),
        Quantity("bound", "absolute error of the loss"),
    )

    def population(self, case):
        return ToyPopulation(case.problem)

    def summary(self, case, trajectory, population):
        a, b = trajectory.final
        return {
            "time": float(trajectory.time[-1]),
            "product": a * b,
            "loss": float(trajectory.loss[-1]),
        }

    def observe(self, case, trajectory):
        columns = {name: trajectory.column(name) for name in ("a", "b")}
        return {
            "time": trajectory.time, **columns,
            "loss": trajectory.loss, "bound": trajectory.bound,
        }  # fmt: skip

    def errors(self, case, trajectory):
        columns = self.observe(case, trajectory)
        found = {name: error_of_states(trajectory, columns[name]) for name in ("a", "b", "loss")}
        return {"time": 0.0, "bound": 0.0} | found


SYSTEM = Toy()
