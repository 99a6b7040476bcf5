"""Huang et al., Lemma 5.1: dynamics of the feature-position correlations."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dynamics.masked import MaskedProblem
from simulations.figures import report_figure
from simulations.masked import runs
from simulations.masked.figures import speeds as masked_speeds
from simulations.masked.runs import Speeds
from simulations.reproduction import proofs
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import seeds_of
from symbolic.masked import lemma_5_1

#: Rounding of sums over 70 masks is 1e-15; a wrong factor gives 1e-3 or more.
TOLERANCE = 1e-13
#: Relative speed above which Phi_1 rises, far above the rounding of a state at rest.
RISE = 1e-9
#: Seeds of random states and of random problems.
SEEDS = 5


def measure(context: Context) -> Measurement:
    """Decide the identities exactly, compare with the oracle, and measure signs along flows."""
    identities = proofs.decisions(lemma_5_1.prove_all(quick=context.quick))
    context.progress(0.3)
    compared = runs.agreements(1 if context.quick else 4, context.seed, SEEDS)
    context.progress(0.4)
    regimes = runs.TWO_PHASES[:1] + runs.ONE_PHASE[:1]
    problems = [regime.problem() for regime in regimes] + [runs.ONE_CLUSTER, runs.TWO_CLUSTERS]
    oracle = {
        "difference": compared.features,
        "motion": compared.elsewhere,
        "states": compared.states,
    }
    return Measurement(
        {
            "identities": identities,
            "oracle": ORACLE.frame([oracle]),
            "flows": FLOWS.frame(
                {
                    "problem": runs.describe(problem),
                    "own_speed": least_own_speed(runs.speeds(problem)),
                    "rise": greatest_global_speed(runs.speeds(problem)),
                }
                for problem in problems
            ),
            "random problems": RANDOM.frame(
                [at_random(context.choose(quick=2, full=6, thorough=12), context.seed)]
            ),
        },
        {
            "seed": context.seed,
            "oracle": [asdict(problem) for problem in runs.ORACLE_PROBLEMS],
            "rtol": runs.RTOL,
        },
        (_figure({regime.name: runs.speeds(regime.problem()) for regime in regimes}),),
    )


def at_random(count: int, root: int) -> dict[str, float]:
    """Return the extreme speeds over ``count`` random problems per seed, and over the control."""

    def problems(largest_first: bool) -> list[MaskedProblem]:
        seeds = seeds_of(root, SEEDS)
        return [p for seed in seeds for p in runs.random_problems(count, seed, largest_first)]

    speeds = [runs.speeds(problem) for problem in problems(True)]
    control = [greatest_global_speed(runs.speeds(problem)) for problem in problems(False)]
    return {
        "problems": len(speeds),
        "own_speed": min(map(least_own_speed, speeds)),
        "rise_random": max(map(greatest_global_speed, speeds)),
        "control": sum(rise > RISE for rise in control),
    }


def least_own_speed(speeds: Speeds) -> float:
    """Return the least dPhi_n/dt along a run, relative to the greatest |dPhi_n/dt|."""
    speed = speeds.features[:, speeds.own]
    return _relative(float(speed.min()), float(abs(speed).max()))


def greatest_global_speed(speeds: Speeds) -> float:
    """Return the greatest dPhi_1/dt along a run, relative to the greatest |dPhi_1/dt|."""
    speed = speeds.features[:, speeds.first]
    return _relative(float(speed.max()), float(abs(speed).max()))


def _relative(value: float, scale: float) -> float:
    """Return a ratio, or 0 for the scale 0 (p alone in its area)."""
    return value / scale if scale > 0.0 else 0.0


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    flows, random = tables["flows"].data, tables["random problems"].data
    return {
        "identities": proofs.share(tables["identities"]),
        "own": min(flows.own_speed.min(), random.own_speed.min(), 0.0),
        "rise": max(flows.rise.max(), random.rise_random.max(), RISE),
    }


def _figure(speeds: dict[str, Speeds]) -> Figure:
    return report_figure(
        "masked-feature-speeds",
        "Lemma 5.1: speeds of the feature-position correlations",
        "Speeds along the gradient flow at P = 10^6, z = 1, mask ratio 0.5 (mean-field counts): "
        "p's own area (solid, positive throughout), the global area (dashed, negative throughout) "
        "and the fastest of the others (dotted, absolute value). Left: information gap 0.6, the "
        "global correlation initially moves a thousand times faster. Right: gap -0.2.",
        masked_speeds.draw_features,
        runs.speed_dataset(speeds),
        (7.4, 3.5),
    )


_OWN_SPEED = Column("least dPhi_n/dt over the largest of the run", rtol=1e-2)
_NEVER_FALLS = {"dPhi_n/dt is nowhere negative": lambda t: t.own_speed >= 0.0}

ORACLE = Table(
    index=(),
    columns={
        "difference": Column("reduced against d x d gradient, feature entries", atol=TOLERANCE),
        "motion": Column("gradient in the rows of features (must not move)", atol=TOLERANCE),
        "states": Column("random states compared"),
    },
    strict={"reduced and d x d gradients agree": lambda t: t.difference <= TOLERANCE},
)

FLOWS = Table(
    index=("problem",),
    columns={
        "own_speed": _OWN_SPEED,
        "rise": Column("greatest dPhi_1/dt over the largest |dPhi_1/dt|", rtol=1e-2),
    },
    strict=_NEVER_FALLS,
    predicates={"Phi_1 of a local patch never rises": lambda t: t.rise <= RISE},
)

RANDOM = Table(
    index=(),
    columns={
        "problems": Column("random problems, P <= 10"),
        "own_speed": _OWN_SPEED,
        "rise_random": Column(
            "greatest dPhi_1/dt over the largest |dPhi_1/dt|, worst problem", rtol=1e-2
        ),
        "control": Column("control problems (smallest area first) in which Phi_1 rises"),
    },
    strict=_NEVER_FALLS,
    predicates={"Phi_1 of a local patch never rises": lambda t: t.rise_random <= RISE},
)

CLAIM = Claim(
    id="huang-lemma-5.1",
    place="Lemma 5.1 (Section 5.1, Appendix A.1.1)",
    statement=(
        "The feature-position correlation of p's own area has the speed alpha_{p->v_n} >= 0. If p "
        "is in a local area, the correlation of the global area decreases monotonically; others "
        "may have either sign."
    ),
    method=(
        "Exact identities between the raw loss of small models (all masks, clusters and patches) "
        "and the lemma's form in areas, the gradient of the d x d model at random states, and the "
        "signs along gradient flows of large problems and of random small ones, all masks."
    ),
    criterion=(
        "The form is exact: every identity must hold, for all sizes and at small ones, and the d "
        "x d gradient must agree to rounding (1e-13, sums over 70 masks). The signs are those of "
        "the lemma: dPhi_n/dt is never negative, and Phi_1 of a local patch never rises by more "
        "than rounding (1e-9 of its greatest speed); if it does, that is a finding, as the lemma "
        "assumes large P. States and problems are sampled with five seeds, and a single failure "
        "decides."
    ),
    tables={
        "identities": proofs.layout(),
        "oracle": ORACLE,
        "flows": FLOWS,
        "random problems": RANDOM,
    },
    measure=measure,
    headline=headline,
    finding=(
        "{identities} exact identities hold; dPhi_n/dt is at least {own!d:.1g} and dPhi_1/dt of a "
        "local patch at most {rise!u:.0e} (relative)."
    ),
    tolerance=TOLERANCE,
    quick_note="the two smaller exact models, 15 random states of 60, 10 random problems of 30",
    thorough_note="60 random problems instead of 30",
    assumptions=(
        "exact rational arithmetic; the d x d model, which shares no code with the reduced one"
    ),
    group="masked",
)
