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
#: Fitted power of D below which the samples needed count as polylogarithmic.
FLAT = 0.3


class Transfer(NamedTuple):
    """Fine-tuning at one D: samples needed, and mean error and failed runs with the most."""

    D: int
    needed: float
    largest: int
    error: float
    failures: float


def run(context: Context) -> Outcome:
    """Fine-tune v on few samples at growing D; compare with learners without pre-training."""
    from simulations import transfer_runs as transfer

    wanted = [
        entry
        for entry in transfer.entries(context.quick)
        if entry.qD == transfer.MIDDLE
        and entry.learner in (transfer.PRETRAINED, transfer.UNIFORM, transfer.SCRATCH)
    ]
    found = transfer.sweeps(wanted, context.seed, context.progress, context.scratch)
    points = [
        Transfer(
            entry.D, sweep.needed(TOLERANCE), sweep.sizes[-1],
            float(sweep.mean[-1]), float(sweep.failures[-1]),
        )
        for entry, sweep in found.items()
        if entry.learner == transfer.PRETRAINED
    ]  # fmt: skip
    power = transfer.exponent([p.D for p in points], [p.needed for p in points])
    others = [(e.D, s.needed(TOLERANCE)) for e, s in found.items() if e.learner == transfer.SCRATCH]
    from_scratch = transfer.exponent(*zip(*others))
    measured: dict[str, Any] = {}
    for entry, sweep in found.items():
        name = f"{entry.learner}, D = {entry.D}"
        measured[f"samples needed for error {TOLERANCE} ({name})"] = or_never(
            sweep.needed(TOLERANCE), sweep.sizes[-1]
        )
        measured[f"mean error with {sweep.sizes[-1]} samples ({name})"] = float(sweep.mean[-1])
        if entry.learner == transfer.PRETRAINED:
            for N, share in zip(sweep.sizes, sweep.failures):
                measured[f"runs worse than chance with {N} samples ({name})"] = float(share)
    measured["fitted power of D, pre-trained A"] = or_never(power, 0)
    measured["fitted power of D, everything from scratch"] = or_never(from_scratch, 0)
    verdict, summary = judge(points, power, from_scratch)
    return Outcome(
        verdict, measured, TOLERANCE, parameters(wanted, context.seed), summary, (_figure(found),)
    )


def judge(points: Sequence[Transfer], power: float, scratch: float) -> tuple[Verdict, str]:
    """Return HOLDS if the samples needed are few at every D and do not grow like a power of D.

    FAILS if they never suffice at any D.
    """
    reached = [point for point in points if math.isfinite(point.needed)]
    most = max((point.needed for point in reached), default=math.nan)
    failures = max(point.failures for point in points)
    text = (
        f"With A pre-trained and kept, the mean error falls to {TOLERANCE} with at most "
        f"{most:.1f} samples at {len(reached)} of {len(points)} sizes D = "
        f"{', '.join(str(point.D) for point in points)} (fitted power of D: {power:.2f}; "
        f"everything from scratch: {scratch:.2f}); with {points[0].largest} samples the share of "
        f"failed runs is at most {failures:.2g} and the mean error at most "
        f"{max(point.error for point in points):.2g}"
    )
    if not reached:
        return Verdict.FAILS, text + "."
    if len(reached) == len(points) and power <= FLAT and failures == 0.0:
        return Verdict.HOLDS, text + "."
    return Verdict.FINDING, text + "."


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
        "pre-training (N, steps, learning rate of A), idealized beyond": transfer.PRETRAINING,
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
        "pre-trained (mean; dots: single runs; a run near 1 has the sign of the feature wrong) "
        "and, grey, with uniform attention. Pre-training is on samples up to D = 64, idealized "
        f"beyond. Right: samples needed for a mean error of {TOLERANCE} against D; arrows: not "
        "reached with the most samples tried.",
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
        "error of 0.025 and their fitted power of D, share of failed runs; beside uniform "
        "attention and training everything from scratch."
    ),
    run=run,
    quick_note="D = 16, 32 instead of 16 to 128, 12 runs instead of 20",
    depends="descent on (E); held-out samples, of which the model sees projections only",
    shares="transfer",
)
