"""Theorem 5.1: with a pre-trained A kept fixed, a few samples suffice for a new feature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from simulations.claim import Claim, Context, Figure, Outcome, Verdict

if TYPE_CHECKING:
    from simulations.transfer_runs import Entry, Sweep

#: Test error that counts as the theorem's o(1) at these sizes: a third of the best linear rule's.
TOLERANCE = 0.025


class Transfer(NamedTuple):
    """Fine-tuning at one D: samples needed, and mean error and failed runs with the most."""

    learner: str
    D: int
    needed: float
    largest: int
    error: float
    failures: float

    @property
    def few(self) -> bool:
        """Whether the samples needed are at most log D: polylog(D) with all constants 1."""
        return self.needed <= math.log(self.D)


class Power(NamedTuple):
    """Fitted power of D in the samples needed by a learner, with its 5% and 95% points."""

    learner: str
    power: float
    low: float
    high: float


def run(context: Context) -> Outcome:
    """Fine-tune v on few samples at growing D; compare with learners without pre-training."""
    from simulations import transfer_runs as transfer

    learners = (transfer.PRETRAINED, transfer.IDEALIZED, transfer.UNIFORM, transfer.SCRATCH)
    wanted = [
        entry
        for entry in transfer.entries(context.quick)
        if entry.qD == transfer.MIDDLE and entry.learner in learners
    ]
    found = transfer.sweeps(wanted, context.seed, context.progress, context.scratch)
    points = [
        Transfer(
            entry.learner, entry.D, sweep.needed(TOLERANCE), sweep.sizes[-1],
            float(sweep.mean[-1]), float(sweep.failures[-1]),
        )
        for entry, sweep in found.items()
        if entry.learner in learners[:2]
    ]  # fmt: skip
    powers = [
        _power(learner, found, context.seed) for learner in learners if learner != learners[2]
    ]
    measured: dict[str, Any] = {}
    for entry, sweep in found.items():
        name = f"{entry.learner}, D = {entry.D}"
        measured[f"samples needed for error {TOLERANCE} ({name})"] = or_never(
            sweep.needed(TOLERANCE), sweep.sizes[-1]
        )
        measured[f"mean error with {sweep.sizes[-1]} samples ({name})"] = float(sweep.mean[-1])
        if entry.learner in learners[:2]:
            for N, share in zip(sweep.sizes, sweep.failures):
                measured[f"runs worse than chance with {N} samples ({name})"] = float(share)
    for fit in powers:
        measured[f"fitted power of D ({fit.learner})"] = or_never(fit.power, 0)
        measured[f"fitted power of D, 5% point ({fit.learner})"] = or_never(fit.low, 0)
        measured[f"fitted power of D, 95% point ({fit.learner})"] = or_never(fit.high, 0)
    verdict, summary = judge(points, powers)
    return Outcome(
        verdict, measured, TOLERANCE, parameters(wanted, context.seed), summary, (_figure(found),)
    )


def _power(learner: str, found: dict[Entry, Sweep], seed: int) -> Power:
    from simulations import transfer_runs as transfer

    own = [sweep for entry, sweep in found.items() if entry.learner == learner]
    needed = [sweep.needed(TOLERANCE) for sweep in own]
    power = transfer.exponent([sweep.problem.D for sweep in own], needed)
    return Power(learner, power, *transfer.interval_of_exponent(own, TOLERANCE, seed))


def judge(points: Sequence[Transfer], powers: Sequence[Power]) -> tuple[Verdict, str]:
    """Return HOLDS if at most log D samples are needed at every D and none of the runs fails then.

    FAILS if no number tried suffices at any D. The fitted powers are told, not judged: so few
    samples grow too little to tell a power from a logarithm.
    """
    reached = [point for point in points if math.isfinite(point.needed)]
    failures = max(point.failures for point in points)
    parts = []
    for learner in dict.fromkeys(point.learner for point in points):
        own = [point for point in points if point.learner == learner]
        amounts = ", ".join(
            f"{point.needed:.1f}" if math.isfinite(point.needed) else "more than tried"
            for point in own
        )
        sizes = ", ".join(str(point.D) for point in own)
        parts.append(f"{learner} needs {amounts} samples at D = {sizes}")
    fits = ", ".join(
        f"{fit.learner} {fit.power:.2f} ({fit.low:.2f} to {fit.high:.2f})" for fit in powers
    )
    text = (
        f"For a mean error of {TOLERANCE} {'; '.join(parts)}; with {points[0].largest} samples "
        f"the share of failed runs is at most {failures:.2g}. Fitted powers of D: {fits}."
    )
    over = [
        f"{point.learner} at D = {point.D} (log D = {math.log(point.D):.1f})"
        for point in points
        if not point.few
    ]
    if over:
        text += f" More than log D: {', '.join(over)}."
    if not reached:
        return Verdict.FAILS, text
    good = all(point.few for point in points) and failures == 0.0
    return (Verdict.HOLDS if good else Verdict.FINDING), text


def or_never(number: float, largest: int) -> float | str:
    """Return a number, or a sentence where it is not finite."""
    if math.isfinite(number):
        return number
    return f"more than {largest}" if largest else "none: not reached at every D"


def parameters(wanted: Sequence[Entry], seed: int) -> dict[str, Any]:
    """Return what defines the sweeps, for the report."""
    from dataclasses import asdict

    from simulations import transfer_runs as transfer

    return {
        "problem at D = 32": asdict(transfer.downstream(32, wanted[0].qD)),
        "sweeps": [entry._asdict() for entry in wanted],
        "pre-training (N, steps, learning rate of A)": transfer.PRETRAINING,
        "pre-trained models": transfer.PRETRAINED_MODELS,
        "learning rate of v": transfer.RATE,
        "steps": transfer.STEPS,
        "ridge penalties": transfer.PENALTIES,
        "held-out samples": transfer.TESTED,
        "seed": seed,
    }


def _figure(found: dict[Entry, Sweep]) -> Figure:
    from simulations.figures import report_figure, transfer

    return report_figure(
        "theorem-5-1",
        "Transfer to a new feature with a pre-trained A",
        "C = 4, qD = 8. Left: test error after training v alone on the given number of samples, A "
        "pre-trained on samples (mean; dots: single runs; a run near 1 has the sign of the feature "
        "wrong) and, grey, with uniform attention. Right: samples needed for a mean error of "
        f"{TOLERANCE} against D, also with A of the idealized process; arrows: not reached with "
        "the most samples tried.",
        transfer.draw_few_samples,
        transfer.gather(found, TOLERANCE),
        (9.0, 3.9),
    )


CLAIM = Claim(
    id="theorem-5.1",
    place="Theorem 5.1 (Section 5)",
    statement=(
        "With A fixed from pre-training, at most polylog(D) samples of a downstream task with the "
        "same sets and a new feature suffice to learn v: P[f* F > 0] >= 1 - o(1)."
    ),
    measures=(
        "Test error after training v alone on N~ samples for growing D, samples needed for a mean "
        "error of 0.025 against log D, their fitted power of D, share of failed runs; with A "
        "pre-trained on samples and idealized, beside uniform attention and training everything "
        "from scratch."
    ),
    run=run,
    quick_note="D = 16, 32 instead of 16 to 128, 24 runs instead of 40",
    depends="descent on (E); held-out samples, of which the model sees projections only",
    shares="transfer",
)
