"""Theorem 3.2: scores that avoid the own sets, their error, and what a Gram matrix can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray

from dynamics import Problem
from dynamics.positional.baselines import explicit_transformer as explicit
from dynamics.positional.baselines.linear_models import silent_probability, uniform_error
from dynamics.positional.samples.partitions import contiguous
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled

#: Scale of the value vector in w*; with kappa = D the cubic part of the activation dominates.
ALPHA = 1.0
_RULES = ("own set", "next set", "own set and twin", "uniform weights")


def gather_scores(D: int, C: int) -> xarray.Dataset:
    """Return the scores of the derangement and of the twin Gram matrix."""
    problem = Problem(D=D, C=C, q=C / D)
    twin, _ = explicit.twin_gram(problem, within=0.5, scale=1.0)
    return xarray.Dataset(
        {"A": (("rule", "row", "column"), [explicit.derangement_scores(problem, 2.0), twin])},
        coords={"rule": ["derangement", "twin"]},
        attrs={"set_size": C},
    )


def gather_small(cases: Sequence[tuple[int, int, float]]) -> xarray.Dataset:
    """Return errors over all images (case, rule): finite scores, enumerated; and their limits."""
    errors = np.full((len(cases), 3), np.nan)
    limits = np.full((len(cases), 3), np.nan)
    margins = np.full((len(cases), 3), np.nan)
    for row, (D, C, qD) in enumerate(cases):
        problem = Problem(D=D, C=C, q=qD / D)
        scores = [explicit.block_scores(problem), explicit.derangement_scores(problem)]
        limits[row, :2] = explicit.block_error(problem, ALPHA).error
        if problem.L % 2 == 0:
            scores.append(explicit.twin_gram(problem, within=1.0, scale=40.0)[0])
            limits[row, 2] = explicit.twin_error(problem, ALPHA).error
        for column, A in enumerate(scores):
            errors[row, column] = explicit.exact_error(problem, A, ALPHA).error
            margins[row, column] = explicit.own_set_margin(A, contiguous(problem)).min()
    return xarray.Dataset(
        {"enumerated": (("case", "rule"), errors), "limit": (("case", "rule"), limits),
         "margin": (("case", "rule"), margins)},
        coords={"case": [_name(*case) for case in cases], "rule": list(_RULES[:3])},
    )  # fmt: skip


def gather_large(
    cases: Sequence[tuple[int, int, float]], twins: int, images: int, seed: int
) -> xarray.Dataset:
    """Return exact errors (case, rule) of the limits, and the derangement on sampled images.

    The twin rule is computed up to ``D = twins``; samples are drawn where they can see an error.
    """
    errors = np.full((len(cases), len(_RULES)), np.nan)
    silent, sampled, margin = (np.full(len(cases), np.nan) for _ in range(3))
    streams = np.random.SeedSequence(seed, spawn_key=(34,)).spawn(len(cases))
    for row, ((D, C, qD), stream) in enumerate(zip(cases, streams)):
        problem = Problem(D=D, C=C, q=qD / D)
        errors[row, :2] = explicit.block_error(problem, ALPHA).error
        errors[row, 3] = uniform_error(problem).literal
        silent[row] = silent_probability(problem)
        if twins >= D:
            errors[row, 2] = explicit.twin_error(problem, ALPHA).error
        A = explicit.derangement_scores(problem)
        margin[row] = explicit.own_set_margin(A, contiguous(problem)).min()
        if errors[row, 0] * images > 10.0:
            rng = np.random.default_rng(stream)
            sampled[row] = explicit.sampled_error(problem, A, ALPHA, images, rng).error
    exact = errors[:, 0]
    return xarray.Dataset(
        {
            "error": (("case", "rule"), errors),
            "silent": ("case", silent),
            "sampled": ("case", sampled),
            "deviation": ("case", (sampled - exact) / np.sqrt(exact * (1.0 - exact) / images)),
            "margin": ("case", margin),
            "D": ("case", [D for D, _, _ in cases]),
            "scaled": ("case", [qD == C**2 and D == 16 * C**2 for D, C, qD in cases]),
        },
        coords={"case": [_name(*case) for case in cases], "rule": list(_RULES)},
    )


def gather_gram(D: int, C: int, draws: int, attempts: int, seed: int) -> xarray.Dataset:
    """Return the smallest own-set margin of Gram matrices over the largest squared norm.

    Of random encodings with the diagonal, and of optimized ones with and without it. Also the
    margin of the row of largest norm, which Cauchy-Schwarz bounds by 0.
    """
    problem = Problem(D=D, C=C, q=C / D)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(35,)))
    sets = contiguous(problem)
    worst, longest, meeting = [], [], []
    for _ in range(draws):
        P = rng.normal(size=(D, D)) * rng.exponential(size=D)
        A = P.T @ P
        margin = explicit.own_set_margin(A, sets) / A.diagonal().max()
        worst.append(margin.min())
        longest.append(margin[np.argmax(A.diagonal())])
        meeting.append(int(np.sum(margin < 0.0)))
    small = Problem(D=8, C=2, q=0.25)
    optimized = [
        [explicit.best_gram_margin(small, rng, diagonal=diagonal)[0] for _ in range(attempts)]
        for diagonal in (True, False)
    ]
    return xarray.Dataset(
        {
            "random_margin": ("draw", worst),
            "longest_margin": ("draw", longest),
            "rows_meeting": ("draw", meeting),
            "optimized": (("diagonal", "attempt"), optimized),
        },
        coords={"diagonal": ["included", "excluded"]},
    )


def _name(D: int, C: int, qD: float) -> str:
    return f"D={D}, C={C}, qD={qD:g}"


def join(scores: xarray.Dataset, large: xarray.Dataset, gram: xarray.Dataset) -> xarray.Dataset:
    """Return what is drawn as one dataset."""
    return xarray.merge(
        [scores.rename(rule="scores"), large, gram], combine_attrs="drop_conflicts",
        compat="no_conflicts", join="outer",
    )  # fmt: skip


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both score matrices, the errors against D, and the margins of Gram matrices."""
    panels = figure.subplots(2, 2)
    artists: dict[str, Any] = {}
    titles = (r"$A$, free: rows attend to the next set", r"$A=P^\top P$: twin sets")
    for ax, name, title in zip(panels[0], data["scores"].values, titles):
        A = data["A"].sel(scores=name)
        artists[str(name)] = ax.imshow(A, cmap="cividis", interpolation="nearest")
        for edge in np.arange(0, len(A) + 1, data.attrs["set_size"]) - 0.5:
            ax.axhline(edge, color="white", linewidth=0.6)
            ax.axvline(edge, color="white", linewidth=0.6)
        ticks = range(0, len(A), data.attrs["set_size"])
        ax.set(title=title, xlabel="patch $j$", ylabel="patch $i$", xticks=ticks, yticks=ticks)
        bar = figure.colorbar(artists[str(name)], ax=ax, shrink=0.9)
        bar.set_label("$A_{ij}$")
    _draw_errors(panels[1, 0], data, artists)
    _draw_margins(panels[1, 1], data, artists)
    for letter, ax in zip("abcd", panels.flat):
        panel_letter(ax, letter)
    return artists


def _draw_errors(ax: Any, data: xarray.Dataset, artists: dict[str, Any]) -> None:
    """Errors at D = 16 C^2, q = C^2/D, against D."""
    chosen = data.isel(case=data["scaled"].values.astype(bool))
    styles = ({"marker": "o"}, {"marker": "x", "markersize": 9}, {"marker": "s"}, {"marker": "^"})
    for number, rule in enumerate(_RULES):
        artists[rule] = ax.plot(
            chosen["D"], chosen["error"].sel(rule=rule), label=rule,
            **PROBLEM_STYLES[number], **styles[number],
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="$D$  ($D=16C^2$, $q=C^2/D$)",
           ylabel=r"$P[f^*F\leq 0]$")  # fmt: skip
    ticks = np.unique(chosen["D"].values).tolist()
    ax.set_xticks(ticks, [str(D) for D in ticks])
    ax.minorticks_off()
    ax.legend(loc="lower left", title="rows attend to")


def _draw_margins(ax: Any, data: xarray.Dataset, artists: dict[str, Any]) -> None:
    """Smallest margins of random and of optimized encodings, spread out by their rank."""
    groups = (
        ("random $P$", data["random_margin"].values, "#777777"),
        ("optimized", data["optimized"].sel(diagonal="included").values, "#4477AA"),
        ("optimized,\nwithout $A_{ii}$", data["optimized"].sel(diagonal="excluded").values,
         "#EE6677"),
    )  # fmt: skip
    for place, (_, values, colour) in enumerate(groups):
        ranked = np.sort(values[np.isfinite(values)])
        x = place + 0.6 * (np.arange(ranked.size) + 0.5) / ranked.size - 0.3
        artists[f"margin {place}"] = ax.plot(x, ranked, ".", color=colour)
    ax.axhline(0.0, **REFERENCE)
    ax.set_xticks(range(3), [name for name, _, _ in groups])
    ax.set(xlabel="encodings $P$, one point each", ylabel="smallest own-set margin",
           ylim=(-1.15, 1.15))  # fmt: skip
