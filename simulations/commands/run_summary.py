"""Summary of a trajectory of any theory, as JSON-safe data and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simulations import theories

if TYPE_CHECKING:
    from dynamics import Risk, Trajectory
    from simulations.case import Case
    from simulations.system import System


def summarize(
    theory: System, case: Case, trajectory: Trajectory, population: Risk, seconds: float
) -> dict[str, Any]:
    """Return a JSON-safe summary of a run; nan becomes null.

    Parameters
    ----------
    theory, case, trajectory, population
        Theory, case, trajectory and population risk of the run.
    seconds
        Wall time of the run.

    Returns
    -------
    dict
        Problem, settings, status, observables at both ends (``initial``, ``final``), outcomes and
        violations of invariants. ``outcomes`` is ``None`` after an interruption: they may be
        expensive to compute.
    """
    from dynamics import Status
    from dynamics.core.provenance import provenance
    from simulations.files import plain

    any_record = trajectory.time.size > 0
    interrupted = trajectory.status is Status.INTERRUPTED
    outcomes = None if interrupted else theory.summarize(case, trajectory, population, seconds)
    ends: dict[str, Any] = {"initial": None, "final": None}
    if any_record:
        ends = _ends(theory, case, population.observe(trajectory.at_records([0, -1])))
    return plain(
        {
            "system": theory.name,
            "status": trajectory.status.name.lower(),
            "message": trajectory.message,
            "problem": asdict(case.problem),
            "constants": theory.describe(case),
            "solver": trajectory.solver,
            "settings": dict(trajectory.settings),
            "stats": dict(trajectory.stats),
            "method": population.method,
            "reason": population.reason,
            "tolerance": population.tolerance,
            "time": trajectory.time[-1] if any_record else 0.0,
            **ends,
            "outcomes": outcomes and {q.name: outcomes[q.name] for q in theory.outcomes},
            "violations": trajectory.violations() if any_record else None,
            "violated": _violated(trajectory) if any_record else None,
            "command": theories.command(case),
            "provenance": provenance(),
            **({} if interrupted else theory.details(case, trajectory, population)),
        }
    )


def _violated(trajectory: Trajectory) -> dict[str, dict[str, Any]]:
    """Return the violations of the invariants that do not hold throughout."""
    graded = {invariant.name: invariant.graded for invariant in trajectory.invariants}
    return {
        name: {**asdict(violation), "graded": graded[name]}
        for name, violation in trajectory.violated().items()
    }


def _ends(theory: System, case: Case, trajectory: Trajectory) -> dict[str, dict[str, float]]:
    """Return the observables at the two records of a run."""
    columns = theory.observe(case, trajectory)
    return {
        end: {name: float(values[index]) for name, values in columns.items()}
        for index, end in enumerate(("initial", "final"))
    }


def as_text(theory: System, summary: Mapping[str, Any]) -> str:
    """Return a summary as text."""
    constants = (f"{name} = {_show(value)}" for name, value in summary["constants"].items())
    costs = ", ".join(f"{int(count)} {name}" for name, count in summary["stats"].items())
    lines = [
        f"problem      {', '.join(constants)}",
        f"expectation  {summary['reason']}",
        f"solver       {summary['solver']} to time {_show(summary['time'])} ({costs})",
        f"status       {summary['status']}: {summary['message']}",
    ]
    if summary["final"] is not None:
        lines += ["", *_table(theory, summary)]
    if summary["outcomes"] is not None:
        lines += ["", *_outcomes(theory, summary)]
    if summary["violations"] is not None:
        violated = summary["violated"]
        lines += ["", f"invariants   {len(summary['violations']) - len(violated)} hold"]
        lines += [
            f"             {describe_violation(name, violation)}"
            for name, violation in violated.items()
        ]
    return "\n".join(lines)


def _table(theory: System, summary: Mapping[str, Any]) -> list[str]:
    """Return the lines of the observables at both ends, with the bound of the loss."""
    first, last = summary["initial"], summary["final"]
    bound_type = theory.estimates.get(summary["method"], "certified")
    lines = [f"{'':<28} {'start':>13} {'end':>13}"]
    for quantity in theory.observables:
        name = quantity.name
        line = f"{name:<28} {_show(first[name]):>13} {_show(last[name]):>13}   {quantity.meaning}"
        if name == "loss" and "bound" in last:
            bound = "unknown" if last["bound"] is None else f"{last['bound']:.1e}"
            line += f", +- {bound} ({bound_type})"
        lines.append(line)
    return lines


def _outcomes(theory: System, summary: Mapping[str, Any]) -> list[str]:
    """Return the lines of the outcomes that are not observables."""
    return [
        f"{quantity.name:<28} {_show(summary['outcomes'][quantity.name]):>13}   {quantity.meaning}"
        for quantity in theory.outcomes
        if quantity.name not in (summary["final"] or ())
    ]


def describe_violation(name: str, violation: Mapping[str, Any]) -> str:
    """Return a description of when an invariant is violated and when it holds.

    Parameters
    ----------
    name
        Name of the invariant.
    violation
        Fields of `dynamics.core.invariants.Violation`, and whether the invariant is ``graded``.
    """
    first, last = _show(violation["first"]), _show(violation["last"])
    times = f"first at time {first}, last at {last}" if first != last else f"at time {first}"
    text = f"{name} is violated {times}"
    if violation["graded"]:
        worst, at = _show(violation["worst"]), _show(violation["at"])
        text = f"{name} is violated by {worst} (at time {at})"
        text += f", {times}" if first != last else ""
    if violation["begins"] is None:
        return f"{text}: at every record"
    if violation["for_good"] is None:
        return f"{text}, the end of the run"
    begins, for_good = _show(violation["begins"]), _show(violation["for_good"])
    if violation["begins"] < violation["first"]:
        return f"{text}; it holds before, and again from time {for_good} to the end"
    if violation["begins"] == violation["for_good"]:
        return f"{text}; it holds from time {begins} to the end"
    return f"{text}; it first holds at time {begins}, and from time {for_good} to the end"


def _show(number: float | None) -> str:
    return "-" if number is None else f"{number:.6g}"
