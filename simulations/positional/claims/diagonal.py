"""Simplification 3.1 freezes the diagonal of A: of the dynamics, does that lose generality?"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import xarray

from dynamics import Population, Problem, Trajectory, gradient_descent, gradient_flow
from dynamics.core.crossing import first_passage
from dynamics.core.trajectory import Status
from dynamics.positional.diagonal import DiagonalPopulation
from dynamics.positional.labelling import label_error
from dynamics.positional.oracle import descent as full
from simulations.figures import report_figure
from simulations.positional import runs
from simulations.positional.figures import diagonal
from simulations.positional.figures.diagonal import FIRST, KINDS, NAMES, POINTS
from simulations.positional.runs import describe, or_word, place
from simulations.reproduction.measured import Measured, Row, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict

#: Reduced against full-matrix descent: rounding of hundreds of steps at entries of order 1.
TOLERANCE = 1e-12
STEPS, QUICK_STEPS = 400, 100
#: Of the loss and of each gradient entry along the flows.
POPULATION_TOLERANCE = 1e-7
#: P[f* F <= 0] at most this counts as the o(1) of Theorem 4.1.
SMALL_ERROR = 0.01
#: q at most this counts as Assumption 2's q << 1.
SPARSE = 0.1
#: gamma - rho beyond this counts as association under way, when times are compared.
UNDER_WAY = 1.0
_UNDER_WAY = f"time at which gamma - rho = {UNDER_WAY:g}"


class Conclusions(NamedTuple):
    """What the paper concludes, at one time of a run."""

    associates: bool  # Theorem 4.1, item 1: Top_C of every row is its set
    learns: bool  # item 2: P[f* F <= 0] is at most SMALL_ERROR
    ordered: bool  # after Lemma 4.3: gamma >= rho so far


class Ending(NamedTuple):
    """One run: its conclusions at the horizon and at a tenth of it, and numbers."""

    late: Conclusions
    early: Conclusions
    gap: float  # min(beta, gamma) - rho at the end
    error: float  # test error at the end
    violation: float  # largest rho - gamma, 0 within the resolution
    under_way: float  # first time at which gamma - rho exceeds UNDER_WAY, nan if never
    final: tuple[float, ...]  # alpha, gamma, rho, beta


class Compared(NamedTuple):
    """Both runs of a problem."""

    frozen: Ending
    trained: Ending
    meets: bool  # the hypotheses of Theorem 4.1
    label_error: float

    @property
    def same(self) -> bool:
        """Whether the conclusions do not depend on freezing, at either time."""
        return self.frozen.late == self.trained.late and self.frozen.early == self.trained.early

    @property
    def settled(self) -> bool:
        """Whether no conclusion changes over the last decade of time."""
        return self.frozen.late == self.frozen.early and self.trained.late == self.trained.early


def run(context: Context) -> Outcome:
    """Follow every problem with the diagonal frozen and trained; check the fourth parameter."""
    tolerance = POPULATION_TOLERANCE
    problems = _problems(context)
    compared, paths = {}, {}
    measured: list[Measured] = []
    for number, (problem, horizon) in enumerate(problems.items(), start=1):
        paths[problem] = _pair(problem, tolerance, horizon)
        compared[problem] = _compare(problem, paths[problem], tolerance)
        measured += _numbers(problem, compared[problem])
        context.progress(0.8 * number / len(problems))
    steps = QUICK_STEPS if context.quick else STEPS
    differences = {}
    for problem in _oracle_problems()[: 1 if context.quick else None]:
        differences[problem] = _against_full_matrix(problem, steps, context.seed)
        label = f"reduced against full matrix, {steps} steps"
        measured += measured_at(runs.place(problem), ("difference", label, differences[problem]))
        context.progress(0.8 + 0.2 * len(differences) / len(_oracle_problems()))
    verdict, summary = judge(compared, max(differences.values()))
    figure = report_figure(
        "diagonal",
        "The diagonal of A frozen and trained",
        "Solid: A_ii trained as every other entry (a fourth order parameter, beta); dashed: frozen "
        f"at sigma_A as in Simplification 3.1. (a) Attention logits at {runs.describe(runs.TINY)}, "
        "outside the hypotheses of Theorem 4.1: association is learned only with a trained "
        "diagonal, where gamma and beta end on one curve. (b) min(beta, gamma) - rho: patch "
        "association is where it is positive; linear within 0.1 of zero. At larger sizes both "
        "curves end above zero.",
        diagonal.draw,
        gather_diagonal(
            {
                runs.describe(problem): paths[problem]
                for problem in _shown(context)
                if problem in paths
            }
        ),
        (7.0, 4.2),
    )
    return Outcome(
        verdict,
        measured,
        TOLERANCE,
        {"problems": [asdict(problem) for problem in problems],
         "horizons": list(problems.values()), "population tolerance": tolerance,
         "steps against the full matrix": steps, "seed": context.seed,
         "largest P[f* F <= 0]": SMALL_ERROR, "largest q": SPARSE},
        summary,
        (figure,),
    )  # fmt: skip


def judge(compared: Mapping[Problem, Compared], difference: float) -> tuple[Verdict, str]:
    """Return HOLDS if trained and frozen agree everywhere, a finding if where the theorem speaks.

    FAILS where they differ in a problem that meets the hypotheses, or where the reduced descent is
    not that of the full matrix.
    """
    inside = {problem: one for problem, one in compared.items() if one.meets}
    outside = {problem: one for problem, one in compared.items() if not one.meets}
    agree = sum(one.same for one in inside.values())
    text = (
        f"With A_ii trained the conclusions are those of a frozen diagonal in {agree} of "
        f"{len(inside)} problems that meet the hypotheses of Theorem 4.1 and in "
        f"{sum(one.same for one in outside.values())} of {len(outside)} others"
    )
    for problem, one in compared.items():
        if not one.same:
            text += (
                f"; at {describe(problem)} min(beta, gamma) - rho ends at {one.trained.gap:.3g} "
                f"trained and {one.frozen.gap:.3g} frozen (test error {one.trained.error:.4g} and "
                f"{one.frozen.error:.4g})"
            )
    relieved = max(compared, key=lambda problem: compared[problem].frozen.violation
                   if compared[problem].same else 0.0)  # fmt: skip
    one = compared[relieved]
    if one.same and one.frozen.violation > 0.0:
        text += (
            f"; at {describe(relieved)} the violation of gamma >= rho shrinks from "
            f"{one.frozen.violation:.3g} to {one.trained.violation:.2g}"
        )
    ratios = [one.trained.under_way / one.frozen.under_way for one in inside.values()]
    ratios = [ratio for ratio in ratios if math.isfinite(ratio)]
    if ratios:
        text += (
            f"; within the hypotheses gamma - rho = {UNDER_WAY:g} is reached in {min(ratios):.2g} "
            f"to {max(ratios):.2g} of the frozen time"
        )
    text += f"; reduced and full-matrix descent differ by {difference:.1e}."
    if difference > TOLERANCE or agree < len(inside):
        return Verdict.FAILS, text
    same = all(one.same for one in outside.values())
    return (Verdict.HOLDS if same else Verdict.FINDING), text


def _problems(context: Context) -> dict[Problem, float]:
    """Return the problems with their horizons (time = learning rate x steps)."""
    papers_own = [(1_000, 4), (1_000, 16), (10_000, 4), (10_000, 16), (100_000, 4)]
    named = [runs.TINY, runs.CROWDED, runs.MANY_FEATURES, runs.DENSE_REGIMES[0], runs.BASE,
             runs.WIDE]  # fmt: skip
    if context.quick:
        named, papers_own = named[:2], papers_own[:1]
    if context.thorough:
        papers_own += [(100_000, 16), (1_000_000, 4)]
    found = dict.fromkeys(named, runs.HORIZON)
    for D, features in papers_own:  # nu = 1/D, beta = log log D
        problem = Problem.parametrization_3_1(D, 4, q=features / D)
        found[problem] = max(runs.HORIZON, 1e3 * D**2)
    return found


def _shown(context: Context) -> tuple[Problem, ...]:
    """Return the problems of the figure: outside the hypotheses, then inside."""
    small, crowded, *rest = _problems(context)
    inside = rest[:1] if context.quick else (rest[2], rest[7])
    return (small, crowded, *inside)


def _oracle_problems() -> tuple[Problem, ...]:
    """Return problems that the full matrix enumerates: tau, kappa, C and p of all kinds."""
    return (
        Problem(D=8, C=2, q=0.3, temperature=1.3, output_scale=5.0, beta=0.7),
        Problem(D=9, C=3, q=0.3),
        Problem(D=8, C=2, q=0.3, p=5),
    )


def _pair(problem: Problem, tolerance: float, horizon: float) -> tuple[Trajectory, Trajectory]:
    """Return the flows with a frozen and with a trained diagonal."""
    # alpha* is a difference that rounding moves by more than 1e-8 of it, late at D = 10^6
    rtol = 1e-7 if problem.D >= 10**6 else 1e-8
    frozen = runs.flow(problem, tolerance, horizon, rtol=rtol)
    trained = gradient_flow(_populations(problem, tolerance)[1], horizon=horizon, rtol=rtol)
    if trained.status is not Status.COMPLETED:
        raise RuntimeError(
            f"the flow of {runs.describe(problem)} with a trained diagonal stopped early: "
            f"{trained.message}"
        )
    return frozen, trained


def _populations(problem: Problem, tolerance: float) -> tuple[Population, DiagonalPopulation]:
    """Return the risks with a frozen and with a trained diagonal."""
    frozen = runs.population(problem, tolerance)
    return frozen, DiagonalPopulation(frozen)


def _compare(problem: Problem, paths: tuple[Trajectory, Trajectory], tolerance: float) -> Compared:
    floor = label_error(problem).error
    meets = floor <= 1.0 / problem.D and problem.q <= SPARSE
    risks = _populations(problem, tolerance)
    frozen, trained = (_ending(paths[k], risks[k], floor) for k in (0, 1))
    return Compared(frozen, trained, meets, floor)


def _ending(path: Trajectory, population: Population | DiagonalPopulation, floor: float) -> Ending:
    """Evaluate a run; times and the largest violation come from its dense output."""
    end = float(path.time[-1])
    times = np.unique([*path.time[1:], *np.geomspace(1e-4, end, 2000)])
    states = np.array([_four(path, float(time)) for time in times])
    below = states[:, 2] - states[:, 1]
    below[below <= path.resolution] = 0.0
    conclusions, errors = [], []
    for time in (end, 0.1 * end):
        state = _four(path, time)
        errors.append(population.evaluate(path.at(time)).test_error)
        conclusions.append(
            Conclusions(
                associates=bool(min(state[3], state[1]) > state[2]),
                learns=errors[-1] + floor <= SMALL_ERROR,
                ordered=not below[times <= time].any(),
            )
        )
    final = _four(path, end)
    return Ending(
        late=conclusions[0],
        early=conclusions[1],
        gap=float(min(final[3], final[1]) - final[2]),
        error=errors[0],
        violation=float(below.max()),
        under_way=first_passage(path, lambda state: state[1] - state[2], UNDER_WAY),
        final=final,
    )


def _four(path: Trajectory, time: float) -> tuple[float, ...]:
    """Return (alpha, gamma, rho, beta) at a time of either kind of run."""
    return (*path.at(time), path.problem.beta)[:4]


def _numbers(problem: Problem, one: Compared) -> list[Measured]:
    """Return what the report shows of a problem."""
    at = place(problem)
    rows: list[Row] = [
        ("meets", "meets the hypotheses", one.meets),
        ("label_error", "error of f* itself, P[y f* <= 0]", one.label_error),
        ("same", "same conclusions", one.same),
        ("settled", "no conclusion changes over the last decade of time", one.settled),
        ("final_beta", "trained: beta at the end", one.trained.final[3]),
    ]
    if math.isfinite(one.frozen.under_way) and math.isfinite(one.trained.under_way):
        ratio = one.trained.under_way / one.frozen.under_way
        rows.append(("time_ratio", f"{_UNDER_WAY}, trained over frozen", ratio))
    measured = measured_at(at, *rows)
    for kind, ending in (("frozen", one.frozen), ("trained", one.trained)):
        measured += measured_at(
            {**at, "diagonal": kind},
            ("associates", "patch association at the end", ending.late.associates),
            ("gap", "min(beta, gamma) - rho at the end", ending.gap),
            ("test_error", "test error at the end", ending.error),
            ("violation", "largest rho - gamma", ending.violation),
            ("under_way", _UNDER_WAY, or_word(ending.under_way, "never"), "flow time"),
        )
    return measured


def _against_full_matrix(problem: Problem, steps: int, seed: int) -> float:
    """Return the largest difference of the four parameters, and of A from four values."""
    population = DiagonalPopulation(runs.population(problem, 1e-12))
    start = population.problem.initial_state
    rate = runs.STABLE_FRACTION * population.largest_stable_learning_rate(start)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(problem.D, problem.p)))
    w_star = runs.random_direction(rng, problem.dimension)
    partition = rng.permutation(problem.D).reshape(problem.L, problem.C)
    A, v = full.embed(problem, problem.initial_state, w_star, partition)
    matrix = full.gradient_descent(
        problem, A, v, w_star, learning_rate=rate, steps=steps, partition=partition,
        train_diagonal=True,
    )  # fmt: skip
    reduced = gradient_descent(
        population, learning_rate=rate, steps=steps, record="linear", records=steps + 1
    )
    if reduced.time.size != steps + 1:
        raise RuntimeError(f"reduced descent stopped early: {reduced.message}")
    four: np.ndarray = np.column_stack([matrix.states(), matrix.diagonal()])
    return max(float(np.abs(reduced.states - four).max()), matrix.leakage())


def gather_diagonal(paths: Mapping[str, tuple[Trajectory, Trajectory]]) -> xarray.Dataset:
    """Return the order parameters (problem, kind, point) at times (problem, point)."""
    times = np.array([np.geomspace(FIRST, pair[0].time[-1], POINTS) for pair in paths.values()])
    states = np.array([
        [[(*path.at(float(time)), path.problem.beta)[:4] for time in row] for path in pair]
        for row, pair in zip(times, paths.values())
    ])  # fmt: skip
    columns = {
        name: (("problem", "kind", "point"), states[..., index]) for index, name in enumerate(NAMES)
    }
    return xarray.Dataset(
        columns | {"time": (("problem", "point"), times)},
        coords={"problem": list(paths), "kind": list(KINDS)},
    )


def _finding(outcome: Outcome) -> str:
    compared = list(zip(outcome.values("meets"), outcome.values("same")))
    inside, outside = (
        [same for meets, same in compared if meets == kind] for kind in (True, False)
    )
    return (
        f"A trained diagonal leads to the same conclusions in {sum(inside)} of {len(inside)} "
        f"problems within the hypotheses, {sum(outside)} of {len(outside)} outside."
    )


CLAIM = Claim(
    id="diagonal",
    place="Simplification 3.1",
    statement=(
        "Without loss of generality the diagonal of A is frozen at sigma_A: the conclusions on the "
        "learning process do not depend on it."
    ),
    method=(
        "Patch association, test error and gamma >= rho along flows with the diagonal frozen and "
        "trained, the latter by an exact fourth order parameter that is compared with full-matrix "
        "descent."
    ),
    headline=Headline("difference", pick=max),
    finding=_finding,
    run=run,
    quick_note=(
        "three problems instead of eleven, one full-matrix run of 100 steps instead of three of 400"
    ),
    thorough_note="two more problems in the paper's parametrization, D = 1e5 at qD = C^2 and D = "
    "1e6, up to flow time 1e15",
    assumptions="the fourth order parameter, proved in symbolic; the certified expectation",
    criterion=(
        "Without loss of generality means that no conclusion depends on freezing. The conclusions "
        "are those of Theorem 4.1 and of the text after Lemma 4.3: (1) Top_C of every row is its "
        "set, (2) P[f* F <= 0], at most the test error plus that of f*, is o(1), here at most "
        "0.01, (3) gamma >= rho so far; each at the horizon and at a tenth of it. It holds if "
        "trained and frozen agree on all of them in every problem; it fails if they differ in a "
        "problem that meets the hypotheses (P[y f* <= 0] <= 1/D, as Definition 2.1 wants it below "
        "every power of 1/d, and q <= 0.1, as Assumption 2 wants q << 1), or if reduced and "
        "full-matrix descent with a trained diagonal differ by more than the rounding of some "
        "hundred steps, 1e-12; it is a finding if they differ elsewhere only."
    ),
)
