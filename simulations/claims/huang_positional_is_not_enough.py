"""Huang et al., Section 3.1: positional attention alone cannot do what FP attention does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulations.claim import HUANG_2024, Claim, Context, Outcome, Verdict

if TYPE_CHECKING:
    from dynamics.masked import MaskedProblem

#: What positional attention leaves above the floor must exceed what FP attention leaves by this.
FACTOR = 100.0
#: Duality gap of the best positional attention, relative to its loss.
GAP = 1e-6
HORIZON = 1e5
#: Areas of the random partitions whose number is varied.
SIZES = (12, 6, 6, 6, 6)


@dataclass(frozen=True)
class Comparison:
    """Losses of one problem; ``best`` and ``lower`` bound that of any positional attention."""

    clusters: int
    floor: float
    start: float
    best: float
    lower: float
    positions: float  # reached by the flow of Upsilon alone
    features: float  # reached by the flow of Phi alone
    both: float

    @property
    def factor(self) -> float:
        """What positional attention must leave above the floor over what FP attention leaves."""
        return (self.lower - self.floor) / max(self.features - self.floor, 1e-300)

    @property
    def certain(self) -> bool:
        """Whether optimum and flow agree: the flow stays above, and the duality gap is small."""
        return self.best - self.lower <= GAP * self.best and self.positions >= self.lower


def run(context: Context) -> Outcome:
    """Optimise positional attention, and train positions alone, features alone, and both."""
    from dataclasses import asdict

    from simulations import masked_runs as runs

    problems = [runs.ONE_CLUSTER, runs.TWO_CLUSTERS, runs.GRID]
    if not context.quick:
        problems.append(problems[1].replace(mask_ratio=0.25))
    found: dict[str, Comparison] = {}
    measured: dict[str, Any] = {}
    for number, problem in enumerate(problems, start=1):
        name = f"{runs.describe(problem)}, {problem.masked} masked"
        found[name] = one = compare(problem)
        measured |= {
            f"loss that no attention removes ({name})": one.floor,
            f"loss at Q = 0 ({name})": one.start,
            f"best positional attention ({name})": one.best,
            f"no positional attention is below ({name})": one.lower,
            f"reached by training positions alone ({name})": one.positions,
            f"reached by training features alone ({name})": one.features,
            f"reached by training both ({name})": one.both,
        }
        context.progress(0.8 * number / len(problems))
    by_K = by_clusters(*((4, 3) if context.quick else (6, 10)))
    measured |= {f"best positional attention leaves, K = {K} random partitions": sum(row) / len(row)
                 for K, row in enumerate(by_K, start=1)}  # fmt: skip
    verdict, summary = judge(found)
    return Outcome(
        verdict,
        measured,
        FACTOR,
        {"problems": [asdict(problem) for problem in problems], "horizon": HORIZON,
         "rtol": runs.RTOL, "by K": {"sizes": SIZES, "partitions": len(by_K[0])}},
        summary,
        (_figure(problems[1], found, by_K),),
    )  # fmt: skip


def compare(problem: MaskedProblem) -> Comparison:
    """Return the losses of one problem."""
    from dynamics.masked.positional import best
    from simulations import masked_runs as runs

    flows = {moving: runs.flow(problem, moving=moving, horizon=HORIZON)
             for moving in ("positions", "features", "all")}  # fmt: skip
    optimum = best(problem)
    losses = {moving: float(run.loss[-1]) for moving, run in flows.items()}
    return Comparison(problem.K, flows["all"].population.floor, float(flows["all"].loss[0]),
                      optimum.loss, optimum.lower, losses["positions"], losses["features"],
                      losses["all"])  # fmt: skip


def by_clusters(most: int, seeds: int) -> list[list[float]]:
    """Return what the best positional attention leaves of the removable loss, (K, seed).

    K = 1, 2, ... random partitions of 36 patches into areas of 12, 6, 6, 6, 6.
    """
    from dynamics.masked import MaskedProblem
    from dynamics.masked.positional import best, quadratic

    values = []
    for K in range(1, most + 1):
        row = []
        for seed in range(seeds):
            areas = [SIZES] * K
            problem = MaskedProblem.from_sizes(*areas, seed=seed, query=sum(SIZES) - 1)
            start = quadratic(problem).at_start
            row.append((best(problem).loss - problem.floor) / (start - problem.floor))
        values.append(row)
    return values


def judge(found: dict[str, Comparison]) -> tuple[Verdict, str]:
    """Return the verdict: with K >= 2 the certified bound lies far above what Phi reaches."""
    several = {name: one for name, one in found.items() if one.clusters > 1}
    unsure = [name for name, one in found.items() if not one.certain]
    if unsure:
        return Verdict.FAILS, f"Optimum and flow of positional attention disagree at {unsure[0]}."
    enough = [name for name, one in several.items() if not one.factor >= FACTOR]
    if enough or not several:
        where = f" at {enough[0]}" if enough else ""
        return Verdict.FAILS, f"Positional attention does nearly as well as FP attention{where}."
    left = min((one.lower - one.floor) / (one.start - one.floor) for one in several.values())
    text = (
        f"With two different partitions the best purely positional attention leaves at least "
        f"{left:.0%} of the removable loss, FP attention at most "
        f"{max(_left(one) for one in several.values()):.1e} of it"
    )
    single = [one for one in found.values() if one.clusters == 1]
    if single:
        one = single[0]
        text += (
            f"; with one partition still {(one.lower - one.floor) / (one.start - one.floor):.0%}, "
            "spent on masked patches"
        )
    return Verdict.HOLDS, text + "."


def _left(one: Comparison) -> float:
    return (one.features - one.floor) / (one.start - one.floor)


def _figure(problem: MaskedProblem, found: dict[str, Comparison], by_K: list[list[float]]) -> Any:
    from simulations import masked_runs as runs
    from simulations.figures import masked_positional, report_figure

    flows = {moving: runs.flow(problem, moving=moving, horizon=HORIZON)
             for moving in ("positions", "features", "all")}  # fmt: skip
    name = f"{runs.describe(problem)}, {problem.masked} masked"
    return report_figure(
        "masked-positional",
        "Positional attention alone is not enough",
        "(a) Loss of the query patch above its floor, over its start, when positions alone, "
        "features alone or both are trained (all masks enumerated, two clusters with different "
        "partitions of 12 patches); dashed: the best purely positional attention, by convex "
        "optimisation. (b) What that optimum leaves of the removable loss against the number of "
        "clusters, each with its own random partition of 36 patches (points: partitions; line: "
        "their mean); FP attention leaves nothing.",
        masked_positional.draw,
        masked_positional.gather(flows, found[name].best, by_K),
        (7.4, 3.7),
    )


CLAIM = Claim(
    id="huang-positional-is-not-enough",
    place="Section 3.1, after Theorem 4.1",
    statement=(
        "When clusters partition the patches differently, attention that relies on positions alone "
        "is insufficient: the association varies with the cluster, and it goes to masked patches "
        "too."
    ),
    measures=(
        "The loss of the best attention row that depends on positions alone (a convex problem, "
        "solved with a duality gap), that reached by the gradient flow of Upsilon alone, and what "
        "the flows of Phi alone and of both reach; all masks enumerated."
    ),
    run=run,
    quick_note="three problems instead of four, up to four clusters in the second panel",
    depends="enumeration of all masks; the optimum uses counts of masks alone",
    paper=HUANG_2024,
    shares="masked",
)
