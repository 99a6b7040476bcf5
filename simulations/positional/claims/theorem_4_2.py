"""Theorem 4.2: patch association and generalization from finite samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import NullFormatter, ScalarFormatter

from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.labelling import label_error
from simulations.figures import report_figure
from simulations.figures.style import COLOURS, REFERENCE, panel_letters, styled
from simulations.positional import sample_sizes, training_curves, training_runs
from simulations.positional.figures import training
from simulations.positional.idealized_runs import steps_with_one_rate
from simulations.positional.sample_sizes import Scan
from simulations.positional.training_runs import LARGE, SOURCE, Setting, Training
from simulations.reproduction import intervals
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: Threshold of P[f* F <= 0] for o(1), in units of the exact error of uniform attention.
TOLERANCE = 0.25
#: Hypotheses at finite size: largest P[y f* <= 0], and smallest N over D^2.
LABELS, SAMPLES = 0.01, 4.0


def measure(context: Context) -> Measurement:
    """Train at every setting, with a control whose A is reset; vary the number of samples."""
    settings = training_runs.settings(context.quick, context.thorough)
    runs = training_runs.all_trained(_part(context, 0.0, 0.7))
    scan = _scan(_part(context, 0.7, 1.0), settings[LARGE][0], runs[LARGE])
    endings = ENDINGS.frame(
        {"setting": name, **ending(trained, settings[name][0])} for name, trained in runs.items()
    )
    meeting = endings[endings.meets]
    samples = {
        "kept": bool(
            (meeting.lost_beyond == meeting.runs).all() and not np.isfinite(scan.lost).any()
        ),
        **intervals.cells("growth", scan.loss_exponent),
        **intervals.cells("growth_of_need", scan.need_exponent),
        "steps_with_one_rate": steps_with_one_rate(settings[LARGE][0].problem),
    }
    return Measurement(
        {
            "settings": endings,
            "loss of association": LOSS.frame(losses(scan)),
            "samples needed": NEED.frame(needs(scan)),
            "growth": GROWTH.frame([samples]),
        },
        {
            "settings": training_runs.parameters(settings),
            "source of the public settings": SOURCE,
            "horizon of the loss": scan.loss.horizon,
            "most samples tried": scan.most,
            "seed": context.seed,
        },
        (_figure(runs, settings), _figure_of_scan(scan)),
    )


def _scan(context: Context, setting: Setting, runs: Sequence[Training]) -> Scan:
    """Return the scan over samples; runs of a setting are reused where they are the same."""
    scans = sample_sizes.scan_settings(context.quick, context.thorough)
    own = (setting.problem, setting.rate_v, setting.rate_A, setting.steps)
    same = own == (scans[0].problem, scans[0].rate_v, scans[0].rate_A, scans[0].horizon)
    windows = {setting.N: [run.window for run in runs]} if same else {}
    return sample_sizes.scan(scans, context, windows)


def _part(context: Context, start: float, end: float) -> Context:
    """Return the context of a part of the work, with progress from start to end."""
    return replace(
        context, progress=lambda fraction: context.progress(start + (end - start) * fraction)
    )


def ending(runs: Sequence[Training], setting: Setting) -> dict[str, Any]:
    """Return the row of a setting: numbers at the end of its runs."""
    problem = setting.problem
    association = np.array([run.association for run in runs])
    error = np.array([run.history.test_error for run in runs])
    control = np.array([run.control[-1] for run in runs])
    windows = [run.window for run in runs]
    associated = [window.first for window in windows if math.isfinite(window.first)]
    earlier = runs[0].history.step < min(associated, default=0)
    return {
        "horizon": setting.steps,
        "runs": len(runs),
        "meets": setting.projected
        and label_error(problem).error <= LABELS
        and setting.N >= SAMPLES * problem.D**2,
        "associated": int((association[:, -1] == 1.0).sum()),
        "once": len(associated),
        **_span("first", [window.first for window in windows]),
        **_span("lost", [window.lost for window in windows]),
        "association": association[:, -1].mean(),
        "disagreement": max(run.history.disagreement[-1] for run in runs),
        "test_error": error[:, -1].mean(),
        "control": control.mean(),
        "ratio": (control / np.maximum(error[:, -1], 1e-12)).min(),
        "linear_error": uniform_error(problem).coin if setting.projected else math.nan,
        "before": error[:, earlier][:, -1].mean() if earlier.any() else math.nan,
    }


def losses(scan: Scan) -> Iterator[dict[str, Any]]:
    """Yield the step at which association is lost, for each N."""
    for N, lost in zip(scan.loss.sizes, scan.lost):
        yield {"D": scan.loss.problem.D, "N": N, **_span("lost_by_N", lost)}


def needs(scan: Scan) -> Iterator[dict[str, Any]]:
    """Yield the number of samples that association needs, for each D."""
    for D, needed in zip(scan.need.sizes, scan.needed):
        yield {"D": D, **_span("needed", needed)}


def _span(name: str, values: Sequence[float] | np.ndarray) -> dict[str, Any]:
    """Return counts, extremes and mean of a number over runs.

    NaN: it never happens in a run; infinite: it happens beyond the tried range. The mean has an
    interval if at least three runs are finite.
    """
    finite = np.asarray(values)[np.isfinite(values)]
    mean = intervals.mean_of(finite) if finite.size > 2 else (math.nan,) * 3
    return {
        f"{name}_runs": finite.size,
        f"{name}_never": int(np.isnan(values).sum()),
        f"{name}_beyond": int(np.isinf(values).sum()),
        f"{name}_least": finite.min() if finite.size else math.nan,
        f"{name}_greatest": finite.max() if finite.size else math.nan,
        **intervals.cells(name, mean),
    }


def _span_columns(name: str, label: str, unit: str) -> dict[str, Column]:
    """Return the columns of `_span`."""
    return {
        f"{name}_runs": Column(f"{label}: runs with a number", rtol=math.inf),
        f"{name}_never": Column(f"{label}: runs in which it never happens", rtol=math.inf),
        f"{name}_beyond": Column(f"{label}: runs beyond the tried range", rtol=math.inf),
        f"{name}_least": Column(f"{label}, least", unit, rtol=math.inf),
        f"{name}_greatest": Column(f"{label}, greatest", unit, rtol=math.inf),
        **intervals.columns(name, label, unit),
    }


def _figure(runs: dict[str, list[Training]], settings: dict[str, tuple[Setting, int]]) -> Figure:
    names = "; ".join(f"{name}: {training_runs.describe(settings[name][0])}" for name in runs)
    return report_figure(
        "theorem-4-2-control",
        "Is the error small because of patch association?",
        f"Mean over runs and range of all runs. {names}. Above: test error, and the error of the "
        "same v with A reset to its initial value (dashed grey); thin: error of f* with ties "
        "decided at random. Below: fraction of rows of A whose C largest entries are the patch's "
        f"own set, at every step; over-fitting destroys it while the error stays small. {SOURCE}",
        training.draw_control,
        training_curves.training_dataset(runs, settings),
        (11.0, 5.0),
    )


def _figure_of_scan(scan: Scan) -> Figure:
    loss, need = scan.loss, scan.need
    return report_figure(
        "theorem-4-2-samples",
        "How long patch association lasts, and how many samples it needs",
        f"One mark per run, line through the means, both axes logarithmic. (a) D={loss.problem.D}, "
        f"C={loss.problem.C}, qD={loss.problem.q * loss.problem.D:g}, rates {loss.rate_v:g} and "
        f"{loss.rate_A:g}: the step at which every row of A has its own set as its C largest "
        "entries, and the later step at which this is lost; triangles: not lost by step "
        f"{loss.horizon}. (b) C={loss.problem.C}, qD={need.qD:g}: the smallest N, of a grid with "
        "factor 1.41, at which all rows associate at some step up to 300. The exponents are fitted "
        "to the means, with 95% intervals by resampling the runs.",
        _draw_sizes,
        _scan_data(scan),
        (9.0, 3.8),
    )


def _scan_data(scan: Scan) -> xarray.Dataset:
    """Return steps (N, run) and samples (D, other_run) with the exponents and their intervals."""
    return xarray.Dataset(
        {
            "first": (("N", "run"), scan.first),
            "lost": (("N", "run"), scan.timed),
            "censored": (("N", "run"), np.isinf(scan.lost).astype(np.int8)),
            "needed": (("D", "other_run"), np.minimum(scan.needed, scan.most)),
            "growth": ("bound", list(scan.loss_exponent)),
            "growth_of_need": ("bound", list(scan.need_exponent)),
        },
        coords={
            "N": list(scan.loss.sizes),
            "D": list(scan.need.sizes),
            "bound": ["fit", "low", "high"],
        },
    )


@styled
def _draw_sizes(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the steps against N and the samples needed against D, one mark per run."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    size = data["N"].values
    for name, label, colour in (
        ("lost", "lost", COLOURS["test_error"]),
        ("first", "all rows associate", COLOURS["gamma"]),
    ):
        values = data[name].values
        artists[name] = left.plot(size, data[name].mean("run"), color=colour, label=label)[0]
        censored = data["censored"].values > 0 if name == "lost" else np.zeros(values.shape, bool)
        for marks, chosen in (("o", ~censored), ("^", censored)):
            shown = np.where(chosen, values, np.nan)
            left.plot(size, shown, marks, color=colour, alpha=0.6, ms=4.5)
    _fit(left, size, data["lost"].mean("run").values, data["growth"].values, "N")
    left.set(xlabel="samples $N$", ylabel="step", xscale="log", yscale="log")
    sizes, needed = data["D"].values, data["needed"].values
    artists["needed"] = right.plot(
        sizes, needed.mean(1), color=COLOURS["gamma - rho"], label="samples needed, mean"
    )[0]
    right.plot(sizes, needed, "o", color=COLOURS["gamma - rho"], alpha=0.4, ms=4.5)
    _fit(right, sizes, needed.mean(1), data["growth_of_need"].values, "D")
    right.set(xlabel="patches $D$", ylabel="samples $N$", xscale="log", yscale="log")
    for ax, ticks in ((left, size), (right, sizes)):
        ax.set_xticks(ticks)
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * (high / low) ** 0.3)
        ax.legend(loc="upper left")
    panel_letters((left, right))
    return artists


def _fit(ax: Any, x: np.ndarray, mean: np.ndarray, power: np.ndarray, symbol: str) -> None:
    """Draw the fitted power law through the centre of the means, if there is a fit."""
    if not np.isfinite(power).all():
        return
    finite = np.isfinite(mean)
    centre = np.exp(np.log(x[finite]).mean()), np.exp(np.log(mean[finite]).mean())
    fitted, low, high = power
    label = rf"${symbol}^{{{fitted:.2f}}}$ ({low:.2f} to {high:.2f})"
    ax.plot(x, centre[1] * (x / centre[0]) ** fitted, label=label, **REFERENCE)


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence, at the larger problem."""
    row = tables["settings"].data.loc[LARGE]
    return {
        "once": row.once,
        "runs": row.runs,
        "lost": row.lost_runs,
        "worst": max(row.disagreement, TOLERANCE * row.linear_error),
        "linear": row.linear_error,
    }


ENDINGS = Table(
    index=("setting",),
    columns={
        "horizon": Column("steps of each run", "steps"),
        "runs": Column("runs"),
        "meets": Column("hypotheses met"),
        "associated": Column("item 1: runs with patch association at the end", rtol=math.inf),
        "once": Column("item 1: runs with patch association at some step", rtol=math.inf),
        **_span_columns("first", "item 1: step of patch association", "steps"),
        **_span_columns("lost", "item 1: step at which it is lost", "steps"),
        "association": Column(
            "item 1: rows with patch association at the end, mean", rtol=math.inf
        ),
        "disagreement": Column("item 2: P[f* F <= 0] at the end, largest", rtol=math.inf),
        "test_error": Column("test error at the end", rtol=math.inf),
        "control": Column("test error with A reset", rtol=math.inf),
        "ratio": Column("test error with A reset over test error at the end, least", rtol=math.inf),
        "linear_error": Column("exact error of uniform attention"),
        "before": Column("test error before any run associates", rtol=math.inf),
    },
    predicates={
        "item 1: every run associates, and keeps it to the end": lambda t: t.lost_beyond == t.runs,
        "the error is small because of the attention": lambda t: t.ratio > 2.0,
    },
    strict={
        "item 1: at least half of the runs associate": lambda t: 2 * t.once >= t.runs,
        "item 2: P[f* F <= 0] is small": lambda t: t.disagreement <= TOLERANCE * t.linear_error,
    },
    judged=lambda t: t.meets,
)
LOSS = Table(
    index=("D", "N"),
    columns=_span_columns("lost_by_N", "step at which association is lost", "steps"),
    predicates={"no run loses patch association": lambda t: t.lost_by_N_runs == 0},
)
NEED = Table(
    index=("D",), columns=_span_columns("needed", "samples that association needs", "samples")
)
GROWTH = Table(
    index=(),
    columns={
        "kept": Column("association lasts in every run that meets the hypotheses", rtol=math.inf),
        **intervals.columns(
            "growth",
            "exponent in N of the step at which association is lost",
            centre="",
            missing="unknown",
        ),
        **intervals.columns(
            "growth_of_need", "exponent in D of the samples that association needs", centre=""
        ),
        "steps_with_one_rate": Column(
            "larger problem: steps until gamma - rho = 1 with kappa = D and one rate",
            "steps",
            missing="not reached",
            rtol=1e-4,
        ),
    },
    strict={
        # undecided if too few runs lose it for an exponent
        "association lasts, or may last longer with more samples": lambda t: (
            t.kept.eq(True) | (t.growth_high > 0.0) | (t.kept.notna() & t.growth_high.isna())
        ),
    },
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
        "too few samples, and at the public Figure 4 settings, also with a faster A: patch "
        "association at every step, test error, P[f* F <= 0], and the test error of the same v "
        "with A reset to its start; the step at which association is lost against N, and the "
        "samples that it needs against D."
    ),
    criterion=(
        "Parametrization 3.1 allows any T >= poly(d)/eta, so that the theorem states its "
        "conclusions at every later step. Judged are settings that meet its hypotheses (noise "
        "across w*, Assumption 1; P[y f* <= 0] of at most 1%, Definition 2.1; N = poly(d), read as "
        "N >= 4 D^2), with at least five runs. HOLDS if from some step to the end of every run all "
        "rows associate, P[f* F <= 0] ends at a quarter or less of the exact error of uniform "
        "attention (bounded from below by a constant in Theorem 3.1, so that o(1) is small against "
        "it) and the error is twice as large with A reset. FAILS if fewer than half of the runs "
        "ever associate or item 2 is missed, or if association is lost at a step whose 95% "
        "interval of growth in N ends at no growth or below, so that no N helps. Otherwise a "
        "finding. The other settings are reported only."
    ),
    tables={
        "settings": ENDINGS,
        "loss of association": LOSS,
        "samples needed": NEED,
        "growth": GROWTH,
    },
    measure=measure,
    headline=headline,
    finding=(
        "{once} of {runs} runs associate and {lost} lose it again; P[f* F <= 0] ends at "
        "{worst!u:.2g} at most (uniform attention: {linear:.2g})."
    ),
    tolerance=TOLERANCE,
    quick_note=(
        "N = 3,000 instead of 10,000 at the public settings, fewer steps elsewhere, one or two "
        "runs of each instead of five"
    ),
    thorough_note=(
        "N = 50,000 instead of 10,000 at the public settings; the larger problem at D = 48 instead "
        "of 32, to step 2,400 instead of 400, N up to 40,000 instead of 4,400; samples needed up "
        "to D = 128 instead of 48: about half an hour"
    ),
    amended=(
        "An interval of growth in N that included no growth was a failure at first; with one of "
        "three root seeds its lower end was .01, so that its width would have decided. It must now "
        "lie at or below no growth. No verdict changed. To save time the full run has smaller D "
        "and N, and the rate of A is in proportion to D; the sizes before are those of --thorough."
    ),
    assumptions="descent on (E); held-out samples, given to the model as projections only",
    group="theorem-4.2",
)
