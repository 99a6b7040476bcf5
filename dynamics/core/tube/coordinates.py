r"""Coordinates of a part of a tube, in which the Jacobian is nearly diagonal.

In the metric of a gradient flow the Jacobian is symmetric, and its eigenvectors are orthogonal.
Other systems may turn: a pair of complex eigenvalues :math:`a\pm iw` gives a block
:math:`\begin{pmatrix}a&w\\-w&a\end{pmatrix}`, in which the bound of each coordinate alone would
grow like :math:`e^{(a+w)t}`. The Euclidean norm of the block grows like :math:`e^{at}`: for
:math:`z'=Mz+r`, :math:`D^+|z|\le\mu|z|+|r|` with the largest eigenvalue :math:`\mu` of
:math:`(M+M^T)/2`. Hence a pair is bounded by its norm, and couples to other blocks by the spectral
norms of their blocks of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

#: Pairs and single coordinates that are bounded together.
Blocks = tuple[tuple[int, ...], ...]
#: Asymmetry of a Jacobian, relative to its size, up to which it counts as symmetric.
_SYMMETRIC = 1e-6
#: Condition number of eigenvectors above which orthogonal coordinates are used instead.
_INDEPENDENT = 1e4


class Frame(NamedTuple):
    """Coordinates z = B^-1 e of a distance e, with upper bounds of their norm in each block.

    ``blocks`` is empty if each coordinate is bounded alone.
    """

    basis: np.ndarray  # (n, n)
    radius: list[float]  # one for each block
    blocks: Blocks = ()

    @property
    def all_blocks(self) -> Blocks:
        """The blocks, written out."""
        return self.blocks or tuple((i,) for i in range(len(self.basis)))

    def reach(self) -> list[float]:
        """Return bounds of |e_i|."""
        lengths = [np.linalg.norm(self.basis[:, block], axis=1) for block in self.all_blocks]
        return times(np.array(lengths).T, self.radius)

    def by_coordinate(self, values: list[float]) -> list[float]:
        """Return the values of the blocks, one for each coordinate."""
        owner = {i: value for block, value in zip(self.all_blocks, values) for i in block}
        return [owner[i] for i in range(len(self.basis))]


def coordinates(jacobian: arb_mat, metric: np.ndarray, turns: bool) -> tuple[np.ndarray, Blocks]:
    """Return coordinates as columns, rounded to six digits, and their blocks.

    Parameters
    ----------
    jacobian
        Jacobian (n, n) in balls; only the middles matter.
    metric
        Diagonal metric (n,) in which a symmetric Jacobian has orthogonal eigenvectors.
    turns
        Whether pairs may be bounded together; otherwise the symmetric part decides.
    """
    n, root = metric.size, np.sqrt(metric)
    middle = np.array([[float(jacobian[i, j].mid()) for j in range(n)] for i in range(n)])
    scaled = root[:, None] * middle / root
    blocks: Blocks = ()
    _, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    if turns and np.max(np.abs(scaled - scaled.T)) > _SYMMETRIC * np.max(np.abs(scaled)):
        chosen, turning = _eigenvectors(scaled)
        if np.linalg.cond(chosen) < _INDEPENDENT:
            vectors, blocks = chosen, turning
    return np.array([[float(f"{x:.6g}") for x in row] for row in vectors / root[:, None]]), blocks


def _eigenvectors(matrix: np.ndarray) -> tuple[np.ndarray, Blocks]:
    """Return real eigenvectors as columns: two, orthogonal, for a pair of complex eigenvalues."""
    values, vectors = np.linalg.eig(matrix)
    columns: list[np.ndarray] = []
    blocks: list[tuple[int, ...]] = []
    for value, vector in zip(values, vectors.T):
        if value.imag == 0.0:
            blocks.append((len(columns),))
            columns.append(vector.real / np.linalg.norm(vector.real))
        elif value.imag > 0.0:
            turned = vector * np.exp(-0.5j * np.angle(np.sum(vector**2)))
            blocks.append((len(columns), len(columns) + 1))
            columns += [part / np.linalg.norm(turned.real) for part in (turned.real, turned.imag)]
    return np.array(columns).T, tuple(blocks)


def norm(matrix: list[list[arb]]) -> arb:
    """Return an upper bound of the spectral norm of a block, of at most two rows and columns."""
    if len(matrix) == len(matrix[0]) == 1:
        return abs(matrix[0][0])
    if len(matrix) == 1 or len(matrix[0]) == 1:
        return _square_sum(x for row in matrix for x in row).sqrt()
    a, d = (_square_sum(column) for column in zip(*matrix))
    return _largest(a, d, sum((x * y for x, y in matrix), arb(0))).sqrt()


def _square_sum(values: Iterable[arb]) -> arb:
    """Return an upper bound of a sum of squares, at least 0."""
    return sum((abs(x).upper() ** 2 for x in values), arb(0))


def coupled(matrix: list[list[arb]], blocks: Blocks) -> list[list[arb]]:
    """Return the growth rates of blocks on the diagonal, and the norms of their coupling off it."""
    return [
        [
            _growth_rate(block(matrix, rows, rows))
            if rows == columns
            else norm(block(matrix, rows, columns))
            for columns in blocks
        ]
        for rows in blocks
    ]


def _growth_rate(matrix: list[list[arb]]) -> arb:
    """Return the rate of a block: its entry, or the largest eigenvalue of its symmetric part."""
    if len(matrix) == 1:
        return matrix[0][0]
    (a, b), (c, d) = matrix
    return _largest(a, d, (b + c) / 2)


def _largest(a: arb, d: arb, b: arb) -> arb:
    """Return an upper bound of the larger eigenvalue of the symmetric matrix (a, b; b, d)."""
    return (a + d) / 2 + _square_sum([(a - d) / 2, b]).sqrt()


def block(
    matrix: list[list[arb]], rows: tuple[int, ...], columns: tuple[int, ...]
) -> list[list[arb]]:
    """Return the entries of a matrix in some rows and columns."""
    return [[matrix[i][j] for j in columns] for i in rows]


def lengths(values: list[arb], blocks: Blocks) -> list[arb]:
    """Return the Euclidean norm of the values of each block."""
    return [norm([[values[i]] for i in each]) for each in blocks]


def times(matrix: np.ndarray, vector: list[float]) -> list[float]:
    """Return the product of a nonnegative matrix and vector, rounded up."""
    return [float(x) for x in (matrix @ np.array(vector)) * (1.0 + 1e-14) + 1e-300]
