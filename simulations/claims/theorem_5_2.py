"""Theorem 5.2: without patch association many samples are needed, and where few suffice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from simulations.claim import Claim, Context, Figure, Outcome, Verdict

if TYPE_CHECKING:
    from simulations.transfer_runs import Entry, Sweep

#: Mean test errors to be reached: below every linear rule's at qD = 8, 16; and a coarse one.
FINE, COARSE = 0.025, 0.05
#: A learner that needs at most so many times the samples of the pre-trained one needs few.
FACTOR = 10.0


class Need(NamedTuple):
    """Samples that a learner needs at the largest D, beside the pre-trained one's."""

    learner: str
    qD: float
    D: int
    threshold: float
    needed: float
    pretrained: float
    power: float  # fitted power of D, nan if not reached at every D or at one D only
    floor: float  # error of the linear rule


def run(context: Context) -> Outcome:
    """Train every learner on samples of a new feature and compare what they need."""
    from dynamics.linear_models import uniform_error
    from simulations import transfer_runs as transfer
    from simulations.claims.theorem_5_1 import or_never, parameters

    wanted = [
        entry for entry in transfer.entries(context.quick) if entry.learner != transfer.IDEALIZED
    ]
    found = transfer.sweeps(wanted, context.seed, context.progress, context.scratch)
    measured: dict[str, Any] = {}
    for entry, sweep in found.items():
        name = f"{entry.learner}, qD = {entry.qD:g}, D = {entry.D}"
        threshold = threshold_of(entry.qD)
        measured[f"samples needed for error {threshold} ({name})"] = or_never(
            sweep.needed(threshold), sweep.sizes[-1]
        )
        measured[f"mean error with {sweep.sizes[-1]} samples ({name})"] = float(sweep.mean[-1])
    for problem in dict.fromkeys(sweep.problem for sweep in found.values()):
        name = f"qD = {problem.q * problem.D:g}, D = {problem.D}"
        measured[f"error of the linear rule, exact ({name})"] = uniform_error(problem).coin
    needs = _needs(found)
    for need in needs:
        if math.isfinite(need.power):
            name = f"{need.learner}, qD = {need.qD:g}, error {need.threshold}"
            measured[f"fitted power of D in the samples needed ({name})"] = need.power
    verdict, summary = judge(needs)
    return Outcome(
        verdict, measured, FINE, parameters(wanted, context.seed), summary, (_figure(found),)
    )


def threshold_of(qD: float) -> float:
    """Return the error to be reached at a regime: one that pre-trained models reach."""
    return FINE if qD == 8.0 else COARSE


def _needs(found: dict[Entry, Sweep]) -> list[Need]:
    from dynamics.linear_models import uniform_error
    from simulations import transfer_runs as transfer

    groups: dict[tuple[str, float], list[tuple[int, float]]] = {}
    for entry, sweep in found.items():
        needed = sweep.needed(threshold_of(entry.qD))
        groups.setdefault((entry.learner, entry.qD), []).append((entry.D, needed))
    needs = []
    for (learner, qD), pairs in groups.items():
        D, needed = max(pairs)
        own = dict(groups[transfer.PRETRAINED, qD])
        reference = own.get(D, max(own.values()))
        power = transfer.exponent(*zip(*pairs)) if len(pairs) > 1 else math.nan
        floor = uniform_error(transfer.downstream(D, qD)).coin
        needs.append(Need(learner, qD, D, threshold_of(qD), needed, reference, power, floor))
    return needs


def judge(needs: Sequence[Need]) -> tuple[Verdict, str]:
    """Return HOLDS if no learner without patch association makes do with few samples.

    FAILS if one does so below the error of the linear rule, which no such learner should beat; a
    finding if one does above it, where random features are too few to need the sets.
    """
    from simulations.transfer_runs import PRETRAINED

    without = [need for need in needs if need.learner != PRETRAINED]
    few = [need for need in without if need.needed <= FACTOR * need.pretrained]
    many = [need for need in without if math.isfinite(need.needed) and need not in few]
    never = [need for need in without if not math.isfinite(need.needed)]
    parts = [
        _sentence(need) + ("" if need in many else f"; the linear rule errs with {need.floor:.3f}")
        for need in many + few
    ]
    if never:
        names = dict.fromkeys(f"{need.learner} (qD = {need.qD:g})" for need in never)
        parts.append("not reached with the samples tried by " + ", ".join(names))
    summary = ". ".join(part[0].upper() + part[1:] for part in parts) + "."
    if any(need.threshold < need.floor for need in few):
        return Verdict.FAILS, summary
    return (Verdict.FINDING if few else Verdict.HOLDS), summary


def _sentence(need: Need) -> str:
    text = (
        f"{need.learner} needs {need.needed:.0f} samples for error {need.threshold} at "
        f"qD = {need.qD:g}, D = {need.D} (pre-trained A: {need.pretrained:.1f}"
    )
    return text + (f"; power of D {need.power:.2f})" if math.isfinite(need.power) else ")")


def _figure(found: dict[Entry, Sweep]) -> Figure:
    from simulations.figures import report_figure, transfer

    return report_figure(
        "theorem-5-2",
        "Samples needed with and without patch association",
        "C = 4. First panels: mean test error at D = 32 against the number of samples, from few "
        "random features (qD well below C^2) to many; dotted: exact error of the linear rule, "
        "below which only a learner that knows the sets can get. Training from scratch is stopped "
        f"at its best step. Last: samples needed against D at qD = 4, for a mean error of {COARSE}"
        ", by learners without patch association and by the pre-trained one.",
        transfer.draw_learners,
        transfer.gather(found, COARSE),
        (11.0, 3.9),
    )


CLAIM = Claim(
    id="theorem-5.2",
    place="Theorem 5.2 (Section 5)",
    statement=(
        "A classification algorithm without patch association needs D^Omega(1) samples to get a "
        "test error of o(1) on the downstream task."
    ),
    measures=(
        "Samples that v on A at initialization, v on uniform attention, logistic regression on the "
        "flattened patches and training everything from scratch need for a mean error of 0.025 or "
        "0.05, against the pre-trained model's, at qD = C^2 / 4, C^2 / 2 and C^2."
    ),
    run=run,
    quick_note="D = 16, 32 instead of 16 to 128, no qD = C^2, 4 runs of the costly learners",
    depends="descent on (E); L-BFGS for logistic regression; the exact law of the sum of patches",
    shares="transfer",
)
