"""Proofs of Theorem 4.1 at finite size: state, patch association and test error at the end."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dynamics import Population, Problem
from dynamics.positional.labelling import label_error
from simulations.positional import proved_runs
from simulations.positional import reference_runs as runs
from simulations.positional.proved_runs import COMPARED, STAYS, TubeComparison
from simulations.reproduction.claim import Claim, Context, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.reproduction.sentences import sentence
from simulations.validated import Checked


def measure(context: Context) -> Measurement:
    """Enclose the flows; compare full and reduced training with two tubes."""
    quick = context.quick
    problems = (proved_runs.SQUARE,)
    if not quick:
        more = (runs.BASE,) if context.thorough else ()
        problems = (*problems, proved_runs.FEW_PATCHES, *more, proved_runs.SQUARE_OF_FOUR)
    rows = []
    for problem in context.track(problems, stop=0.8):
        label, checked = label_error(problem), proved_runs.checked_flow(problem, quick)
        horizon = proved_runs.horizon(problem, quick)
        rows.append(row(problem, checked, horizon, label.error + label.bound))
    comparisons = _trained(context) | {
        f"flow of three scalars, {runs.describe(problem)}": proved_runs.reduced_flow(problem, quick)
        for problem in problems
    }
    trainings = [{"training": name} | comparison.row for name, comparison in comparisons.items()]
    figure = proved_runs.tube_figure(
        "theorem-4.1-proved",
        "A trajectory proved",
        proved_runs.flow(problems[0 if quick else 1], quick),
        "",
    )
    return Measurement(
        {"tubes": TUBES.frame(rows), "trainings": TRAININGS.frame(trainings)},
        proved_runs.settings(problems)
        | {"full matrices": asdict(proved_runs.SMALL), "steps of descent": proved_runs.STEPS},
        (figure,),
    )


def _trained(context: Context) -> dict[str, TubeComparison]:
    """Compare flow and descent of full matrices and of three scalars with the same two tubes."""
    rate = runs.safe_learning_rate(proved_runs.SMALL)
    flow, descent = (
        proved_runs.flow(proved_runs.SMALL, context.quick),
        proved_runs.descent(proved_runs.SMALL, rate),
    )
    name = runs.describe(proved_runs.SMALL)
    return {
        f"flow of full matrices, {name}": proved_runs.full_flow(flow, context.seed),
        f"flow of three scalars, {name}": proved_runs.reduced_flow(
            proved_runs.SMALL, context.quick
        ),
        f"descent on full matrices, {name}": proved_runs.full_descent(descent, rate, context.seed),
        f"descent on three scalars, {name}": proved_runs.reduced_descent(descent, rate),
    }


def row(problem: Problem, checked: Checked, horizon: float, error: float) -> dict[str, Any]:
    """Return the row of a problem: conclusions of the checker, given the error of f* itself."""
    intervals = checked.enclosure._asdict() | {
        "test_error": checked.test_error,
        "loss": checked.loss,
    }
    return {
        "problem": runs.describe(problem),
        "horizon": horizon,
        "enclosed_until": checked.time,
        **{f"{name}_low": low for name, (low, _) in intervals.items()},
        **{f"{name}_high": high for name, (_, high) in intervals.items()},
        "start_loss": Population(problem).evaluate(problem.initial_state).loss,
        "associates": checked.association,
        "associates_until": proved_runs.finite(checked.association_until),
        "leads_for_ever": checked.forever,
        "error_for_ever": min(1.0, checked.loss[1] / math.log(2.0) * (1.0 + 1e-15)),
        "label_error": error,
        "most": error + 1.0 / problem.dimension,
        "judged": problem != proved_runs.SQUARE_OF_FOUR,
        "pieces": checked.pieces,
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    tubes = tables["tubes"]
    proved = tubes.passed[tubes.judged].all(axis=1)
    largest, others = tubes.rows.test_error_high[proved].max(), (~tubes.judged).sum()
    error = ", test error at most {largest!u:.3g}"
    return {
        "proved": f"{proved.sum()} of {len(proved)}",
        "error": sentence(error, largest=largest) if proved.any() else "",
        "others": f"; {others} more not judged" if others else "",
    }


def _interval(name: str, label: str) -> dict[str, Column]:
    """Return the columns of the two ends of a proved interval."""
    return {
        f"{name}_low": Column(f"{label}, lower end"),
        f"{name}_high": Column(f"{label}, upper end"),
    }


TUBES = Table(
    index=("problem",),
    columns={
        "horizon": Column("required end of the tube", "flow time"),
        "enclosed_until": Column("end of the tube", "flow time"),
        **_interval("alpha", "alpha at the end"),
        **_interval("gamma", "gamma at the end"),
        **_interval("rho", "rho at the end"),
        "associates": Column("item 1: patch association at the end"),
        "associates_until": Column(
            "item 1: patch association until", "flow time", missing="for ever"
        ),
        "leads_for_ever": Column("gamma > rho for all later times"),
        **_interval("test_error", "item 2: test error at the end"),
        **_interval("loss", "loss at the end"),
        "start_loss": Column("loss at the start"),
        "error_for_ever": Column("bound of the test error at all later times"),
        "label_error": Column("error of f* itself, P[y f* <= 0]"),
        "most": Column("item 2: threshold of the test error"),
        "judged": Column("training is complete at the end"),
        "pieces": Column("polynomial pieces"),
    },
    predicates={
        "the tube reaches its horizon": lambda t: t.enclosed_until >= t.horizon,
        "1: patch association is proved at the end": lambda t: t.associates,
        "2: the test error is proved to be at most P[y f* <= 0] + 1/d": lambda t: (
            t.test_error_high <= t.most
        ),
    },
    judged=lambda t: t.judged,
)
TRAININGS = Table(index=("training",), columns=COMPARED, strict=STAYS)

CLAIM = Claim(
    id="theorem-4.1-proved",
    place="Theorem 4.1 (Section 4.1)",
    statement=(
        "After T iterations of GD on (P) the model (1) learns patch association and (2) learns "
        "the labelling function; here proved at finite size, for the flow of stated problems."
    ),
    method=(
        "Intervals of alpha, gamma and rho at the end of a tube with truncation, rounding and time "
        "stepping enclosed; patch association at the end and its duration; intervals of the test "
        "error and of the loss. Full-matrix and reduced training is compared with the tubes."
    ),
    criterion=(
        "Proved at the end of every tube: min(beta, gamma) > rho, so that Top_C of every row of A "
        "is its set; and a test error P[y F <= 0] of at most P[y f* <= 0] + 1/d, implied by P[f* F "
        "<= 0] = o(1), with o(1) read as 1/d as in theorem-4.1. All of it at the problems whose "
        "training is complete: holds, else a finding that names the exceptions. At C = 4, qD = C^2 "
        "the tube ends at time 1000, before anything is learned: it is not judged. Whether "
        "association lasts for ever is reported only: gamma > rho does if the loss is below its "
        "lower bound on gamma = rho; rho < beta too for C = 2, and else as long as the remaining "
        "loss cannot move rho to beta. Fails if any training leaves its tube: at D = 8 full "
        "matrices and three scalars, flow and 300 steps of descent; else the flow of three scalars "
        "(solvers at a millionth of the tolerance of the tube)."
    ),
    tables={"tubes": TUBES, "trainings": TRAININGS},
    measure=measure,
    headline=headline,
    finding="Proved at the end of {proved} judged tubes{error}{others}.",
    amended=(
        "To save time the full run has D = 24 in place of D = 64 at C = 4, qD = 2, after a run in "
        "which D = 64 satisfied every predicate."
    ),
    quick_note="D = 16 only, to time 9000",
    thorough_note="D = 64 too",
    assumptions="IEEE arithmetic and Arb; the reduction, proved in symbolic",
    group="proved",
)
