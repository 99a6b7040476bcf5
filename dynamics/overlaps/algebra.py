"""Equivariant matrices over vectors: products, and the exact motion of the Gram matrix.

An equivariant matrix has one number for each orbit of ordered pairs of vectors. The gradient of the
loss in a vector u_a is the sum over b of S_ab u_b, so that a step of gradient descent multiplies
the vectors by A = 1 - rate S and the Gram matrix becomes A G A^T, in any dimension.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dynamics.theory.data import Array

Numbers = Sequence[Any]


class Blocks(NamedTuple):
    """Irreducible blocks of a Gram matrix: positive semidefinite if and only if it is.

    Attributes
    ----------
    standard
        For each index set, the orbits (same, other) of its families, (n, n) each.
    families
        For each pair of families the orbits (same or only, other or -1) and the two numbers of
        vectors.
    """

    standard: tuple[tuple[Array, Array], ...]
    families: tuple[tuple[tuple[int, int, float, float], ...], ...]


class Algebra(NamedTuple):
    """Structure of the equivariant matrices of a theory at given sizes.

    Attributes
    ----------
    products
        Rows (result, left, right, number) of the product of two matrices.
    entry
        Number of the Gram entry of each orbit of ordered pairs.
    transposed
        Orbit of the pairs in the other order.
    diagonal
        Whether an orbit consists of pairs of twice the same vector.
    trained
        Whether the first vector is trained.
    sphere
        Whether the orbit is the diagonal of vectors on a sphere.
    number
        Number of unordered pairs of each Gram entry.
    representative
        For each varying Gram entry, an orbit of ordered pairs.
    blocks
        For the test of positive semidefiniteness.
    """

    products: tuple[tuple[int, int, int, int], ...]
    entry: tuple[int, ...]
    transposed: tuple[int, ...]
    diagonal: tuple[bool, ...]
    trained: tuple[bool, ...]
    sphere: tuple[bool, ...]
    number: tuple[int, ...]
    representative: tuple[int, ...]
    blocks: Blocks

    def matrix(self, gram: Numbers) -> list[Any]:
        """Return the Gram matrix of given entries."""
        return [gram[entry] for entry in self.entry]

    def multiply(self, left: Numbers, right: Numbers) -> list[Any]:
        """Return the product of two equivariant matrices."""
        result = [left[0] * 0] * len(self.entry)
        for i, j, k, number in self.products:
            result[i] = result[i] + number * (left[j] * right[k])
        return result

    def transpose(self, matrix: Numbers) -> list[Any]:
        """Return the transposed matrix."""
        return [matrix[k] for k in self.transposed]

    def symmetric(self, matrix: Numbers) -> list[Any]:
        """Return the sum of a matrix and its transpose."""
        return [x + y for x, y in zip(matrix, self.transpose(matrix))]

    def coefficients(self, slopes: Numbers) -> list[Any]:
        """Return S from the derivatives of the loss in the varying Gram entries."""
        zero = slopes[0] * 0
        result = []
        for entry, trained, diagonal in zip(self.entry, self.trained, self.diagonal):
            if trained and entry < len(slopes) and self.number[entry]:
                result.append(slopes[entry] * (1 + diagonal) / self.number[entry])
            else:
                result.append(zero)
        return result

    def projected(self, coefficients: Numbers, gram: Numbers) -> list[Any]:
        """Return S with the radial part of the gradient removed for vectors on a sphere."""
        if not any(self.sphere):
            return list(coefficients)
        radial = self.multiply(coefficients, gram)
        pairs = zip(coefficients, radial, self.sphere)
        return [x - r if sphere else x for x, r, sphere in pairs]

    def velocity(self, coefficients: Numbers, gram: Numbers) -> list[Any]:
        """Return S G + G S^T at the varying Gram entries."""
        return self.varying(self.symmetric(self.multiply(coefficients, gram)))

    def shrinkage(self, factor: float) -> list[float]:
        """Return the diagonal matrix that multiplies trained vectors by a factor."""
        pairs = zip(self.diagonal, self.trained)
        return [diagonal * (factor if trained else 1.0) for diagonal, trained in pairs]

    def step(
        self, coefficients: Numbers, gram: Numbers, rate: float, weight_decay: float = 0.0
    ) -> list[Any]:
        """Return the varying entries of A G A^T, with rows normalized on spheres.

        A is the identity minus rate S, and minus rate weight_decay on trained vectors.
        """
        shrunk = self.shrinkage(1.0 - rate * weight_decay)
        matrix = [diagonal - rate * x for diagonal, x in zip(shrunk, coefficients)]
        moved = self.conjugated(matrix, gram)
        return self.varying(self.conjugated(self.normalization(moved), moved))

    def conjugated(self, left: Numbers, matrix: Numbers) -> list[Any]:
        """Return the product A M A^T."""
        return self.multiply(self.multiply(left, matrix), self.transpose(left))

    def normalization(self, gram: Numbers) -> list[float]:
        """Return the diagonal matrix that divides vectors on spheres by their norms."""
        triples = zip(self.diagonal, self.sphere, gram)
        return [1.0 / square**0.5 if sphere else float(d) for d, sphere, square in triples]

    def varying(self, matrix: Numbers) -> list[Any]:
        """Return the entries of a symmetric matrix that are order parameters."""
        return [matrix[k] for k in self.representative]

    def smallest_eigenvalue(self, gram: Numbers) -> float:
        """Return the smallest eigenvalue of the irreducible blocks, relative to the largest."""
        matrix, lowest, largest = np.array(self.matrix(gram), float), np.inf, 0.0
        blocks = [matrix[same] - matrix[other] for same, other in self.blocks.standard]
        if self.blocks.families:
            rows = [[_total(matrix, *pair) for pair in row] for row in self.blocks.families]
            blocks.append(np.array(rows))
        for block in blocks:
            values = np.linalg.eigvalsh(block)
            lowest, largest = min(lowest, values[0]), max(largest, abs(values[-1]))
        return float(lowest / largest) if largest else 0.0


def _total(matrix: Array, same: int, other: int, first: float, second: float) -> float:
    """Return an entry of the block of the vectors that are constant over each set."""
    if same < 0:
        return 0.0
    if other < 0:
        return float(matrix[same]) * float(np.sqrt(first * second))
    return float(matrix[same] + (first - 1.0) * matrix[other])
