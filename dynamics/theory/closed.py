"""What the gradient alone says of a set of order parameters: what is conserved, what repels.

Decided at states drawn at random, by the singular values of what should vanish.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics.theory.data import Array

#: Singular values below this share of the largest are rounding.
ROUNDING = 1e-10
#: Half the step of a difference of gradients, relative to the size of the state.
STEP = 1e-5


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


def growth(gradient: Callable[[Array], Array], at: Array, manifold: Array) -> float:
    """Return the fastest rate at which what lies across a manifold grows, in gradient flow.

    The largest eigenvalue of minus the Hessian, by differences of the gradient, on what is
    orthogonal to the columns of ``manifold`` (entries, dimensions); -inf if nothing is. Where it is
    greater than 0 the manifold repels.
    """
    at = np.asarray(at, float)
    basis = np.linalg.qr(manifold)[0] if manifold.size else np.zeros((at.size, 0))
    step = STEP * max(1.0, float(np.abs(at).max(initial=0.0)))
    columns = [(gradient(at + step * e) - gradient(at - step * e)) / (2.0 * step)
               for e in np.eye(at.size)]  # fmt: skip
    hessian = 0.5 * (np.array(columns) + np.array(columns).T)
    across = np.eye(at.size) - basis @ basis.T
    rest = at.size - basis.shape[1]
    if rest == 0:
        return -np.inf
    directions = np.linalg.svd(across)[0][:, :rest]
    return float(np.linalg.eigvalsh(-directions.T @ hessian @ directions).max())


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
