"""The reduction to a few correlations per patch, compared with the d x d model at every step."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray

from dynamics import gradient_descent
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked import oracle as full
from simulations.figures import report_figure
from simulations.figures.shared import draw_model_difference
from simulations.masked import runs
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: Rounding over 500 steps at entries of order 1 is 1e-14 or less.
TOLERANCE = 1e-12
STEPS, LEARNING_RATE = 500, 3.0
#: Smallest correlation that a meaningful run must reach.
MOVED = 0.5


def measure(context: Context) -> Measurement:
    """Run reduced and full descent from Q = 0 and compare all correlations at each step."""
    problems = context.choose(quick=runs.ORACLE_PROBLEMS[:2], full=runs.ORACLE_PROBLEMS)
    curves, rows = {}, []
    for problem in context.track(problems):
        name = f"{runs.describe(problem)}, {problem.masked} masked, z={problem.z_low:g}"
        curves[name], numbers = compare(problem)
        rows.append({"problem": name} | numbers)
    return Measurement(
        {"problems": TABLE.frame(rows)},
        {
            "problems": [asdict(problem) for problem in problems],
            "steps": STEPS,
            "learning rate": LEARNING_RATE,
        },
        (_figure(curves),),
    )


def compare(problem: MaskedProblem) -> tuple[np.ndarray, dict[str, float]]:
    """Return the largest difference at each step, and the row of the table."""
    oracle = full.gradient_descent(problem, learning_rate=LEARNING_RATE, steps=STEPS)
    run = gradient_descent(
        MaskedPopulation(problem),
        learning_rate=LEARNING_RATE,
        steps=STEPS,
        record="linear",
        records=STEPS + 1,
    )
    if run.time.size != STEPS + 1:
        raise RuntimeError(f"reduced descent stopped early: {run.message}")
    columns = oracle.correlations()
    correlations = np.stack([columns[name] for name in problem.order_parameters], axis=1)
    difference = np.abs(run.states - correlations).max(axis=1)
    violations = oracle.violations()
    return difference, {
        "difference": float(difference.max()),
        "reached": float(np.abs(correlations).max()),
        "motion": violations["feature rows fixed"],
        "spread": violations["one Upsilon per cell"],
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    table = tables["problems"]
    return {
        "agree": table.count("reduced and d x d descent agree"),
        "difference": table.data.difference.max(),
        "steps": STEPS,
    }


def _figure(curves: Mapping[str, np.ndarray]) -> Figure:
    return report_figure(
        "masked-reduced-against-full",
        "Reduced correlations against the d x d matrix",
        "Largest difference between descent on the correlations of one patch and descent on the "
        "full matrix Q with every mask written out, at every step, from Q = 0. Dashed: the "
        "tolerance; dotted: the unit of rounding.",
        draw_model_difference,
        xarray.Dataset(
            {"difference": (("problem", "step"), np.stack(list(curves.values())))},
            coords={"problem": list(curves)},
            attrs={"tolerance": TOLERANCE},
        ),
        (7.0, 3.6),
    )


TABLE = Table(
    index=("problem",),
    columns={
        "difference": Column(
            f"largest difference over {STEPS} steps, reduced against d x d", atol=TOLERANCE
        ),
        "reached": Column("largest correlation reached"),
        "motion": Column("largest motion of the rows of features"),
        "spread": Column("largest spread of Upsilon within a cell", atol=TOLERANCE),
    },
    strict={
        "reduced and d x d descent agree": lambda t: t.difference <= TOLERANCE,
        "the rows of features do not move": lambda t: t.motion == 0.0,
        "Upsilon is the same within each cell": lambda t: t.spread <= TOLERANCE,
        "the run moves away from Q = 0": lambda t: t.reached > MOVED,
    },
)

CLAIM = Claim(
    id="huang-reduced-equals-full",
    place="Section 3 (FP and PP correlations), Appendix A.1.1",
    statement=(
        "The dynamics of a query patch closes on its correlations Phi_{p->v_{k,m}} and "
        "Upsilon_{p->q}; all other entries of Q are constant."
    ),
    method=(
        "The difference between reduced and d x d gradient descent over 500 steps at P = 8 and 9 "
        "with one and two clusters, the change of rows that must be constant, and the spread of "
        "Upsilon within a cell."
    ),
    criterion=(
        "The statement is exact, so that only rounding is allowed: differences and spread of at "
        "most 1e-12 over 500 steps (each adds about 1e-16 at entries of order 1), no change at all "
        "of the other rows, and an entry above 1/2 at some step."
    ),
    tables={"problems": TABLE},
    measure=measure,
    headline=headline,
    finding=(
        "Reduced and d x d descent agree in {agree} problems, to {difference:.1e} over {steps} "
        "steps."
    ),
    tolerance=TOLERANCE,
    quick_note="two problems instead of three",
    assumptions="the d x d model, which shares no code with the reduced one",
    group="masked",
)
