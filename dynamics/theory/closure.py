"""Detect properties of a gradient flow from its gradient at random states.

The properties are entries that remain equal, the affine space that the flow stays in, conserved
linear and quadratic forms, and the stability of an invariant manifold. Decisions use singular
values, or differences of quantities that should vanish. The symmetry group of the theory is not
used, so that the results can be compared with it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.theory.data import Array

Integers = NDArray[np.int64]
Gradient = Callable[[Array], Array]
#: Singular values below this multiple of the largest are rounding.
ROUNDING = 1e-10
#: Slopes whose difference is below this multiple of the largest are equal.
SAME = 1e-9
#: Half the step of central differences of the gradient, relative to the size of the state.
STEP = 1e-5
#: Standard deviation of the random states around the start.
SPREAD = 0.4


@dataclass(frozen=True)
class Partition:
    """Partition of entries into blocks that remain equal up to sign.

    Attributes
    ----------
    label
        Block of each entry, shape (entries,); -1 for entries that remain 0.
    sign
        Sign of each entry relative to the value of its block; 0 for label -1.
    moves
        Whether the value of each block changes, shape (labels,).
    """

    label: Integers
    sign: Array
    moves: NDArray[np.bool_]

    def refined_by(self, orbits: Integers) -> bool:
        """Return whether all entries of an orbit have the same label, for all orbits."""
        return all(len(set(self.label[orbits == orbit].tolist())) == 1 for orbit in set(orbits))


def discover(gradient: Gradient, start: ArrayLike, *, draws: int = 4, seed: int = 0) -> Partition:
    """Return the coarsest signed partition of entries that gradient flow preserves.

    Colour refinement: initially, entries that are equal at the start form a block, and zeros have
    label -1. At random states that are constant on the blocks, blocks are split by the slopes of
    their entries, and zeros with a nonzero slope form new blocks, until ``draws`` consecutive
    states split nothing. The result may be coarser than the orbits of the symmetry group.

    Parameters
    ----------
    gradient
        Gradient of the loss in the trained entries; maps (entries,) to (entries,).
    start
        Initial values, shape (entries,).
    draws, seed
        Number of consecutive states without a split, and seed of the random states.
    """
    start = np.asarray(start, float)
    rng = np.random.default_rng(seed)
    scale = max(1.0, float(np.abs(start).max(initial=0.0)))
    label = _split(np.full(start.size, -1), np.abs(start), ROUNDING * scale)
    sign = np.where(label >= 0, np.sign(start), 0.0)
    quiet, largest = 0, np.zeros(start.size)
    while quiet < draws:
        first = [int(np.argmax(label == block)) for block in range(label.max(initial=-1) + 1)]
        values = np.abs(start)[first] + SPREAD * rng.normal(size=len(first))
        slope = gradient(sign * np.append(values, 0.0)[label])
        largest = np.maximum(largest, np.abs(slope))
        rounding = SAME * float(np.abs(slope).max(initial=0.0))
        leaves = (label < 0) & (np.abs(slope) > rounding)
        signed_slope = np.where(label < 0, np.abs(slope), sign * slope)
        finer = _split(label, signed_slope, rounding)
        sign = np.where(leaves, -np.sign(slope), sign)  # the direction of descent
        quiet = quiet + 1 if np.array_equal(finer, label) else 0
        label = finer
    moving = largest > SAME * float(largest.max(initial=0.0))
    blocks = range(label.max(initial=-1) + 1)
    return Partition(label, sign, np.array([bool(moving[label == b].any()) for b in blocks], bool))


def closure(gradient: Gradient, start: ArrayLike, *, seed: int = 0) -> Array:
    """Return the smallest affine space through a start that is invariant under gradient flow.

    Use coordinates with slopes of similar size, such as order parameters, because directions with
    slopes near rounding are not detected.

    Parameters
    ----------
    gradient, start
        Gradient of the loss, and initial values (n,).
    seed
        Seed of the random states.

    Returns
    -------
    ndarray
        Orthonormal basis (dimensions, n) of the directions.
    """
    start = np.asarray(start, float)
    rng = np.random.default_rng(seed)
    basis = np.zeros((0, start.size))
    grown = True
    while grown and len(basis) < start.size:
        grown = False
        for _ in range(2 * start.size + 4):
            slope = gradient(start + SPREAD * rng.normal(size=len(basis)) @ basis)
            rest = slope - (slope @ basis.T) @ basis
            rest = rest - (rest @ basis.T) @ basis  # orthogonalise twice for accuracy
            if np.linalg.norm(rest) > SAME * np.linalg.norm(slope):
                basis = np.vstack([basis, rest / np.linalg.norm(rest)])
                grown = True
    return basis


def linear(gradients: Array) -> Array:
    """Return the linear forms that gradient flow conserves, shape (forms, n), in echelon form.

    The form c x is conserved if c is orthogonal to every gradient. ``gradients`` has shape
    (samples, n), with more samples than n.
    """
    return _echelon(_null_space(np.asarray(gradients, float)))


def quadratic(states: Array, gradients: Array) -> Array:
    """Return the quadratic forms that gradient flow conserves, as symmetric (forms, n, n).

    Products of conserved linear forms are excluded.

    Parameters
    ----------
    states, gradients
        Random states and the gradients there, shape (samples, n), with more samples than products
        of two coordinates.
    """
    x, g = np.asarray(states, float), np.asarray(gradients, float)
    n = x.shape[1]
    i, j = np.triu_indices(n)
    forms = _null_space(x[:, i] * g[:, j] + x[:, j] * g[:, i])
    known = linear(g)
    products = [np.multiply.outer(a, b) for k, a in enumerate(known) for b in known[k:]]
    if products:
        trivial = np.array([(p + p.T)[i, j] * np.where(i == j, 0.5, 1.0) for p in products])
        basis = np.linalg.qr(trivial.T)[0]
        forms = forms - (forms @ basis) @ basis.T
        forms = _row_space(forms)
    matrices = np.zeros((len(forms), n, n))
    for matrix, entries in zip(matrices, _echelon(forms)):
        matrix[i, j] += 0.5 * entries
        matrix[j, i] += 0.5 * entries
    return matrices


def growth(gradient: Gradient, at: Array, manifold: Array) -> float:
    """Return the largest growth rate of perturbations normal to a manifold in gradient flow.

    A positive rate means that the manifold is unstable.

    Parameters
    ----------
    gradient
        Gradient of the loss.
    at
        State on the manifold, shape (entries,).
    manifold
        Columns that span the tangent space, shape (entries, dimensions).

    Returns
    -------
    float
        Largest eigenvalue of minus the Hessian on the orthogonal complement of the tangent space;
        -inf if the complement is trivial. The Hessian is computed by differences.
    """
    at = np.asarray(at, float)
    basis = np.linalg.qr(manifold)[0] if manifold.size else np.zeros((at.size, 0))
    step = STEP * max(1.0, float(np.abs(at).max(initial=0.0)))
    columns = [
        (gradient(at + step * e) - gradient(at - step * e)) / (2.0 * step) for e in np.eye(at.size)
    ]
    hessian = 0.5 * (np.array(columns) + np.array(columns).T)
    across = np.eye(at.size) - basis @ basis.T
    rest = at.size - basis.shape[1]
    if rest == 0:
        return -np.inf
    directions = np.linalg.svd(across)[0][:, :rest]
    return float(np.linalg.eigvalsh(-directions.T @ hessian @ directions).max())


def _split(label: Integers, values: Array, rounding: float) -> Integers:
    """Refine labels by values, and number them in order of appearance.

    Entries with label -1 retain it if their value is 0.
    """
    finer = np.full(label.shape, -1, np.int64)
    known = 0
    for old in np.unique(label):
        entries = np.flatnonzero(label == old)
        ordered = entries[np.argsort(values[entries], kind="stable")]
        ends = np.flatnonzero(np.diff(values[ordered]) > rounding) + 1
        for chunk in np.split(ordered, ends):
            if old >= 0 or np.abs(values[chunk]).max() > rounding:
                finer[chunk] = known
                known += 1
    seen = dict.fromkeys(int(name) for name in finer if name >= 0)
    number = {name: i for i, name in enumerate(seen)} | {-1: -1}
    return np.array([number[int(name)] for name in finer], np.int64)


def _null_space(rows: Array) -> Array:
    """Return a basis (k, n) of the null space, computed after scaling the columns."""
    scale = np.abs(rows).max(axis=0, initial=0.0)
    scale = np.where(scale > 0.0, scale, 1.0)
    _, values, directions = np.linalg.svd(rows / scale)
    values = np.pad(values, (0, rows.shape[1] - len(values)))
    small = values <= ROUNDING * max(float(values.max(initial=0.0)), 1e-300)
    return np.asarray(directions[small] / scale)


def _row_space(rows: Array) -> Array:
    """Return an orthonormal basis of the row space."""
    if not len(rows):
        return rows
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(directions[values > 1e-6 * max(1.0, float(values.max()))])


def _echelon(rows: Array) -> Array:
    """Return the reduced row echelon form, computed with pivoting."""
    left = np.array(rows, float)
    done: list[Array] = []
    for column in range(left.shape[1]):
        if not len(left):
            break
        sizes = np.abs(left[:, column])
        largest = int(sizes.argmax())
        if sizes[largest] <= 1e-7 * np.abs(left).max():
            continue
        pivot = left[largest] / left[largest, column]
        left = np.delete(left, largest, axis=0)
        left = left - np.multiply.outer(left[:, column], pivot)
        done = [row - row[column] * pivot for row in done] + [pivot]
    reduced = np.array(done).reshape(-1, rows.shape[1])
    return np.where(np.abs(reduced) < 1e-7 * np.abs(reduced).max(initial=0.0), 0.0, reduced)
