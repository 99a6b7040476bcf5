"""Huang et al., Section 6: the attention diversity metric on trained masked models."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import xarray

from dynamics import gradient_flow
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked.best_positional_attention import best
from dynamics.masked.diversity import attention_diversity
from simulations.figures import report_figure
from simulations.figures.style import COLOURS, panel_letter, styled
from simulations.masked import runs
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import rng_at, seeds_of

SIDE, TOP = 14, 10  # grid of ViT-B/16, and keys per query in the paper
SEEDS = 10  # of ties and masks
EPS = 1e-3  # (1 - a_n)^2 at which training stops
TRAINED, MASKED, AREA = "trained", "trained, half of the patches masked", "own area, uniform"
GLOBAL, POSITIONAL, UNTRAINED = "global area, uniform", "best positional", "untrained (Q = 0)"
PATTERNS = (TRAINED, MASKED, AREA, GLOBAL, POSITIONAL, UNTRAINED)


def measure(context: Context) -> Measurement:
    """Train all queries of a grid with two clusters; measure their and other attention maps."""
    seeds = seeds_of(context.seed, context.choose(quick=1, full=5))
    images = {
        f"layout {number}, cluster {k + 1}": maps_of(seed, k)
        for number, seed in enumerate(context.track(seeds), start=1)
        for k in (0, 1)
    }
    data = xarray.concat(images.values(), dim="image").assign_coords(image=list(images))
    in_order = 0.0 + float(_metric(np.zeros((SIDE**2, SIDE**2))))
    return Measurement(
        {
            "images": IMAGES.frame(image_rows(data)),
            "maps": MAPS.frame(map_rows(data)),
            "untrained": UNTRAINED_MAPS.frame([{"metric_in_order": in_order}]),
        },
        {
            "grid": [SIDE, SIDE],
            "n": TOP,
            "layouts": len(seeds),
            "seeds of ties and masks": SEEDS,
            "seed": context.seed,
            "eps": EPS,
            "z": 1.0,
            "mask_ratio": 0.5,
            "K": 2,
        },
        (_figure(data.drop_vars("unmasked")),),
    )


def image_rows(data: xarray.Dataset) -> Iterator[dict[str, Any]]:
    """Yield the extremes of the metric over ties and masks, and the locality, for each image."""
    for name in data["image"].values.tolist():
        diversity, share = (data[quantity].sel(image=name) for quantity in ("diversity", "share"))
        yield {
            "image": name,
            "trained_least": float(diversity.sel(pattern=[TRAINED, MASKED]).min()),
            "collapsed_greatest": float(diversity.sel(pattern=GLOBAL).max()),
            "share_trained": float(share.sel(pattern=MASKED)),
            "share_positional": float(share.sel(pattern=POSITIONAL)),
            "share_untrained": float(share.sel(pattern=UNTRAINED)),
        }


def map_rows(data: xarray.Dataset) -> Iterator[dict[str, Any]]:
    """Yield metric and locality of each pattern of attention over all images."""
    for pattern in PATTERNS:
        maps = data.sel(pattern=pattern)
        yield {
            "maps": pattern,
            "metric": float(maps["diversity"].mean()),
            "metric_least": float(maps["diversity"].min()),
            "metric_greatest": float(maps["diversity"].max()),
            "own_share": float(maps["share"].min()),
            "own_share_unmasked": float(maps["unmasked"].min()),
        }


def problem_of(seed: int, query: int = 0) -> MaskedProblem:
    """Return two clusters on the grid, each with a global half and six local areas.

    The left half is global in the first cluster, the lower half in the second. The other half is
    divided into strips of 4 or 5 by 3 or 4 patches in random order (information gap about .2).
    """
    rng = rng_at(seed, 14)
    row, column = np.divmod(np.arange(SIDE**2), SIDE)
    partitions = []
    for across, along in ((column, row), (SIDE - 1 - row, column)):  # global: across < 7
        long = np.repeat(np.arange(3), rng.permutation((5, 5, 4)))[along]
        short = np.repeat(np.arange(2), rng.permutation((4, 3)))[across - SIDE // 2]
        area = np.where(across < SIDE // 2, 0, 1 + 2 * long + short)
        partitions.append(tuple(tuple(np.flatnonzero(area == m).tolist()) for m in range(7)))
    return MaskedProblem(P=SIDE**2, partitions=tuple(partitions), query=query)


@cache
def model(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the trained rows e_p^T Q, (P, P + features), and the best positional weights, (P, P).

    Queries of one cell of the common refinement have the same flow, computed once.
    """
    rows, weights = [], []
    results: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}
    for p in range(SIDE**2):
        problem = problem_of(seed, p)
        layout = problem.layout
        cell = tuple(layout.area[:, -1].tolist())
        if cell not in results:
            horizon = runs.default_horizon(problem, EPS)
            run = gradient_flow(MaskedPopulation(problem), horizon=horizon, rtol=1e-6, records=10)
            results[cell] = run.final, best(problem).mass / layout.size
        state, weight = results[cell]
        columns = runs.columns_of(problem)
        rows.append(state[columns])
        weights.append(weight[columns[: SIDE**2] - layout.phi_slots])
    return np.array(rows), np.array(weights)


def maps_of(seed: int, k: int) -> xarray.Dataset:
    """Return metric and locality of each pattern of attention on an image of cluster k.

    ``share`` is the attention to unmasked patches of the query's own area on half masked images,
    ``unmasked`` the attention to its own area on images without a mask.
    """
    P = SIDE**2
    partitions = problem_of(seed).partitions
    assert partitions is not None
    area = np.array([next(m for m, a in enumerate(partitions[k]) if q in a) for q in range(P)])
    rows, positional = model(seed)
    features = rows[:, P + sum(map(len, partitions[:k])) :][:, area]  # Phi of each key's area
    own, shared = area[:, None] == area, np.broadcast_to(area == 0, (P, P))
    diversity = np.empty((len(PATTERNS), SEEDS))
    shares, unmasked = np.empty((len(PATTERNS), SEEDS)), np.empty(len(PATTERNS))
    for draw in range(SEEDS):
        rng = rng_at(seed, k, draw)
        visible = np.ones(P)
        visible[rng.permutation(P)[: P // 2]] = 0.0
        logits = {
            TRAINED: rows[:, :P] + features,
            MASKED: rows[:, :P] + visible * features,
            AREA: np.where(own, 0.0, -50.0),
            GLOBAL: np.where(shared, 0.0, -50.0),
            POSITIONAL: np.log(np.maximum(positional, 1e-20)),
            UNTRAINED: np.zeros((P, P)),
        }
        for number, pattern in enumerate(PATTERNS):
            values = logits[pattern]
            diversity[number, draw] = _metric(values + 1e-9 * rng.random((P, P)))
            weights = np.exp(values - values.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            unmasked[number] = (weights * own).sum(axis=1).mean()
            shares[number, draw] = (weights * own * visible).sum(axis=1).mean()
    trained, masked = PATTERNS.index(TRAINED), PATTERNS.index(MASKED)
    shares[trained], unmasked[masked] = shares[masked], unmasked[trained]
    return xarray.Dataset(
        {
            "diversity": (("pattern", "seed"), diversity),
            "share": ("pattern", shares.mean(axis=1)),
            "unmasked": ("pattern", unmasked),
        },
        coords={"pattern": list(PATTERNS)},
    )


def _metric(logits: np.ndarray) -> float:
    return float(attention_diversity(logits, n=TOP))


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    patterns = {
        "trained": TRAINED,
        "collapsed": GLOBAL,
        "untrained": UNTRAINED,
        "position": POSITIONAL,
    }
    metric = tables["maps"].data.metric
    return {name: metric[pattern] for name, pattern in patterns.items()}


_LABELS = {
    "trained": "trained",
    "trained, half of the patches masked": "trained, half masked",
    "own area, uniform": "own area, uniform",
    "global area, uniform": "global area, uniform",
    "best positional": "best positional",
    "untrained (Q = 0)": "untrained, random ties",
}


@styled
def draw_figure(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the metric and the attention to the own area of each pattern of attention."""
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.4, 1))
    patterns = [str(pattern) for pattern in data["pattern"].values]
    rows = np.arange(len(patterns))[::-1]
    artists: dict[str, Any] = {}

    def spread(number: int) -> np.ndarray:
        """Return distances below the row at which points of almost equal values stay apart."""
        return 0.35 * (np.arange(number) * 0.618 % 1.0)

    for y, pattern in zip(rows, patterns):
        values = data["diversity"].sel(pattern=pattern).values.ravel()
        artists[pattern] = left.plot(
            values, y - spread(values.size), ".", color=COLOURS["Phi_n"], markersize=3
        )[0]
        left.plot([values.mean()] * 2, [y + 0.05, y + 0.4], "-", color="#222222", linewidth=2.5)
        shares = data["share"].sel(pattern=pattern).values
        right.plot(shares, y - spread(shares.size), ".", color=COLOURS["a_n"], markersize=5)
    left.set(
        yticks=rows,
        yticklabels=[_LABELS.get(pattern, pattern) for pattern in patterns],
        xlabel="attention diversity (patches)",
    )
    right.set(xlabel="attention to unmasked own area", xlim=(-0.03, 1.03))
    for letter, ax in zip("ab", (left, right)):
        panel_letter(ax, letter)
        ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
    return artists


def _figure(data: xarray.Dataset) -> Figure:
    return report_figure(
        "masked-diversity",
        "Attention diversity of trained masked models",
        "All 196 queries of a 14 x 14 grid, two clusters, one image of each cluster per layout, 10 "
        "keys per query, ties broken at random. (a) The attention diversity metric (points: "
        "images, ties and masks, spread vertically; bars: means). (b) Attention to unmasked "
        "patches of the query's own area, half of the patches masked, which the metric does not "
        "measure.",
        draw_figure,
        data,
        (7.4, 3.4),
    )


IMAGES = Table(
    index=("image",),
    columns={
        "trained_least": Column("metric of the trained model, least", rtol=1e-3),
        "collapsed_greatest": Column("metric of the collapsed pattern, greatest", rtol=1e-3),
        "share_trained": Column("attention to unmasked patches of the own area, trained"),
        "share_positional": Column("the same, best positional attention", rtol=1e-3),
        "share_untrained": Column("the same, untrained"),
    },
    predicates={
        "trained maps are more diverse than one shared region": lambda t: (
            t.trained_least > t.collapsed_greatest
        ),
        "trained queries attend to their own areas more than others do": lambda t: (
            (t.share_trained > t.share_positional) & (t.share_trained > t.share_untrained)
        ),
    },
)

MAPS = Table(
    index=("maps",),
    columns={
        "metric": Column("metric, mean", rtol=1e-2),
        "metric_least": Column("metric, least over images, ties and masks", rtol=1e-2),
        "metric_greatest": Column("metric, greatest over images, ties and masks", rtol=1e-2),
        "own_share": Column(
            "attention to unmasked patches of the own area, half masked, least", rtol=1e-3
        ),
        "own_share_unmasked": Column("attention to the own area, no mask, least", rtol=1e-3),
    },
)

UNTRAINED_MAPS = Table(
    index=(),
    columns={"metric_in_order": Column("metric if ties keep the order of the patches")},
)

CLAIM = Claim(
    id="huang-diversity",
    place="Section 6, Figure 3; after Theorem 4.1",
    statement=(
        "Masked image models attend to diverse, localized areas, while a low attention diversity "
        "metric shows a collapsed, global pattern: queries that attend to the same region."
    ),
    method=(
        "The metric of trained masked models (gradient flow of every query of a 14 x 14 grid with "
        "two clusters, images unmasked and half masked) is compared with the metric of uniform "
        "attention to the own or to the global area, of the best positional attention and of the "
        "untrained model. The attention to the query's own area is measured too."
    ),
    criterion=(
        "The paper compares vision transformers trained by other methods, which this theory does "
        "not include; only its statement about the metric is tested. On every image, over ten "
        "samples of ties and masks, the least metric of the trained model must exceed the greatest "
        "of the collapsed pattern (every query attends to the global area). A high value alone "
        "does not prove locality (random attention has 25.3, more than attention to own blocks). "
        "Therefore the attention of the trained model to unmasked patches of the query's own area, "
        "the quantity of Theorem 4.1, must also exceed that of the best positional attention and "
        "of the untrained model, with half of the patches masked. The statement is qualitative: a "
        "violation is a finding."
    ),
    tables={"images": IMAGES, "maps": MAPS, "untrained": UNTRAINED_MAPS},
    measure=measure,
    headline=headline,
    finding=(
        "The metric is {trained:.0f} trained and {collapsed:.0f} collapsed, but {untrained:.0f} "
        "untrained and {position:.0f} by position alone."
    ),
    quick_note="one layout of the areas instead of five",
    amended=(
        "At first a violation of either part was a failure; by the rule of verdicts it is a "
        "finding. This was changed after runs without a violation."
    ),
    assumptions="the mean-field limit for training; random order of equal weights",
    group="masked",
)
