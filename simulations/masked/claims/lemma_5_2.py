"""Huang et al., Lemma 5.2: dynamics of the position-position correlations."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from simulations.figures import report_figure
from simulations.masked import runs
from simulations.masked.figures import speeds as masked_speeds
from simulations.masked.runs import Speeds
from simulations.reproduction import proofs
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from symbolic.masked import lemma_5_2

#: Rounding of sums over 70 masks is 1e-15; a wrong factor gives 1e-3 or more.
TOLERANCE = 1e-13
#: Seeds of random states.
SEEDS = 5


def measure(context: Context) -> Measurement:
    """Decide the identities exactly, compare with the oracle, and measure speeds along flows."""
    identities = proofs.decisions(lemma_5_2.prove_all(quick=context.quick))
    compared = runs.agreements(1 if context.quick else 4, context.seed, SEEDS)
    context.progress(0.4)
    regimes = runs.TWO_PHASES[:1] + runs.ONE_PHASE[:1]
    problems = [regime.problem() for regime in regimes] + [runs.ONE_CLUSTER, runs.TWO_CLUSTERS]
    oracle = {"difference": compared.positions, "states": compared.states}
    return Measurement(
        {
            "identities": identities,
            "oracle": ORACLE.frame([oracle]),
            "flows": FLOWS.frame(
                {
                    "problem": runs.describe(problem),
                    "sums": runs.flow(problem).violations()["positions sum to zero"],
                    "share": greatest_share(runs.speeds(problem)),
                }
                for problem in problems
            ),
        },
        {
            "seed": context.seed,
            "oracle": [asdict(problem) for problem in runs.ORACLE_PROBLEMS],
            "rtol": runs.RTOL,
        },
        (_figure({regime.name: runs.speeds(regime.problem()) for regime in regimes}),),
    )


def greatest_share(speeds: Speeds) -> float:
    """Return the greatest ratio of a projected PP speed to the fastest FP speed at a time."""
    fastest = np.abs(speeds.features).max(axis=1)
    return float((np.nanmax(np.abs(speeds.positions), axis=1) / fastest).max())


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    return {
        "identities": proofs.share(tables["identities"]),
        "share": tables["flows"].data.share.max(),
    }


def _figure(speeds: dict[str, Speeds]) -> Figure:
    return report_figure(
        "masked-position-speeds",
        "Lemma 5.2: position-position correlations move slowly",
        "Speed of the feature-position correlation of p's own area (solid) and of the fastest "
        "feature-position correlation (dashed) against the fastest position-position correlation, "
        "projected on areas (dotted); gradient flow at P = 10^6, z = 1, mask ratio 0.5.",
        masked_speeds.draw_positions,
        runs.speed_dataset(speeds),
        (7.4, 3.5),
    )


ORACLE = Table(
    index=(),
    columns={
        "difference": Column("reduced against d x d gradient, position entries", atol=TOLERANCE),
        "states": Column("random states compared"),
    },
    strict={"reduced and d x d gradients agree": lambda t: t.difference <= TOLERANCE},
)

FLOWS = Table(
    index=("problem",),
    columns={
        "sums": Column("sum over q of Upsilon along the run, beyond rounding"),
        "share": Column("greatest projected PP speed over the FP speed of an area", rtol=1e-3),
    },
    strict={"Upsilon sums to 0 over q": lambda t: t.sums <= 0.0},
    predicates={"projected on areas Upsilon moves slower than Phi": lambda t: t.share < 1.0},
)

CLAIM = Claim(
    id="huang-lemma-5.2",
    place="Lemma 5.2 (Section 5.1, Appendix A.1.1)",
    statement=(
        "The position-position correlations have the speed beta_{p->q}, for masked and unmasked "
        "keys; projected on an area their gradient is smaller in magnitude than that of the "
        "feature-position correlation."
    ),
    method=(
        "Exact identities between the raw loss of small models and the lemma's form in areas, the "
        "sum over q, the gradient of the d x d model at random states, and the ratio of the speeds "
        "along gradient flows."
    ),
    criterion=(
        "The form is exact: every identity must hold, for all sizes and at small ones, the d x d "
        "gradient must agree to rounding (1e-13, sums over 70 masks; states sampled with five "
        "seeds), and Upsilon must sum to 0 over q within the error of the run. The projected "
        "gradient must be smaller than the fastest FP gradient at every record of every flow; "
        "otherwise the claim is a finding."
    ),
    tables={"identities": proofs.layout(), "oracle": ORACLE, "flows": FLOWS},
    measure=measure,
    headline=headline,
    finding=(
        "{identities} exact identities hold; position correlations move at most {share!u:.2g} "
        "times as fast as feature ones."
    ),
    tolerance=TOLERANCE,
    quick_note="the two smaller exact models, 15 random states instead of 60",
    assumptions=(
        "exact rational arithmetic; the d x d model, which shares no code with the reduced one"
    ),
    group="masked",
)
