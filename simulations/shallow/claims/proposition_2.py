"""Proposition 2: the concentration of attention on relevant tokens, its rate, and exceptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray
from scipy.stats import binomtest

from dynamics.shallow import ShallowProblem, sample, train_on_counts
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.intervals import cells, columns, mean_of
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import rng_at
from simulations.shallow.figures import attractor, concentration
from simulations.shallow.runs import (
    BELOW,
    PLATEAU_ETA,
    PLATEAU_RATIO,
    PLATEAUS,
    ROUNDING,
    Descent,
    attention_of,
    descend,
    map_in_threads,
    problem_of,
    random_start,
    symmetric_start,
)
from simulations.shallow.system import SLIDES

#: Iterations and attention read off the figure of the slides; errors at its ends and in between.
ITERATIONS = (0, 10, 20, 30, 50, 100)
READ = (0.54, 0.66, 0.78, 0.85, 0.90, 0.91)
READING, BETWEEN = 0.02, 0.1
#: Runs of the mean curve.
SEEDS = 40
ETAS, RATIO = (0.01, 0.03, 0.1, 0.3), 30.0
RATIOS = (10.0, 30.0, 100.0, 300.0)
#: The limit depends on eta if the exponent of eta in 1 - attention is at least `FLAT`, or if
#: 1 - attention does not fall below this share along eta_KQ/eta.
FLAT, HALF = 0.1, 0.5
MAP_RATIOS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
MAP_TOKENS = (1, 2, 4, 8)  # relevant tokens of 20
#: xi sqrt m of the map; the small value is used at one number of relevant tokens.
NOISE, QUIET, QUIET_TOKENS, MAP_HINGE = 1.0, 0.03, 2, 0.05
#: Rates of the map: eta is reduced if eta_KQ would exceed its limit.
MAP_ETA, MAP_ETA_KQ = 0.05, 0.5


def measure(context: Context) -> Measurement:
    """Measure the curve of the slides, plateaus, the rate, the limit and the wrong attractor."""
    curve = CURVE.frame(curve_rows(slides_curve(SEEDS, context.seed)))
    context.progress(0.3)
    plateaus = PLATEAU.frame(
        {"alpha": a, "confusion": b, "end": irrelevant_attention(a, b), "plateau": a / (a + b)}
        for a, b in PLATEAUS
    )
    rate, rise = exponent_of_rise()
    # Along eta at one eta_KQ/eta, and along eta_KQ/eta at the smallest eta.
    limit = LIMIT.frame(
        {
            "eta": eta,
            "ratio": ratio,
            "missing": 1.0 - _descent(ratio, eta=eta).attention[-1],
        }
        for eta, ratio in dict.fromkeys(
            [*((eta, RATIO) for eta in ETAS), *((ETAS[0], ratio) for ratio in RATIOS)]
        )
    )
    by_eta, by_ratio = limit.missing.xs(RATIO, level="ratio"), limit.missing[ETAS[0]].sort_index()
    context.progress(0.5)
    ends = attractors(context)
    exponents = {
        "rate": rate,
        "C": np.polyfit(np.log(by_eta.index), np.log(by_eta), 1)[0],
        "missing_ratio": by_ratio.iloc[-1] / by_ratio.iloc[0],
    }
    return Measurement(
        {
            "curve": curve,
            "plateaus": plateaus,
            "exponents": EXPONENTS.frame([exponents]),
            "limit": limit,
            "wrong attractor": ATTRACTOR.frame(attractor_rows(ends)),
        },
        {"seeds": SEEDS, "map eta at most": MAP_ETA, "map eta_KQ at most": MAP_ETA_KQ},
        (_figure(curve, plateaus, rise, by_eta, by_ratio), _map_figure(ends)),
    )


def curve_rows(attention: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield the mean attention with its interval and the value of the slides, by iteration."""
    ends = {ITERATIONS[0], ITERATIONS[-1]}
    for iteration, values, read in zip(ITERATIONS, attention.T, READ):
        yield {
            "iteration": iteration,
            **cells("attention", mean_of(values)),
            "read": read,
            "allowed": READING if iteration in ends else BETWEEN,
        }


def slides_curve(seeds: int, root: int) -> np.ndarray:
    """Return the attention in the setting of the slides at `ITERATIONS`, (seeds, iterations)."""
    problem = ShallowProblem(**SLIDES)

    def attention(seed: int) -> np.ndarray:
        rng = rng_at(root, 2, seed)
        samples = sample(problem, 200, rng)
        batches = np.array([rng.permutation(200).reshape(4, 50) for _ in range(25)])
        run = train_on_counts(
            samples.counts,
            samples.labels,
            **random_start(problem, rng, sigma=0.1, delta=0.2),
            steps=100,
            learning_rate=0.12,
            learning_rate_KQ=0.12 * problem.attention_rate,
            batches=batches.reshape(100, 50),
            records=ITERATIONS,
        )
        return run.history.attention

    return np.array(map_in_threads(attention, range(seeds)))


def _descent(
    ratio: float, relevant: float = 0.4, confusion: float = 0.0, *, L: int = 20, eta: float = 0.1
) -> Descent:
    """Return the population descent from small symmetric weights until the loss is small."""
    problem = problem_of(ratio, relevant, confusion, L, xi=0.01, neurons=10)
    return descend(problem, symmetric_start(problem), eta, 1e-2, most=10**5)


def irrelevant_attention(relevant: float, confusion: float) -> float:
    """Return the attention of an irrelevant query at the end of `_descent`.

    By the symmetry under exchange of the two discriminative patterns its logit is the same for
    both, hence its attention is at most alpha_*/(alpha_* + alpha_#). A query with one of these
    patterns may distinguish them.
    """
    end = _descent(PLATEAU_RATIO, relevant, confusion, eta=PLATEAU_ETA).weights
    return attention_of(end["K"].T @ end["Q"][:, 2], relevant, confusion)


def exponent_of_rise() -> tuple[float, tuple[np.ndarray, np.ndarray]]:
    """Return the exponent of 1 - attention in the time since attention was one half, and its data.

    The records have an attention above 0.6 and a hinge loss above 0.1, at alpha_* = 0.1, ratio 30.
    """
    run = _descent(RATIO, 0.1, eta=0.02)
    half = np.interp(0.5, run.attention, run.time)
    chosen = (run.attention > 0.6) & (run.hinge > 0.1)
    time, deficit = run.time[chosen] - half, 1.0 - run.attention[chosen]
    return float(np.polyfit(np.log(time), np.log(deficit), 1)[0]), (time, deficit)


def attractors(context: Context) -> pd.DataFrame:
    """Return the final attention from random initial weights over alpha_* and eta_KQ/eta.

    The index levels are xi sqrt m, alpha_*, eta_KQ/eta and seed. Column ``wrong`` is whether the
    loss is small while attention is nearer to its initial value than to 1.
    """
    tokens = context.choose(quick=MAP_TOKENS[1::2], full=MAP_TOKENS[:3], thorough=MAP_TOKENS)
    ratios = context.choose(quick=MAP_RATIOS[1::2], full=MAP_RATIOS)
    seeds = range(context.choose(quick=10, full=10, thorough=12))
    noises = [*((NOISE, relevant) for relevant in tokens), (QUIET, QUIET_TOKENS)]
    cases = [(*pair, ratio, seed) for pair in noises for ratio in ratios for seed in seeds]

    def end_state(case: tuple[float, int, float, int]) -> tuple[float, bool]:
        noise, relevant, ratio, seed = case
        problem = problem_of(ratio, relevant / 20, 0.0, 20, noise / 40**0.5, 40)
        rng = rng_at(context.seed, 3, seed)
        eta = min(MAP_ETA, MAP_ETA_KQ / ratio)
        end = descend(problem, random_start(problem, rng), eta, MAP_HINGE, most=50_000)
        start = float(end.attention[0])
        behind = end.attention[-1] < (start + 1.0) / 2.0
        return float(end.attention[-1]), bool(behind and end.hinge[-1] < MAP_HINGE)

    index = pd.MultiIndex.from_tuples(
        [(noise, relevant / 20, ratio, seed) for noise, relevant, ratio, seed in cases],
        names=["xi_sqrt_m", "alpha", "ratio", "seed"],
    )
    return pd.DataFrame(map_in_threads(end_state, cases), index, ["attention", "wrong"])


def attractor_rows(ends: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the share of seeds with a wrong attractor, with its interval."""
    levels = ["xi_sqrt_m", "alpha", "ratio"]
    for label, wrong in ends.wrong.groupby(level=levels):
        interval = binomtest(int(wrong.sum()), wrong.size).proportion_ci()
        yield {
            **dict(zip(levels, label)),
            **cells("wrong", (wrong.mean(), interval.low, interval.high)),
        }


def nearest(t: pd.DataFrame) -> pd.Series[float]:
    """Return the smallest distance of the interval of the mean attention from the slides."""
    inside = t.read.between(t.attention_low, t.attention_high)
    low, high = (t.attention_low - t.read).abs(), (t.attention_high - t.read).abs()
    return low.where(low < high, high).mask(inside, 0.0)


def farthest(t: pd.DataFrame) -> pd.Series[float]:
    """Return the largest distance of the interval of the mean attention from the slides."""
    low, high = (t.attention_low - t.read).abs(), (t.attention_high - t.read).abs()
    return low.where(low > high, high)


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    curve, plateaus = tables["curve"].data, tables["plateaus"].data
    worst = farthest(curve).argmax()
    return {
        "least": nearest(curve).iloc[worst],
        "most": farthest(curve).iloc[worst],
        "below": (plateaus.plateau - plateaus.end).max(),
        "C": tables["exponents"].data.C.iloc[0],
    }


def _figure(
    curve: pd.DataFrame,
    plateaus: pd.DataFrame,
    rise: tuple[np.ndarray, np.ndarray],
    by_eta: pd.Series[float],
    by_ratio: pd.Series[float],
) -> Figure:
    data = xarray.Dataset(
        {
            "attention": ("iteration", curve.attention),
            "low": ("iteration", curve.attention_low),
            "high": ("iteration", curve.attention_high),
            "read": ("iteration", curve.read),
            "end": ("place", plateaus.end),
            "plateau": ("place", plateaus.plateau),
            "since": ("record", rise[0]),
            "left": ("record", rise[1]),
            "by_eta": ("eta", by_eta),
            "by_ratio": ("ratio", by_ratio),
        },
        {
            "iteration": curve.index,
            "eta": by_eta.index,
            "ratio": by_ratio.index,
            "place": [f"{a:g}, {b:g}" for a, b in plateaus.index],
        },
    )
    return report_figure(
        "li-concentration",
        "Concentration of attention on relevant tokens",
        "(a) Setting of the slides (N = 200, L = 60 tokens 30/3/27, batches of 50), mean of "
        f"{SEEDS} seeds with 95 % intervals, and the values read off the slides. (b) Attention of "
        "irrelevant queries at the end against alpha_*/(alpha_* + alpha_#), eta_KQ/eta = "
        f"{PLATEAU_RATIO:g}; numbers are alpha_*, alpha_#. (c) 1 - attention since attention "
        "was one half, alpha_* = 0.1, until the hinge stops it; dashed: 1/t. 1 - attention at the "
        "end (d) against eta at eta_KQ/eta = 30, (e) against eta_KQ/eta at eta = 0.01; "
        "dashed: slope -1.",
        concentration.draw,
        data,
        (9.6, 6.6),
    )


def _map_figure(ends: pd.DataFrame) -> Figure:
    noisy, quiet = (ends.xs(noise) for noise in (NOISE, QUIET))
    groups = noisy.groupby(level=["alpha", "ratio"])
    data = xarray.Dataset(
        {
            "attention": groups.attention.median().to_xarray(),
            "wrong": groups.wrong.mean().to_xarray(),
            "quiet": quiet.wrong.groupby(level="ratio").mean().to_xarray(),
        }
    )
    return report_figure(
        "li-wrong-attractor",
        "Final attention, and wrong attractors",
        "Population descent from random W_O (normal entries, deviation xi), alpha_# = 0, until the "
        f"hinge loss is {MAP_HINGE:g}; rho = kappa^2 eta_KQ/(a^2 v^2 eta), kappa = a = v = 1. (a) "
        f"Median attention at the end over seeds, xi sqrt m = {NOISE:g}; numbers: share of seeds "
        "with a wrong attractor (loss small, attention nearer to its initial value than to 1), "
        "hatched if it is one half or more. (b) This share at alpha_* = 0.1, also for "
        f"xi sqrt m = {QUIET:g}.",
        attractor.draw,
        data,
        (9.0, 3.8),
    )


CURVE = Table(
    index=("iteration",),
    columns={
        **columns("attention", "attention", centre=", mean over seeds"),
        "read": Column("attention read off the slides"),
        "allowed": Column("difference allowed"),
    },
    predicates={"the curve agrees with the slides": lambda t: farthest(t) <= t.allowed},
    strict={"the interval is not wholly off the slides": lambda t: nearest(t) <= t.allowed},
)
PLATEAU = Table(
    index=("alpha", "confusion"),
    columns={
        "end": Column(
            f"attention of irrelevant queries at the end, eta_KQ/eta = {PLATEAU_RATIO:g}"
        ),
        "plateau": Column("alpha_*/(alpha_* + alpha_#)"),
    },
    predicates={
        "it comes within 0.05 of the plateau": lambda t: t.plateau - t.end <= BELOW,
    },
    strict={"it does not exceed the plateau": lambda t: t.plateau - t.end > -ROUNDING},
)
EXPONENTS = Table(
    index=(),
    columns={
        "rate": Column("exponent of 1 - attention in time since one half"),
        "C": Column("exponent of eta in 1 - attention at the end"),
        "missing_ratio": Column(
            f"1 - attention at the end at eta_KQ/eta = {RATIOS[-1]:g} over that at {RATIOS[0]:g}"
        ),
    },
    predicates={
        "1 - attention falls as 1/t or faster": lambda t: t.rate <= -1.0,
        "eta, not eta_KQ/eta, sets the limit": lambda t: (t.C >= FLAT) | (t.missing_ratio >= HALF),
    },
)
LIMIT = Table(index=("eta", "ratio"), columns={"missing": Column("1 - attention at the end")})
ATTRACTOR = Table(
    index=("xi_sqrt_m", "alpha", "ratio"),
    columns=columns("wrong", "share of seeds with a wrong attractor", centre=""),
)

CLAIM = Claim(
    id="li-proposition-2",
    place="Proposition 2 and the slides' figure of attention against iterations",
    statement=(
        "The attention on label-relevant tokens tends to 1 - eta^C at rate O(1/t); in the figure "
        "of the slides it rises from .54 to .91 within 100 iterations."
    ),
    method=(
        "The curve of the slides, mean over 40 seeds; attention of irrelevant queries at the end "
        "against alpha_*/(alpha_* + alpha_#); the exponent of 1 - attention in time; 1 - attention "
        "at the end against eta and against eta_KQ/eta; the frequency of wrong attractors from "
        "random initial weights."
    ),
    criterion=(
        "The mean curve must agree with the figure at both ends to 0.02, the accuracy of reading, "
        "and in between to 0.1, as the slides do not state the scales of initial weights and "
        "rates. The 95 % interval must be inside these limits; if it is entirely outside, the "
        "claim fails; otherwise it is a finding. Attention of irrelevant queries may not exceed "
        "the plateau (an exact bound) and must come within 0.05 of it at eta_KQ/eta = 100. A rate "
        "O(1/t) requires an exponent of -1 or less; both statements are asymptotic, so that a "
        "violation is a finding. A limit 1 - eta^C requires C > 0: the claim is a finding if the "
        "exponent of eta is below 0.1 while 1 - attention falls to less than half along "
        "eta_KQ/eta."
    ),
    quick_note="a coarser map of the wrong attractor",
    thorough_note="a finer map of the wrong attractor, twelve seeds instead of ten",
    amended=(
        "At first the value of the mean curve of ten seeds decided. Runs with other root seeds "
        "then differed by .063 to .090, near the allowed 0.1, and now the interval of the mean of "
        "40 seeds decides. A distance from the plateau above 0.05, or a slower rate, was a "
        "failure; by the rule of verdicts it is a finding. This was changed after runs in which "
        "neither occurred."
    ),
    assumptions="sampled runs; descent on all cells; scales of initial weights chosen here",
    tables={
        "curve": CURVE,
        "plateaus": PLATEAU,
        "exponents": EXPONENTS,
        "limit": LIMIT,
        "wrong attractor": ATTRACTOR,
    },
    measure=measure,
    headline=headline,
    finding=(
        "Mean attention differs from the slides by at most {least!u:.2f} to {most!u:.2f}, and is "
        "{below:.3f} below its plateau; C = {C:.2f}."
    ),
    tolerance=READING,
)
