"""Claims about a theory file for the report: its reduction and its conjectures."""

import math
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
from simulations.stated import overlap_findings
from simulations.stated.conjectures import conjectures_of, rerun_command
from simulations.stated.findings import AGREES, examine
from simulations.stated.formulas import first_times
from simulations.stated.overlap_check import TOLERANCE
from simulations.stated.system import UserTheorySystem
from simulations.system import System
from symbolic.overlaps import OverlapTheory


def claims_of(theory: System) -> tuple[Claim, ...]:
    """Return the claims of a file: exactness of the reduction, and its conjectures."""
    assert isinstance(theory, UserTheorySystem)
    if isinstance(theory.theory, OverlapTheory):
        return (_overlap_claim(theory, theory.theory),)
    name = theory.theory_of_index_sets.name
    paper = Paper(theory.theory.paper, f"{name}, as {theory.path.name} states it", "")
    reduction = Claim(
        id=f"{name}-reduction",
        place="the whole statement",
        statement="Gradient descent preserves equality on the orbits of the group, for all sizes.",
        method="Loss and gradient of the reduction against the full model at small sizes.",
        criterion=f"Equality up to rounding: {AGREES:g} of the largest gradient entry.",
        tables={"reduction": _table(theory), **_own_tables(theory)},
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


def _overlap_claim(system: UserTheorySystem, theory: OverlapTheory) -> Claim:
    """Return the claim that descent on overlaps is descent on vectors."""
    return Claim(
        id=f"{theory.name.replace(' ', '-')}-overlaps",
        place="the whole statement",
        statement=(
            "Gradient descent on the vectors moves their overlaps by an exact step, in every "
            "dimension that is at least the number of vectors."
        ),
        method="Loss and steps on overlaps against gradient descent on vectors at small sizes.",
        criterion=f"Equality up to rounding: {TOLERANCE:g}, relative to 1 + the value.",
        tables={"overlaps": OVERLAPS, "digits": DIGITS},
        measure=partial(_overlaps, system, theory),
        headline=_counts,
        finding=(
            "{order_parameters} order parameters, {expectations} expectations; steps on overlaps "
            "and on vectors differ by {difference:.1e}."
        ),
        tolerance=TOLERANCE,
        assumptions="descent on vectors is built from the same file",
        command=rerun_command(system),
        paper=Paper(theory.paper, f"{theory.name}, as {system.path.name} states it", ""),
    )


OVERLAPS = Table(
    index=(),
    columns={
        "order_parameters": Column("order parameters"),
        "expectations": Column("expectations in the loss"),
        "difference": Column("largest difference from descent on vectors", atol=TOLERANCE),
    },
    strict={
        "steps on overlaps are steps on vectors up to rounding": lambda t: (
            t.difference <= TOLERANCE
        ),
    },
)
DIGITS = Table(
    index=("time", "number"),
    columns={
        "digits": Column("digits proved in ball arithmetic"),
        "bound": Column("bound of the relative error", missing="none is proved", rtol=math.inf),
    },
)


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
#: With frames, the gradient of the full model is known at a few rotations.
_AT_ROTATIONS = ("order_parameters", "difference", "conserved")
REDUCTION_OF_FRAMES = Table(
    index=(),
    columns={name: REDUCTION.columns[name] for name in _AT_ROTATIONS},
    strict=dict([*REDUCTION.strict.items()][:1]),
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


def _table(theory: UserTheorySystem) -> Table:
    """Return the table of the comparison with the full model."""
    return REDUCTION_OF_FRAMES if theory.theory_of_index_sets.is_framed else REDUCTION


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
        "conserved": "; ".join(findings.conserved) or "nothing linear or quadratic",
    }
    if findings.manifold is not None:
        row["agrees"] = findings.agrees
        row["discovered"] = findings.manifold.discovered
        row["growth"] = findings.manifold.growth
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
    tables["reduction"] = _table(theory).frame([row])
    figure = _figure(theory, case, run, columns)
    return Measurement(tables, dict(findings.check.at), (figure,), theory.equations)


def _overlaps(system: UserTheorySystem, theory: OverlapTheory, context: Context) -> Measurement:
    findings = overlap_findings.examine(theory)
    row = {
        "order_parameters": len(findings.order_parameters),
        "expectations": findings.expectations,
        "difference": max(findings.check.loss, findings.check.overlaps),
    }
    digits = [
        {"time": x.time, "number": name, "digits": number, "bound": _finite(x.bound[name])}
        for x in findings.digits
        for name, number in x.proved.items()
    ]
    case = system.build({})
    run = system.solve(case, population=system.population(case))
    tables = {"overlaps": OVERLAPS.frame([row]), "digits": DIGITS.frame(digits)}
    figure = _figure(system, case, run, {})
    return Measurement(tables, dict(findings.check.values), (figure,), system.equations)


def _counts(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    row = tables["overlaps"].data.iloc[0]
    counts = {name: int(row[name]) for name in ("order_parameters", "expectations")}
    return {**counts, "difference": row.difference}


def _finite(bound: float) -> float:
    """Return a bound, or NaN if there is none."""
    return bound if math.isfinite(bound) else math.nan


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
        f"{theory.theory.name.replace(' ', '-')}-run", f"{theory.theory.name}: one flow",
        f"Order parameters and population risk against flow time at {at}.",
        draw_run, data, (7.0, 6.0),
    )  # fmt: skip
