"""Proved counterexamples to gamma >= rho outside the hypotheses of Theorem 4.1."""

import math
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
    """Enclose the flows; determine when gamma < rho."""
    chosen = problems()[: 2 if context.quick else None]
    rows = [
        row(
            problem,
            proved_runs.checked_flow(problem, context.quick),
            proved_runs.reduced_flow(problem, context.quick),
        )
        for problem in context.track(chosen)
    ]
    figure = proved_runs.tube_figure(
        "gamma-ge-rho-refuted",
        "A proof that gamma >= rho fails",
        proved_runs.flow(runs.CROWDED, context.quick),
        ": below zero where the claim gamma >= rho is refuted",
    )
    return Measurement({"tubes": TUBES.frame(rows)}, proved_runs.settings(chosen), (figure,))


def problems() -> tuple[Problem, ...]:
    """Return the problem with the longest violation, the simplest one, and one at qD = C^2."""
    return runs.CROWDED, proved_runs.SIMPLEST, proved_runs.SQUARE_OF_FOUR


def row(problem: Problem, checked: Checked, comparison: TubeComparison) -> dict[str, Any]:
    """Return the row of a problem: the longest interval on which gamma < rho is proved."""
    intervals = checked.gap_negative
    longest = max(intervals, key=lambda ends: ends[1] - ends[0], default=(math.nan, math.nan))
    return {
        "problem": runs.describe(problem),
        "enclosed_until": checked.time,
        "negative_from": longest[0],
        "negative_until": longest[1],
        "depth": -min(high for _, _, high in checked.gap),
        "positive_from": proved_runs.finite(checked.gap_positive_from),
        "pieces": checked.pieces,
        **comparison.row,
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    tubes = tables["tubes"]
    longest = (tubes.data.negative_until - tubes.data.negative_from).argmax()
    begin, end = tubes.data[["negative_from", "negative_until"]].iloc[longest]
    return {"refuted": tubes.count("a counterexample is proved"), "begin": begin, "end": end}


TUBES = Table(
    index=("problem",),
    columns={
        "enclosed_until": Column("end of the tube", "flow time"),
        "negative_from": Column("gamma < rho from", "flow time", missing="nowhere"),
        "negative_until": Column("gamma < rho until", "flow time", missing="nowhere"),
        "depth": Column("proved lower bound of the largest rho - gamma"),
        "positive_from": Column("gamma > rho from", "flow time", missing="never"),
        "pieces": Column("polynomial pieces"),
        **COMPARED,
    },
    predicates={
        "gamma(t) >= rho(t) at all times": lambda t: (
            t.negative_from.isna() & t.enclosed_until.notna()
        ),
    },
    strict={
        "a counterexample is proved": lambda t: t.negative_from < t.negative_until,
        **STAYS,
    },
)

CLAIM = Claim(
    id="gamma-ge-rho-refuted",
    place="after Lemma 4.3 (Section 4.1)",
    statement=(
        "gamma(t) >= rho(t) for all t >= 0, as the paper states without conditions; here: proofs "
        "that this is false at stated problems."
    ),
    method=(
        "A tube around the flow, with truncation, rounding and time stepping enclosed, and the "
        "intervals of time on all of which gamma < rho in it, derived by the independent checker: "
        "at the named problem with the longest violation, at the result of `patchdyn falsify "
        "'gamma >= rho'`, and at qD = C^2."
    ),
    criterion=(
        "One interval of time on which gamma < rho is proved refutes the statement as printed, in "
        "any regime. A finding, not a failure, if there is one at every problem: none meets the "
        "hypotheses of Theorem 4.1. Fails if one of these counterexamples is not proved, or if a "
        "solver at a millionth of the tolerance of a tube leaves the tube: an error in this "
        "package."
    ),
    tables={"tubes": TUBES},
    measure=measure,
    headline=headline,
    finding=(
        "gamma < rho is proved in {refuted} problems, at the longest from time {begin!u:.3g} to "
        "{end!d:.5g}."
    ),
    quick_note="D = 16 to time 2 of 32500, D = 6 to 10 of 100; not the problem at qD = C^2",
    assumptions="IEEE arithmetic and Arb; the reduction, proved in symbolic",
    group="proved",
)
