"""Theorem 4.1: patch association and generalization at the end of training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics import Problem, State, Trajectory, attention
from dynamics.positional.labelling import label_error
from dynamics.positional.samples.partitions import set_of, three_valued
from simulations.figures import report_figure
from simulations.positional import runs
from simulations.positional import theorem_4_1 as theorem
from simulations.positional.figures import attention_matrix, loss_and_error, theorem_hypotheses
from simulations.positional.runs import describe, or_word, place
from simulations.positional.theorem_4_1 import (
    HORIZONS,
    LABEL_POWER,
    MUCH_LESS,
    SUFFICIENT,
    Conclusions,
    Hypotheses,
    decreasing,
)
from simulations.reproduction.measured import Measured, Row, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict

_TIMES = np.geomspace(1e-2, runs.HORIZON, 301)
_LABEL_ERROR = "error of f* itself, P[y f* <= 0]"


class Inside(NamedTuple):
    """A problem that meets the hypotheses: its conclusions at each horizon d^k."""

    hypotheses: Hypotheses
    at: Mapping[int, Conclusions]
    first_failure: float  # first and last time t > 0 without patch association, nan if none
    last_failure: float
    stopped: str  # why the flow ended before its horizon, "" if it did not

    @property
    def failing(self) -> str:
        """What the theorem says and the run does not, "" if nothing."""
        for power, found in self.at.items():
            if power >= SUFFICIENT and found.failing:
                return f"{found.failing} at time d^{power}"
        for name in ("disagreement", "risk"):
            if not decreasing([getattr(found, name) for found in self.at.values()]):
                return f"{name} does not fall along the horizons"
        return ""


class Outside(NamedTuple):
    """A problem that misses a hypothesis: what it reaches all the same."""

    hypotheses: Hypotheses
    end: Conclusions
    gap: float  # min(beta, gamma) - rho at the end
    best_error: float  # of any rule: ties of f* decided by a coin
    early_error: float  # test error at flow time 10, before the attention moves


def run(context: Context) -> Outcome:
    """Judge the problems inside the hypotheses, and show the named ones outside as they are."""
    candidates = theorem.paper_problems(context.quick)
    named = _named(context.quick)
    inside: dict[Problem, Inside] = {}
    outside: dict[Problem, Outside] = {}
    for number, problem in enumerate((*candidates, *named), start=1):
        met = theorem.hypotheses(problem)
        if not met.broken:
            inside[problem] = _inside(problem, met)
        elif problem in named:
            outside[problem] = _outside(problem, met, runs.tolerance(context.quick))
        context.progress(number / (len(candidates) + len(named)))
    measured = _numbers(inside, outside)
    verdict, summary = judge(inside, outside)
    return Outcome(
        verdict,
        measured,
        None,
        {"judged": [asdict(problem) for problem in inside],
         "outside": [asdict(problem) for problem in outside],
         "horizons": "flow time d^2, d^3, d^4", "horizon outside": runs.HORIZON,
         "population tolerance": theorem.TOLERANCE},
        summary,
        tuple(_figures(inside, outside, context)),
    )  # fmt: skip


def judge(
    inside: Mapping[Problem, Inside], outside: Mapping[Problem, Outside]
) -> tuple[Verdict, str]:
    """Return the verdict by the criterion of the claim: HOLDS or a finding that says where not.

    The theorem is about d going to infinity, so a failure at these sizes does not refute it.
    """
    failing = {problem: one.failing for problem, one in inside.items() if one.failing}
    growing = _growing(inside)
    worst = max(
        (one.at[SUFFICIENT].disagreement / one.at[SUFFICIENT].small for one in inside.values()),
        default=math.nan,
    )
    sizes = [problem.D for problem in inside]
    text = (
        f"All conclusions hold at times d^{SUFFICIENT} and d^{HORIZONS[-1]} in "
        f"{len(inside) - len(failing)} of {len(inside)} problems that meet the hypotheses (D = "
        f"{min(sizes, default=0)} to {max(sizes, default=0)}), with P[f* F <= 0] at most "
        f"{worst:.2g}/d and falling with D and time"
    )
    for problem, why in [*failing.items()][:2]:
        text += f"; at {describe(problem)}: {why}"
    if growing:
        text += f"; from {describe(growing[0][0])} to D = {growing[0][1].D} it does not fall"
    if outside:
        learned = sum(not one.end.failing for one in outside.values())
        text += f". Outside the hypotheses they hold in {learned} of {len(outside)} named problems"
        without = [problem for problem, one in outside.items() if not one.end.associates]
        if without:
            text += f"; association is never learned at {describe(without[0])}"
    holds = bool(inside) and not failing and not growing
    return (Verdict.HOLDS if holds else Verdict.FINDING), text + "."


def _growing(inside: Mapping[Problem, Inside]) -> list[tuple[Problem, Problem]]:
    """Return neighbours in D, all else scaled alike, between which a bound or the risk grows."""
    found = []
    for problem, one in inside.items():
        density = problem.q * problem.D
        larger = [p for p in inside if p.D > problem.D and math.isclose(p.q * p.D, density)]
        if larger:
            after = min(larger, key=lambda p: p.D)
            pairs = [
                (getattr(one.at[k], name), getattr(inside[after].at[k], name))
                for k in one.at
                if k >= SUFFICIENT
                for name in ("disagreement", "risk")
            ]
            if any(late >= early for early, late in pairs):
                found.append((problem, after))
    return found


def _inside(problem: Problem, met: Hypotheses) -> Inside:
    path = theorem.flow(problem, theorem.TOLERANCE)
    absent = theorem.without_association(path)
    return Inside(
        met,
        theorem.along(path, runs.population(problem, theorem.TOLERANCE)),
        absent[0].start if absent else math.nan,
        absent[-1].end if absent else math.nan,
        "" if path.time[-1] >= theorem.horizon(problem) * (1.0 - 1e-9) else path.message,
    )


def _outside(problem: Problem, met: Hypotheses, tolerance: float) -> Outside:
    path, population = runs.flow(problem, tolerance), runs.population(problem, tolerance)
    floor = label_error(problem)
    final = path.final
    return Outside(
        met,
        theorem.conclusions(path, population, runs.HORIZON),
        min(problem.beta, final.gamma) - final.rho,
        floor.error - floor.ties / 2,
        population.evaluate(path.at(10.0)).test_error,
    )


def _numbers(
    inside: Mapping[Problem, Inside], outside: Mapping[Problem, Outside]
) -> list[Measured]:
    measured: list[Measured] = []
    for problem, one in inside.items():
        at = place(problem)
        for power, found in one.at.items():
            measured += measured_at(
                {**at, "time": f"d^{power}"},
                ("associates_in_time", "item 1: patch association", found.associates),
                ("disagreement_in_time", "item 2: bound on P[f* F <= 0]", found.disagreement),
                ("test_error_in_time", "item 2: test error", found.test_error),
                ("risk_in_time", "population risk", found.risk),
            )
        rows: list[Row] = [
            ("label_error", _LABEL_ERROR, one.hypotheses.label_error),
            ("q", "hypotheses: q", problem.q),
            ("last_failure", "item 1: last time without association",
             or_word(one.last_failure, "never"), "flow time"),
            ("failing", "what fails", one.failing or "nothing"),
        ]  # fmt: skip
        if one.stopped:
            rows.append(("stopped", "the flow ended early", one.stopped))
        measured += measured_at(at, *rows)
    for problem, other in outside.items():
        measured += measured_at(
            {**place(problem), "outside": True},
            ("missed", "hypotheses missed", "; ".join(other.hypotheses.broken)),
            ("associates", "item 1: patch association at the end", other.end.associates),
            ("gap", "item 1: min(beta, gamma) - rho at the end", other.gap),
            ("test_error", "item 2: test error at the end", other.end.test_error),
            ("best_error", "item 2: best possible test error", other.best_error),
            ("label_error", _LABEL_ERROR, other.hypotheses.label_error),
            ("disagreement", "item 2: bound on P[f* F <= 0] at the end", other.end.disagreement),
            ("early_error", "item 2: test error at time 10", other.early_error),
            ("risk", "population risk at the end", other.end.risk),
        )
    return measured


def _named(quick: bool) -> tuple[Problem, ...]:
    if quick:
        return runs.BASE, runs.WIDE, runs.CROWDED, runs.TINY
    return (
        runs.FEW_FEATURES, runs.BASE, runs.WIDE, runs.MANY_FEATURES, runs.CROWDED, runs.TINY
    )  # fmt: skip


def _figures(
    inside: Mapping[Problem, Inside], outside: Mapping[Problem, Outside], context: Context
) -> list[Any]:
    tolerance = runs.tolerance(context.quick)
    base, crowded = (runs.observed(one, tolerance) for one in (runs.BASE, runs.CROWDED))
    return [
        report_figure(
            "theorem-4.1-horizons",
            "Theorem 4.1 on problems that meet its hypotheses, and on others",
            "(a) The bound on P[f* F <= 0], test error plus P[y f* <= 0], against D in the paper's "
            "parametrization (C = 4, nu = 1/D, sigma_A = log log D) at flow times D^2, D^3, D^4; "
            "dashed: 1/D, what counts as o(1). (b) Where problems lie: P[y f* <= 0] in units of "
            f"1/d^{theorem.LABEL_POWER} against q; shaded: both within the hypotheses. Crosses: "
            "the named problems, all of which miss some hypothesis (in the shaded area: qD < C).",
            theorem_hypotheses.draw,
            gather_theorem_hypotheses(inside, outside),
            (7.0, 3.6),
        ),
        report_figure(
            "attention-matrix",
            "Theorem 4.1, item 1: the attention matrix before and after",
            f"Softmax weights S of the idealized process, {runs.describe(runs.BASE)}, sets as "
            f"contiguous blocks, at time 0 and at flow time {runs.HORIZON:.0e}. Shared logarithmic "
            "colour scale.",
            attention_matrix.draw,
            gather_attention_matrix(base),
            (7.0, 3.5),
        ),
        report_figure(
            "loss-and-error",
            "Theorem 4.1, item 2: population risk and test error",
            "Population risk and test error P[yF <= 0] along the flow of two problems outside the "
            "hypotheses. Dashed: the error of f* itself, which counts its ties as errors. Dotted: "
            "the best error of any rule, which decides them by a coin.",
            loss_and_error.draw,
            gather_loss_and_error([base, crowded]),
            (7.0, 3.4),
        ),
    ]


def gather_attention_matrix(run: Trajectory) -> xarray.Dataset:
    """Return S (moment, row, column) with contiguous sets, at the first and the last record."""
    problem = run.problem
    moments = [run.states[0], run.states[-1]]
    return xarray.Dataset(
        {
            "S": (
                ("moment", "row", "column"),
                np.stack([softmax_matrix(problem, State(*row.tolist())) for row in moments]),
            ),
            "G": ("moment", [attention(problem, State(*row.tolist())).G for row in moments]),
        },
        coords={"moment": ["before", "after"], "time": ("moment", run.time[[0, -1]])},
        attrs={"C": problem.C},
    )


def softmax_matrix(problem: Problem, state: State) -> np.ndarray:
    """Return S (D, D) on the invariant manifold, sets being contiguous blocks."""
    Lambda, Gamma, Xi, _ = attention(problem, state)
    return three_valued(set_of(problem), Gamma, Xi, Lambda)


def gather_loss_and_error(paths: Sequence[Trajectory]) -> xarray.Dataset:
    """Return risk and test error (problem, time), and both floors (problem)."""
    floors = [label_error(path.problem) for path in paths]

    def along(column: str) -> list[np.ndarray]:
        logs = [np.log(np.maximum(getattr(path, column), 1e-300)) for path in paths]
        return [np.exp(np.interp(_TIMES, path.time, log)) for path, log in zip(paths, logs)]

    return xarray.Dataset(
        {
            "loss": (("problem", "time"), along("loss")),
            "test_error": (("problem", "time"), along("test_error")),
            "labelling_error": ("problem", [floor.error for floor in floors]),
            "best_error": ("problem", [floor.error - floor.ties / 2 for floor in floors]),
        },
        coords={"problem": [runs.describe(path.problem) for path in paths], "time": _TIMES},
    )


def gather_theorem_hypotheses(
    inside: Mapping[Any, Any], outside: Mapping[Any, Any]
) -> xarray.Dataset:
    """Return the bound on P[f* F <= 0] (problem, power) and the place of every problem."""
    powers = list(next(iter(inside.values())).at)

    def place(found: Mapping[Any, Any]) -> tuple[list[float], list[float]]:
        excess = [one.hypotheses.label_error * p.dimension**LABEL_POWER for p, one in found.items()]
        return [p.q for p in found], excess

    (q, excess), (q_outside, excess_outside) = place(inside), place(outside)
    return xarray.Dataset(
        {
            "disagreement": (
                ("problem", "power"),
                [[one.at[power].disagreement for power in powers] for one in inside.values()],
            ),
            "D": ("problem", [p.D for p in inside]),
            "qD": ("problem", [round(p.q * p.D, 9) for p in inside]),
            "q": ("problem", q),
            "label_excess": ("problem", excess),
            "q_outside": ("other", q_outside),
            "label_excess_outside": ("other", excess_outside),
        },
        coords={"power": powers, "problem": [runs.describe(p) for p in inside],
                "other": [runs.describe(p) for p in outside]},
        attrs={"label_power": LABEL_POWER, "much_less": MUCH_LESS},
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    inside = [one.value == "nothing" for one in outcome.numbers("failing")]
    outside = outcome.values("associates", outside=True)
    return (
        f"All conclusions hold in {sum(inside)} of {len(inside)} problems within the hypotheses; "
        f"of {len(outside)} outside {sum(outside)} associate."
    )


CLAIM = Claim(
    id="theorem-4.1",
    place="Theorem 4.1 (Section 4.1)",
    statement=(
        "After T iterations of GD on (P) the model (1) learns patch association: Top_C of row i of "
        "A is S_l for every i in S_l; (2) learns the labelling function: P[f*(X) F(X) > 0] >= 1 - "
        "o(1)."
    ),
    method=(
        "On problems that meet the hypotheses, at flow times d^2, d^3, d^4: Top_C of A by exact "
        "comparison, a bound on P[f* F <= 0], and the risk; the same at the end of named problems "
        "outside."
    ),
    criterion=(
        "Judged are the problems of the paper's parametrization (C = 4, qD = C, 2C and C^2, nu = "
        "1/D, sigma_A = log log D, d = D) that meet the hypotheses: P[y f* <= 0] <= 1/d^2 "
        "(Definition 2.1: d^(-omega(1)) lies below every power); q <= 0.1 and C <= D/10 "
        "(Assumption 2: q << 1, C << D); qD >= C (more spurious features than informative ones, "
        "after Assumption 2); nu <= 1/sqrt(d), sigma_A > 0 (Parametrization 3.1). T is any T >= "
        "poly(d)/eta: conclusions must hold at flow times d^3 and d^4. Item 1 by exact "
        "comparison, a tie counting as failure. Item 2: test error + P[y f* <= 0], a bound on "
        "P[f* F <= 0], at most 1/d, o(1) being read as the paper's unit of high probability, "
        "1/poly(d); the population risk likewise (Event III). As o(1) is a limit, both must also "
        "fall from d^2 to d^3 to d^4, and with D at equal qD. Anything less is a finding; nothing "
        "is sampled."
    ),
    headline=Headline("disagreement_in_time", {"time": "d^4"}, max),
    finding=_finding,
    run=run,
    quick_note="two sizes instead of four, four named problems instead of six at tolerance 1e-5",
    assumptions="gradient flow under the certified expectation; the exact law of f*",
    group="named-problems",
)
