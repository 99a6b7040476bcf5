"""What a file states, as claims of a report: its reduction, and each of its conjectures."""

from functools import partial
from typing import Any

import xarray

from simulations.falsify import falsify
from simulations.figures import one_run, report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Outcome, Paper, Verdict
from simulations.reproduction.measured import measured_at
from simulations.stated.findings import AGREES, examine
from simulations.stated.system import StatedSystem
from simulations.system import System

#: Seconds of the search for a counterexample.
BUDGET, QUICK_BUDGET = 30.0, 10.0


def claims_of(theory: System) -> tuple[Claim, ...]:
    """Return the claims of a file: that the reduction is exact, and the conjectures it states."""
    assert isinstance(theory, StatedSystem)
    name = theory.stated.name
    paper = Paper(theory.stated.paper, f"{name}, as {theory.path.name} states it", "")
    reduction = Claim(
        id=f"{name}-reduction",
        place="the whole statement",
        statement="Descent keeps the orbits of the symmetry group equal, for all sizes.",
        measures="Loss and gradient of the derived reduction against the full model, small sizes.",
        criterion=f"Exact: rounding alone is allowed, {AGREES:g} of the largest gradient entry.",
        run=partial(_reduction, theory),
        depends="the dense reading of the same file",
        paper=paper,
    )
    conjectures = (
        Claim(
            id=f"{name}-conjecture-{number}",
            place="claims of the file",
            statement=text,
            measures="A search for a problem whose flow violates it.",
            criterion="It fails where a violation exceeds its numerical error; else nothing speaks "
            "against it, which proves nothing.",
            run=partial(_conjecture, theory, text),
            quick_note=f"{QUICK_BUDGET:g} seconds instead of {BUDGET:g}",
            paper=paper,
        )
        for number, text in enumerate(theory.stated.claims, start=1)
    )
    return reduction, *conjectures


def _reduction(theory: StatedSystem, context: Context) -> Outcome:
    found = examine(theory.stated)
    worst, around = max(found.check.difference, found.check.spread), found.manifold
    conserved = "; ".join(found.conserved) or "nothing linear or quadratic"
    return Outcome(
        Verdict.HOLDS if found.agrees else Verdict.FAILS,
        measured_at(
            dict(found.check.at),
            ("order_parameters", "order parameters", len(found.order_parameters)),
            ("difference", "largest difference from the full model, relative", float(worst)),
            ("discovered", "values that move, from the gradient alone", around.discovered),
            ("growth", "rate at which the manifold repels at the start", around.growth),
            ("conserved", "what the flow conserves there", conserved),
        ),
        AGREES, dict(found.check.at),
        f"{len(found.order_parameters)} order parameters; reduced and full model differ by "
        f"{worst:.1e} of the largest entry; conserved: {conserved}.",
        (_one_run(theory),),
    )  # fmt: skip


def _one_run(theory: StatedSystem) -> Figure:
    case = theory.build({})
    run = theory.solve(case)
    data = xarray.Dataset(
        {"state": (("parameter", "time"), run.states.T), "loss": ("time", run.loss)},
        coords={"parameter": list(run.order_parameters), "time": run.time},
    )
    at = ", ".join(f"{name} = {x:g}" for name, x in case.problem.values.items())
    return report_figure(
        f"{theory.stated.name}-run", f"{theory.stated.name}: one flow",
        f"Order parameters and population risk against flow time at {at}.",
        one_run.draw, data, (7.0, 6.0),
    )  # fmt: skip


def _conjecture(theory: StatedSystem, text: str, context: Context) -> Outcome:
    budget = QUICK_BUDGET if context.quick else BUDGET
    report = falsify(
        text, system=theory, budget=budget, seed=context.seed, horizon=theory.horizon,
        progress=lambda fraction, _: context.progress(min(fraction, 1.0)),
    )  # fmt: skip
    where: dict[str, Any] = {}
    rows: list[Any] = [("tried", "problems tried", report.tried)]
    summary = f"Not falsified in {report.tried} problems."
    if report.counterexample is not None:
        trial = report.counterexample
        where = dict(trial.case.problem.values)
        rows += [("violation", "by how much it is violated", float(trial.violation)),
                 ("error", "numerical error of that", float(trial.bound))]  # fmt: skip
        summary = f"Violated by {trial.violation:.3g}: {report.command}"
    return Outcome(
        Verdict.FAILS if report.falsified else Verdict.HOLDS,
        measured_at(where, *rows), None, {"budget": budget}, summary,
    )  # fmt: skip
