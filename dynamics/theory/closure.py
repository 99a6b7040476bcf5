"""What the gradient alone says: which entries stay equal, what closes, is conserved, repels.

Decided at states drawn at random, by the singular values, or the differences, of what should
vanish. Nothing here knows of a group: it is held against the one that was stated.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.theory.data import Array

Integers = NDArray[np.int64]
Gradient = Callable[[Array], Array]
#: Singular values below this share of the largest are rounding.
ROUNDING = 1e-10
#: Slopes of two entries closer than this share of the largest are the same.
SAME = 1e-9
#: Half the step of a difference of gradients, relative to the size of the state.
STEP = 1e-5
#: How far from the start states are drawn.
SPREAD = 0.4


@dataclass(frozen=True)
class Partition:
    """Entries that stay equal, up to sign: ``label`` and ``sign`` (entries,).

    Entries of one label have one value, times their sign; ``moves`` (labels,) says which of these
    values change at all. Label -1: entries that stay at 0, whose sign is 0.
    """

    label: Integers
    sign: Array
    moves: NDArray[np.bool_]

    def refined_by(self, orbits: Integers) -> bool:
        """Tell whether entries of one orbit, (entries,) numbers, always have one label."""
        return all(len(set(self.label[orbits == orbit].tolist())) == 1 for orbit in set(orbits))


def discover(gradient: Gradient, start: ArrayLike, *, draws: int = 4, seed: int = 0) -> Partition:
    """Return the coarsest partition of entries, with signs, that gradient flow from a start keeps.

    Entries that are equal at the start are one block, and those that are 0 are 0. At states drawn
    on the blocks, each is split by the slopes of its entries and those of the zeros that are pulled
    away leave them, until ``draws`` states in a row split nothing. Colour refinement: no group is
    asked for, so that what is found may be coarser than the orbits of the one that was stated.

    Parameters
    ----------
    gradient
        Of the loss in the entries that are trained, (entries,).
    start
        Where they begin, (entries,).
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
        turned = np.where(label < 0, np.abs(slope), sign * slope)
        finer = _split(label, turned, rounding)
        sign = np.where(leaves, -np.sign(slope), sign)  # where descent takes it
        quiet = quiet + 1 if np.array_equal(finer, label) else 0
        label = finer
    moving = largest > SAME * float(largest.max(initial=0.0))
    blocks = range(label.max(initial=-1) + 1)
    return Partition(label, sign, np.array([bool(moving[label == b].any()) for b in blocks], bool))


def closure(gradient: Gradient, start: ArrayLike, *, seed: int = 0) -> Array:
    """Return a basis of the smallest affine space through a start that gradient flow stays in.

    (dimensions, n), orthonormal; what is added to the start. Use coordinates whose slopes are of
    one size, such as order parameters: what grows too little to be told from rounding is lost.
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
            rest = rest - (rest @ basis.T) @ basis  # once more, for the digits
            if np.linalg.norm(rest) > SAME * np.linalg.norm(slope):
                basis = np.vstack([basis, rest / np.linalg.norm(rest)])
                grown = True
    return basis


def linear(gradients: Array) -> Array:
    """Return the linear forms that gradient flow conserves, (forms, n).

    ``gradients`` (samples, n), more samples than n: c x is conserved if c vanishes on every one. A
    form has one entry 1 that the others lack.
    """
    return _echelon(_null_space(np.asarray(gradients, float)))


def quadratic(states: Array, gradients: Array) -> Array:
    """Return the quadratic forms that gradient flow conserves, (forms, n, n), symmetric.

    Those that are functions of a conserved linear form are left out. Needs more samples than there
    are products of two order parameters.
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
    found = np.zeros((len(forms), n, n))
    for form, entries in zip(found, _echelon(forms)):
        form[i, j] += 0.5 * entries
        form[j, i] += 0.5 * entries
    return found


def growth(gradient: Gradient, at: Array, manifold: Array) -> float:
    """Return the fastest rate at which what lies across a manifold grows, in gradient flow.

    The largest eigenvalue of minus the Hessian, by differences of the gradient, on what is
    orthogonal to the columns of ``manifold`` (entries, dimensions); -inf if nothing is. Where it is
    greater than 0 the manifold repels.
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
    """Return labels that differ where labels or values do, in order of appearance.

    What is labelled -1 stays so where its value is 0.
    """
    finer = np.full(label.shape, -1, np.int64)
    known = 0
    for old in np.unique(label):
        members = np.flatnonzero(label == old)
        ordered = members[np.argsort(values[members], kind="stable")]
        ends = np.flatnonzero(np.diff(values[ordered]) > rounding) + 1
        for chunk in np.split(ordered, ends):
            if old >= 0 or np.abs(values[chunk]).max() > rounding:
                finer[chunk] = known
                known += 1
    seen = dict.fromkeys(int(name) for name in finer if name >= 0)
    place = {name: i for i, name in enumerate(seen)} | {-1: -1}
    return np.array([place[int(name)] for name in finer], np.int64)


def _null_space(rows: Array) -> Array:
    """Return what vanishes on every row, (k, n), columns scaled to their largest entry."""
    scale = np.abs(rows).max(axis=0, initial=0.0)
    scale = np.where(scale > 0.0, scale, 1.0)
    _, values, directions = np.linalg.svd(rows / scale)
    values = np.pad(values, (0, rows.shape[1] - len(values)))
    small = values <= ROUNDING * max(float(values.max(initial=0.0)), 1e-300)
    return np.asarray(directions[small] / scale)


def _row_space(rows: Array) -> Array:
    if not len(rows):
        return rows
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(directions[values > 1e-6 * max(1.0, float(values.max()))])


def _echelon(rows: Array) -> Array:
    """Return the same space by rows each of which has a 1 where the others have 0."""
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
    found = np.array(done).reshape(-1, rows.shape[1])
    return np.where(np.abs(found) < 1e-7 * np.abs(found).max(initial=0.0), 0.0, found)
