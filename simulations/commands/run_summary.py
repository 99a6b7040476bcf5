"""What `patchdyn run` says about a trajectory, as plain data and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simulations.files.as_json import plain

if TYPE_CHECKING:
    from dynamics import Population, Trajectory

_COLUMNS = ("alpha", "gamma", "rho", "Lambda", "Gamma", "Xi", "G", "loss", "test_error")


def summarize(trajectory: Trajectory, population: Population) -> dict[str, Any]:
    """Return everything worth saying about a run, JSON-safe (nan becomes null)."""
    from dynamics.core.provenance import provenance
    from dynamics.positional.labelling import label_error

    problem = trajectory.problem
    derived = {"L": problem.L, "qD": problem.q * problem.D, "kappa": problem.kappa}
    any_record = trajectory.time.size > 0
    return plain(
        {
            "status": trajectory.status.name.lower(),
            "message": trajectory.message,
            "problem": asdict(problem) | derived,
            "solver": trajectory.solver,
            "settings": dict(trajectory.settings),
            "stats": dict(trajectory.stats),
            "method": population.method,
            "reason": population.reason,
            "tolerance": population.tolerance,
            "time": trajectory.time[-1] if any_record else 0.0,
            "initial": _record(trajectory, 0) if any_record else None,
            "final": _record(trajectory, -1) if any_record else None,
            "test_error_floor": label_error(problem).error,
            "events": _events(trajectory, population),
            "violations": trajectory.violations() if any_record else None,
            "provenance": provenance(),
        }
    )


def _record(trajectory: Trajectory, index: int) -> dict[str, float]:
    numbers = (
        *trajectory.states[index],
        *trajectory.attention[index],
        trajectory.loss[index],
        trajectory.test_error[index],
    )
    rest = {"mean_sigmoid": trajectory.mean_sigmoid[index], "bound": trajectory.bound[index]}
    return dict(zip(_COLUMNS, numbers)) | rest


def _events(trajectory: Trajectory, population: Population) -> dict[str, Any] | None:
    """Return times and definitions of the events; ``None`` for descent or an interrupted run."""
    from dynamics import Status
    from dynamics.positional.events import find_events

    interrupted = trajectory.status is Status.INTERRUPTED
    if trajectory.solver != "gradient flow" or interrupted or trajectory.time.size < 2:
        return None

    try:
        events = find_events(trajectory, population)
    except ArithmeticError:  # the expectation is not available all along a run that failed
        return None
    located = {
        key: {"time": event.time, "state": event.state, "definition": event.definition}
        for key in ("T0", "T1", "onset", "end_of_rise")
        for event in (getattr(events, key),)
    }
    return located | {
        "alpha_star": events.alpha_star,
        "rise": events.rise,
        "alpha_after_event_I": events.alpha_after_event_I,
    }


def as_text(summary: Mapping[str, Any]) -> str:
    """Return a summary for a person."""
    parts = [_problem_line(summary["problem"]), *_how(summary)]
    if summary["final"] is not None:
        parts += ["", *_table(summary)]
    if summary["events"] is not None:
        parts += ["", *_event_lines(summary["events"])]
    if summary["violations"] is not None:
        broken = {name: worst for name, worst in summary["violations"].items() if worst}
        parts += ["", f"invariants   {len(summary['violations']) - len(broken)} hold"]
        parts += [f"             {name} is violated by {_show(w)}" for name, w in broken.items()]
    return "\n".join(parts)


def _problem_line(problem: Mapping[str, Any]) -> str:
    return (
        f"problem      D = {problem['D']}, C = {problem['C']} ({problem['L']} sets), "
        f"q = {_show(problem['q'])} (qD = {_show(problem['qD'])}), p = {problem['p']}, "
        f"nu = {_show(problem['nu'])}, beta = {_show(problem['beta'])}, "
        f"tau = {_show(problem['temperature'])}, kappa = {_show(problem['kappa'])}"
    )


def _how(summary: Mapping[str, Any]) -> list[str]:
    costs = ", ".join(f"{int(count)} {name}" for name, count in summary["stats"].items())
    return [
        f"expectation  {summary['reason']}",
        f"solver       {summary['solver']} to time {_show(summary['time'])} ({costs})",
        f"status       {summary['status']}: {summary['message']}",
    ]


def _table(summary: Mapping[str, Any]) -> list[str]:
    first, last = summary["initial"], summary["final"]
    lines = [f"{'':<12} {'start':>14} {'end':>14}"]
    lines += [f"{name:<12} {_show(first[name]):>14} {_show(last[name]):>14}" for name in _COLUMNS]
    kind = "three standard errors" if summary["method"] == "sampling" else "certified"
    lines[8] += f"   +- {last['bound']:.1e} ({kind})"
    lines[9] += f"   floor {_show(summary['test_error_floor'])} (sets that imitate a signal set)"
    return lines


def _event_lines(events: Mapping[str, Any]) -> list[str]:
    def when(key: str) -> str:
        time = events[key]["time"]
        return "not within this run" if time is None else f"at time {_show(time)}"

    lines = [
        f"Event I      ends {when('T0')} (T0: alpha within 1 % of its quasi-steady value)",
        f"Event II     ends {when('T1')} (T1: gamma exceeds the largest |rho| of the run)",
        f"Event III    begins {when('onset')} (alpha rises again)",
    ]
    return [*lines, f"             after Event I alpha {events['alpha_after_event_I']}"]


def _show(number: float | None) -> str:
    return "-" if number is None else f"{number:.6g}"
