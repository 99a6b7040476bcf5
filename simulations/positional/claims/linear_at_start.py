"""Section 4.1: at A(0) the model is a generalized linear model with high risk."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray
from scipy import optimize

from dynamics import Population, Problem, SlowManifold, State
from dynamics.positional.baselines.linear_models import LEVEL, uniform_error
from dynamics.positional.random_sets import sum_of_signs
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, size_ticks, styled
from simulations.positional import theorem_4_1 as theorem
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: q = C^k / D at D = 16 C^2.
SET_SIZES, QUICK_SET_SIZES = (4, 8, 16), (4, 8)
POWERS, QUICK_POWERS = (1.0, 1.5, 2.0), (1.0, 2.0)
#: Least risk with an error of 1/8 (Theorem 3.1), since log(1 + e^-m) >= log 2 where m <= 0.
HIGH = LEVEL * math.log(2.0)
TOLERANCE, ROUNDING = 1e-8, 1e-12


def measure(context: Context) -> Measurement:
    """Compute error and least risk of the linear predictor, and of F at A(0)."""
    powers = context.choose(quick=QUICK_POWERS, full=POWERS)
    set_sizes = context.choose(quick=QUICK_SET_SIZES, full=SET_SIZES)
    cases = [(k, C) for k in powers for C in set_sizes]
    table = TABLE.frame(row(*case) for case in context.track(cases))
    return Measurement(
        {"start": table},
        {
            "D": "16 C^2",
            "q": "C^k/D",
            "nu": "1/d",
            "beta": "log log d",
            "population tolerance": TOLERANCE,
        },
        (_figure(table),),
    )


def row(k: float, C: int) -> dict[str, Any]:
    """Return the row at q = C^k / D."""
    D = 16 * C * C
    problem = Problem.parametrization_3_1(D, C, q=C**k / D)
    population = Population(problem, tolerance=TOLERANCE)
    alpha = SlowManifold(population).alpha(0.0, 0.0)
    value, linear = population.evaluate(State(alpha, 0.0, 0.0)), uniform_error(problem)
    return {
        "k": k,
        "C": C,
        "D": D,
        "within": not theorem.hypotheses(problem).broken,
        "model_error": value.test_error,
        "linear_error": linear.literal,
        "allowed": value.test_error_bound + linear.bound + ROUNDING,
        "linear_risk": least_linear_risk(problem),
        "model_risk": value.loss,
    }


def least_linear_risk(problem: Problem) -> float:
    """Return the minimum over a of E log(1 + exp(-a T)), T = C + R the sum of all coefficients."""
    law, _ = sum_of_signs(problem.D - problem.C, problem.q)
    T = problem.C + np.arange(law.size) - law.size // 2

    def risk(log_a: float) -> float:
        return float(law @ np.logaddexp(0.0, -math.exp(log_a) * T))

    return float(optimize.minimize_scalar(risk, bounds=(-12.0, 5.0), method="bounded").fun)


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    table = tables["start"]
    return {
        "same": table.count("F errs exactly where the linear predictor does"),
        "error": table.count("it errs with probability at least 1/8"),
        "risk": table.count("its risk is at least log(2)/8 at every scale of v"),
        "least": table.rows.linear_risk.min(),
        "most": table.rows.linear_risk.max(),
    }


def _figure(table: Any) -> Figure:
    return report_figure(
        "linear-at-start",
        "The linear predictor at A(0)",
        "q = C^k/D at D = 16 C^2. (a) P[y g <= 0] of the linear predictor (lines) and of F at A(0) "
        "with alpha at its quasi-steady value (crosses); dashed: 1/8. (b) The least population "
        "risk of g over all scales of v (lines) and the risk of F (crosses); dashed: log(2)/8, the "
        "least risk with an error of 1/8. For k < 2 both fall as the sets grow.",
        _draw,
        xarray.Dataset.from_dataframe(table.reset_index().drop(columns="within")),
        (7.2, 3.5),
    )


@styled
def _draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw error and risk against C, one curve per k."""
    panels = figure.subplots(1, 2)
    artists = {}
    table = data.to_dataframe()
    names = (("linear_error", "model_error", LEVEL), ("linear_risk", "model_risk", HIGH))
    for ax, (linear, model, level) in zip(panels, names):
        for number, (k, rows) in enumerate(table.groupby("k")):
            style = PROBLEM_STYLES[number]
            artists[f"{linear} {k}"] = ax.plot(
                rows.C, rows[linear], marker="o", markersize=4, label=f"$k={k:g}$", **style
            )[0]
            ax.plot(rows.C, rows[model], "x", color=style["color"], markersize=7)
        ax.axhline(level, **REFERENCE)
        sizes = np.unique(table.C)
        ax.set(yscale="log", xscale="log", xlabel="$C$")
        size_ticks(ax, sizes)
    panels[0].set_ylabel(r"error $P[yg\leq 0]$")
    panels[1].set_ylabel("population risk")
    panels[0].legend()
    panel_letters(panels)
    return artists


TABLE = Table(
    index=("k", "C"),
    columns={
        "D": Column("D"),
        "within": Column("hypotheses met"),
        "model_error": Column("P[y F <= 0] of F at A(0)"),
        "linear_error": Column("P[y g <= 0] of the linear predictor, exact"),
        "allowed": Column("bound on the error of both", rtol=math.inf),
        "linear_risk": Column("least risk of g over the scales of v"),
        "model_risk": Column("risk of F at A(0), alpha quasi-steady"),
    },
    strict={
        "F errs exactly where the linear predictor does": lambda t: (
            (t.model_error - t.linear_error).abs() <= t.allowed
        )
    },
    predicates={
        "it errs with probability at least 1/8": lambda t: t.linear_error >= LEVEL,
        "its risk is at least log(2)/8 at every scale of v": lambda t: (
            (t.linear_risk >= HIGH) & (t.model_risk >= HIGH)
        ),
    },
    judged=lambda t: t.within,
)

CLAIM = Claim(
    id="linear-at-start",
    place="Events I and II (Section 4.1), equation (2)",
    statement=(
        "At T0 the model is nothing else than a generalized linear model, which would not "
        "generalize. With A at its start, however large v, the predictor g(X), proportional to "
        "sum_ij e^{A_ij(0)} <w*, X_j>, would yield high population loss."
    ),
    method=(
        "P[y g <= 0] by the exact law of a sum of signs, and the least risk of g over all scales "
        "of v, at q = C^k/D; error and risk of the model F at A(0) with alpha at its quasi-steady "
        "value, by the certified expectation."
    ),
    criterion=(
        "The columns of S(0) have equal sums, so that g is a multiple of T = sum_j <w*, X_j>; F at "
        "A(0), a sum of act(c (T + h s_i)) over coefficients s_i that add up to T, has the sign of "
        "T: the two errors must agree within their bounds (else fails). 'Would not generalize' "
        "refers to Theorem 3.1, an error of at least 1/8; 'high' is read as the least risk with "
        "such an error, log(2)/8 = 0.087, at every scale of v, on problems that meet the "
        "hypotheses of theorem-4.1 with q = C^k/D (Assumption 2 allows any k). The statement is "
        "qualitative: less is a finding."
    ),
    quick_note="C = 4 and 8, k = 1 and 2",
    assumptions="the exact law of a sum of signs; the certified expectation",
    tables={"start": TABLE},
    measure=measure,
    headline=headline,
    finding=(
        "F errs where g does in {same}; error >= 1/8 in {error}, risk >= log(2)/8 in {risk} "
        "({least:.2g} to {most:.2g})."
    ),
)
