"""Section 2's data with a trained P: does Top_C of P^T P show the sets?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray

from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.vision import spatial
from simulations.vision.extra import needs_extra
from simulations.vision.figures import sets as figure
from simulations.vision.spatial import Spatial, association, auc, softmax

THEORY = "(T)"
SQUARES, SCATTERED = f"{THEORY}, squares", f"{THEORY}, scattered sets"
POSITIONAL, VANILLA = "positional ViT", "vanilla ViT"

#: Steps of the practical ViTs.
STEPS = {"quick": 200, "full": 400, "thorough": 1600}


class Trained(NamedTuple):
    """P^T P before and after training, attention (D, D), sets (D,) and errors of a run."""

    before: np.ndarray
    scores: np.ndarray
    attention: np.ndarray
    sets: np.ndarray
    test_error: float
    linear_error: float


@needs_extra
def measure(context: Context) -> Measurement:
    """Train P with (T) and in practical ViTs on the data of Assumption 1."""
    count, steps = context.choose(quick=2, full=5, thorough=10), STEPS[context.mode]
    simple = {SQUARES: spatial.Spatial(), SCATTERED: spatial.Spatial(scattered=True)}
    practical = spatial.Spatial(side=4, noisy=4.0)
    train: dict[str, Callable[[int], Trained]] = {
        SQUARES: lambda seed: _theory(simple[SQUARES], seed),
        SCATTERED: lambda seed: _theory(simple[SCATTERED], seed),
        POSITIONAL: lambda seed: _practical(practical, "position", steps, seed),
        VANILLA: lambda seed: _practical(practical, "content", steps, seed),
    }
    models = {
        model: [train[model](1000 * context.seed + number) for number in range(count)]
        for model in context.track(train)
    }
    rows = RUNS.frame(row for model, runs in models.items() for row in run_rows(model, runs))
    return Measurement(
        {"runs": rows},
        {
            "runs": count,
            "seed": context.seed,
            **{model: str(data) for model, data in simple.items()},
            "ViTs": f"{practical}, one layer of width 32, {steps} steps of 64 samples",
        },
        (_figure(models, {model: rows.loc[model].rows.to_numpy() for model in models}),),
    )


def _theory(data: Spatial, seed: int) -> Trained:
    """Train (T)."""
    run = spatial.learn(data, seed)
    scores = run.P @ run.P.T
    return Trained(
        run.start @ run.start.T, scores, softmax(scores), run.sets, run.error, run.linear
    )


def _practical(data: Spatial, kind: str, steps: int, seed: int) -> Trained:
    """Train a ViT of one layer; its attention is the mean over heads."""
    from simulations.vision.models import Model
    from simulations.vision.tasks import Settings
    from simulations.vision.training import start, train

    model = Model(kind, patch=1, width=32, depth=1, hidden=64)
    images, sets, linear = spatial.as_images(data, seed, 12_800)
    run = train(images, model, Settings(steps=steps, batch=64), (seed,))
    assert run.attention is not None
    P, P0 = run.encodings[0], start(run.task, seed)["P"]
    attention = run.attention[0, 0].mean(axis=0)
    return Trained(P0 @ P0.T, P @ P.T, attention, sets, float(run.error[0]), linear)


def run_rows(model: str, runs: Sequence[Trained]) -> Iterator[dict[str, Any]]:
    """Yield the sets shown by P^T P and by the attention in each run."""
    for number, run in enumerate(runs, start=1):
        yield {
            "model": model,
            "run": number,
            "rows": association(run.scores, run.sets),
            "auc": auc(run.scores, run.sets),
            "start_auc": auc(run.before, run.sets),
            "attention_auc": auc(run.attention, run.sets),
            "test_error": run.test_error,
            "linear_error": run.linear_error,
        }


def _figure(models: Mapping[str, Sequence[Trained]], rows: Mapping[str, np.ndarray]) -> Figure:
    return report_figure(
        "section-2-trained-P",
        "P trained on the data of Section 2: (T) finds the sets, a practical ViT otherwise",
        "P^T P (above) and attention (below) of the first run of each model, patches sorted by "
        "set; the diagonal is left out (grey), colours go from the least to the greatest entry of "
        "each map. (T) at D = 36, sets of 4 as squares of the grid and scattered; ViTs of one "
        "layer at D = 16. Titles: share of the rows with Top_C equal to the set, mean over runs.",
        figure.draw,
        to_dataset({model: runs[0] for model, runs in models.items()}, rows),
        (10.0, 5.2),
    )


def to_dataset(first: Mapping[str, Trained], rows: Mapping[str, np.ndarray]) -> xarray.Dataset:
    """Return P^T P and attention (patch, other) of the first runs, and the rows that show sets."""
    data: dict[str, object] = {"rows": (("model", "run"), list(rows.values()))}
    for number, run in enumerate(first.values()):
        dims = (f"patch_{number}", f"other_{number}")
        order = np.argsort(run.sets, kind="stable")
        for name, matrix in (("scores", run.scores), ("attention", run.attention)):
            data[f"{name}_{number}"] = (dims, matrix[np.ix_(order, order)])
    return xarray.Dataset(data, coords={"model": list(first)})


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence: least and greatest share of rows over runs."""
    rows = tables["runs"].data.rows
    names = {"squares": SQUARES, "scattered": SCATTERED, "vit": POSITIONAL}
    return {
        name: f"{rows.loc[model].min():.2f} to {rows.loc[model].max():.2f}"
        for name, model in names.items()
    }


RUNS = Table(
    index=("model", "run"),
    columns={
        name: Column(label, rtol=math.inf)
        for name, label in {
            "rows": "share of rows with Top_C(P^T P) = S_l",
            "auc": "probability that an entry of P^T P within a set exceeds one across",
            "start_auc": "the same probability before training",
            "attention_auc": "probability that attention within a set exceeds that across",
            "test_error": "test error",
            "linear_error": "error of the best linear rule",
        }.items()
    },
    predicates={"every row of P^T P shows its set": lambda t: t.rows == 1.0},
    strict={
        "with (T) entries within sets stand higher than before training": lambda t: (
            (t.auc > t.start_auc) | ~t.index.get_level_values("model").str.startswith(THEORY)
        ),
    },
)

CLAIM = Claim(
    id="section-2-trained-P",
    place="Section 2 and Section 6",
    statement=(
        "ViTs learn patch association while minimizing their training loss: Top_C of the inner "
        "products of p_i with all encodings is the set of patch i (Definition 2.2)."
    ),
    method=(
        "Rows with Top_C(P^T P) = S_l after training on the data of Assumption 1: (T) with a "
        "trained P at qD = 12, where linear rules err by a tenth, with sets as squares and "
        "scattered; and practical one-layer ViTs, positional and vanilla, with their attention."
    ),
    criterion=(
        "HOLDS if in every run every row of P^T P, its diagonal left out, shows the set "
        "(Definition 2.2) for (T) and for practical ViTs of both kinds. FAILS if with (T) the "
        "entries within sets stand no higher among all than before training, in any run. "
        "Otherwise a finding. Five runs."
    ),
    tables={"runs": RUNS},
    measure=measure,
    headline=headline,
    finding=(
        "Rows of P^T P with their set, by run: {squares} (squares), {scattered} (scattered); a "
        "positional ViT {vit}."
    ),
    quick_note="two runs, 200 steps of the ViTs instead of 400",
    thorough_note="ten runs, 1,600 steps of the ViTs instead of 400",
    assumptions=(
        "(T) with kappa = tau = 1, p = 3, nu = .1, Adam on fresh samples; not the gradient descent "
        "of the theory, for which see `encodings`"
    ),
)
