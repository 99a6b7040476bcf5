"""Figure 3: a data point on the grid whose label the majority of its features contradicts."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray

from dynamics import Problem
from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.samples.data import labelling_function, sample
from dynamics.positional.samples.partitions import set_of, squares
from simulations.figures import report_figure
from simulations.figures.style import styled
from simulations.reproduction.claim import Claim, Context, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import rng_at

_SAMPLES = 10_000
#: Standard errors by which the sampled share of such points may differ from its probability.
SIGMAS = 4.0


def measure(context: Context) -> Measurement:
    """Sample data points until one is as in the figure, and count how many are."""
    problem = Problem(D=64, C=4, q=0.35, d=16)
    data = sample_data_point(problem, context.seed)
    exact = uniform_error(problem).wrong
    standard_error = math.sqrt(exact * (1.0 - exact) / data.attrs["images"])
    coefficients = data["coefficient"].values
    row = {
        "plus": (coefficients == 1).sum(),
        "minus": (coefficients == -1).sum(),
        **{name: data.attrs[name] for name in ("f_star", "whole_sets", "outvoted")},
        "outvoted_exact": exact,
        "deviation": (data.attrs["outvoted"] - exact) / standard_error,
        **{name: data.attrs[name] for name in ("draws", "residual")},
    }
    figure = report_figure(
        "data-point",
        "Figure 3: a data point, sets being squares of the grid",
        "Each square is a patch, neighbouring colours are different sets S_l, the number is "
        "the coefficient of w* in the patch. Red: the signal set. The first sample with y = +1 "
        "in which more patches have -1 than +1: the label is +1 nevertheless, because the "
        f"signal set alone has only +1. D = {problem.D}, C = {problem.C}, q = {problem.q:g}, "
        f"seed {context.seed}.",
        _draw,
        data,
        (5.2, 5.4),
    )
    settings = {
        "problem": asdict(problem),
        "partition": "squares of the grid",
        "images": data.attrs["images"],
    }
    return Measurement({"data point": TABLE.frame([row])}, settings, (figure,))


def sample_data_point(problem: Problem, seed: int) -> xarray.Dataset:
    """Return the first sampled data point with y = +1 and more patches "-1" than "+1".

    The patches X (D, d) are on a square grid, the sets are squares. ``draws`` is the number of
    sampled points with y = +1 up to this one. ``outvoted`` is the share of points with more "-1"
    than "+1" among those with y = +1 of `_SAMPLES` samples.
    """
    rng = rng_at(seed, 36)
    sets = squares(problem)
    w = rng.normal(size=problem.dimension)
    w /= np.linalg.norm(w)
    X, y = sample(problem, _SAMPLES, rng, sets, w)
    X = X[y > 0.0]
    coefficients = np.rint(X @ w).astype(int)
    outvoted = coefficients.sum(axis=1) < 0
    chosen = int(np.argmax(outvoted))
    s, owner = coefficients[chosen], set_of(problem, sets)
    whole = [bool(np.all(s[patches] == 1)) for patches in sets]
    return xarray.Dataset(
        {
            "X": (("patch", "entry"), X[chosen]),
            "coefficient": ("patch", s),
            "set": ("patch", owner),
            "w_star": ("entry", w),
        },
        attrs={
            "signal_set": int(np.argmax(whole)),
            "whole_sets": int(sum(whole)),
            "f_star": float(labelling_function(problem, X[chosen : chosen + 1], sets, w)[0]),
            "draws": chosen + 1,
            "outvoted": float(outvoted.mean()),
            "images": int(outvoted.size),
            "residual": float(np.abs(X @ w - coefficients).max()),
            "C": problem.C,
        },
    )


@styled
def _draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw sets as colours, the coefficient of each patch, and a frame around the signal set."""
    ax = figure.subplots()
    owner = data["set"].values
    width = round(len(owner) ** 0.5)
    grid = owner.reshape(width, width)
    across = round(len(owner) / data.attrs["C"]) ** 0.5
    tint = (grid % across + grid // across) % 3 + 3 * ((grid // across) % 2)
    artists: dict[str, Any] = {
        "sets": ax.imshow(tint, cmap="Pastel2", vmin=0, vmax=7, interpolation="nearest")
    }
    for patch, s in enumerate(data["coefficient"].values):
        row, column = divmod(patch, width)
        text = {1: "1", -1: "−1", 0: "0"}[int(s)]
        ax.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=11,
            color="#999999" if s == 0 else "black",
            fontweight="normal" if s == 0 else "bold",
        )
    rows, columns = np.nonzero(grid == data.attrs["signal_set"])
    side = data.attrs["C"] ** 0.5
    artists["signal"] = ax.plot(
        columns.min() - 0.5 + side * np.array([0, 1, 1, 0, 0]),
        rows.min() - 0.5 + side * np.array([0, 0, 1, 1, 0]),
        color="#CC3311",
        linewidth=3.5,
        clip_on=False,
    )
    ax.set_xticks(np.arange(width + 1) - 0.5, [""] * (width + 1))
    ax.set_yticks(np.arange(width + 1) - 0.5, [""] * (width + 1))
    ax.grid(color="white", linewidth=1.0)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    s = data["coefficient"].values
    ax.set_xlabel(f'$y=+1$: {int(np.sum(s == 1))} patches "1", {int(np.sum(s == -1))} patches "−1"')
    return artists


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    row = tables["data point"].data.iloc[0]
    return {
        "more": "more" if row.minus > row.plus else "not more",
        "sign": ">" if row.f_star > 0.0 else "<=",
        "share": row.outvoted_exact,
    }


TABLE = Table(
    index=(),
    columns={
        "plus": Column("patches with +1", rtol=math.inf),
        "minus": Column("patches with -1", rtol=math.inf),
        "f_star": Column("f*(X)", rtol=math.inf),
        "whole_sets": Column("sets of +1 alone", rtol=math.inf),
        "outvoted": Column(
            "share of points with y = +1 and more -1 than +1, sampled", rtol=math.inf
        ),
        "outvoted_exact": Column("share of points with y = +1 and more -1 than +1, exact"),
        "deviation": Column("deviation of the share", "standard errors", rtol=math.inf),
        "draws": Column("data points sampled until the one shown", rtol=math.inf),
        "residual": Column("largest |<w*, X_j> - coefficient|", atol=1e-12),
    },
    strict={
        "f* > 0 where more patches hold -1 than +1": lambda t: (
            (t.f_star > 0.0) & (t.minus > t.plus)
        ),
        "a set holds +1 alone": lambda t: t.whole_sets >= 1,
        "the share is its exact probability": lambda t: t.deviation.abs() <= SIGMAS,
    },
)

CLAIM = Claim(
    id="figure-3",
    place="Figure 3 (Section 3)",
    statement=(
        "A data point with spatially localized sets can hold more -1 than +1 and have label +1, "
        "since there are only +1 inside the signal set."
    ),
    method=(
        "One sampled data point on the grid, its labelling function, and how often the majority of "
        "the features contradicts the label, sampled and exact."
    ),
    criterion=(
        "The statement is one of existence: a point with y = +1, more -1 than +1, f* > 0 and a set "
        "of +1 alone. Holds if one is sampled and the share of such points lies within four "
        "standard errors of its exact probability (a correct sampler exceeds that for one seed in "
        "16,000); fails otherwise."
    ),
    tables={"data point": TABLE},
    measure=measure,
    headline=headline,
    finding=(
        "A sampled point with {more} -1 than +1 has f* {sign} 0; of the points with y = +1 "
        "{share:.1%} have more -1."
    ),
    tolerance=SIGMAS,
    quick_note="the same",
    assumptions="the sampler of Assumption 1; the exact law of a sum of signs",
)
