"""Huang et al., Lemma 5.1: how the feature-position correlations move."""

from dataclasses import asdict
from typing import Any

from simulations.figures import report_figure
from simulations.masked import runs
from simulations.masked.data import speeds as masked_speeds_data
from simulations.masked.figures import speeds as masked_speeds
from simulations.masked.runs import Speeds
from simulations.reproduction.measured import measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict
from simulations.reproduction.proofs import decided, share_decided
from simulations.seeds import seeds_of
from symbolic.masked import lemma_5_1

#: Rounding of sums over 70 masks is 1e-15; a wrong factor gives 1e-3 or more.
TOLERANCE = 1e-13
#: Relative speed above which Phi_1 is said to rise: rounding of a state at rest is far below.
RISE = 1e-9
#: Random states and random problems are drawn with so many seeds.
SEEDS = 5


def run(context: Context) -> Outcome:
    """Decide the identities exactly, compare with the oracle, look at the signs along flows."""
    proofs = lemma_5_1.prove_all(quick=context.quick)
    context.progress(0.3)
    compared = runs.agreements(1 if context.quick else 4, context.seed, SEEDS)
    context.progress(0.4)
    regimes = runs.TWO_PHASES[:1] + runs.ONE_PHASE[:1]
    problems = [regime.problem() for regime in regimes] + [runs.ONE_CLUSTER, runs.TWO_CLUSTERS]
    rises = {problem: greatest_global_speed(runs.speeds(problem)) for problem in problems}
    own = min(least_own_speed(runs.speeds(problem)) for problem in problems)
    each = 2 if context.quick else 12
    many, seeds = each * SEEDS, seeds_of(context.seed, SEEDS)
    ensemble = [runs.speeds(p) for seed in seeds for p in runs.random_problems(each, seed)]
    random = max(map(greatest_global_speed, ensemble))
    own = min(own, *map(least_own_speed, ensemble))
    others = [runs.speeds(problem) for seed in seeds
              for problem in runs.random_problems(each, seed, largest_first=False)]  # fmt: skip
    control = sum(greatest_global_speed(course) > RISE for course in others)
    count = sum(proof.count for proof in proofs)
    failed = sum(proof.failed for proof in proofs)
    rise = "greatest dPhi_1/dt over the largest |dPhi_1/dt|"
    verdict, summary = judge(count, failed, compared.features, own, max(random, *rises.values()))
    return Outcome(
        verdict,
        decided(proofs)
        + measured_at(
            {},
            ("difference", "reduced against d x d gradient, feature entries", compared.features),
            ("motion", "gradient in the rows of features (must not move)", compared.elsewhere),
            ("states", "random states compared", compared.states),
            ("own_speed", "least dPhi_n/dt over the largest of the run", own),
            ("control", f"of {many} random problems whose first area is the smallest, Phi_1 "
             "rises in", control),
            ("rise_random", f"{rise}, worst of {many} random problems, P <= 10", random),
        )
        + [one for problem, speed in rises.items() for one in measured_at(
            runs.place(problem),
            ("rise", rise, speed),
        )],
        TOLERANCE,
        {"problems": [asdict(problem) for problem in problems], "seed": context.seed,
         "oracle": [asdict(problem) for problem in runs.ORACLE_PROBLEMS], "rtol": runs.RTOL},
        summary,
        (_figure({regime.name: runs.speeds(regime.problem()) for regime in regimes}),),
    )  # fmt: skip


def least_own_speed(course: Speeds) -> float:
    """Return the least dPhi_n/dt along a run, relative to the greatest |dPhi_n/dt|."""
    speed = course.features[:, course.own]
    return _relative(float(speed.min()), float(abs(speed).max()))


def greatest_global_speed(course: Speeds) -> float:
    """Return the greatest dPhi_1/dt along a run, relative to the greatest |dPhi_1/dt|."""
    speed = course.features[:, course.first]
    return _relative(float(speed.max()), float(abs(speed).max()))


def _relative(value: float, scale: float) -> float:
    """Return a ratio, 0 where nothing moves (p alone in its area)."""
    return value / scale if scale > 0.0 else 0.0


def judge(
    identities: int, failed: int, difference: float, own: float, rise: float
) -> tuple[Verdict, str]:
    """Return the verdict: exact form, oracle, Phi_n never falls, Phi_1 of a local p never rises."""
    text = (
        f"{identities - failed} of {identities} exact identities hold; reduced and d x d "
        f"gradients differ by {difference:.1e}"
    )
    if failed or identities == 0 or not difference <= TOLERANCE:
        return Verdict.FAILS, text + "."
    if own < 0.0:
        return Verdict.FAILS, text + f"; Phi_n falls (relative speed {own:.1e})."
    if rise > RISE:
        return Verdict.FINDING, (
            text + f"; Phi_n never falls, but the Phi_1 of a local patch rises at times, at up to "
            f"{rise:.1e} of its greatest speed."
        )
    return Verdict.HOLDS, text + "; Phi_n never falls and the Phi_1 of a local patch never rises."


def _figure(courses: dict[str, Speeds]) -> Any:
    return report_figure(
        "masked-feature-speeds",
        "Lemma 5.1: speeds of the feature-position correlations",
        "Speeds along the gradient flow at P = 10^6, z = 1, mask ratio 0.5 (mean-field counts): "
        "p's own area (solid, positive throughout), the global area (dashed, negative throughout) "
        "and the fastest of the others (dotted, absolute value). Left: information gap 0.6, the "
        "global correlation moves a thousand times faster at first. Right: gap -0.2.",
        masked_speeds.draw_features,
        masked_speeds_data.gather(courses),
        (7.4, 3.5),
    )


def _finding(outcome: Outcome) -> str:
    own = min(outcome.number("own_speed"), 0.0)
    rise = max(RISE, outcome.number("rise_random"), *outcome.values("rise"))
    return (
        f"{share_decided(outcome)}; dPhi_n/dt is at least {own:.1g} and dPhi_1/dt of a local patch "
        f"at most {rise:.0e} (relative)."
    )


CLAIM = Claim(
    id="huang-lemma-5.1",
    place="Lemma 5.1 (Section 5.1, Appendix A.1.1)",
    statement=(
        "The feature-position correlation of p's own area moves by alpha_{p->v_n} >= 0; that of "
        "the global area, for p in a local one, decreases monotonically; others have either sign."
    ),
    method=(
        "Exact identities between the raw loss of small models (all masks, clusters and patches) "
        "and the lemma's form in areas, the gradient of the d x d model at random states, and the "
        "signs along gradient flows of large problems and of random small ones, all masks."
    ),
    criterion=(
        "The form is exact: every identity must hold, for all sizes and at small ones, and the d "
        "x d gradient agree to rounding (1e-13, sums over 70 masks). The signs are the lemma's: "
        "dPhi_n/dt is nowhere negative, and the Phi_1 of a local patch nowhere rises by more than "
        "rounding (1e-9 of its greatest speed); if it does, that is a finding, as the lemma "
        "assumes large P. States and problems are drawn with five seeds, and one that fails "
        "decides."
    ),
    headline=Headline("identities"),
    finding=_finding,
    run=run,
    quick_note="the two smaller exact models, 15 random states and 10 random problems, not 60 each",
    assumptions=(
        "exact rational arithmetic; the d x d model, which shares no code with the reduced one"
    ),
    group="masked",
)
