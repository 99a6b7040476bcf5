"""Check a conjecture on a given trajectory, for use in tests."""

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
    """Evaluate a conjecture on a trajectory.

    Parameters
    ----------
    conjecture
        A statement in the language of :mod:`simulations.falsify.language`.
    trajectory
        A run of `gradient_flow` or `gradient_descent`.
    system
        The theory or its name.
    population
        The risk of the run; by default it is built from the problem and the settings of the run.
    """
    theory = load(system) if isinstance(system, str) else system
    case = case_of(trajectory, theory)
    risk = population or theory.population(case)
    return Conjecture(conjecture, theory).evaluate(case, trajectory, risk)


def assert_holds(
    conjecture: str,
    trajectory: Trajectory,
    system: str | System = DEFAULT,
    population: Risk | None = None,
) -> None:
    """Raise AssertionError if a trajectory violates a conjecture; arguments as in :func:`check`.

    Raises
    ------
    AssertionError
        If the conjecture is violated beyond the numerical error, or the run did not complete.
    """
    trial = check(conjecture, trajectory, system, population)
    if trial.result in (Result.VIOLATED, Result.INCOMPLETE):
        raise AssertionError(describe(conjecture, trial))


def describe(conjecture: str, trial: Trial) -> str:
    """Return a sentence with the numbers of a trial."""
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
        "initial": trajectory.at(0.0),
        "method": trajectory.settings.get("expectation", "auto"),
        "tolerance": trajectory.settings.get("population_tolerance"),
    }
    return Case(system.name, {}, trajectory.problem, solver, settings)
