"""Figure 4: mask, learned A, test error and cosine of a training run on finite samples."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simulations.figures import report_figure
from simulations.positional import training_runs
from simulations.positional.data import training as training_data
from simulations.positional.figures import training
from simulations.positional.training_runs import LARGE, PUBLIC, SOURCE, Setting, Training
from simulations.reproduction.effects import NOTHING
from simulations.reproduction.intervals import mean_of
from simulations.reproduction.measured import Measured, Row, in_words, measured_at, spread
from simulations.reproduction.outcome import Claim, Context, Figure, Headline, Outcome, Verdict

#: Smallest cosine of v and w* at the end that counts as aligned.
TOLERANCE = 0.98


class Panels(NamedTuple):
    """What the four panels show, over the runs of one setting."""

    matches: bool  # every row of A has its set as its C largest entries, at the end of every run
    once: bool  # every run has this at some step
    gap: float  # at the end, smallest A within sets minus largest across, lowest run
    highest_gap: float  # the same at the best step of each run, lowest run
    cosine: float  # at the end, lowest run
    test_error: float  # at the end, mean
    control: float
    associated: float  # step by which every run has associated, inf if one never does
    learned: float  # step by which every run has nine tenths of its fall of the error done
    first_associated: float = math.nan  # step at which the first run associates, inf if none does
    first_learned: float = math.nan  # step at which the first run has that part of the fall done

    @property
    def separated(self) -> bool:
        """Whether one threshold on the entries of A tells the sets, at the end of every run."""
        return self.gap > 0.0

    @property
    def in_order(self) -> bool:
        """Whether patch association comes before the fall of the error, as the theory has it."""
        return self.associated <= self.learned


def run(context: Context) -> Outcome:
    """Draw the four panels at the public settings and at a larger problem."""
    names = (training_runs.PUBLIC, training_runs.LARGE)
    settings = {
        name: entry
        for name, entry in training_runs.settings(context.quick, context.thorough).items()
        if name in names
    }
    runs = training_runs.all_trained(context, names)
    found = [(name, panels(some)) for name, some in runs.items()]
    measured: list[Measured] = []
    for name, panel in found:
        measured += measured_at(
            {"setting": name},
            ("runs", "runs", len(runs[name])),
            ("matches", "rows' C largest entries are the mask at the end of every run",
             panel.matches),
            ("once", "the same at some step of every run", panel.once),
            ("separated", "one threshold on A gives the mask at the end of every run",
             panel.separated),
            ("gap", "smallest A within sets minus largest across, lowest run", panel.gap),
            ("highest_gap", "the same at the best step, lowest run", panel.highest_gap),
            ("cosine", "cosine at the end, lowest run", panel.cosine),
            ("test_error", "test error at the end, mean", panel.test_error),
            ("control", "test error with A put back, mean", panel.control),
            ("learned", "step at which 90% of the fall of the error is done", panel.learned),
            ("first_learned", "first step at which a run has 90% of its fall of the error done",
             panel.first_learned),
            ("associated", "step at which every run has patch association",
             panel.associated if math.isfinite(panel.associated) else "never"),
            ("first_associated", "first step at which a run has patch association",
             panel.first_associated if math.isfinite(panel.first_associated) else "never"),
            *_mean_step("learned", "step of 90% of the fall of the error, mean",
                        [run.learned for run in runs[name]]),
            *_mean_step("associated", "step of patch association, mean",
                        [run.window.first for run in runs[name]]),
        )  # fmt: skip
    measured += measured_at({}, ("source", "source of the public settings", training_runs.SOURCE))
    verdict, summary = judge(found)
    return Outcome(
        verdict,
        measured,
        TOLERANCE,
        {"settings": training_runs.parameters(settings), "seed": context.seed},
        summary,
        (_figure(runs, settings),),
    )


def _mean_step(name: str, label: str, steps: Sequence[float]) -> list[Row]:
    """Return mean and interval of a step over runs; missing if a run never reaches it."""
    if len(steps) < 2 or not np.isfinite(steps).all():
        return []
    return spread(f"mean_{name}", label, mean_of(steps))


def panels(runs: Sequence[Training]) -> Panels:
    """Return what the panels of a setting show."""
    associated = [run.window.first for run in runs]
    return Panels(
        matches=all(run.association[-1] == 1.0 for run in runs),
        once=not np.isnan(associated).any(),
        gap=min(float(run.gap[-1]) for run in runs),
        highest_gap=min(float(run.gap.max()) for run in runs),
        cosine=min(float(run.history.cosine[-1]) for run in runs),
        test_error=float(np.mean([run.history.test_error[-1] for run in runs])),
        control=float(np.mean([run.control[-1] for run in runs])),
        associated=math.inf if np.isnan(associated).any() else max(associated),
        learned=max(run.learned for run in runs),
        first_associated=min((step for step in associated if math.isfinite(step)),
                             default=math.inf),
        first_learned=min(run.learned for run in runs),
    )  # fmt: skip


def judge(found: Sequence[tuple[str, Panels]]) -> tuple[Verdict, str]:
    """Return HOLDS if every panel shows what the figure is drawn for, else a finding.

    FAILS if in no setting A shows the sets row by row and v is aligned.
    """
    if not found:
        return NOTHING
    parts = []
    for name, panel in found:
        when = f"at step {panel.associated:.0f}" if math.isfinite(panel.associated) else "never"
        shows = "shows" if panel.matches else "shows no longer" if panel.once else "does not show"
        text = (
            f"{name}: A {shows} the sets row by row at the end of every run, smallest entry within "
            f"minus largest across {panel.gap:.3g} at the end and {panel.highest_gap:.3g} at best, "
            f"cosine {panel.cosine:.4f}, test error {panel.test_error:.3g}, 90% of its fall done "
            f"by step {panel.learned:.0f} and patch association in every run {when}"
        )
        if not panel.in_order:
            text += f", so that the fall is not due to it (A put back: {panel.control:.3g})"
        parts.append(text)
    panels = [panel for _, panel in found]
    aligned = [panel.cosine >= TOLERANCE for panel in panels]
    if all(aligned) and all(one.matches and one.separated and one.in_order for one in panels):
        verdict = Verdict.HOLDS
    elif any(one.matches and straight for one, straight in zip(panels, aligned)):
        verdict = Verdict.FINDING
    else:
        verdict = Verdict.FAILS
    summary = "; ".join(parts) + "."
    return verdict, summary[0].upper() + summary[1:]


def _figure(runs: dict[str, list[Training]], settings: dict[str, tuple[Setting, int]]) -> Figure:
    names = "; ".join(
        f"{name}: {training_runs.describe(settings[name][0])}, {len(some)} runs"
        for name, some in runs.items()
    )
    return report_figure(
        "figure-4",
        "Figure 4, at the public settings and at a larger problem",
        f"Left to right, as in the paper: pairs of patches of one set (grey); learned A, its fixed "
        "diagonal left out (grey); test error; cosine of v and w*. The first two show one run, the "
        "others the mean and range of all runs. Dashed: the same v with A put back to its initial "
        f"value. {names}. {SOURCE}",
        training.draw_figure_4,
        training_data.gather_figure_4(runs, settings),
        (11.0, 5.2),
    )


def _finding(outcome: Outcome) -> str:
    fall, association, other_fall, other = (
        _steps(outcome, name, what)
        for name in (PUBLIC, LARGE)
        for what in ("learned", "associated")
    )
    return (
        f"Mean step (95 %) at which the error falls {fall}, A associates {association} (public "
        f"settings); {other_fall}, {other} (larger)."
    )


def _steps(outcome: Outcome, setting: str, what: str) -> str:
    """Return the interval of a mean step, or the last run's where there is none."""
    ends = [outcome.values(f"mean_{what}_{end}", setting=setting) for end in ("low", "high")]
    if not all(ends):
        return in_words(outcome.number(what, setting=setting), "g")
    return " to ".join(f"{max(values[0], 0.0):.0f}" for values in ends)


CLAIM = Claim(
    id="figure-4",
    place="Figure 4 (Section 4.2)",
    statement=(
        "After training on samples the coefficients of A with high value are those within sets; "
        "the test error falls and the cosine of v and w* goes to 1."
    ),
    method=(
        "The four panels at the public settings (D = 10, d = 100, C = 2, p = 5) and at a larger "
        "problem, over several runs, with the order in which error and patch association come: A "
        "at every step, the test error at the first ones and where it falls."
    ),
    criterion=(
        "The caption says that the coefficients with high value *exactly* correspond to the mask. "
        "HOLDS if at the end of every run, at both settings, one threshold on the entries of A "
        "gives the mask and so do the C largest entries of each row (Definition 2.2), the cosine "
        "is at least 0.98 (an angle of 11 degrees), and, as the figure illustrates Theorem 4.2, "
        "association comes before nine tenths of the fall of the error are done. FAILS if at "
        "neither setting the rows show the sets with such a cosine. Otherwise a finding. At least "
        "five runs."
    ),
    headline=Headline("learned", {"setting": "larger problem"}),
    finding=_finding,
    run=run,
    quick_note="N = 3,000 instead of 50,000 at the public settings, D = 32 instead of 48, two runs",
    assumptions="descent on (E); held-out samples, of which the model sees projections only",
    group="theorem-4.2",
)
