r"""Do similar patches lie side by side? Locality of encodings and of attention, with its nulls.

Patches are those of a grid of rows x columns, row by row; neighbours are the up to eight around a
patch (3 in a corner, 5 on an edge). For a D x D map M, whose diagonal never counts:

``precision``
    share of the k_i largest entries of row i that are neighbours of i, k_i its number of
    neighbours, mean over rows: the finite form of Top_C(M_i) = S_l (Jelassi, Sander, Li 2022,
    Definition 2.2). Equal entries share the places that are left.
``auc``
    probability that an entry of two neighbours exceeds one of two others, ties counted half.
``mantel``
    rank correlation of M with minus the Euclidean distance of the patches.
``lift``
    of attention: mean weight on a neighbour / mean weight on another patch, after the weight of a
    patch on itself is removed and rows are made to sum to 1 again.
``distance``
    of attention, likewise: mean distance that a patch looks / that of uniform attention.

No value means anything by itself: each comes with a null, in which patches are put elsewhere on the
grid at random, rows and columns together. The *permutation* null puts them anywhere. The *ring*
null moves them around the centre only, each in its ring: what comes from all patches of the border
being blank, as in images of digits, stays in that null.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from dynamics.core.checks import integer, require
from dynamics.core.errors import ParameterError
from dynamics.core.placed import BLOCK, ROUNDING, Form, against

NULLS = ("permutation", "ring")

#: How far the sum of a row of attention may be from 1: half precision is allowed.
ROW_SUM = 0.01


@dataclass(frozen=True)
class Measure:
    """A measure and its null; every entry has the shape of the leading axes of the maps.

    Attributes
    ----------
    value
        The measure; nan where it is not defined (a constant map has no rank correlation).
    null_mean, null_sd
        Over the draws of the null.
    z
        (value - null_mean) / null_sd; nan where the null does not vary.
    p
        (1 + draws at least as local) / (1 + draws): one-sided, never 0.
    """

    value: np.ndarray
    null_mean: np.ndarray
    null_sd: np.ndarray
    z: np.ndarray
    p: np.ndarray


@dataclass(frozen=True)
class Locality:
    """Measures of locality (see the module); ``lift`` and ``distance`` of attention only."""

    precision: Measure
    auc: Measure
    mantel: Measure
    lift: Measure | None = None
    distance: Measure | None = None


def similarity(encodings: Any, by: str = "cosine") -> np.ndarray:
    """Return how similar the encodings of any two patches are, shape (D, D).

    Parameters
    ----------
    encodings
        Finite real numbers of shape (D, d): p_i for each patch, without class tokens.
    by
        ``cosine`` of p_i and p_j minus the mean over patches; ``distance``: ``-|p_i - p_j|^2``,
        so that encodings near the mean count too; ``product``: p_i . p_j.

    Raises
    ------
    ParameterError
        If the shape or an entry is not as above, or an encoding equals the mean (``cosine``).
    """
    table = np.asarray(encodings)
    good = table.dtype.kind in "fiu" and table.ndim == 2 and table.size > 0
    require(good, "encodings", _told(table), "real numbers of shape (D, d)")
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
    """Return the locality of a table of encodings, (D, d): that of :func:`similarity`.

    ``options`` are those of :func:`locality`; raises what both raise.
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
    """Return precision, AUC and rank correlation of maps, with their null.

    Parameters
    ----------
    maps
        Finite real numbers of shape (..., D, D), larger for patches that belong together.
    grid
        Rows and columns, D = rows x columns; without it, a square grid.
    null
        ``permutation`` or ``ring`` (see the module).
    draws, seed
        Of the null, 1 <= draws <= 100000; the same draws serve all maps and measures.

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
    """Return all measures of attention weights (..., queries, keys), with their null.

    Heads are best measured one by one: their mean hides what few of them do. ``lift`` and
    ``distance`` are nan for a map in which a patch looks at itself alone, ``lift`` is infinite
    where all look at neighbours alone. Arguments as in :func:`locality`.

    Raises
    ------
    ParameterError
        As :func:`locality`; and if a weight is negative or a row does not sum to 1.
    """
    weights = _weights(attention)
    return _measured(weights, grid, null, draws, seed, attention=True)


def without_class_token(attention: Any, tokens: int = 1) -> np.ndarray:
    """Return the attention among patches, rows made to sum to 1 again.

    Parameters
    ----------
    attention
        Weights of shape (..., D + tokens, D + tokens), the class (and other) tokens first.
    tokens
        How many tokens are no patches; those of most models are 1, with registers more.

    Raises
    ------
    ParameterError
        As :func:`attention_locality`; and if a row has no weight on any patch.
    """
    weights = _weights(attention)
    tokens = integer("tokens", tokens, 0, weights.shape[-1] - 1)
    kept = weights[..., tokens:, tokens:]
    sums = kept.sum(axis=-1, keepdims=True)
    require(
        bool((sums > 0.0).all()),
        "attention",
        "array with a patch that looks at no patch",
        "positive on some patch in every row",
    )
    return kept / sums


def neighbours(grid: tuple[int, int]) -> np.ndarray:
    """Return which patches touch, corners included: bool of shape (D, D), False on the diagonal."""
    rows, columns = _places(grid)
    apart = np.maximum(abs(rows[:, None] - rows), abs(columns[:, None] - columns))
    return np.asarray(apart == 1)


def distances(grid: tuple[int, int]) -> np.ndarray:
    """Return the Euclidean distances of the patches, shape (D, D), in units of patches."""
    rows, columns = _places(grid)
    return np.hypot(rows[:, None] - rows, columns[:, None] - columns)


def _places(grid: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column of every patch."""
    rows, columns = np.divmod(np.arange(grid[0] * grid[1]), grid[1])
    return rows, columns


def _told(array: np.ndarray) -> str:
    return f"array of shape {array.shape} and type {array.dtype}"


def _maps(name: str, maps: Any) -> np.ndarray:
    """Return maps as an array of float64."""
    array = np.asarray(maps)
    square = array.ndim >= 2 and array.shape[-1] == array.shape[-2] and array.size > 0
    require(
        array.dtype.kind in "fiu" and square,
        name,
        _told(array),
        "real numbers of shape (..., D, D)",
    )
    require(bool(np.isfinite(array).all()), name, "array with nan or inf", "finite")
    return array.astype(float)


def _weights(attention: Any) -> np.ndarray:
    """Return attention weights, checked."""
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
    """Return rows and columns that fit the number of patches."""
    if grid is None:
        side = math.isqrt(patches)
        if side * side != patches:
            raise ParameterError(
                f"maps of {patches} patches are not allowed without grid: it must be given as "
                "(rows, columns) where D is no square"
            )
        grid = (side, side)
    fits = len(grid) == 2 and all(isinstance(size, (int, np.integer)) for size in grid)
    require(
        fits and min(grid) >= 1 and grid[0] * grid[1] == patches,
        "grid",
        grid,
        f"(rows, columns) with rows x columns = {patches}",
    )
    require(max(grid) >= 3, "grid", grid, "3 patches long at least, so that some do not touch")
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
    """Return the measures of checked maps."""
    grid = _checked_grid(maps.shape[-1], grid)
    require(null in NULLS, "null", repr(null), " or ".join(map(repr, NULLS)))
    draws = integer("draws", draws, 1, 100_000)
    rng = np.random.default_rng(integer("seed", seed, 0, 2**63 - 1))
    places = np.array([_relabelled(grid, null, rng) for _ in range(draws)])
    flat = maps.reshape(-1, *maps.shape[-2:])
    found: list[dict[str, list[np.ndarray]]] = []
    for block in np.array_split(flat, -(-flat.size // BLOCK)):
        forms = _similarity_forms(block, grid)
        if attention:
            forms |= _attention_forms(block, grid)
        found.append({name: against(form, places) for name, form in forms.items()})
    return Locality(
        **{
            name: Measure(
                *(
                    np.concatenate(parts).reshape(maps.shape[:-2])
                    for parts in zip(*(one[name] for one in found))
                )
            )
            for name in found[0]
        }
    )


def _relabelled(grid: tuple[int, int], null: str, rng: np.random.Generator) -> np.ndarray:
    """Return a random place for each patch."""
    if null == "permutation":
        return rng.permutation(grid[0] * grid[1])
    rows, columns = _places(grid)
    ring = np.minimum.reduce([rows, columns, grid[0] - 1 - rows, grid[1] - 1 - columns])
    place = np.arange(len(ring))
    for one in range(int(ring.max()) + 1):
        place[ring == one] = rng.permutation(place[ring == one])
    return place


def _similarity_forms(maps: np.ndarray, grid: tuple[int, int]) -> dict[str, Form]:
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
        "precision": Form(tops, of_size, lambda total: total),
        "auc": Form(
            ranks[None],
            near[None].astype(float),
            lambda total: (total - lowest) / (inside * outside),
        ),
        "mantel": Form(standard[None], far[None], lambda total: total),
    }


def _unit(rows: np.ndarray) -> np.ndarray:
    """Return rows minus their mean, of length 1; nan where a row is constant."""
    centred = rows - rows.mean(axis=-1, keepdims=True)
    norms = np.linalg.norm(centred, axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(norms > 0.0, centred / norms, np.nan))


def _top(maps: np.ndarray, size: int) -> np.ndarray:
    """Return the share of each entry in the ``size`` largest of its row, the diagonal left out."""
    patches = maps.shape[-1]
    values = np.where(np.eye(patches, dtype=bool), -np.inf, maps)
    last = np.partition(values, patches - size, axis=-1)[..., patches - size, None]
    above, tied = values > last, values == last
    left = size - above.sum(axis=-1, keepdims=True)
    return above + tied * left / tied.sum(axis=-1, keepdims=True)


def _attention_forms(weights: np.ndarray, grid: tuple[int, int]) -> dict[str, Form]:
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
        "lift": Form(others[None], near[None].astype(float), lift),
        "distance": Form(others[None], far[None], lambda total: total / uniform, sign=-1.0),
    }
