"""Claims about a theory file for the report: its reduction and its conjectures."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray

from dynamics import Trajectory
from simulations.case import Case
from simulations.figures import report_figure
from simulations.figures.shared import draw_run
from simulations.reproduction.claim import Claim, Context, Figure, Measurement, Paper
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.stated.conjectures import conjectures_of, rerun_command
from simulations.stated.findings import AGREES, examine
from simulations.stated.formulas import first_times
from simulations.stated.system import UserTheorySystem
from simulations.system import System


def claims_of(theory: System) -> tuple[Claim, ...]:
    """Return the claims of a file: exactness of the reduction, and its conjectures."""
    assert isinstance(theory, UserTheorySystem)
    name = theory.theory_of_index_sets.name
    paper = Paper(theory.theory.paper, f"{name}, as {theory.path.name} states it", "")
    reduction = Claim(
        id=f"{name}-reduction",
        place="the whole statement",
        statement="Gradient descent preserves equality on the orbits of the group, for all sizes.",
        method="Loss and gradient of the reduction against the full model at small sizes.",
        criterion=f"Equality up to rounding: {AGREES:g} of the largest gradient entry.",
        tables={"reduction": REDUCTION, **_own_tables(theory)},
        measure=partial(_reduction, theory),
        headline=_sizes,
        finding=(
            "{order_parameters} order parameters; reduced and full model differ by "
            "{difference:.1e} of the largest entry."
        ),
        tolerance=AGREES,
        assumptions="the full model is built from the same file",
        command=rerun_command(theory),
        paper=paper,
    )
    return reduction, *conjectures_of(theory, paper)


REDUCTION = Table(
    index=(),
    columns={
        "order_parameters": Column("order parameters"),
        "difference": Column("largest difference from the full model, relative", atol=AGREES),
        "agrees": Column("each orbit has one value in the gradient of the full model"),
        "discovered": Column("values that move, detected from that gradient"),
        "growth": Column("largest growth rate of a deviation from the manifold at the start"),
        "conserved": Column("conserved forms"),
    },
    strict={
        "the reduction is the full model up to rounding": lambda t: t.difference <= AGREES,
        "each orbit has one value": lambda t: t.agrees,
    },
)
OBSERVABLES = Table(
    index=("observable",),
    columns={
        "formula": Column("formula"),
        "start": Column("at the start", missing="undefined"),
        "end": Column("at the end", missing="undefined"),
    },
)
EVENTS = Table(
    index=("event",),
    columns={
        "formula": Column("formula"),
        "time": Column("first time", "flow time", missing="not within the run", rtol=1e-5),
    },
)


def _own_tables(theory: UserTheorySystem) -> dict[str, Table]:
    """Return the tables of the observables and events that a file defines."""
    tables = {"observables": OBSERVABLES, "events": EVENTS}
    return {name: table for name, table in tables.items() if getattr(theory.theory, name)}


def _sizes(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    return dict(tables["reduction"].data.iloc[0])


def _reduction(theory: UserTheorySystem, context: Context) -> Measurement:
    findings = examine(theory.theory_of_index_sets)
    row = {
        "order_parameters": len(findings.order_parameters),
        "difference": findings.check.largest,
        "agrees": findings.agrees,
        "discovered": findings.manifold.discovered,
        "growth": findings.manifold.growth,
        "conserved": "; ".join(findings.conserved) or "nothing linear or quadratic",
    }
    case = theory.build({})
    population = theory.population(case)
    run = theory.solve(case, population=population)
    columns = theory.observe(case, run)
    times = first_times(theory.theory, theory.describe(case), run, population)
    rows: dict[str, list[dict[str, Any]]] = {
        "observables": [
            {"observable": x, "formula": text, "start": columns[x][0], "end": columns[x][-1]}
            for x, text in theory.theory.observables.items()
        ],
        "events": [
            {"event": x, "formula": text, "time": times[x]}
            for x, text in theory.theory.events.items()
        ],
    }
    tables = {name: table.frame(rows[name]) for name, table in _own_tables(theory).items()}
    tables["reduction"] = REDUCTION.frame([row])
    figure = _figure(theory, case, run, columns)
    return Measurement(tables, dict(findings.check.at), (figure,), theory.equations)


def _figure(
    theory: UserTheorySystem, case: Case, run: Trajectory, columns: Mapping[str, np.ndarray]
) -> Figure:
    """Return the figure of one run: order parameters, observables of the file and risk."""
    own = list(theory.theory.observables)
    states = np.array([*run.states.T, *(columns[name] for name in own)])
    data = xarray.Dataset(
        {"state": (("parameter", "time"), states), "loss": ("time", run.loss)},
        coords={"parameter": [*run.order_parameters, *own], "time": run.time},
    )
    at = ", ".join(f"{name} = {x:g}" for name, x in case.problem.values.items())
    return report_figure(
        f"{theory.theory.name}-run", f"{theory.theory.name}: one flow",
        f"Order parameters and population risk against flow time at {at}.",
        draw_run, data, (7.0, 6.0),
    )  # fmt: skip
