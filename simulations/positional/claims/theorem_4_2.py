"""Theorem 4.2: patch association and generalization from finite samples, and who causes which."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import xarray

from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.labelling import label_error
from simulations.figures import report_figure
from simulations.positional import sample_sizes, training_runs
from simulations.positional.data import training as training_data
from simulations.positional.figures import sample_sizes as sample_sizes_figure
from simulations.positional.figures import training
from simulations.positional.sample_sizes import Scan
from simulations.positional.training_runs import LARGE, SOURCE, Setting, Training
from simulations.reproduction.intervals import of_mean
from simulations.reproduction.measured import Measured, Row, Value, measured_at, spread
from simulations.reproduction.outcome import Claim, Context, Figure, Headline, Outcome, Verdict

#: Largest P[f* F <= 0] that counts as o(1), in units of the exact error of uniform attention.
TOLERANCE = 0.25
#: What "meets the hypotheses" means at finite size: P[y f* <= 0], and N over D^2.
LABELS, SAMPLES = 0.01, 4.0


class Ending(NamedTuple):
    """What the runs of one setting reached; rates are means over runs unless they say otherwise."""

    runs: int
    within: bool  # the hypotheses are met
    associated: int  # runs with patch association in every row at the last step
    once: int  # runs with it at some step
    first: tuple[float, ...]  # the step at which it comes, run by run, nan where it does not
    lost: tuple[float, ...]  # the step at which it goes again, inf where it does not
    horizon: int
    association: float  # fraction of rows at the last step
    test_error: float
    control: float  # test error of the same v with A put back to its initial value
    ratio: float  # smallest control over test error, of all runs
    disagreement: float  # P[f* F <= 0], largest of all runs
    linear: float  # exact error of uniform attention, nan with noise along w*
    before: float  # test error at the last record before any run associates, nan if none does

    @property
    def kept(self) -> bool:
        """Whether every run has association from some step on, as far as it was followed."""
        return self.once == self.runs and all(math.isinf(step) for step in self.lost)

    @property
    def generalizes(self) -> bool:
        """Whether the theorem's second item holds at `TOLERANCE`; False if nothing to compare."""
        return self.disagreement <= TOLERANCE * self.linear

    @property
    def because(self) -> bool:
        """Whether the error is small because of the attention: twice as large without."""
        return self.ratio > 2.0


def run(context: Context) -> Outcome:
    """Train on samples of every setting, put A back for the control, vary the samples."""
    settings = training_runs.settings(context.quick, context.thorough)
    runs = training_runs.all_trained(_part(context, 0.0, 0.7))
    setting = settings[training_runs.LARGE][0]
    plan = sample_sizes.plans(context.quick, context.thorough)
    seen = (setting.problem, setting.rate_v, setting.rate_A, setting.steps)
    same = seen == (plan[0].problem, plan[0].rate_v, plan[0].rate_A, plan[0].horizon)
    windows = [one.window for one in runs[training_runs.LARGE]]
    known = {setting.N: windows} if same else {}
    scan = sample_sizes.scan(
        plan, context.seed, _part(context, 0.7, 1.0).progress, context.scratch, known
    )
    endings = [(name, ending(some, settings[name][0])) for name, some in runs.items()]
    steps = training_runs.steps_with_one_rate(setting.problem)
    measured = numbers(endings) + numbers_of_scan(scan)
    measured += measured_at(
        {"setting": training_runs.LARGE},
        ("steps_with_one_rate", "steps until gamma - rho = 1 with kappa = D and one rate",
         steps if math.isfinite(steps) else "not reached", "steps"),
    )  # fmt: skip
    measured += measured_at({}, ("source", "source of the public settings", training_runs.SOURCE))
    verdict, summary = judge(endings, not np.isfinite(scan.lost).any(), scan.growth)
    return Outcome(
        verdict,
        measured,
        TOLERANCE,
        {"settings": training_runs.parameters(settings), "seed": context.seed},
        summary,
        (_figure(runs, settings), _figure_of_scan(scan)),
    )


def _part(context: Context, start: float, end: float) -> Context:
    """Return the context of a part of the work, whose progress goes from start to end."""
    return replace(
        context, progress=lambda fraction: context.progress(start + (end - start) * fraction)
    )


def ending(runs: Sequence[Training], setting: Setting) -> Ending:
    """Return what the runs of a setting reached."""
    problem = setting.problem
    association = np.array([run.association for run in runs])
    error = np.array([run.history.test_error for run in runs])
    control = np.array([run.control[-1] for run in runs])
    windows = [run.window for run in runs]
    came = [window.first for window in windows if math.isfinite(window.first)]
    earlier = runs[0].history.step < min(came, default=0)
    return Ending(
        runs=len(runs),
        within=setting.projected
        and label_error(problem).error <= LABELS
        and setting.N >= SAMPLES * problem.D**2,
        associated=int((association[:, -1] == 1.0).sum()),
        once=len(came),
        first=tuple(window.first for window in windows),
        lost=tuple(window.lost for window in windows),
        horizon=setting.steps,
        association=float(association[:, -1].mean()),
        test_error=float(error[:, -1].mean()),
        control=float(control.mean()),
        ratio=float((control / np.maximum(error[:, -1], 1e-12)).min()),
        disagreement=max(float(run.history.disagreement[-1]) for run in runs),
        linear=uniform_error(problem).coin if setting.projected else math.nan,
        before=float(error[:, earlier][:, -1].mean()) if earlier.any() else math.nan,
    )


def numbers(endings: Sequence[tuple[str, Ending]]) -> list[Measured]:
    """Return the measured numbers of the settings."""
    measured: list[Measured] = []
    for name, end in endings:
        rows: list[Row] = [
            ("runs", "runs", end.runs),
            ("meets", "hypotheses met", end.within),
            ("associated", "item 1: runs with patch association at the end", end.associated),
            ("once", "item 1: runs with it at some step", end.once),
            *_span("first", "item 1: step at which it comes", end.first),
            *_span("lost", "item 1: step at which it is lost", end.lost),
            ("association", "item 1: rows with it at the end, mean", end.association),
            ("disagreement", "item 2: P[f* F <= 0] at the end, largest", end.disagreement),
            ("test_error", "test error at the end", end.test_error),
            ("control", "test error with A put back", end.control),
        ]
        if math.isfinite(end.linear):
            rows.append(("linear_error", "exact error of uniform attention", end.linear))
        if math.isfinite(end.before):
            rows.append(("before", "test error before any run associates", end.before))
        measured += measured_at({"setting": name, "horizon": end.horizon}, *rows)
    return measured


def numbers_of_scan(scan: Scan) -> list[Measured]:
    """Return when association is lost at each N, and how many samples it needs at each D."""
    measured: list[Measured] = []
    for row, N in enumerate(scan.loss.sizes):
        at: dict[str, Value] = {"D": scan.loss.problem.D, "N": N, "horizon": scan.loss.horizon}
        measured += measured_at(at, *_span("lost_by_N", "step at which it is lost", scan.lost[row]))
    if math.isfinite(scan.growth[0]):
        measured += measured_at(
            {}, *spread("growth", "exponent in N of the step at which it is lost", scan.growth)
        )
    for row, D in enumerate(scan.need.sizes):
        at = {"D": D, "most samples": scan.most}
        needed = scan.needed[row]
        measured += measured_at(at, *_span("needed", "samples that association needs", needed))
    label = "exponent in D of the samples that association needs"
    return measured + measured_at({}, *spread("growth_of_need", label, scan.growth_of_need))


def _span(name: str, label: str, found: Sequence[float]) -> list[Row]:
    """Return least, greatest, mean and interval, and in how many runs it came (not: inf or nan)."""
    finite = [one for one in found if math.isfinite(one)]
    rows: list[Row] = [
        (f"{name}_runs", f"{label}: runs in which it is", len(finite)),
        (f"{name}_never", f"{label}: runs in which it never is",
         sum(math.isnan(one) for one in found)),
        (f"{name}_beyond", f"{label}: runs in which it lies beyond those tried",
         sum(math.isinf(one) for one in found)),
    ]  # fmt: skip
    if finite:
        rows += [(f"{name}_least", f"{label}, least", min(finite)),
                 (f"{name}_greatest", f"{label}, greatest", max(finite))]  # fmt: skip
    if len(finite) > 2:
        rows += spread(name, f"{label}, mean", (sum(finite) / len(finite), *of_mean(finite)))
    return rows


def judge(
    endings: Sequence[tuple[str, Ending]],
    kept_elsewhere: bool,
    growth: tuple[float, float, float],
) -> tuple[Verdict, str]:
    """Judge the settings that meet the hypotheses; the others are told beside them.

    ``kept_elsewhere``: whether association lasts in all runs of the scan over N; ``growth``: the
    exponent in N of the step at which it is lost, with its interval. See the claim's criterion.
    """
    within = [end for _, end in endings if end.within]
    kept = kept_elsewhere and all(end.kept for end in within)
    if not within:
        verdict = Verdict.FINDING
    elif kept and all(end.generalizes and end.because for end in within):
        verdict = Verdict.HOLDS
    elif any(2 * end.once < end.runs or not end.generalizes for end in within) or (
        not kept and growth[2] <= 0.0
    ):
        verdict = Verdict.FAILS
    else:
        verdict = Verdict.FINDING
    summary = "; ".join(_told(name, end) for name, end in endings) or "nothing was measured"
    if not kept and math.isfinite(growth[0]):
        summary += (
            f"; the step at which association is lost grows like N^{growth[0]:.2f} "
            f"({growth[1]:.2f} to {growth[2]:.2f})"
        )
    return verdict, summary[0].upper() + summary[1:] + "."


def _told(name: str, end: Ending) -> str:
    text = f"{name}: {end.once} of {end.runs} runs associate all patches"
    gone = [step for step in end.lost if math.isfinite(step)]
    if gone:
        text += (
            f" and {len(gone)} lose it again at steps {min(gone):.0f} to {max(gone):.0f} of "
            f"{end.horizon}"
        )
    text += f", test error {end.test_error:.3g}, {end.control:.3g} for the same v with A put back"
    if not end.because:
        text += ", so that the error is not small because of the attention"
    return text + ("" if end.within else " (outside the hypotheses)")


def _figure(runs: dict[str, list[Training]], settings: dict[str, tuple[Setting, int]]) -> Figure:
    names = "; ".join(f"{name}: {training_runs.describe(settings[name][0])}" for name in runs)
    return report_figure(
        "theorem-4-2-control",
        "Is the error small because of patch association?",
        f"Mean over runs and range of all runs. {names}. Above: test error, and that of the same v "
        "with A put back to its initial value (dashed grey); thin: error of f* with its ties "
        "decided by a coin. Below: fraction of rows of A whose C largest entries are the patch's "
        "own set, at every step; it is lost again by over-fitting while the error stays small. "
        f"{SOURCE}",
        training.draw_control,
        training_data.gather(runs, settings),
        (11.0, 5.0),
    )


def _figure_of_scan(scan: Scan) -> Figure:
    loss, need = scan.loss, scan.need
    return report_figure(
        "theorem-4-2-samples",
        "How long patch association lasts, and how many samples it needs",
        f"One mark a run, line through the means, both axes logarithmic. (a) D={loss.problem.D}, "
        f"C={loss.problem.C}, qD={loss.problem.q * loss.problem.D:g}, rates {loss.rate_v:g} and "
        f"{loss.rate_A:g}: the step at which every row of A has its own set as its C largest "
        "entries, and the later one at which that is lost; triangles: not lost by step "
        f"{loss.horizon}. (b) C={loss.problem.C}, qD={need.qD:g}: the smallest N, of a grid with "
        "factor 1.41, at which all rows associate at some step up to 300. The exponents are fitted "
        "to the means, with 95% intervals from runs drawn again.",
        sample_sizes_figure.draw,
        gather_sample_sizes(scan),
        (9.0, 3.8),
    )


def gather_sample_sizes(scan: Scan) -> xarray.Dataset:
    """Return steps (N, run) and samples (D, other_run) with the exponents and their intervals."""
    return xarray.Dataset(
        {
            "first": (("N", "run"), scan.first),
            "lost": (("N", "run"), scan.timed),
            "censored": (("N", "run"), np.isinf(scan.lost).astype(np.int8)),
            "needed": (("D", "other_run"), np.minimum(scan.needed, scan.most)),
            "growth": ("bound", list(scan.growth)),
            "growth_of_need": ("bound", list(scan.growth_of_need)),
        },
        coords={
            "N": list(scan.loss.sizes),
            "D": list(scan.need.sizes),
            "bound": ["fit", "low", "high"],
        },
    )


def _finding(outcome: Outcome) -> str:
    runs, once, lost, worst, linear = (
        outcome.number(name, setting=LARGE)
        for name in ("runs", "once", "lost_runs", "disagreement", "linear_error")
    )
    return (
        f"{once} of {runs} runs associate and {lost} lose it again; P[f* F <= 0] ends at "
        f"{max(worst, TOLERANCE * linear):.2g} at most (uniform attention: {linear:.2g})."
    )


CLAIM = Claim(
    id="theorem-4.2",
    place="Theorem 4.2 (Section 4.2)",
    statement=(
        "With N = poly(d) samples, T iterations of GD on (E) from a random start (1) learn patch "
        "association, Top_C of row i of A is S_l for every i in S_l, and (2) fit the labelling "
        "function, P[f*(X) F(X) > 0] >= 1 - o(1)."
    ),
    method=(
        "Full-matrix descent on samples at a larger problem where uniform attention fails, with "
        "too few samples, and at the public Figure 4 settings, there with a faster A too: patch "
        "association at every step, test error, P[f* F <= 0], and the test error of the same v "
        "with A put back to its start; the step at which association is lost against N, and the "
        "samples that it needs against D."
    ),
    criterion=(
        "Parametrization 3.1 allows any T >= poly(d)/eta, so that what the theorem says at T it "
        "says at every later step. Judged where its hypotheses are met (noise across w*, "
        "Assumption 1; P[y f* <= 0] of at most 1%, Definition 2.1; N = poly(d), read as N >= 4 "
        "D^2), over at least five runs. HOLDS if from some step to the end of every run all rows "
        "associate, P[f* F <= 0] ends at a quarter or less of the exact error of uniform attention "
        "(which Theorem 3.1 bounds from below by a constant, so that o(1) is small against it) and "
        "the error is twice as large with A put back. FAILS if fewer than half of the runs ever "
        "associate or item 2 is missed, or if association is lost at a step whose 95% interval of "
        "growth in N ends at no growth or below, so that no N helps. Otherwise a finding. The "
        "other settings are told, not judged."
    ),
    headline=Headline("test_error", {"setting": "larger problem"}),
    finding=_finding,
    run=run,
    quick_note=(
        "N = 3,000 instead of 50,000 at the public settings, D = 32 instead of 48 elsewhere, one "
        "or two runs of each instead of five"
    ),
    thorough_note=(
        "follows the larger problem to step 2,400 instead of 600, N up to 40,000 instead of "
        "10,000, D up to 128 instead of 48: about half an hour"
    ),
    amended=(
        "An interval of growth in N that included no growth was a failure at first; with one of "
        "three root seeds it reached down to .01, so that its width would have decided. It must "
        "now lie at or below no growth. No verdict changed by it."
    ),
    assumptions="descent on (E); held-out samples, of which the model sees projections only",
    group="theorem-4.2",
)
