"""The toy theory as the tools see it."""

from hypothesis import strategies as st

from dynamics.core.checks import finite, require
from simulations.running import (
    error_of_states,
    horizon_of,
    solver_parameters,
    solver_settings,
)
from simulations.system import COST, Case, Parameter, Quantity, System
from simulations.values import check_names
from tests.toy.dynamics.population import ToyPopulation, ToyProblem


class Toy(System):
    name = "toy"
    title = "a deep linear scalar"
    tolerance = 1e-12
    parameters = (
        Parameter(
            "s", "target (default 1)", float, "greater than 0", usual=1.0, stops=(0.5, 1.0, 2.0)
        ),
        Parameter("a0", "initial a (default 0.1)"),
        Parameter("b0", "initial b (default 0.2)"),
        *solver_parameters("100"),
    )
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
    constants = (
        Quantity("s", "target"),
        Quantity("a0", "initial a"),
        Quantity("b0", "initial b"),
        Quantity("horizon", "final time asked for", "time"),
    )

    def build(self, values):
        check_names(values, self.parameters)
        given = {name: finite(name, values[name]) for name in ("s", "a0", "b0") if name in values}
        require(given.get("s", 1.0) > 0.0, "s", given.get("s"), "greater than 0")
        solver, settings = solver_settings(values, 100.0)
        return Case(self.name, dict(values), ToyProblem(**given), solver, settings)

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

    def describe(self, case):
        problem = case.problem
        return {"s": problem.s, "a0": problem.a0, "b0": problem.b0, "horizon": horizon_of(case)}

    def cases(self, **fixed):
        number = st.floats(0.1, 2.0, allow_nan=False).map(lambda x: round(x, 3))
        drawn = {name: number for name in ("s", "a0", "b0") if name not in fixed}
        return st.fixed_dictionaries(drawn).map(lambda values: values | fixed)

    def flags(self, case):
        problem = case.problem
        return {"s": problem.s, "a0": problem.a0, "b0": problem.b0}


SYSTEM = Toy()
