"""What `patchdyn run` says about a trajectory, as plain data and as text, in any theory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simulations import theories

if TYPE_CHECKING:
    from dynamics import Risk, Trajectory
    from simulations.system import Case, System


def summarize(
    theory: System, case: Case, trajectory: Trajectory, population: Risk, seconds: float
) -> dict[str, Any]:
    """Return everything worth saying about a run, JSON-safe (nan becomes null).

    ``seconds`` is the wall time that the run took; ``initial`` and ``final`` are the observables at
    the ends. Of an interrupted run only the records are told: outcomes may take long.
    """
    from dynamics import Status
    from dynamics.core.provenance import provenance
    from simulations.files.as_json import plain

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
    """Return when each invariant is violated that does not hold throughout."""
    graded = {invariant.name: invariant.graded for invariant in trajectory.invariants}
    return {
        name: {**asdict(violation), "graded": graded[name]}
        for name, violation in trajectory.violated().items()
    }


def _ends(theory: System, case: Case, trajectory: Trajectory) -> dict[str, dict[str, float]]:
    """Return the observables of a run with two records: its first and its last."""
    columns = theory.observe(case, trajectory)
    return {
        end: {name: float(values[index]) for name, values in columns.items()}
        for index, end in enumerate(("initial", "final"))
    }


def as_text(theory: System, summary: Mapping[str, Any]) -> str:
    """Return a summary for a person."""
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
        broken = summary["violated"]
        lines += ["", f"invariants   {len(summary['violations']) - len(broken)} hold"]
        lines += [f"             {when(name, found)}" for name, found in broken.items()]
    return "\n".join(lines)


def _table(theory: System, summary: Mapping[str, Any]) -> list[str]:
    """Return the observables at both ends; the bound stands beside the loss."""
    first, last = summary["initial"], summary["final"]
    kind = theory.estimates.get(summary["method"], "certified")
    lines = [f"{'':<28} {'start':>13} {'end':>13}"]
    for quantity in theory.observables:
        name = quantity.name
        line = f"{name:<28} {_show(first[name]):>13} {_show(last[name]):>13}   {quantity.meaning}"
        if name == "loss" and "bound" in last:
            bound = "unknown" if last["bound"] is None else f"{last['bound']:.1e}"
            line += f", +- {bound} ({kind})"
        lines.append(line)
    return lines


def _outcomes(theory: System, summary: Mapping[str, Any]) -> list[str]:
    """Return the outcomes that the table does not hold already."""
    return [
        f"{quantity.name:<28} {_show(summary['outcomes'][quantity.name]):>13}   {quantity.meaning}"
        for quantity in theory.outcomes
        if quantity.name not in (summary["final"] or ())
    ]


def when(name: str, found: Mapping[str, Any]) -> str:
    """Return when an invariant is violated and from when on it holds, by the records of the run."""
    first, last = _show(found["first"]), _show(found["last"])
    until = f"first at time {first}, last at {last}" if first != last else f"at time {first}"
    told = f"{name} is violated {until}"
    if found["graded"]:
        told = f"{name} is violated by {_show(found['worst'])} (at time {_show(found['at'])})"
        told += f", {until}" if first != last else ""
    if found["begins"] is None:
        return f"{told}: at every record"
    if found["for_good"] is None:
        return f"{told}, the end of the run"
    if found["begins"] < found["first"]:
        return f"{told}; it holds before, and for good from time {_show(found['for_good'])}"
    if found["begins"] == found["for_good"]:
        return f"{told}; it begins to hold at time {_show(found['begins'])}, for good"
    begins, good = _show(found["begins"]), _show(found["for_good"])
    return f"{told}; it begins to hold at time {begins}, for good from time {good}"


def _show(number: float | None) -> str:
    return "-" if number is None else f"{number:.6g}"
