"""Proofs of gamma > rho along trajectories, by a tube and a lower bound of the loss."""

from collections.abc import Mapping
from typing import Any

from dynamics import Problem
from simulations.positional import proved_runs
from simulations.positional import reference_runs as runs
from simulations.positional.proved_runs import COMPARED, STAYS, TubeComparison
from simulations.reproduction.claim import Claim, Context, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.validated import Checked


def measure(context: Context) -> Measurement:
    """Enclose the flows; evaluate the tubes with the independent checker."""
    quick = context.quick
    problems = (proved_runs.SQUARE,)
    if not quick:
        more = (runs.BASE,) if context.thorough else ()
        problems = (*problems, proved_runs.FEW_PATCHES, *more)
    rows = [
        row(
            problem,
            proved_runs.checked_flow(problem, quick),
            proved_runs.reduced_flow(problem, quick),
            proved_runs.horizon(problem, quick),
        )
        for problem in context.track(problems)
    ]
    figure = proved_runs.tube_figure(
        "gamma-ge-rho-proved",
        "A proof that gamma > rho",
        proved_runs.flow(proved_runs.SQUARE, quick),
        ", linear within a millionth of the largest",
    )
    return Measurement({"tubes": TUBES.frame(rows)}, proved_runs.settings(problems), (figure,))


def row(
    problem: Problem, checked: Checked, comparison: TubeComparison, horizon: float
) -> dict[str, Any]:
    """Return the row of a problem: conclusions of the checker, and a comparison with a solver."""
    _, gap_low, gap_high = checked.gap[-1]
    return {
        "problem": runs.describe(problem),
        "horizon": horizon,
        "enclosed_until": checked.time,
        "positive_from": proved_runs.finite(checked.gap_positive_from),
        "forever": checked.forever,
        "gap_low": gap_low,
        "gap_high": gap_high,
        "loss_low": checked.loss[0],
        "loss_high": checked.loss[1],
        "floor": checked.floor,
        "pieces": checked.pieces,
        **comparison.row,
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    ends = tables["tubes"].data.enclosed_until
    return {
        "forever": tables["tubes"].count("gamma > rho for ever after"),
        "shortest": ends.min(),
        "longest": ends.max(),
    }


TUBES = Table(
    index=("problem",),
    columns={
        "horizon": Column("required end of the tube", "flow time"),
        "enclosed_until": Column("end of the tube", "flow time"),
        "positive_from": Column("gamma > rho from", "flow time", missing="never"),
        "forever": Column("gamma > rho for all later times"),
        "gap_low": Column("gamma - rho in the last part, lower end"),
        "gap_high": Column("gamma - rho in the last part, upper end"),
        "loss_low": Column("loss at the end, lower end"),
        "loss_high": Column("loss at the end, upper end"),
        "floor": Column("lower bound of the loss on gamma = rho"),
        "pieces": Column("polynomial pieces"),
        **COMPARED,
    },
    predicates={
        "the tube reaches its horizon": lambda t: t.enclosed_until >= t.horizon,
        "gamma > rho from time 0 to the end of the tube": lambda t: t.positive_from == 0.0,
        "gamma > rho for ever after": lambda t: t.forever,
    },
    strict=STAYS,
)

CLAIM = Claim(
    id="gamma-ge-rho-proved",
    place="after Lemma 4.3 (Section 4.1)",
    statement=(
        "gamma(t) >= rho(t) for all t >= 0; here proved, strictly and for all t > 0, along the "
        "trajectories of stated problems."
    ),
    method=(
        "A tube around the flow, with truncation, rounding and time stepping enclosed; the sign "
        "of gamma - rho on each part of it; and whether the loss at its end is below its lower "
        "bound on the plane gamma = rho: all derived by the independent checker."
    ),
    criterion=(
        "Holds if for every problem gamma > rho is proved from time 0 (in the first parts by the "
        "sign of its velocity, as both start at 0) to the end of the tube, and for ever after: the "
        "loss never grows along the flow, and on gamma = rho it is at least log 2 P[C + R <= 0]. A "
        "missing proof is a finding. It fails if a solver at a millionth of the tolerance of a "
        "tube leaves the tube, which would be an error in this package."
    ),
    tables={"tubes": TUBES},
    measure=measure,
    headline=headline,
    finding=(
        "gamma > rho is proved for all times in {forever} problems, from tubes that end at "
        "{shortest:.2g} to {longest:.2g}."
    ),
    amended=(
        "To save time the full run has D = 24 in place of D = 64 at C = 4, qD = 2, after a run in "
        "which D = 64 satisfied every predicate."
    ),
    quick_note="D = 16 only, to time 9000",
    thorough_note="D = 64 too",
    assumptions="IEEE arithmetic and Arb; the reduction, proved in symbolic",
    group="proved",
)
