"""Section 2's data with a trained P: does Top_C of P^T P show the sets?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray
from scipy.special import softmax

from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import Table, Tables
from simulations.vision import figures, spatial
from simulations.vision.claims import extremes, needs_extra, seeded
from simulations.vision.spatial import Spatial, association, auc

THEORY = "(T)"
SQUARES, SCATTERED = f"{THEORY}, squares", f"{THEORY}, scattered sets"
POSITIONAL, VANILLA = "positional ViT", "vanilla ViT"

#: Steps of the practical ViTs.
STEPS = {"quick": 200, "full": 400, "thorough": 1600}


class Trained(NamedTuple):
    """Results of a run.

    Attributes
    ----------
    before, scores
        P^T P before and after training (D, D).
    attention
        Attention after training (D, D), the mean over heads.
    sets
        Set of each patch (D,).
    test_error, linear_error
        Test error, and that of the best linear rule.
    """

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
    """Return the results of (T)."""
    run = spatial.learn(data, seed)
    scores = run.P @ run.P.T
    return Trained(
        run.start @ run.start.T, scores, softmax(scores, axis=1), run.sets, run.error, run.linear
    )


def _practical(data: Spatial, architecture: str, steps: int, seed: int) -> Trained:
    """Return the results of a ViT with one layer."""
    from simulations.vision.models import Model
    from simulations.vision.tasks import Settings
    from simulations.vision.training import start, train

    model = Model(architecture, patch=1, width=32, depth=1, hidden=64)
    images, sets, linear = spatial.as_images(data, seed, 12_800)
    run = train(images, model, Settings(steps=steps, batch=64), (seed,))
    assert run.attention is not None
    P, P0 = run.encodings[0], start(run.task, seed)["P"]
    attention = run.attention[0, 0].mean(axis=0)
    return Trained(P0 @ P0.T, P @ P.T, attention, sets, float(run.error[0]), linear)


def run_rows(model: str, runs: Sequence[Trained]) -> Iterator[dict[str, Any]]:
    """Yield the agreement of P^T P and of the attention with the sets in each run."""
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
        "P trained on the data of Section 2, by (T) and by practical ViTs",
        "P^T P (above) and attention (below) of the first run of each model, patches sorted by "
        "set. The diagonal is left out (grey); colours range from the least to the greatest entry "
        "of each matrix. (T) at D = 36, sets of 4 as squares of the grid and scattered; ViTs of "
        "one layer at D = 16. Titles: share of the rows with Top_C equal to the set, mean over "
        "runs.",
        figures.sets,
        to_dataset({model: runs[0] for model, runs in models.items()}, rows),
        (8.0, 4.8),
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


def headline(tables: Tables) -> dict[str, Any]:
    """Return the numbers of the sentence: least and greatest share of rows over runs."""
    rows = tables["runs"].data.rows
    models = {"squares": SQUARES, "scattered": SCATTERED, "vit": POSITIONAL}
    return {name: extremes(rows.loc[model]) for name, model in models.items()}


RUNS = Table(
    index=("model", "run"),
    columns=seeded(
        rows="share of rows with Top_C(P^T P) = S_l",
        auc="probability that an entry of P^T P within a set exceeds an entry across sets",
        start_auc="the same probability before training",
        attention_auc="probability that attention within a set exceeds attention across sets",
        test_error="test error",
        linear_error="error of the best linear rule",
    ),
    predicates={"every row of P^T P shows its set": lambda t: t.rows == 1.0},
    strict={
        "with (T) entries within sets rank higher than before training": lambda t: (
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
        "Count the rows with Top_C(P^T P) = S_l after training on the data of Assumption 1: for "
        "(T) with a trained P at qD = 12, where linear rules have error 0.1, with sets as squares "
        "and scattered, and for practical one-layer ViTs, positional and vanilla."
    ),
    criterion=(
        "HOLDS if in every run every row of P^T P, without the diagonal, shows its set (Definition "
        "2.2), for (T) and for practical ViTs with both types of attention. FAILS if in any run of "
        "(T) the entries within sets do not rank higher among all entries than before training. "
        "Otherwise a finding. Five runs."
    ),
    tables={"runs": RUNS},
    measure=measure,
    headline=headline,
    finding=(
        "Rows of P^T P that show their set: {squares} (squares), {scattered} "
        "(scattered), {vit} (positional ViT)."
    ),
    quick_note="two runs, 200 steps of the ViTs instead of 400",
    thorough_note="ten runs, 1,600 steps of the ViTs instead of 400",
    assumptions=(
        "(T) with kappa = tau = 1, p = 3, nu = .1, Adam on fresh samples; not the gradient descent "
        "of the theory, for which see `encodings`"
    ),
)
