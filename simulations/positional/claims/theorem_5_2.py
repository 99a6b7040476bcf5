"""Theorem 5.2: samples that learners without patch association need."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.baselines.set_knowledge import coupon_collector, least_samples
from simulations.figures import report_figure
from simulations.positional import transfer_runs as transfer
from simulations.positional.figures import transfer as transfer_figure
from simulations.positional.learners import FINDER, IDEALIZED, PRETRAINED
from simulations.positional.transfer_statistics import (
    Sweep,
    SweepConfig,
    exponent_interval,
    interval_text,
    learning_curves,
)
from simulations.reproduction import intervals
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: Mean test errors to be reached: below the error of every linear rule at qD = 8, and a coarse one.
FINE, COARSE = 0.025, 0.05


def measure(context: Context) -> Measurement:
    """Train every learner on samples of a new feature; compare the samples needed."""
    entries = [
        entry
        for entry in transfer.sweep_configs(context.quick, context.thorough)
        if entry.learner != IDEALIZED
    ]
    sweeps = transfer.sweeps(entries, context)
    groups: dict[tuple[str, float], list[Sweep]] = {}
    for entry, sweep in sweeps.items():
        groups.setdefault((entry.learner, entry.qD), []).append(sweep)
    return Measurement(
        {
            "samples needed": NEEDED.frame(needed(sweeps, context.seed)),
            "samples needed by group": BY_GROUP.frame(by_group(groups)),
            "powers of D": POWERS.frame(powers(groups, context.seed)),
        },
        transfer.parameters(entries, context.seed),
        (_figure(sweeps, context.seed),),
    )


def needed(sweeps: Mapping[SweepConfig, Sweep], seed: int) -> Iterator[dict[str, Any]]:
    """Yield the samples needed by each learner, with the exact bounds."""
    largest: dict[tuple[str, float], int] = {}
    for entry in sweeps:
        key = entry.learner, entry.qD
        largest[key] = max(largest.get(key, 0), entry.D)
    for entry, sweep in sweeps.items():
        threshold = threshold_of(entry.qD)
        yield {
            "learner": entry.learner,
            "qD": entry.qD,
            "D": entry.D,
            "threshold": threshold,
            **intervals.cells("needed", sweep.interval(threshold, seed)),
            "few": math.log(entry.D) ** 2,
            "samples": sweep.sizes[-1],
            "mean_error": sweep.mean[-1],
            "linear_error": uniform_error(sweep.problem).coin,
            "least_samples": least_samples(sweep.problem, threshold),
            "coupon_collector": coupon_collector(sweep.problem.L),
            "largest": largest[entry.learner, entry.qD] == entry.D,
        }


def by_group(groups: Mapping[tuple[str, float], list[Sweep]]) -> Iterator[dict[str, Any]]:
    """Yield the samples needed in each group of runs at the largest D."""
    for (learner, qD), sweeps in groups.items():
        last = max(sweeps, key=lambda sweep: sweep.problem.D)
        for group, value in enumerate(last.needed_by_seed(threshold_of(qD)), start=1):
            cells = intervals.cells("needed_by_seed", (value,))
            yield {"learner": learner, "qD": qD, "D": last.problem.D, "group": group, **cells}


def powers(groups: Mapping[tuple[str, float], list[Sweep]], seed: int) -> Iterator[dict[str, Any]]:
    """Yield the fitted powers of D where the error is reached at every D."""
    for (learner, qD), sweeps in groups.items():
        if len(sweeps) > 1:
            power = exponent_interval(sweeps, threshold_of(qD), seed)
            if math.isfinite(power.value):
                yield {"learner": learner, "qD": qD, **intervals.cells("power", power)}


def threshold_of(qD: float) -> float:
    """Return the error to be reached at a density; pre-trained models reach it."""
    return FINE if qD == 8.0 else COARSE


def _figure(sweeps: Mapping[SweepConfig, Sweep], seed: int) -> Figure:
    return report_figure(
        "theorem-5-2",
        "Samples needed with and without patch association",
        "C = 4. (a) to (c) Mean test error at D = 32 against the number of samples, from few "
        "random features (qD well below C^2) to many; dotted: exact error of the linear rule, "
        "improved only by learners that know the sets; black: exact lower bound for all "
        "learners that do not know the sets beforehand. Training from scratch is stopped at its "
        f"best step. (d) Samples needed against D at qD = 4 for a mean error of {COARSE}, with "
        f"95 % intervals. (e) The same at qD = 8 for {FINE}; black: lower bound; grey: mean number "
        "of samples until every set has been the signal set (coupon collector). (f) Mean error at "
        "qD = 8 of the learner that looks for the sets, against samples per set, and the lower "
        "bounds.",
        transfer_figure.draw_learners,
        learning_curves(sweeps, COARSE, seed, {8.0: FINE}),
        (10.0, 7.4),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence, at the largest D with and without a pre-trained A."""
    rows = tables["samples needed"].data
    finder, pretrained = (rows.loc[learner] for learner in (FINDER, PRETRAINED))
    qD, D = max(finder.index.intersection(pretrained.index), key=lambda label: label[::-1])
    ends = [
        [part.loc[(qD, D), f"needed_{end}"] for end in ("low", "high")]
        for part in (finder, pretrained)
    ]
    return {
        "qD": qD,
        "D": D,
        "finder": interval_text(*ends[0]),
        "pretrained": interval_text(*ends[1]),
        "least": finder.loc[(qD, D), "least_samples"],
    }


def _not_reached(t: pd.DataFrame, end: str) -> pd.Series:
    """Return whether an end of the samples needed lies beyond those tried."""
    return t[f"needed_{end}"].isna() & t.samples.notna()


NEEDED = Table(
    index=("learner", "qD", "D"),
    columns={
        "threshold": Column("mean error to be reached"),
        **intervals.columns("needed", "samples needed", centre="", missing="more than tried"),
        "few": Column("log^2 D"),
        "samples": Column("most samples tried"),
        "mean_error": Column("mean error with the most samples"),
        "linear_error": Column("error of the linear rule, exact"),
        "least_samples": Column("lower bound of the samples needed, exact"),
        "coupon_collector": Column("mean samples until every set was the signal set, exact"),
        "largest": Column("largest D tried"),
    },
    predicates={
        "more than log^2 D samples are surely needed": lambda t: (
            (t.needed_low > t.few) | (_not_reached(t, "low") & (t.samples >= t.few))
        ),
    },
    strict={
        "log^2 D samples are not surely enough below the linear rule's error": lambda t: (
            (t.needed_high > t.few) | _not_reached(t, "high") | (t.threshold >= t.linear_error)
        ),
        "not surely fewer samples than the exact bound": lambda t: (
            (t.needed_high >= t.least_samples) | _not_reached(t, "high")
        ),
    },
    judged=lambda t: t.largest.eq(True) & (t.index.get_level_values("learner") != PRETRAINED),
)
BY_GROUP = Table(
    index=("learner", "qD", "D", "group"),
    columns={
        "needed_by_seed": Column(
            "samples needed by one group of runs", missing="more than tried", rtol=math.inf
        )
    },
)
POWERS = Table(
    index=("learner", "qD"),
    columns=intervals.columns(
        "power", "fitted power of D in the samples needed", centre="", missing="not reached"
    ),
    predicates={"the samples needed surely grow with D": lambda t: t.power_low > 0.0},
    judged=lambda t: t.index.get_level_values("learner") == FINDER,
)

CLAIM = Claim(
    id="theorem-5.2",
    place="Theorem 5.2 (Section 5)",
    statement=(
        "A classification algorithm without patch association needs D^Omega(1) samples to get a "
        "test error of o(1) on the downstream task."
    ),
    method=(
        "Samples that v on A at initialization, v on uniform attention, logistic regression on the "
        "flattened patches, training everything from scratch and a learner that looks for the sets "
        "by coincidences need for a mean error of 0.025 or 0.05, at qD = C^2 / 4, C^2 / 2 and C^2, "
        "with 95 % intervals; against the exact least error of any learner that does not know the "
        "sets beforehand (Bayes rule given the sets met, coupon collector)."
    ),
    criterion=(
        "D^Omega(1) is more than any polylog(D), read as log^2 D. Holds if, in every regime, "
        "every learner without patch association needs more than log^2 D samples at the largest D "
        "where it is tried (lower end of a 95 % bootstrap interval over runs and five groups; not "
        "reached counts as more) and the interval of the power of D of the learner that looks for "
        "the sets is positive. Fails if the interval of one lies at or below log^2 D for an error "
        "below the linear rule's, or below the exact bound (then the bound or its code is wrong). "
        "Otherwise, in particular where an error above the linear rule's is reached without the "
        "sets, a finding. The error to be reached is a third of the linear rule's at qD = C^2 / 2 "
        "and C^2, and 0.05, reached by every pre-trained model, at qD = C^2 / 4."
    ),
    tables={
        "samples needed": NEEDED,
        "samples needed by group": BY_GROUP,
        "powers of D": POWERS,
    },
    measure=measure,
    headline=headline,
    finding=(
        "D = {D}, qD = {qD:g} (95 %): looking for the sets takes {finder} samples ({least} at "
        "least), the pre-trained A {pretrained}."
    ),
    tolerance=FINE,
    quick_note="D = 16, 32 instead of 16 to 128, no qD = C^2",
    thorough_note="25 runs of each learner instead of 15 or 5; pre-training at qD = 4, D = 64 too",
    assumptions=(
        "descent on (E); L-BFGS for logistic regression; the exact law of the sum of patches; "
        "multinomial counts behind the bound"
    ),
    group="transfer",
)
