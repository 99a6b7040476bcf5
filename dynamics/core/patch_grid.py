"""Grids of patches: coordinates, neighbours, distances and random permutations."""

import numpy as np


def neighbours(grid: tuple[int, int]) -> np.ndarray:
    """Return whether patches are neighbours: bool (D, D), False on the diagonal."""
    rows, columns = coordinates(grid)
    apart = np.maximum(abs(rows[:, None] - rows), abs(columns[:, None] - columns))
    return np.asarray(apart == 1)


def distances(grid: tuple[int, int]) -> np.ndarray:
    """Return the Euclidean distances of the patches, shape (D, D), in units of patches."""
    rows, columns = coordinates(grid)
    return np.hypot(rows[:, None] - rows, columns[:, None] - columns)


def coordinates(grid: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column of every patch."""
    rows, columns = np.divmod(np.arange(grid[0] * grid[1]), grid[1])
    return rows, columns


def random_permutation(grid: tuple[int, int], null: str, rng: np.random.Generator) -> np.ndarray:
    """Return a random permutation of the patches; ``null`` is ``permutation`` or ``ring``."""
    if null == "permutation":
        return rng.permutation(grid[0] * grid[1])
    rows, columns = coordinates(grid)
    ring = np.minimum.reduce([rows, columns, grid[0] - 1 - rows, grid[1] - 1 - columns])
    permutation = np.arange(len(ring))
    for number in range(int(ring.max()) + 1):
        permutation[ring == number] = rng.permutation(permutation[ring == number])
    return permutation
