"""What is drawn in ``figures/``: labelled data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray

from dynamics.locality import similarity
from simulations.vision.measures import principal
from simulations.vision.patches import fold, unfold

if TYPE_CHECKING:
    from simulations.vision.runs import Run


def encodings(models: Mapping[str, Sequence[Run]]) -> xarray.Dataset:
    """Return cosines (model, patch, other) and components (model, patch, 2) of the first runs."""
    first = {name: some[0] for name, some in models.items()}
    tables = {"before training": next(iter(first.values())).start}
    tables |= {name: one.encodings for name, one in first.items()}
    return tables_of(tables)


def tables_of(tables: Mapping[str, np.ndarray]) -> xarray.Dataset:
    """Return cosines and principal components of encodings (D, d) by name."""
    parts = [principal(table) for table in tables.values()]
    return xarray.Dataset(
        {
            "cosine": (("model", "patch", "other"), [similarity(one) for one in tables.values()]),
            "component": (("model", "patch", "direction"), [one for one, _ in parts]),
            "share": (("model", "direction"), [shares[:2] for _, shares in parts]),
        },
        coords={"model": list(tables)},
    )


def permuted(
    vits: Mapping[int, Sequence[Run]],
    cnn: Mapping[int, np.ndarray],
    blind: float,
    pictures: np.ndarray,
) -> xarray.Dataset:
    """Return errors by cell, a crop and its permutations, and P in both orders.

    ``vits`` are runs by cell, ``cnn`` the errors (runs,) by cell, ``pictures`` test crops; 0 is
    not permuted.
    """
    moved = vits[min(cell for cell in vits if cell)][0]
    crop = max(pictures[:200], key=_detail)[..., 0]
    shown = [crop, *(_shuffled_picture(crop, cell) for cell in (2, 4))]
    one = tables_of({"image": moved.encodings, "shown": moved.encodings[moved.order]})
    return (
        one.assign(
            {
                "vit": (
                    ("vit_cell", "run"),
                    [[run.error for run in some] for some in vits.values()],
                ),
                "cnn": (("cnn_cell", "run"), list(cnn.values())),
                "picture": (("picture_cell", "row", "column"), shown),
                "place": ("patch", np.argsort(moved.order)),
            }
        )
        .assign_coords(vit_cell=list(vits), cnn_cell=list(cnn), picture_cell=[0, 2, 4])
        .assign_attrs(blind=blind)
    )


def _detail(crop: np.ndarray) -> float:
    """Return how much the four quarters of a crop differ within and among themselves."""
    quarters = unfold(crop[None], crop.shape[0] // 4)[0]
    return float(min(quarters.std(axis=1).mean(), quarters.mean(axis=1).std()))


def _shuffled_picture(crop: np.ndarray, cell: int) -> np.ndarray:
    """Return a crop with its cells in another order."""
    grid = crop.shape[0] // cell, crop.shape[1] // cell
    order = np.random.default_rng(0).permutation(grid[0] * grid[1])
    return np.asarray(fold(unfold(crop[None, ..., None], cell)[:, order], grid, cell)[0, ..., 0])


def augmented(
    models: Mapping[tuple[str, str], Sequence[Run]],
    z: Mapping[tuple[str, str], np.ndarray],
    intervals: Mapping[tuple[str, str], tuple[float, float]],
) -> xarray.Dataset:
    """Return z (case, run), its interval (case, 2), and mean cosines (case, patch, other)."""
    cosines = [
        np.mean([similarity(one.encodings) for one in some], axis=0) for some in models.values()
    ]
    return xarray.Dataset(
        {
            "z": (("case", "run"), list(z.values())),
            "interval": (("case", "end"), list(intervals.values())),
            "cosine": (("case", "patch", "other"), cosines),
            "kind": ("case", [kind for kind, _ in models]),
            "augmentation": ("case", [augmentation for _, augmentation in models]),
        }
    )


#: Steps of the running mean of training losses.
_WINDOW = 20


def compared(
    models: Mapping[str, tuple[Sequence[Run], Sequence[Run]]], cost: Mapping[str, float]
) -> xarray.Dataset:
    """Return errors (data, kind, run) and losses (data, kind, run, step), nan beyond the last."""
    from simulations.reproduction.intervals import of_mean

    longest = max(one.losses.size for pair in models.values() for some in pair for one in some)
    shortest = min(one.losses.size for pair in models.values() for some in pair for one in some)
    count, window = len(next(iter(models.values()))[0]), min(_WINDOW, shortest)
    losses = np.full((len(models), 2, count, longest - window + 1), np.nan)
    kernel = np.full(window, 1.0 / window)
    for row, pair in enumerate(models.values()):
        for column, some in enumerate(pair):
            for number, one in enumerate(some):
                smooth = np.convolve(one.losses, kernel, mode="valid")
                losses[row, column, number, : smooth.size] = smooth
    errors = np.array([[[one.error for one in some] for some in pair] for pair in models.values()])
    ends = [[of_mean(some) for some in pair] for pair in errors]
    return xarray.Dataset(
        {
            "error": (("data", "kind", "run"), errors),
            "interval": (("data", "kind", "end"), ends),
            "loss": (("data", "kind", "run", "step"), losses),
            "cost": ("data", [cost[name] for name in models]),
        },
        coords={
            "data": list(models),
            "kind": ["positional", "vanilla"],
            "step": np.arange(window, longest + 1),
        },
    )


def sets_shown(
    maps: Mapping[str, Sequence[np.ndarray]], rows: Mapping[str, np.ndarray]
) -> xarray.Dataset:
    """Return P^T P and attention of each model (patch, other), and rows that show their set."""
    data: dict[str, object] = {"rows": (("model", "run"), list(rows.values()))}
    for number, (scores, weights) in enumerate(maps.values()):
        dims = (f"patch_{number}", f"other_{number}")
        data |= {f"scores_{number}": (dims, scores), f"attention_{number}": (dims, weights)}
    return xarray.Dataset(data, coords={"model": list(maps)})
