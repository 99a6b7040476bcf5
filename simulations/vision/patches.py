"""Images as patches, row by row, and permutations of the patches."""

from typing import Any

import numpy as np

from dynamics.core.checks import require


def fold(patches: Any, grid: tuple[int, int], patch: int) -> Any:
    """Return the images (N, height, width, channels) of patches (N, D, pixels)."""
    rows, columns = grid
    tiles = patches.reshape(-1, rows, columns, patch, patch, patches.shape[-1] // patch**2)
    moved = tiles.transpose(0, 1, 3, 2, 4, 5)
    return moved.reshape(-1, rows * patch, columns * patch, tiles.shape[-1])


def unfold(images: Any, patch: int) -> Any:
    """Return the patches (N, D, patch * patch * channels) of images (N, height, width, channels).

    NumPy or JAX; the sides of the images are multiples of ``patch``.
    """
    count, height, width, channels = images.shape
    tiles = images.reshape(count, height // patch, patch, width // patch, patch, channels)
    moved = tiles.transpose(0, 1, 3, 2, 4, 5)
    return moved.reshape(count, (height // patch) * (width // patch), patch * patch * channels)


def grid_of(shape: tuple[int, ...], patch: int) -> tuple[int, int]:
    """Return rows and columns of the grid of patches of images (N, height, width, channels).

    Raises
    ------
    ParameterError
        If the side of a patch does not divide both sides of the images.
    """
    height, width = shape[1:3]
    require(
        height % patch == 0 and width % patch == 0,
        "patch",
        patch,
        f"a divisor of both sides of the images, {height} and {width}",
    )
    return height // patch, width // patch


def shuffled(grid: tuple[int, int], rng: np.random.Generator, cell: int = 1) -> np.ndarray:
    r"""Return a permutation of the patches that moves cells of ``cell x cell`` of them as wholes.

    Entry i is the patch that comes to place i (D,): with patches of s pixels and cells of one
    patch, the grid shuffle pi_s of Section 6.

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
    places = np.arange(rows * columns).reshape(rows // cell, cell, columns // cell, cell)
    blocks = places.transpose(0, 2, 1, 3).reshape(-1, cell, cell)
    moved = blocks[rng.permutation(len(blocks))]
    whole = moved.reshape(rows // cell, columns // cell, cell, cell).transpose(0, 2, 1, 3)
    return whole.reshape(-1)


def restored(array: np.ndarray, order: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return an array with its axes of shuffled patches back in the order of the image."""
    back = np.argsort(order)
    for axis in axes:
        array = np.take(array, back, axis=axis)
    return array
