"""Figure 3: a data point on the grid whose label the majority of its features contradicts."""

import math
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import xarray

from dynamics import Problem
from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.samples.data import labelling_function, sample
from dynamics.positional.samples.partitions import set_of, squares
from simulations.figures import report_figure
from simulations.positional.figures import data_point
from simulations.reproduction.measured import measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict

_MAX_DRAWS = 10_000
#: Standard errors by which the share of such points may miss its exact probability.
SIGMAS = 4.0


class Point(NamedTuple):
    """What was drawn."""

    plus: int
    minus: int
    f_star: float
    whole_sets: int  # sets of +1 alone
    outvoted: float  # share of points with y = +1 and more -1 than +1
    exact: float
    deviation: float  # of the share, in standard errors


def run(context: Context) -> Outcome:
    """Draw data points until the figure's situation occurs, and count how often it does."""
    problem = Problem(D=64, C=4, q=0.35, d=16)
    data = gather_data_point(problem, context.seed)
    exact = uniform_error(problem).wrong
    share = float(data.attrs["outvoted"])
    spread = math.sqrt(exact * (1.0 - exact) / data.attrs["images"])
    s = data["coefficient"].values
    point = Point(
        int((s == 1).sum()), int((s == -1).sum()), float(data.attrs["f_star"]),
        int(data.attrs["whole_sets"]), share, exact, (share - exact) / spread,
    )  # fmt: skip
    context.progress(1.0)
    verdict, summary = judge(point)
    return Outcome(
        verdict,
        measured_at(
            {},
            ("plus", "patches with +1", point.plus),
            ("minus", "patches with -1", point.minus),
            ("f_star", "f*(X)", point.f_star),
            ("whole_sets", "sets of +1 alone", point.whole_sets),
            ("outvoted", "share of points with y = +1 and more -1 than +1, sampled",
             point.outvoted),
            ("outvoted_exact", "share of points with y = +1 and more -1 than +1, exact",
             point.exact),
            ("deviation", "deviation", point.deviation, "standard errors"),
            ("draws", "data points drawn until the one shown", int(data.attrs["draws"])),
            ("residual", "largest |<w*, X_j> - coefficient|", float(data.attrs["residual"])),
        ),
        SIGMAS,
        {"problem": asdict(problem), "partition": "squares of the grid", "seed": context.seed,
         "images": int(data.attrs["images"])},
        summary,
        (report_figure(
            "data-point",
            "Figure 3: a data point, sets being squares of the grid",
            "Each square is a patch, neighbouring colours are different sets S_l, the number is "
            "the coefficient of w* in the patch. Red: the signal set. The first draw with y = +1 "
            "in which more patches hold -1 than +1: the label is +1 nevertheless, because the "
            f"signal set alone holds only +1. D = {problem.D}, C = {problem.C}, q = {problem.q:g}, "
            f"seed {context.seed}.",
            data_point.draw,
            data,
            (5.2, 5.4),
        ),),
    )  # fmt: skip


def judge(point: Point) -> tuple[Verdict, str]:
    """Return HOLDS if f* is right where the majority is wrong and its share is as computed."""
    text = (
        f"{point.minus} patches hold -1 and {point.plus} hold +1, f*(X) = {point.f_star:g}, "
        f"{point.whole_sets} set of +1 alone; so are {point.outvoted:.3f} of the points with "
        f"y = +1 (exact probability {point.exact:.4f})."
    )
    right = point.f_star > 0.0 and point.minus > point.plus and point.whole_sets >= 1
    if right and abs(point.deviation) <= SIGMAS:
        return Verdict.HOLDS, text
    return Verdict.FAILS, text


def gather_data_point(problem: Problem, seed: int) -> xarray.Dataset:
    """Draw data points until one with y = +1 has more patches "-1" than "+1"; return it.

    X (D, d) on a square grid, sets being squares. ``draws`` counts the data points with y = +1
    that were drawn, ``outvoted`` is their share with more "-1" than "+1" among `_MAX_DRAWS`.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(36,)))
    sets = squares(problem)
    w = rng.normal(size=problem.dimension)
    w /= np.linalg.norm(w)
    X, y = sample(problem, _MAX_DRAWS, rng, sets, w)
    X = X[y > 0.0]
    coefficients = np.rint(X @ w).astype(int)
    outvoted = coefficients.sum(axis=1) < 0
    chosen = int(np.argmax(outvoted))
    s, owner = coefficients[chosen], set_of(problem, sets)
    whole = [bool(np.all(s[patches] == 1)) for patches in sets]
    return xarray.Dataset(
        {"X": (("patch", "entry"), X[chosen]), "coefficient": ("patch", s),
         "set": ("patch", owner), "w_star": ("entry", w)},
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
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    minus, plus, f_star = (outcome.number(name) for name in ("minus", "plus", "f_star"))
    return (
        f"{minus} patches hold -1 and {plus} hold +1, yet f* = {f_star:g}: outvoted, as "
        f"{outcome.number('outvoted_exact'):.1%} of the points with y = +1 are."
    )


CLAIM = Claim(
    id="figure-3",
    place="Figure 3 (Section 3)",
    statement=(
        "A data point with spatially localized sets can hold more -1 than +1 and have label +1, "
        "since there are only +1 inside the signal set."
    ),
    method=(
        "One data point drawn on the grid, its labelling function, and how often the majority of "
        "the features contradicts the label, sampled and exact."
    ),
    criterion=(
        "The statement is one of existence: a point with y = +1, more -1 than +1, f* > 0 and a set "
        "of +1 alone. Holds if one is drawn and the share of such points lies within four standard "
        "errors of its exact probability (a sound sampler misses that for one seed in 16,000); "
        "fails otherwise."
    ),
    headline=Headline("outvoted_exact"),
    finding=_finding,
    run=run,
    quick_note="the same",
    assumptions="the sampler of Assumption 1; the exact law of a sum of signs",
)
