"""Stochastic gradient descent on vectors in a finite dimension, one pass over the data.

The gradient of each datum is computed from the expanded loss, without expectations. Nothing is
imported from the modules that compute the dynamics of overlaps.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.jit import kernel
from dynamics.overlaps.dense import Array, DenseModel

_FUNCTIONS = ("", "erf", "sigmoid", "tanh", "relu", "step")
_IDENTITY, _ERF, _SIGMOID, _TANH, _RELU, _STEP = range(6)
#: Steps between two tests for Ctrl-C.
_CHUNK = 2000


class Table(NamedTuple):
    """The terms of a loss as arrays.

    Attributes
    ----------
    coefficients, factors
        Coefficient of each term, and its range of factors (terms, 2).
    functions, powers, constants, products
        Function, power and constant of each factor, and its range of products (factors, 2).
    weights, members, is_datum
        Coefficient of each product, its vector and its datum or other vector, (products, 2).
    """

    coefficients: Array
    factors: np.ndarray
    functions: np.ndarray
    powers: np.ndarray
    constants: Array
    products: np.ndarray
    weights: Array
    members: np.ndarray
    is_datum: np.ndarray

    @classmethod
    def of(cls, model: DenseModel) -> "Table":
        """Return the terms of a model."""
        factors = [x for _, own in model.terms for x in own]
        products = [x for factor in factors for x in factor.products]
        return cls(
            np.array([c for c, _ in model.terms], float),
            _ranges([len(own) for _, own in model.terms]),
            np.array([_FUNCTIONS.index(x.function) for x in factors], np.int64),
            np.array([x.power for x in factors], np.int64),
            np.array([x.constant for x in factors], float),
            _ranges([len(x.products) for x in factors]),
            np.array([x.coefficient for x in products], float),
            np.array([(x.vector, x.other) for x in products], np.int64).reshape(-1, 2),
            np.array([x.is_datum for x in products], np.bool_),
        )


def _ranges(lengths: list[int]) -> np.ndarray:
    """Return the first index, and one after the last, of consecutive groups."""
    ends = np.cumsum([0, *lengths])
    return np.stack([ends[:-1], ends[1:]], axis=1)


def sampled_descent(
    model: DenseModel,
    vectors: Array,
    groups: list[np.ndarray],
    *,
    learning_rate: float,
    batch: int,
    schedule: np.ndarray,
    runs: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> Array:
    """Return overlaps along runs of one-pass SGD, (runs, records, n).

    Parameters
    ----------
    model
        The loss over vectors.
    vectors
        Initial vectors (vectors, d).
    groups
        Pairs of vectors (pairs, 2) for each overlap, the mean of their inner products.
    learning_rate, batch
        Step size of the vectors, and number of data of each step.
    schedule
        Recorded steps, increasing from 0.
    runs, seed
        Number of runs and root seed.
    progress
        Called with the fraction done after each run.

    Raises
    ------
    ParameterError
        If a run diverges.
    """
    table = Table.of(model)
    deviations = np.array([x.deviation for x in model.data])
    means = np.array([(x.coefficient, x.direction) for x in model.data]).reshape(-1, 2)
    results = np.empty((runs, len(schedule), len(groups)))
    for run, own in enumerate(np.random.SeedSequence(seed).spawn(runs)):
        rng, current, done = np.random.default_rng(own), vectors.copy(), 0
        for index, step in enumerate(schedule.tolist()):
            for _ in range(0, step - done, _CHUNK):  # Ctrl-C works between chunks
                number = min(_CHUNK, step - done)
                _descend(
                    table, current, model.trained, deviations, means,
                    (learning_rate, batch, number), rng,
                )  # fmt: skip
                done += number
            products = current @ current.T
            if not np.isfinite(products).all():
                raise ParameterError(
                    f"learning_rate = {learning_rate:g} is not allowed: a run diverges before step "
                    f"{step}; lower the learning rate or enlarge batch"
                )
            results[run, index] = [products[pairs[:, 0], pairs[:, 1]].mean() for pairs in groups]
        if progress is not None:
            progress((run + 1) / runs)
    return results


@kernel
def _descend(table, vectors, trained, deviations, means, settings, rng):
    """Take steps of one-pass SGD, in place; ``settings``: learning rate, batch and steps."""
    rate, batch, steps = settings
    count, dimension = vectors.shape
    data = np.empty((deviations.size, dimension))
    for _ in range(steps):
        change = np.zeros((count, dimension))
        for _ in range(batch):
            for t in range(deviations.size):
                for i in range(dimension):
                    data[t, i] = deviations[t] * rng.standard_normal()
                if means[t, 1] >= 0.0:
                    data[t] += means[t, 0] * vectors[int(means[t, 1])]
            by_datum = np.zeros((count, deviations.size))
            by_vector = np.zeros((count, count))
            _slopes(table, vectors @ data.T, vectors @ vectors.T, by_datum, by_vector)
            change += by_datum @ data + by_vector @ vectors
        for a in range(count):
            if trained[a]:
                vectors[a] -= rate / batch * change[a]


@kernel(inner=True)
def _slopes(table, fields, overlaps, by_datum, by_vector):
    """Add the coefficients of data and of vectors in the gradient of the loss of a datum."""
    values, slopes = np.empty(table.powers.size), np.empty(table.powers.size)
    for term in range(table.coefficients.size):
        first, last = table.factors[term]
        for f in range(first, last):
            y = table.constants[f]
            for p in range(table.products[f, 0], table.products[f, 1]):
                a, b = table.members[p]
                y += table.weights[p] * (fields[a, b] if table.is_datum[p] else overlaps[a, b])
            value, slope = _function(table.functions[f], y)
            power = table.powers[f]
            values[f] = value**power
            slopes[f] = power * value ** (power - 1) * slope
        for f in range(first, last):
            scale = table.coefficients[term] * slopes[f]
            for other in range(first, last):
                if other != f:
                    scale *= values[other]
            for p in range(table.products[f, 0], table.products[f, 1]):
                a, b = table.members[p]
                if table.is_datum[p]:
                    by_datum[a, b] += scale * table.weights[p]
                else:
                    by_vector[a, b] += scale * table.weights[p]
                    by_vector[b, a] += scale * table.weights[p]


@kernel(inner=True)
def _function(code, y):
    """Return a function and its derivative."""
    if code == _ERF:
        return math.erf(y), 2.0 / math.sqrt(math.pi) * math.exp(-y * y)
    if code == _SIGMOID:
        value = 1.0 / (1.0 + math.exp(-y))
        return value, value * (1.0 - value)
    if code == _TANH:
        value = math.tanh(y)
        return value, 1.0 - value * value
    if code == _RELU:
        return (y, 1.0) if y > 0.0 else (0.0, 0.0)
    if code == _STEP:
        return (1.0, 0.0) if y > 0.0 else (0.0, 0.0)
    return y, 1.0
