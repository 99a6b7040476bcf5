"""Huang et al., Lemma 5.2: how the position-position correlations move."""

from dataclasses import asdict
from typing import Any

import numpy as np

from simulations.figures import report_figure
from simulations.masked import runs
from simulations.masked.data import speeds as masked_speeds_data
from simulations.masked.figures import speeds as masked_speeds
from simulations.masked.runs import Speeds
from simulations.reproduction.measured import measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict
from simulations.reproduction.proofs import decided, share_decided
from symbolic.masked import lemma_5_2

#: Rounding of sums over 70 masks is 1e-15; a wrong factor gives 1e-3 or more.
TOLERANCE = 1e-13
#: Random states are drawn with so many seeds.
SEEDS = 5


def run(context: Context) -> Outcome:
    """Decide the identities exactly, compare with the oracle, compare speeds along flows."""
    proofs = lemma_5_2.prove_all(quick=context.quick)
    compared = runs.agreements(1 if context.quick else 4, context.seed, SEEDS)
    context.progress(0.4)
    regimes = runs.TWO_PHASES[:1] + runs.ONE_PHASE[:1]
    problems = [regime.problem() for regime in regimes] + [runs.ONE_CLUSTER, runs.TWO_CLUSTERS]
    sums = max(runs.flow(p).violations()["positions sum to zero"] for p in problems)
    shares = {problem: greatest_share(runs.speeds(problem)) for problem in problems}
    count = sum(proof.count for proof in proofs)
    failed = sum(proof.failed for proof in proofs)
    verdict, summary = judge(count, failed, compared.positions, sums, max(shares.values()))
    return Outcome(
        verdict,
        decided(proofs)
        + measured_at(
            {},
            ("difference", "reduced against d x d gradient, position entries", compared.positions),
            ("states", "random states compared", compared.states),
            ("sums", "sum over q of Upsilon along the runs, beyond rounding", sums),
        )
        + [one for problem, share in shares.items() for one in measured_at(
            runs.place(problem),
            ("share", "greatest projected PP speed over the FP speed of an area", share),
        )],
        TOLERANCE,
        {"problems": [asdict(problem) for problem in problems], "seed": context.seed,
         "oracle": [asdict(problem) for problem in runs.ORACLE_PROBLEMS], "rtol": runs.RTOL},
        summary,
        (_figure({regime.name: runs.speeds(regime.problem()) for regime in regimes}),),
    )  # fmt: skip


def greatest_share(course: Speeds) -> float:
    """Return the greatest |projected PP speed| of an area over the fastest FP speed then."""
    fastest = np.abs(course.features).max(axis=1)
    return float((np.nanmax(np.abs(course.positions), axis=1) / fastest).max())


def judge(
    identities: int, failed: int, difference: float, total: float, share: float
) -> tuple[Verdict, str]:
    """Return the verdict: exact form, oracle, sum over q zero, PP slower than FP."""
    text = (
        f"{identities - failed} of {identities} exact identities hold; reduced and d x d "
        f"gradients differ by {difference:.1e}"
    )
    if failed or identities == 0 or not difference <= TOLERANCE:
        return Verdict.FAILS, text + "."
    if total > 0.0:
        return Verdict.FAILS, text + f"; the sum of Upsilon over q leaves zero by {total:.1e}."
    text += f"; Upsilon sums to 0 over q, and projected on areas moves at most {share:.2g} times "
    return (Verdict.HOLDS if share < 1.0 else Verdict.FINDING), text + "as fast as Phi."


def _figure(courses: dict[str, Speeds]) -> Any:
    return report_figure(
        "masked-position-speeds",
        "Lemma 5.2: position-position correlations move slowly",
        "Speed of the feature-position correlation of p's own area (solid) and of the fastest "
        "feature-position correlation (dashed) against the fastest position-position correlation, "
        "projected on areas (dotted); gradient flow at P = 10^6, z = 1, mask ratio 0.5.",
        masked_speeds.draw_positions,
        masked_speeds_data.gather(courses),
        (7.4, 3.5),
    )


def _finding(outcome: Outcome) -> str:
    share = max(outcome.values("share"))
    return (
        f"{share_decided(outcome)}; position correlations move at most {share:.2g} times as "
        "fast as feature ones."
    )


CLAIM = Claim(
    id="huang-lemma-5.2",
    place="Lemma 5.2 (Section 5.1, Appendix A.1.1)",
    statement=(
        "The position-position correlations move by beta_{p->q}, for masked keys as for unmasked "
        "ones; projected on an area their gradient is smaller in magnitude than that of the "
        "feature-position correlation."
    ),
    method=(
        "Exact identities between the raw loss of small models and the lemma's form in areas, the "
        "sum over q, the gradient of the d x d model at random states, and the ratio of the speeds "
        "along gradient flows."
    ),
    criterion=(
        "The form is exact: every identity must hold, for all sizes and at small ones, the d x d "
        "gradient agree to rounding (1e-13, sums over 70 masks; states drawn with five seeds), "
        "and Upsilon sum to 0 over q within the noise of the run. The projected gradient must be "
        "smaller than the fastest FP gradient at every record of every flow; where it is not, "
        "that is a finding."
    ),
    headline=Headline("share", pick=max),
    finding=_finding,
    run=run,
    quick_note="the two smaller exact models, 15 random states instead of 60",
    assumptions=(
        "exact rational arithmetic; the d x d model, which shares no code with the reduced one"
    ),
    group="masked",
)
