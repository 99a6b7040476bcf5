"""Theorem 4.1 at finite size, proved: where the flow ends, what it has learned, for how long."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dynamics import Population, Problem
from dynamics.positional.labelling import label_error
from simulations.figures import report_figure, tube
from simulations.positional import proved_runs
from simulations.positional import reference_runs as runs
from simulations.positional.proved_runs import COMPARED, STAYS, TubeComparison
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.validated import Checked, Proof


def measure(context: Context) -> Measurement:
    """Enclose the flows; train full and reduced beside two tubes."""
    quick = context.quick
    every = (proved_runs.SQUARE, runs.BASE, proved_runs.SQUARE_OF_FOUR)
    problems = every[:1] if quick else every
    rows = []
    for problem in context.track(problems, stop=0.8):
        error, checked = label_error(problem), proved_runs.checked_flow(problem, quick)
        horizon = proved_runs.horizon(problem, quick)
        rows.append(row(problem, checked, horizon, error.error + error.bound))
    trained = _trained(context) | {
        f"flow of three scalars, {runs.describe(problem)}": proved_runs.reduced_flow(problem, quick)
        for problem in problems
    }
    trainings = [{"training": name} | training.row for name, training in trained.items()]
    return Measurement(
        {"tubes": TUBES.frame(rows), "trainings": TRAININGS.frame(trainings)},
        proved_runs.settings(problems)
        | {"full matrices": asdict(proved_runs.SMALL), "steps of descent": proved_runs.STEPS},
        (_figure(proved_runs.flow(problems[0 if quick else 1], quick)),),
    )


def _trained(context: Context) -> dict[str, TubeComparison]:
    """Train full matrices and three scalars, by flow and by descent, beside the same two tubes."""
    rate = runs.safe_learning_rate(proved_runs.SMALL)
    flow, descent = (
        proved_runs.flow(proved_runs.SMALL, context.quick),
        proved_runs.descent(proved_runs.SMALL, rate),
    )
    where = runs.describe(proved_runs.SMALL)
    return {
        f"flow of full matrices, {where}": proved_runs.full_flow(flow, context.seed),
        f"flow of three scalars, {where}": proved_runs.reduced_flow(
            proved_runs.SMALL, context.quick
        ),
        f"descent on full matrices, {where}": proved_runs.full_descent(descent, rate, context.seed),
        f"descent on three scalars, {where}": proved_runs.reduced_descent(descent, rate),
    }


def row(problem: Problem, checked: Checked, horizon: float, error: float) -> dict[str, Any]:
    """Return what the checker derives of one flow to a horizon, given the error of f* itself."""
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


def _figure(proof: Proof) -> Figure:
    return report_figure(
        "theorem-4.1-proved",
        "A trajectory proved",
        f"Flow at {runs.describe(proof.problem)}. (a) Proved bounds of the distance of alpha, "
        "gamma and rho from the polynomials in the middle of the tube, part by part. (b) Proved "
        "bounds of gamma - rho.",
        tube.draw,
        proof.to_dataset(),
        (7.0, 4.6),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    tubes = tables["tubes"]
    proved = tubes.passed[tubes.judged].all(axis=1)
    most, others = tubes.rows.test_error_high[proved].max(), (~tubes.judged).sum()
    return {
        "proved": f"{proved.sum()} of {len(proved)}",
        "error": f", test error at most {most:.3g}" if proved.any() else "",
        "others": f"; {others} more not judged" if others else "",
    }


def _interval(name: str, label: str) -> dict[str, Column]:
    return {
        f"{name}_low": Column(f"{label}, lower end"),
        f"{name}_high": Column(f"{label}, upper end"),
    }


TUBES = Table(
    index=("problem",),
    columns={
        "horizon": Column("end of the tube that is required", "flow time"),
        "enclosed_until": Column("end of the tube", "flow time"),
        **_interval("alpha", "alpha there"),
        **_interval("gamma", "gamma there"),
        **_interval("rho", "rho there"),
        "associates": Column("item 1: patch association there"),
        "associates_until": Column("item 1: and until", "flow time", missing="for ever"),
        "leads_for_ever": Column("gamma > rho for ever"),
        **_interval("test_error", "item 2: test error there"),
        **_interval("loss", "loss there"),
        "start_loss": Column("loss at the start"),
        "error_for_ever": Column("the test error never exceeds, from there on"),
        "label_error": Column("error of f* itself, P[y f* <= 0]"),
        "most": Column("item 2: a test error that counts as learned"),
        "judged": Column("training is over there"),
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
        "Where alpha, gamma and rho are at the end of a tube with truncation, rounding and time "
        "stepping enclosed; patch association there and for how long after; intervals of the test "
        "error and of the loss. Full-matrix and reduced training beside the tubes."
    ),
    criterion=(
        "Proved at the end of every tube: min(beta, gamma) > rho, so that Top_C of every row of A "
        "is its set; and a test error P[y F <= 0] of at most P[y f* <= 0] + 1/d, which P[f* F <= "
        "0] = o(1) implies, o(1) being read as 1/d as in theorem-4.1. All of it at the problems "
        "whose training is over: holds, else a finding that says where not. At C = 4, qD = C^2 "
        "the tube is taken to time 1000, before anything is learned: it is not judged. Whether "
        "association lasts for ever is reported and does not enter: gamma > rho does if the loss "
        "is below its floor on gamma = rho, rho < beta too for C = 2, and else as long as the loss "
        "that is left cannot carry rho to beta. Fails if any training leaves its tube: at D = 8 "
        "full matrices and three scalars, flow and 300 steps of descent; else the flow of three "
        "scalars (solvers at a millionth of the tube's tolerance)."
    ),
    tables={"tubes": TUBES, "trainings": TRAININGS},
    measure=measure,
    headline=headline,
    finding="Proved at the end of {proved} judged tubes{error}{others}.",
    quick_note="D = 16 only, to time 9000",
    assumptions="IEEE arithmetic and Arb; the reduction, which is proved in symbolic",
    group="proved",
)
