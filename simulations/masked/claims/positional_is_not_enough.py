"""Huang et al., Section 3.1: positional attention alone cannot do what FP attention does."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray

from dynamics.masked import MaskedProblem, MaskedTrajectory
from dynamics.masked.best_positional_attention import best, quadratic
from simulations.figures import report_figure
from simulations.masked import runs
from simulations.masked.figures import positional as masked_positional
from simulations.reproduction.intervals import mean_of
from simulations.reproduction.measured import Measured, measured_at, spread
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict
from simulations.seeds import seed_at, seeds_of

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
    single: float  # best positional attention with the first partition alone, sizes equal

    @property
    def added(self) -> float:
        """What the second partition adds at least to what positional attention leaves."""
        return self.lower - self.single

    @property
    def insufficient(self) -> bool:
        """Whether it adds something, and more than what FP attention leaves of all."""
        return self.added > max(self.features - self.floor, 0.0)

    @property
    def certain(self) -> bool:
        """Whether optimum and flow agree: the flow stays above, and the duality gap is small."""
        return self.best - self.lower <= GAP * self.best and self.positions >= self.lower


def run(context: Context) -> Outcome:
    """Optimise positional attention, and train positions alone, features alone, and both."""
    seeds = seeds_of(context.seed, 2 if context.quick else 5)
    problems = [runs.ONE_CLUSTER, *(shuffled((6, 3, 3), 2, seed) for seed in seeds), runs.GRID]
    if not context.quick:
        problems += [problem.replace(mask_ratio=0.25) for problem in problems[:3]]
    found: dict[str, Comparison] = {}
    measured: list[Measured] = []
    for number, problem in enumerate(problems, start=1):
        name = f"{number}: {runs.describe(problem)}, {problem.masked} masked"
        found[name] = one = compare(problem)
        measured += measured_at(
            {"problem": number, **runs.place(problem)},
            ("floor", "loss that no attention removes", one.floor),
            ("start", "loss at Q = 0", one.start),
            ("best", "best positional attention", one.best),
            ("lower", "no positional attention is below", one.lower),
            ("single", "best positional attention, the first partition alone", one.single),
            ("positions", "reached by training positions alone", one.positions),
            ("features", "reached by training features alone", one.features),
            ("both", "reached by training both", one.both),
        )
        context.progress(0.8 * number / len(problems))
    by_K = by_clusters(*((4, 3) if context.quick else (6, 10)), context.seed)
    for K, row in enumerate(by_K, start=1):
        label = "best positional attention leaves, random partitions, mean"
        measured += measured_at({"K": K}, ("left_by_K", label, sum(row) / len(row)))
    pairs = equal_sizes(10 if context.quick else 30, context.seed)
    label = "positional attention leaves at least, two partitions"
    for name, pair in pairs.items():
        two = pair.two
        measured += measured_at(
            {"problem": name},
            ("harmless", "second partitions that cost nothing", len(pair.harmless)),
            ("harmless_common", "of these, with other patches in p's area both times",
             sum(pair.harmless)),
            ("left_by_one", "positional attention leaves, one partition", pair.one),
            ("left_least", f"{label}, least", min(two)),
            *spread("left_mean", f"{label}, mean", mean_of(two)),
            ("left_greatest", f"{label}, greatest", max(two)),
        )  # fmt: skip
    verdict, summary = judge(found, pairs)
    return Outcome(
        verdict,
        measured,
        GAP,
        {"problems": [asdict(problem) for problem in problems], "horizon": HORIZON,
         "rtol": runs.RTOL, "by K": {"sizes": SIZES, "partitions": len(by_K[0])}},
        summary,
        (_figure(problems[1], compare(problems[1]).best, by_K),),
    )  # fmt: skip


def compare(problem: MaskedProblem) -> Comparison:
    """Return the losses of one problem."""
    flows = {moving: runs.flow(problem, moving=moving, horizon=HORIZON)
             for moving in ("positions", "features", "all")}  # fmt: skip
    optimum = best(problem)
    assert problem.partitions is not None
    single = best(problem.replace(partitions=problem.partitions[:1], K=1))
    losses = {moving: float(run.loss[-1]) for moving, run in flows.items()}
    return Comparison(problem.K, float(flows["all"].floor[0]), float(flows["all"].loss[0]),
                      optimum.loss, optimum.lower, losses["positions"], losses["features"],
                      losses["all"], single.loss)  # fmt: skip


def shuffled(sizes: tuple[int, ...], K: int, seed: int) -> MaskedProblem:
    """Return K random partitions with areas of these sizes, p in one of the same size in each.

    p's areas differ; the first partition is contiguous and p its last patch.
    """
    for draw in range(10**4):
        problem = MaskedProblem.from_sizes(
            *[sizes] * K, seed=seed_at(seed, draw), query=sum(sizes) - 1
        )
        assert problem.partitions is not None
        own = [next(area for area in areas if problem.patch in area)
               for areas in problem.partitions]  # fmt: skip
        if {len(area) for area in own} == {sizes[-1]} and len(set(own)) == K:
            return problem
    raise RuntimeError(f"no {K} different partitions of sizes {sizes} found")


@dataclass(frozen=True)
class Pair:
    """What positional attention leaves of the removable loss with one and with two partitions.

    With one the least loss found, with two a lower bound for each second partition; ``common``
    tells how many other patches are in p's area in both.
    """

    one: float
    two: list[float]
    common: list[int]

    @property
    def harmless(self) -> list[bool]:
        """For each second partition that costs nothing, whether p's areas have common patches."""
        return [c > 0 for left, c in zip(self.two, self.common) if not left > self.one + GAP]


def equal_sizes(seeds: int, root: int) -> dict[str, Pair]:
    """Return the comparison for p alone, a quarter and half of the patches masked."""
    drawn = [shuffled(SIZES, 2, seed) for seed in seeds_of(root, seeds)]
    common = [_common(problem) for problem in drawn]
    found = {}
    for ratio in (1.0 / sum(SIZES), 0.25, 0.5):
        two = [problem.replace(mask_ratio=ratio) for problem in drawn]
        assert two[0].partitions is not None
        one = two[0].replace(partitions=two[0].partitions[:1], K=1)
        removable = quadratic(one).at_start - one.floor
        found[f"P={one.P}, {one.masked} masked"] = Pair(
            (best(one).loss - one.floor) / removable,
            [(best(problem).lower - problem.floor) / removable for problem in two],
            common,
        )
    return found


def _common(problem: MaskedProblem) -> int:
    """Return how many other patches share p's area in all clusters."""
    assert problem.partitions is not None
    own = [set(area) for areas in problem.partitions for area in areas if problem.patch in area]
    return len(set.intersection(*own)) - 1


def by_clusters(most: int, seeds: int, root: int) -> list[list[float]]:
    """Return what the best positional attention leaves of the removable loss, (K, seed).

    K = 1, 2, ... random partitions of 36 patches into areas of 12, 6, 6, 6, 6.
    """
    values = []
    for K in range(1, most + 1):
        row = []
        for seed in seeds_of(root, seeds):
            areas = [SIZES] * K
            problem = MaskedProblem.from_sizes(*areas, seed=seed, query=sum(SIZES) - 1)
            start = quadratic(problem).at_start
            row.append((best(problem).loss - problem.floor) / (start - problem.floor))
        values.append(row)
    return values


def judge(found: dict[str, Comparison], pairs: dict[str, Pair]) -> tuple[Verdict, str]:
    """Return the verdict: a second partition costs positional attention, and not FP attention."""
    several = {name: one for name, one in found.items() if one.clusters > 1}
    unsure = [name for name, one in found.items() if not one.certain]
    if unsure:
        return Verdict.FAILS, f"Optimum and flow of positional attention disagree at {unsure[0]}."
    enough = [name for name, one in several.items() if not one.insufficient]
    enough += [name for name, pair in pairs.items() if not all(pair.harmless)]
    if enough or not several or not pairs:
        where = f" at {enough[0]}" if enough else ""
        return Verdict.FAILS, f"A second partition costs positional attention nothing{where}."
    least = [f"{abs(pair.one):.0%} and {abs(min(pair.two)):.0%} to {max(pair.two):.0%} at {name}"
             for name, pair in pairs.items()]  # fmt: skip
    text = (
        "Of the removable loss the best positional attention leaves with one and with two "
        f"partitions of equal sizes {'; '.join(least)}; FP attention at most "
        f"{max(_left(one) for one in several.values()):.1e}"
    )
    odd = {name: pair for name, pair in pairs.items() if pair.harmless}
    if odd:
        name, pair = next(iter(odd.items()))
        return Verdict.FINDING, (
            text + f". The second partition costs nothing in {len(pair.harmless)} of "
            f"{len(pair.two)} draws at {name}: there p's areas have other patches in common, and "
            "with none of them masked these alone suffice."
        )
    return Verdict.HOLDS, text + "."


def _left(one: Comparison) -> float:
    return (one.features - one.floor) / (one.start - one.floor)


def _figure(problem: MaskedProblem, best: float, by_K: list[list[float]]) -> Any:
    flows = {moving: runs.flow(problem, moving=moving, horizon=HORIZON)
             for moving in ("positions", "features", "all")}  # fmt: skip
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
        gather_positional(flows, best, by_K),
        (7.4, 3.7),
    )


def gather_positional(
    flows: Mapping[str, MaskedTrajectory], best: float, by_K: Sequence[Sequence[float]]
) -> xarray.Dataset:
    """Return loss above the floor over its start of each run, and the optimum by K."""
    width = max(run.time.size for run in flows.values())
    data = np.full((2, len(flows), width), np.nan)
    for number, run in enumerate(flows.values()):
        data[0, number, : run.time.size] = run.time
        data[1, number, : run.time.size] = run.excess / run.excess[0]
    run = next(iter(flows.values()))
    return xarray.Dataset(
        {"time": (("run", "record"), data[0]), "left": (("run", "record"), data[1]),
         "by_K": (("K", "seed"), np.array(by_K))},
        coords={"run": list(flows), "K": np.arange(1, len(by_K) + 1)},
        attrs={"best": float((best - run.floor[0]) / run.excess[0])},
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    last = outcome.numbers("left_by_one")[-1]
    low, high = (outcome.number(f"left_mean_{end}", **last.at) for end in ("low", "high"))
    return (
        f"Positional attention leaves {last.value:.0%} of the loss with one partition, in the mean "
        f"{low:.0%} to {high:.0%} (95 %) with two."
    )


CLAIM = Claim(
    id="huang-positional-is-not-enough",
    place="Section 3.1, after Theorem 4.1",
    statement=(
        "When clusters partition the patches differently, attention that relies on positions alone "
        "is insufficient: the association varies with the cluster, and it goes to masked patches "
        "too."
    ),
    method=(
        "The loss of the best attention row that depends on positions alone (a convex problem, "
        "solved with a duality gap), that reached by the gradient flow of Upsilon alone, and what "
        "the flows of Phi alone and of both reach; all masks enumerated. One partition against two "
        "at equal sizes, with p alone, a quarter and half of the patches masked."
    ),
    criterion=(
        "The statement is about several partitions, so two are compared with one at equal sizes "
        "(p's area has the same size in both, but other patches). For every random second "
        "partition the certified lower bound with two must exceed the loss reached with one; and "
        "what the second partition adds must exceed all that FP attention, trained on the same "
        "problem, leaves above the floor. Optimum and flow must agree (duality gap 1e-6, the flow "
        "never below). With p alone masked nothing can go to masked patches: what is left there "
        "is the cost of the variation by itself. A second partition that costs nothing refutes the "
        "claim, unless p's areas have other patches in common: then it is a finding, for the "
        "association does not vary for those patches."
    ),
    headline=Headline("left_mean", pick=max),
    finding=_finding,
    run=run,
    quick_note="four problems instead of ten, fewer partitions and clusters",
    assumptions="enumeration of all masks; the optimum uses counts of masks alone",
    group="masked",
)
