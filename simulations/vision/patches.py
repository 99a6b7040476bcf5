"""Divide images into patches, row by row, and permute the patches."""

from typing import Any

import numpy as np

from dynamics.core.checks import require


def fold(patches: Any, grid: tuple[int, int], patch: int) -> Any:
    """Return the images (N, height, width, channels) of patches (N, D, pixels)."""
    rows, columns = grid
    tiles = patches.reshape(-1, rows, columns, patch, patch, patches.shape[-1] // patch**2)
    return tiles.transpose(0, 1, 3, 2, 4, 5).reshape(
        -1, rows * patch, columns * patch, tiles.shape[-1]
    )


def unfold(images: Any, patch: int) -> Any:
    """Return the patches (N, D, patch * patch * channels) of images (N, height, width, channels).

    The images are NumPy or JAX arrays; their sides are multiples of ``patch``.
    """
    count, height, width, channels = images.shape
    rows, columns = height // patch, width // patch
    tiles = images.reshape(count, rows, patch, columns, patch, channels)
    return tiles.transpose(0, 1, 3, 2, 4, 5).reshape(
        count, rows * columns, patch * patch * channels
    )


def grid_of(shape: tuple[int, ...], patch: int) -> tuple[int, int]:
    """Return rows and columns of the grid of patches of images (N, height, width, channels).

    Raises
    ------
    ParameterError
        If the side length of a patch does not divide both sides of the images.
    """
    height, width = shape[1:3]
    require(
        height % patch == 0 and width % patch == 0,
        "patch",
        patch,
        f"a divisor of both sides of the images, {height} and {width}",
    )
    return height // patch, width // patch


def cell_permutation(grid: tuple[int, int], rng: np.random.Generator, cell: int = 1) -> np.ndarray:
    """Return a random permutation that moves whole cells of ``cell x cell`` patches.

    Entry i is the patch shown at position i (D,). With patches of s pixels and cells of one patch,
    this is the grid shuffle pi_s of Section 6.

    Raises
    ------
    ParameterError
        If ``cell`` does not divide both sides of the grid.
    """
    rows, columns = grid
    require(
        cell >= 1 and rows % cell == 0 and columns % cell == 0,
        "cell",
        cell,
        f"a divisor of both sides of the grid, {rows} and {columns}",
    )
    indices = np.arange(rows * columns).reshape(1, rows, columns, 1)
    cells = unfold(indices, cell)[0]
    permuted = cells[rng.permutation(len(cells))]
    return np.asarray(fold(permuted[None], (rows // cell, columns // cell), cell).ravel())


def inverse_permuted(array: np.ndarray, order: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return an array whose axes of permuted patches are in the order of the image again."""
    inverse = np.argsort(order)
    for axis in axes:
        array = np.take(array, inverse, axis=axis)
    return array
