"""Figures 6 and 7: positional against vanilla attention, on three data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simulations.reproduction.effects import NOTHING
from simulations.reproduction.measured import measured_at, spread
from simulations.reproduction.outcome import Claim, Context, Figure, Headline, Outcome, Verdict
from simulations.vision.extra import needs_extra

if TYPE_CHECKING:
    import numpy as np

    from simulations.vision.runs import Run

#: Error by which positional attention may be behind and still compete: what it is behind on
#: ImageNet in Figure 6, where it does so by the statement (71.9 % against 68.9 %). This is a
#: difference of accuracies; the squared error on masked pixels has no margin of its own and gets
#: the same.
TOLERANCE = 0.03


class Compared(NamedTuple):
    """Errors (runs,) of positional and vanilla attention on one data set.

    ``cost`` is the processor time of a step of vanilla attention over one of positional attention.
    """

    positional: np.ndarray
    vanilla: np.ndarray
    cost: float

    @property
    def difference(self) -> np.ndarray:
        """Positional minus vanilla, run by run: above 0 where vanilla attention leads."""
        return self.positional - self.vanilla

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean difference."""
        from simulations.reproduction.intervals import of_mean

        return of_mean(self.difference)

    @property
    def leads(self) -> str:
        """Which one leads by more than chance."""
        low, high = self.interval
        return "positional" if high < 0.0 else "vanilla" if low > 0.0 else "neither"

    @property
    def competes(self) -> bool:
        """Whether positional attention is not behind by more than the tolerance."""
        return self.interval[1] <= TOLERANCE


@needs_extra
def run(context: Context) -> Outcome:
    """Train both kinds of attention, each at its own rate, and compare their errors."""
    from simulations.vision import runs

    count = 3 if context.quick else 5
    plans = runs.plans_of_comparison(context.quick, context.thorough)
    both = [plan for pair in plans.values() for plan in pair]
    trained = runs.trained(context, both, count)
    models = {name: (trained[first], trained[other]) for name, (first, other) in plans.items()}
    found = {name: look(*pair) for name, pair in models.items()}
    measured = measured_at({}, ("runs", "runs of each", count))
    steps_of = {name: first.settings.steps for name, (first, _) in plans.items()}
    for name, one in found.items():
        measured += measured_at(
            {"data": name, "steps": steps_of[name]},
            ("positional", "test error of positional attention, mean",
             float(one.positional.mean())),
            ("vanilla", "test error of vanilla attention, mean", float(one.vanilla.mean())),
            *spread("difference", "positional minus vanilla, mean over runs",
                    (float(one.difference.mean()), *one.interval)),
            ("leads", "which leads, its interval without 0", one.leads),
            ("cost", "processor time of a step, vanilla over positional", one.cost),
        )  # fmt: skip
    verdict, summary = judge(found, steps_of)
    return Outcome(
        verdict, measured, TOLERANCE, runs.parameters(both, count, context.seed), summary,
        (_figure(models, found),),
    )  # fmt: skip


def look(positional: Sequence[Run], vanilla: Sequence[Run]) -> Compared:
    """Return the errors of both and the ratio of their costs."""
    import numpy as np

    cost = np.median([one.seconds for one in vanilla]) / np.median(
        [one.seconds for one in positional]
    )
    first, other = (np.array([one.error for one in some]) for some in (positional, vanilla))
    return Compared(first, other, float(cost))


def judge(found: Mapping[str, Compared], steps: Mapping[str, int]) -> tuple[Verdict, str]:
    """Return HOLDS if positional attention competes everywhere, FAILS if nowhere.

    ``steps`` are those of each data set, which the sentence tells.
    """
    if not found:
        return NOTHING
    competes = [one.competes for one in found.values()]
    verdict = (
        Verdict.HOLDS if all(competes) else Verdict.FINDING if any(competes) else Verdict.FAILS
    )
    parts = []
    for name, one in found.items():
        low, high = one.interval
        parts.append(
            f"{name} ({steps[name]} steps): {one.positional.mean():.3f} against "
            f"{one.vanilla.mean():.3f} (difference {low:.3f} to {high:.3f}, {one.leads} leads)"
        )
    costs = [one.cost for one in found.values()]
    return verdict, (
        "Test error of positional against vanilla attention: "
        f"{'; '.join(parts)}; the margin of {TOLERANCE:g} is a difference of accuracies on "
        "ImageNet, applied to the squared error of pixels as it stands; a step of vanilla "
        f"attention costs {min(costs):.1f} to {max(costs):.1f} times as much."
    )


def _figure(
    models: Mapping[str, tuple[Sequence[Run], Sequence[Run]]], found: Mapping[str, Compared]
) -> Figure:
    from simulations.figures import report_figure
    from simulations.vision.data_of_figures import compared
    from simulations.vision.figures import compared as drawn

    return report_figure(
        "figure-6-7",
        "Figures 6 and 7: positional against vanilla attention",
        "Above: training loss against step, mean over runs of a running mean over 20 steps, with "
        "the range over runs. Below: test error of every run (dots), mean and 95 % interval; the "
        "ratio is the processor time of a step of vanilla attention over one of positional "
        "attention. Both models have the same width, depth, heads and images, each its own rate.",
        drawn.draw,
        compared(models, {name: one.cost for name, one in found.items()}),
        (11.0, 5.2),
    )


def _finding(outcome: Outcome) -> str:
    behind = outcome.values("difference_high")
    return (
        f"At most {max(behind):.3f} behind on {len(behind)} data sets (95 %); the margin, "
        f"{TOLERANCE:g}, is ImageNet's in accuracy, for pixels too."
    )


CLAIM = Claim(
    id="figure-6-7",
    place="Figures 6 and 7 (Section 6)",
    statement="ViTs with positional attention compete with vanilla ViTs on a range of data sets.",
    method=(
        "Test error and cost of a step of both kinds of attention on masked photographs, on digits "
        "with and without shifts, and on 5,000 MNIST digits, at a stated number of steps, each "
        "with its own learning rate, chosen on validation images."
    ),
    criterion=(
        "On a data set positional attention competes if the 95 % interval of its error minus that "
        "of vanilla attention, over runs, ends below .03: what it is behind on ImageNet in Figure "
        "6 (68.9 % against 71.9 %) where the paper says that it competes. That is a difference of "
        "accuracies; for masked pixels, whose squared error is in units of their variance, the "
        "paper gives no margin and the same .03 is used. HOLDS if it competes on all data sets, "
        "FAILS if on none, otherwise a finding. Which one leads, beyond the interval, is told. "
        "Five runs."
    ),
    headline=Headline("cost", pick=max),
    finding=_finding,
    run=run,
    quick_note="150 steps instead of 400 and 500, three runs, no MNIST",
    thorough_note=(
        "1,500 steps on photographs, 1,200 on digits, 2,500 on MNIST instead of 400, 500 and 150"
    ),
    assumptions=(
        "images that packages ship (not CIFAR, SVHN, ImageNet); the learning rate of each kind on "
        "each data set did best among five to seven, a factor of two apart, on validation images "
        "of three runs with other seeds (.04 on photographs, .01 on digits, on MNIST .01 for "
        "positional and .005 for vanilla attention); nothing else was tuned"
    ),
    group="vision",
)
