"""Gradient descent on vectors in a finite dimension, to check the dynamics of overlaps.

The gradient is computed from the vectors alone: each term of the loss is integrated over the span
of its own vectors, and differentiated in the vectors, without Gram matrix, Stein's identity,
orbits or closed forms. Nothing is imported from the other modules of this package.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit, softmax

Array = NDArray[np.float64]
#: Functions with their derivatives.
_FUNCTIONS: Mapping[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "": (lambda y: y, np.ones_like),
    "erf": (erf, lambda y: 2.0 / np.sqrt(np.pi) * np.exp(-y * y)),
    "sigmoid": (expit, lambda y: expit(y) * expit(-y)),
    "tanh": (np.tanh, lambda y: 1.0 - np.tanh(y) ** 2),
    "relu": (lambda y: np.maximum(y, 0.0), lambda y: (y > 0.0).astype(float)),
    "step": (lambda y: (y > 0.0).astype(float), np.zeros_like),
}
#: Step and end of the rule in each dimension.
_STEP, _END = 0.25, 8.5
#: Step for scores of softmax of variance at most 1, largest number of nodes, and least weight.
_TOKEN_STEP, _MOST_NODES, _LEAST_WEIGHT = 0.5, 4 * 10**6, 1e-18
#: Step and weights of a central difference of order six.
_DIFFERENCE, _STENCIL = 5e-3, ((1, 0.75), (2, -0.15), (3, 1.0 / 60.0))


class DenseProduct(NamedTuple):
    """Coefficient times the inner product of a vector with a datum or another vector."""

    coefficient: float
    vector: int
    other: int
    is_datum: bool


class DenseFactor(NamedTuple):
    """A power of a function of a constant plus inner products.

    For a weight of a softmax, ``scores`` are the scores of all tokens.
    """

    function: str
    power: int
    constant: float
    products: tuple[DenseProduct, ...]
    scores: "tuple[DenseFactor, ...]" = ()


class DenseDatum(NamedTuple):
    """Standard deviation of a datum, and its mean: coefficient times a vector (-1: none)."""

    deviation: float
    coefficient: float
    direction: int


class DenseModel(NamedTuple):
    """A loss over vectors in a finite dimension.

    Attributes
    ----------
    terms
        Coefficients and factors of the expanded loss.
    data
        The data.
    trained, sphere
        Whether each vector is trained, and whether it has norm 1.
    """

    terms: tuple[tuple[float, tuple[DenseFactor, ...]], ...]
    data: tuple[DenseDatum, ...]
    trained: NDArray[np.bool_]
    sphere: NDArray[np.bool_]

    def loss_and_gradient(self, vectors: Array) -> tuple[float, Array]:
        """Return the population loss and its gradient in all vectors, (n, d)."""
        loss, gradient = 0.0, np.zeros_like(vectors)
        for coefficient, factors in self.terms:
            groups = [self._mean(group, vectors) for group in _independent(factors)]
            values = [value for value, _ in groups]
            loss += coefficient * float(np.prod(values))
            for k, (_, slope) in enumerate(groups):
                rest = float(np.prod(values[:k] + values[k + 1 :]))
                gradient += coefficient * rest * slope
        return loss, gradient

    def step(
        self,
        vectors: Array,
        rate: float,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        velocity: Array | None = None,
    ) -> tuple[float, Array, Array]:
        """Return the loss, the vectors after a step (normalized on spheres) and the velocity.

        The gradient of vectors on a sphere is projected; without momentum it is the velocity.
        """
        loss, gradient = self.loss_and_gradient(vectors)
        gradient[~self.trained] = 0.0
        radial = np.sum(gradient * vectors, axis=1, keepdims=True)
        gradient -= np.where(self.sphere[:, None], radial * vectors, 0.0)
        velocity = gradient if velocity is None else momentum * velocity + gradient
        shrunk = np.where(self.trained[:, None], (1.0 - rate * weight_decay) * vectors, vectors)
        moved = shrunk - rate * velocity
        norms = np.linalg.norm(moved, axis=1, keepdims=True)
        return loss, np.where(self.sphere[:, None], moved / norms, moved), velocity

    def _mean(self, factors: tuple[DenseFactor, ...], vectors: Array) -> tuple[float, Array]:
        """Return the mean of a product of factors, and its gradient in all vectors."""
        if any(factor.scores for factor in factors):
            return self._softmax(factors, vectors)
        mean, basis, nodes, points, weights = self._rule(factors, vectors)
        if any(factor.function == "step" for factor in factors):
            return mean, self._difference(factors, vectors)
        powers = [_FUNCTIONS[x.function][0](y) ** x.power for x, y in zip(factors, points)]
        slopes = []
        for i, factor in enumerate(factors):
            function, slope = _FUNCTIONS[factor.function]
            own = factor.power * function(points[i]) ** (factor.power - 1) * slope(points[i])
            slopes.append(np.prod(powers[:i] + powers[i + 1 :], axis=0) * own * weights)
        return mean, self._gradient(factors, slopes, nodes, basis, vectors)

    def _softmax(self, factors: tuple[DenseFactor, ...], vectors: Array) -> tuple[float, Array]:
        """Return the mean of weights of a softmax times powers of fields, and its gradient.

        A tensor rule has a dimension for the score of each token; the fields given the scores are
        normal, and their powers are integrated exactly.
        """
        scores = next(x.scores for x in factors if x.scores)
        fields = tuple(x for x in factors if not x.scores)
        counts = [sum(x.power for x in factors if x.scores and x[2:4] == s[2:4]) for s in scores]
        used = (*scores, *fields)
        forms, means = self._forms(used, vectors)
        deviations = np.linalg.norm(forms[: len(scores)], axis=1)
        lines = forms[: len(scores)] / np.where(deviations > 0.0, deviations, 1.0)[:, None]
        rest = forms[len(scores) :] - forms[len(scores) :] @ lines.T @ lines
        basis = np.vstack([lines, _basis(rest)]) if fields else lines
        degree = sum(x.power for x in fields)
        nodes, weights = _token_rule(deviations, len(basis) - len(scores), degree)
        points = means[:, None] + forms @ basis.T @ nodes
        attention = softmax(points[: len(scores)], axis=0)
        weighted = np.prod([a**n for a, n in zip(attention, counts)], axis=0) * weights
        powers = [y**x.power for x, y in zip(fields, points[len(scores) :])]
        values = np.prod(powers, axis=0) * weighted
        slopes = [values * (n - sum(counts) * a) for a, n in zip(attention, counts)]
        for i, (x, y) in enumerate(zip(fields, points[len(scores) :])):
            others = np.prod(powers[:i] + powers[i + 1 :], axis=0)
            slopes.append(others * weighted * x.power * y ** (x.power - 1))
        return float(np.sum(values)), self._gradient(used, slopes, nodes, basis, vectors)

    def _gradient(
        self,
        factors: tuple[DenseFactor, ...],
        slopes: list[Array],
        nodes: Array,
        basis: Array,
        vectors: Array,
    ) -> Array:
        """Return the gradient in all vectors from weighted derivatives in arguments at nodes."""
        gradient = np.zeros_like(vectors)
        for factor, slope in zip(factors, slopes):
            total = float(np.sum(slope))
            direction = ((nodes @ slope) @ basis).reshape(len(self.data), vectors.shape[1])
            for x in factor.products:
                if x.is_datum:
                    datum = self.data[x.other]
                    moved = datum.deviation * direction[x.other]
                    centre = total * self._centre(datum, vectors)
                    gradient[x.vector] += x.coefficient * (moved + centre)
                else:
                    gradient[x.vector] += x.coefficient * total * vectors[x.other]
                    gradient[x.other] += x.coefficient * total * vectors[x.vector]
        return gradient

    def _difference(self, factors: tuple[DenseFactor, ...], vectors: Array) -> Array:
        """Return the gradient of the mean of a product in all vectors by central differences."""
        gradient = np.zeros_like(vectors)
        used = {x.vector for factor in factors for x in factor.products}
        used |= {x.other for factor in factors for x in factor.products if not x.is_datum}
        for index in product(used, range(vectors.shape[1])):
            for number, weight in _STENCIL:
                for sign in (1.0, -1.0):
                    moved = vectors.copy()
                    moved[index] += sign * number * _DIFFERENCE
                    gradient[index] += sign * weight * self._rule(factors, moved)[0]
        return gradient / _DIFFERENCE

    def _rule(
        self, factors: tuple[DenseFactor, ...], vectors: Array
    ) -> tuple[float, Array, Array, Array, Array]:
        """Return the mean of a product; basis, nodes, arguments at the nodes, and weights."""
        forms, means = self._forms(factors, vectors)
        basis = _basis(forms)
        coordinates = forms @ basis.T
        kinks = coordinates[[factor.function in ("relu", "step") for factor in factors]]
        nodes, weights = _wedges(kinks) if kinks.size else _nodes(len(basis))
        points = means[:, None] + coordinates @ nodes
        powers = [_FUNCTIONS[x.function][0](y) ** x.power for x, y in zip(factors, points)]
        return float(weights @ np.prod(powers, axis=0)), basis, nodes, points, weights

    def _forms(self, factors: tuple[DenseFactor, ...], vectors: Array) -> tuple[Array, Array]:
        """Return arguments as linear forms (n, data x d) of standard normal data, and means."""
        dimension = vectors.shape[1]
        forms = np.zeros((len(factors), len(self.data), dimension))
        means = np.array([factor.constant for factor in factors])
        for i, factor in enumerate(factors):
            for x in factor.products:
                if x.is_datum:
                    datum = self.data[x.other]
                    forms[i, x.other] += x.coefficient * datum.deviation * vectors[x.vector]
                    means[i] += x.coefficient * vectors[x.vector] @ self._centre(datum, vectors)
                else:
                    means[i] += x.coefficient * vectors[x.vector] @ vectors[x.other]
        return forms.reshape(len(factors), -1), means

    @staticmethod
    def _centre(datum: DenseDatum, vectors: Array) -> Array:
        """Return the mean of a datum, (d,)."""
        if datum.direction < 0:
            return np.zeros(vectors.shape[1])
        return datum.coefficient * vectors[datum.direction]


def _independent(factors: tuple[DenseFactor, ...]) -> list[tuple[DenseFactor, ...]]:
    """Return the factors in groups that share no datum."""
    groups: list[tuple[set[int], tuple[DenseFactor, ...]]] = []
    for factor in factors:
        products = (x for own in (factor, *factor.scores) for x in own.products)
        data = {x.other for x in products if x.is_datum}
        sharing = [group for group in groups if group[0] & data]
        groups = [group for group in groups if not group[0] & data]
        joined = tuple(x for _, members in sharing for x in members)
        groups.append((data.union(*(x for x, _ in sharing)), (*joined, factor)))
    return [members for _, members in groups]


def _basis(forms: Array) -> Array:
    """Return an orthonormal basis of the span of the rows, (rank, columns)."""
    _, values, rows = np.linalg.svd(forms, full_matrices=False)
    return rows[values > 1e-13 * max(1.0, float(values.max(initial=0.0)))]


@cache
def _nodes(rank: int) -> tuple[Array, Array]:
    """Return nodes (rank, n) and weights (n,) of a rule for the standard normal distribution."""
    line = np.arange(-_END, _END + _STEP / 2, _STEP)
    weight = _STEP * np.exp(-(line**2) / 2.0) / np.sqrt(2.0 * np.pi)
    nodes = np.array(list(product(line, repeat=rank))).T.reshape(rank, line.size**rank)
    weights = np.ones(1)
    for _ in range(rank):
        weights = np.outer(weights, weight).ravel()
    return nodes, weights


def _token_rule(deviations: Array, fields: int, degree: int) -> tuple[Array, Array]:
    """Return nodes (rank, n) and weights (n,): trapezoidal for scores, Gauss-Hermite for fields.

    Raises
    ------
    ValueError
        If there are too many nodes.
    """
    rules = []
    for deviation in deviations:
        step = min(_TOKEN_STEP, _TOKEN_STEP / max(deviation, 1e-300))
        line = step * np.arange(-np.ceil(_END / step), np.ceil(_END / step) + 1)
        rules.append((line, step * np.exp(-(line**2) / 2.0) / np.sqrt(2.0 * np.pi)))
    x, w = np.polynomial.hermite_e.hermegauss(degree // 2 + 1)
    rules += [(x, w / np.sqrt(2.0 * np.pi))] * fields
    if np.prod([float(line.size) for line, _ in rules]) > _MOST_NODES:
        raise ValueError(
            f"softmax of {len(deviations)} tokens with standard deviations of scores up to "
            f"{np.max(deviations):.3g} needs too many nodes for the comparison with vectors; give "
            "smaller constants in defaults"
        )
    nodes = np.array(np.meshgrid(*(line for line, _ in rules), indexing="ij"))
    weights = np.ones(1)
    for _, weight in rules:
        weights = np.outer(weights, weight).ravel()
    significant = weights > _LEAST_WEIGHT
    return nodes.reshape(len(rules), -1)[:, significant], weights[significant]


def _wedges(kinks: Array) -> tuple[Array, Array]:
    """Return nodes (rank, n) and weights of a rule for polynomials in each sector of a plane.

    Parameters
    ----------
    kinks
        Linear forms (forms, rank); the sectors end where one of them is 0.

    Raises
    ------
    ValueError
        If the rank is larger than 2.
    """
    rank = kinks.shape[1]
    if rank > 2:
        raise ValueError("relu and step are compared with vectors in two directions")
    x, w = np.polynomial.legendre.leggauss(60)
    radius, weight = _END * (x + 1.0) / 2.0, _END / 2.0 * w
    weight = weight * np.exp(-(radius**2) / 2.0)
    if rank == 1:
        return np.array([[*radius, *-radius]]), np.tile(weight, 2) / np.sqrt(2.0 * np.pi)
    angles = np.arctan2(-kinks[:, 0], kinks[:, 1]) % np.pi
    edges = np.sort([*angles, *(angles + np.pi)])
    y, v = np.polynomial.legendre.leggauss(24)
    middles, halves = (edges + np.roll(edges, -1)) / 2.0, (np.roll(edges, -1) - edges) / 2.0
    middles[-1], halves[-1] = middles[-1] + np.pi, halves[-1] + np.pi
    theta, turn = (middles[:, None] + halves[:, None] * y).ravel(), (halves[:, None] * v).ravel()
    directions = np.array([np.cos(theta), np.sin(theta)])
    nodes = (directions[:, :, None] * radius).reshape(2, -1)
    return nodes, np.outer(turn, weight * radius).ravel() / (2.0 * np.pi)
