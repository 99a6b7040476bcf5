"""A conjecture on a run at hand, for tests of one's own."""

from dynamics import Risk, Trajectory
from simulations.case import Case
from simulations.falsify.trial import Conjecture, Result, Trial
from simulations.system import System
from simulations.theories import DEFAULT, load


def check(
    conjecture: str,
    trajectory: Trajectory,
    system: str | System = DEFAULT,
    population: Risk | None = None,
) -> Trial:
    """Return what a run of the solvers says about a conjecture.

    ``population`` is the risk that it descended: by default an equal one, made from the problem
    and the settings of the run.
    """
    theory = load(system) if isinstance(system, str) else system
    case = case_of(trajectory, theory)
    risk = population or theory.population(case)
    return Conjecture(conjecture, theory).judge(case, trajectory, risk)


def assert_holds(
    conjecture: str,
    trajectory: Trajectory,
    system: str | System = DEFAULT,
    population: Risk | None = None,
) -> None:
    """Raise AssertionError, with the numbers, if a run violates a conjecture.

    A violation within the numerical error raises nothing; a run that did not complete raises, since
    it says nothing.
    """
    trial = check(conjecture, trajectory, system, population)
    if trial.result in (Result.VIOLATED, Result.INCOMPLETE):
        raise AssertionError(describe(conjecture, trial))


def describe(conjecture: str, trial: Trial) -> str:
    """Return one paragraph on a trial."""
    if trial.result is Result.INCOMPLETE:
        return f"{conjecture}: undecided, the run did not complete ({trial.message})"
    when = "" if trial.time is None else f" at time {trial.time:.6g}"
    values = ", ".join(f"{name} = {value:.6g}" for name, value in trial.values.items())
    return (
        f"{conjecture}: {trial.result}{when}, by {trial.violation:.3g} (numerical error "
        f"{trial.bound:.1g}); {values}; {trial.case.problem}"
    )


def case_of(trajectory: Trajectory, system: System) -> Case:
    """Return the case of a run that was not made through a system."""
    solver = "gd" if "learning_rate" in trajectory.settings else "flow"
    settings = {
        **trajectory.settings,
        "initial": trajectory.at(0.0), "method": trajectory.settings.get("expectation", "auto"),
        "tolerance": trajectory.settings.get("population_tolerance"),
    }  # fmt: skip
    return Case(system.name, {}, trajectory.problem, solver, settings)
