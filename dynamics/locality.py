r"""Locality of positional encodings and of attention maps, with permutation tests.

Patches form a grid of rows x columns, numbered row by row. Neighbours are the up to eight patches
around a patch (3 in a corner, 5 on an edge). The diagonal of a D x D map M is ignored. Measures:

``precision``
    share of the k_i largest entries of row i that are neighbours of i, where i has k_i neighbours,
    averaged over rows: the finite form of Top_C(M_i) = S_l (Jelassi, Sander, Li 2022,
    Definition 2.2). Tied entries share the remaining ranks equally.
``auc``
    probability that an entry of two neighbours exceeds one of two others, ties counted half.
``mantel``
    rank correlation of M with minus the Euclidean distance of the patches.
``lift``
    of attention: mean weight on a neighbour / mean weight on another patch. The weight of a patch
    on itself is removed and rows are normalised.
``distance``
    of attention, normalised likewise: mean attended distance / mean distance of uniform attention.

Each measure is compared with a null distribution: the rows and columns of the map are permuted
together. The *permutation* null uses all permutations of the patches. The *ring* null permutes only
patches at the same distance from the border, so that effects of a blank border, as in images of
digits, are part of the null.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from dynamics.core.checks import integer, require
from dynamics.core.errors import ParameterError
from dynamics.core.patch_grid import distances, neighbours, random_permutation
from dynamics.core.permutation_test import BLOCK, ROUNDING, PairStatistic, permutation_test

NULLS = ("permutation", "ring")

#: Tolerance of the row sums of attention, wide enough for half precision.
ROW_SUM = 0.01


@dataclass(frozen=True)
class Measure:
    """A measure and its null distribution; all arrays have the shape of the leading axes of maps.

    Attributes
    ----------
    value
        The measure; nan where it is not defined (a constant map has no rank correlation).
    null_mean, null_sd
        Mean and standard deviation over the permutations.
    z
        (value - null_mean) / null_sd; nan where the null is constant.
    p
        (1 + permutations at least as local) / (1 + permutations): one-sided, never 0.
    """

    value: np.ndarray
    null_mean: np.ndarray
    null_sd: np.ndarray
    z: np.ndarray
    p: np.ndarray


@dataclass(frozen=True)
class Locality:
    """Measures of locality (see the module); ``lift`` and ``distance`` are for attention only."""

    precision: Measure
    auc: Measure
    mantel: Measure
    lift: Measure | None = None
    distance: Measure | None = None


def similarity(encodings: Any, by: str = "cosine") -> np.ndarray:
    """Return the pairwise similarity of positional encodings, shape (D, D).

    Parameters
    ----------
    encodings
        Finite real numbers of shape (D, d): p_i for each patch, without class tokens.
    by
        ``cosine``: cosine similarity after subtraction of the mean over patches; ``distance``:
        ``-|p_i - p_j|^2``, defined also for encodings near the mean; ``product``: p_i . p_j.

    Raises
    ------
    ParameterError
        If the shape or an entry is not as above, or an encoding equals the mean (``cosine``).
    """
    table = np.asarray(encodings)
    good = table.dtype.kind in "fiu" and table.ndim == 2 and table.size > 0
    require(good, "encodings", _description(table), "real numbers of shape (D, d)")
    require(bool(np.isfinite(table).all()), "encodings", "array with nan or inf", "finite")
    require(
        by in ("cosine", "distance", "product"), "by", repr(by), "'cosine', 'distance' or 'product'"
    )
    table = table.astype(float)
    if by == "product":
        return table @ table.T
    centred = table - table.mean(axis=0)
    if by == "distance":
        squares = np.einsum("id,id->i", centred, centred)
        return 2.0 * centred @ centred.T - squares[:, None] - squares
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    apart = bool((norms > ROUNDING * abs(table).max()).all())
    require(
        apart,
        "encodings",
        "table with a row that equals the mean row",
        "different from their mean for a cosine",
    )
    return (centred / norms) @ (centred / norms).T


def encoding_locality(encodings: Any, by: str = "cosine", **options: Any) -> Locality:
    """Return the locality of the similarity of positional encodings.

    Parameters
    ----------
    encodings, by
        Arguments of :func:`similarity`.
    **options
        Options of :func:`locality`.

    Raises
    ------
    ParameterError
        As :func:`similarity` and :func:`locality`.
    """
    return locality(similarity(encodings, by), **options)


def locality(
    maps: Any,
    *,
    grid: tuple[int, int] | None = None,
    null: str = "permutation",
    draws: int = 199,
    seed: int = 0,
) -> Locality:
    """Return precision, AUC and rank correlation of maps, with their null distribution.

    Parameters
    ----------
    maps
        Finite real numbers of shape (..., D, D), larger for more similar patches.
    grid
        Rows and columns, with D = rows x columns; by default a square grid.
    null
        ``permutation`` or ``ring`` (see the module).
    draws, seed
        Number of random permutations (1 to 100000) and seed. All maps and measures share the same
        permutations.

    Raises
    ------
    ParameterError
        If an argument is not as above, or the grid has no patches that are not neighbours.
    """
    return _measured(_maps("maps", maps), grid, null, draws, seed, attention=False)


def attention_locality(
    attention: Any,
    *,
    grid: tuple[int, int] | None = None,
    null: str = "permutation",
    draws: int = 199,
    seed: int = 0,
) -> Locality:
    """Return all measures of attention weights, with their null distribution.

    Pass the heads separately: the mean over heads hides the behaviour of a few of them.

    Parameters
    ----------
    attention
        Weights of shape (..., D, D); the last axis are the keys.
    grid, null, draws, seed
        As in :func:`locality`.

    Returns
    -------
    Locality
        ``lift`` and ``distance`` are nan for a map in which a patch attends only to itself;
        ``lift`` is infinite if all patches attend only to neighbours.

    Raises
    ------
    ParameterError
        As :func:`locality`, or if a weight is negative or a row does not sum to 1.
    """
    weights = _weights(attention)
    return _measured(weights, grid, null, draws, seed, attention=True)


def without_class_token(attention: Any, tokens: int = 1) -> np.ndarray:
    """Return the attention among patches, with normalised rows.

    Parameters
    ----------
    attention
        Weights of shape (..., D + tokens, D + tokens), the class (and other) tokens first.
    tokens
        Number of tokens that are not patches: 1 for most models, more with registers.

    Raises
    ------
    ParameterError
        As :func:`attention_locality`, or if a row has no weight on any patch.
    """
    weights = _weights(attention)
    tokens = integer("tokens", tokens, 0, weights.shape[-1] - 1)
    patches = weights[..., tokens:, tokens:]
    sums = patches.sum(axis=-1, keepdims=True)
    require(
        bool((sums > 0.0).all()),
        "attention",
        "array with a patch that attends to no patch",
        "positive on some patch in every row",
    )
    return patches / sums


def _description(array: np.ndarray) -> str:
    """Return shape and dtype for an error message."""
    return f"array of shape {array.shape} and type {array.dtype}"


def _maps(name: str, maps: Any) -> np.ndarray:
    """Return maps as a float64 array, or raise ParameterError."""
    array = np.asarray(maps)
    square = array.ndim >= 2 and array.shape[-1] == array.shape[-2] and array.size > 0
    require(
        array.dtype.kind in "fiu" and square,
        name,
        _description(array),
        "real numbers of shape (..., D, D)",
    )
    require(bool(np.isfinite(array).all()), name, "array with nan or inf", "finite")
    return array.astype(float)


def _weights(attention: Any) -> np.ndarray:
    """Return attention weights as a float64 array, or raise ParameterError."""
    weights = _maps("attention", attention)
    require(
        bool((weights >= 0.0).all()),
        "attention",
        "array with negative entries",
        "weights, not logits",
    )
    sums = weights.sum(axis=-1)
    worst = float(sums.flat[int(np.argmax(abs(sums - 1.0)))])
    require(
        abs(worst - 1.0) <= ROW_SUM,
        "attention",
        f"array with a row that sums to {worst:.3g}",
        "weights whose rows sum to 1 (class tokens: see without_class_token)",
    )
    return weights


def _checked_grid(patches: int, grid: tuple[int, int] | None) -> tuple[int, int]:
    """Return rows and columns, a square grid by default, or raise ParameterError."""
    if grid is None:
        side = math.isqrt(patches)
        if side * side != patches:
            raise ParameterError(
                f"maps of {patches} patches are not allowed without grid: it must be given as "
                "(rows, columns) where D is not a square"
            )
        grid = (side, side)
    fits = len(grid) == 2 and all(isinstance(size, (int, np.integer)) for size in grid)
    require(
        fits and min(grid) >= 1 and grid[0] * grid[1] == patches,
        "grid",
        grid,
        f"(rows, columns) with rows x columns = {patches}",
    )
    require(max(grid) >= 3, "grid", grid, "at least 3 patches long, so that some do not touch")
    return int(grid[0]), int(grid[1])


def _measured(
    maps: np.ndarray,
    grid: tuple[int, int] | None,
    null: str,
    draws: int,
    seed: int,
    *,
    attention: bool,
) -> Locality:
    """Return the measures of validated maps."""
    grid = _checked_grid(maps.shape[-1], grid)
    require(null in NULLS, "null", repr(null), " or ".join(map(repr, NULLS)))
    draws = integer("draws", draws, 1, 100_000)
    rng = np.random.default_rng(integer("seed", seed, 0, 2**63 - 1))
    permutations = np.array([random_permutation(grid, null, rng) for _ in range(draws)])
    flat = maps.reshape(-1, *maps.shape[-2:])
    blocks: list[dict[str, list[np.ndarray]]] = []
    for block in np.array_split(flat, -(-flat.size // BLOCK)):
        statistics = _similarity_statistics(block, grid)
        if attention:
            statistics |= _attention_statistics(block, grid)
        blocks.append(
            {
                name: permutation_test(statistic, permutations)
                for name, statistic in statistics.items()
            }
        )
    measures = {}
    for name in blocks[0]:
        arrays = map(np.concatenate, zip(*(results[name] for results in blocks)))
        measures[name] = Measure(*(array.reshape(maps.shape[:-2]) for array in arrays))
    return Locality(**measures)


def _similarity_statistics(maps: np.ndarray, grid: tuple[int, int]) -> dict[str, PairStatistic]:
    """Return precision, AUC and rank correlation of maps (n, D, D)."""
    near, apart = neighbours(grid), ~np.eye(maps.shape[-1], dtype=bool)
    count = near.sum(axis=1)
    sizes = np.unique(count)
    tops = np.array([_top(maps, int(size)) for size in sizes])
    of_size = np.array([near * (count == size)[:, None] / size for size in sizes]) / len(count)

    ranks = np.zeros(maps.shape)
    ranks[:, apart] = rankdata(maps[:, apart], axis=1)
    inside, outside = int(near.sum()), int((apart & ~near).sum())
    lowest = 0.5 * inside * (inside + 1)

    far = np.zeros(near.shape)
    far[apart] = _unit(rankdata(-distances(grid)[apart]))
    standard = np.zeros(maps.shape)
    standard[:, apart] = _unit(ranks[:, apart])
    return {
        "precision": PairStatistic(tops, of_size, lambda total: total),
        "auc": PairStatistic(
            ranks[None],
            near[None].astype(float),
            lambda total: (total - lowest) / (inside * outside),
        ),
        "mantel": PairStatistic(standard[None], far[None], lambda total: total),
    }


def _unit(rows: np.ndarray) -> np.ndarray:
    """Return centred rows of length 1; nan where a row is constant."""
    centred = rows - rows.mean(axis=-1, keepdims=True)
    norms = np.linalg.norm(centred, axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(norms > 0.0, centred / norms, np.nan))


def _top(maps: np.ndarray, size: int) -> np.ndarray:
    """Return the weights (0 to 1) of entries among the ``size`` largest of their row.

    The diagonal is excluded, and tied entries share the remaining weight.
    """
    patches = maps.shape[-1]
    values = np.where(np.eye(patches, dtype=bool), -np.inf, maps)
    last = np.partition(values, patches - size, axis=-1)[..., patches - size, None]
    above, tied = values > last, values == last
    left = size - above.sum(axis=-1, keepdims=True)
    return above + tied * left / tied.sum(axis=-1, keepdims=True)


def _attention_statistics(weights: np.ndarray, grid: tuple[int, int]) -> dict[str, PairStatistic]:
    """Return lift and distance of attention weights (n, D, D)."""
    patches = weights.shape[-1]
    near, apart = neighbours(grid), ~np.eye(patches, dtype=bool)
    others = weights * apart
    with np.errstate(invalid="ignore", divide="ignore"):
        others = others / others.sum(axis=-1, keepdims=True)
    inside, outside = int(near.sum()), int((apart & ~near).sum())

    def lift(on_neighbours: np.ndarray) -> np.ndarray:
        elsewhere = patches - on_neighbours
        elsewhere = np.where(elsewhere <= ROUNDING * patches, 0.0, elsewhere)
        with np.errstate(divide="ignore"):
            return (on_neighbours / inside) / (elsewhere / outside)

    far = distances(grid)
    uniform = far.sum() / (patches - 1.0)
    return {
        "lift": PairStatistic(others[None], near[None].astype(float), lift),
        "distance": PairStatistic(
            others[None], far[None], lambda total: total / uniform, sign=-1.0
        ),
    }
