"""Dense oracle of user-defined theories: all entries and all data configurations.

It shares no code with the reduced risk: arrays have one axis for each index, all configurations of
the data are enumerated, and the gradient is computed by reverse-mode differentiation of the
expression.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.theory.configurations import (
    MOST_NUMBERS,
    Array,
    Elements,
    Values,
    configurations,
)
from dynamics.theory.symmetry import SymmetryGroup

#: Largest number of entries of an array over configurations that are given.
MOST_GIVEN = 2**24


class Step(NamedTuple):
    """An operation of an expression.

    Attributes
    ----------
    op
        Name of the operation.
    arguments
        Indices of the steps that compute its arguments.
    axes
        Free indices of the result.
    detail
        ``entry``: name of an array and its indices; ``part``: name of a set, its index and a value
        for each part; ``same`` and ``inside``: two names of sets and two indices; ``relation``: an
        array, its names of sets and its indices; ``constant`` and
        ``power``: a number; ``sum``, ``softmax`` and ``logsumexp``: an index.
    """

    op: str
    arguments: tuple[int, ...]
    axes: tuple[str, ...]
    detail: Any


class DenseModel:
    """A theory with all its entries at given sizes.

    Parameters
    ----------
    steps
        The expression of the loss; the last step is the loss of one configuration.
    sets
        Mapping from the name of an index set to its elements.
    tensors
        Mapping from the name of a parameter to the sets of its axes.
    sources
        Data sources; sources that others depend on come first.
    sizes
        Mappings from the indices of an expression to the sets that they run over.
    signed
        Mapping from the numbers of the parts whose elements may change sign: whether they are the
        coordinates of planes, and change sign by turns of a plane.
    data
        Values of each source, by configuration, if they are given; all configurations have the same
        probability. Otherwise all configurations of the sources are enumerated.

    Raises
    ------
    ParameterError
        If the data have too many configurations.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        sets: Mapping[str, Elements],
        tensors: Mapping[str, tuple[str, ...]],
        sources: Sequence[Values],
        sizes: Sequence[Mapping[str, str]],
        signed: Mapping[int, bool] | None = None,
        data: Mapping[str, Array] | None = None,
    ) -> None:
        self.steps, self.sets, self.tensors = tuple(steps), dict(sets), dict(tensors)
        self.group = SymmetryGroup(self.sets, signed or {})
        self._sizes = tuple(sizes)
        self._index_arrays: dict[Any, tuple[Any, ...]] = {}
        self._fixed: dict[int, Array] = {}
        self._moves = self._dependent()
        self._over = {source.name: source.over for source in sources}
        if data is None:
            self.weight, self.data = configurations(sources, self.sets)
        else:
            number = len(next(iter(data.values())))
            self.weight, self.data = np.full(number, 1.0 / number), dict(data)
        largest = max(prod(len(sets[s]) for s in own.values()) for own in sizes)
        if len(self.weight) * largest > (MOST_NUMBERS if data is None else MOST_GIVEN):
            raise ParameterError(
                f"{len(self.weight):.2g} configurations of the data are too many for the full "
                "model: choose smaller sizes"
            )

    @property
    def data(self) -> dict[str, Array]:
        """Values of each source, by configuration."""
        return self._data

    @data.setter
    def data(self, data: dict[str, Array]) -> None:
        self._data = data
        self._fixed.clear()

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a parameter."""
        return tuple(len(self.sets[name]) for name in self.tensors[tensor])

    def evaluate(self, tensors: Mapping[str, Array]) -> tuple[float, dict[str, Array]]:
        """Return the risk and its gradient in every entry of every parameter."""
        values = self._values(tensors)
        loss = float(np.sum(self.weight * values[-1]))
        gradient = {name: np.zeros(self.shape(name)) for name in self.tensors}
        pulls: list[Array | None] = [None] * len(self.steps)
        pulls[-1] = (
            np.broadcast_to(self.weight, values[-1].shape)
            if len(values[-1]) > 1
            else (np.array([self.weight.sum()]))
        )
        for number in reversed(range(len(self.steps))):
            pull, step = pulls[number], self.steps[number]
            if pull is None:
                continue
            if step.op == "entry" and step.detail[0] in gradient:
                name, indices = step.detail
                index_arrays = self._index(indices, step.axes, self.tensors[name])
                np.add.at(gradient[name], index_arrays, pull.sum(axis=0))
            for argument, share in zip(step.arguments, self._backward(number, values, pull)):
                if not self._moves[argument]:
                    continue
                share = _reduced(share, step, self.steps[argument], len(values[argument]))
                known = pulls[argument]
                pulls[argument] = share if known is None else known + share
        return loss, gradient

    def magnitude(self, tensors: Mapping[str, Array]) -> float:
        """Return the mean of |loss|: the scale of rounding errors if losses cancel in the risk."""
        return float(np.sum(self.weight * np.abs(self._values(tensors)[-1])))

    def _values(self, tensors: Mapping[str, Array]) -> list[Array]:
        """Return the values of all steps; axis 0 is the configuration.

        Steps that do not depend on a parameter are computed once for the same data.
        """
        values: list[Array] = []
        for number, step in enumerate(self.steps):
            value = self._fixed.get(number)
            if value is None:
                value = self._forward(step, values, tensors)
                if not self._moves[number]:
                    self._fixed[number] = value
            values.append(value)
        return values

    def _dependent(self) -> list[bool]:
        """Return whether each step depends on a parameter."""
        moves: list[bool] = []
        for step in self.steps:
            is_parameter = step.op == "entry" and step.detail[0] in self.tensors
            moves.append(is_parameter or any(moves[i] for i in step.arguments))
        return moves

    def _forward(self, step: Step, values: list[Array], tensors: Mapping[str, Array]) -> Array:
        if step.op == "constant":
            return np.full(1, float(step.detail))
        if step.op == "entry":
            name, indices = step.detail
            if name in self.tensors:
                tensor = np.asarray(tensors[name], float)
                return tensor[self._index(indices, step.axes, self.tensors[name])][None]
            index_arrays = self._index(indices, step.axes, self._over[name])
            return np.asarray(self.data[name][(slice(None), *index_arrays)])
        if step.op in ("same", "inside"):
            return self._relation(step)
        if step.op == "relation":
            table, names, indices = step.detail
            return np.asarray(table[self._index(indices, step.axes, names)][None], float)
        if step.op == "part":
            own, index, values = step.detail
            table = np.array([values[part] for part in self.sets[own].part.tolist()])
            return np.asarray(table[self._index((index,), step.axes, (own,))][None], float)
        x = [_aligned(values[i], self.steps[i].axes, step) for i in step.arguments]
        if step.op == "add":
            return np.asarray(x[0] + x[1])
        if step.op == "multiply":
            return np.asarray(x[0] * x[1])
        if step.op == "sum":
            (argument,) = step.arguments
            return np.asarray(values[argument].sum(axis=self._axis(argument, step.detail)))
        if step.op == "softmax":
            return _softmax(*np.broadcast_arrays(*x), axis=1 + step.axes.index(step.detail))
        if step.op == "logsumexp":
            (argument,) = step.arguments
            axis = self._axis(argument, step.detail)
            return np.asarray(np.logaddexp.reduce(values[argument], axis=axis))
        if step.op == "power":
            return np.asarray(x[0] ** step.detail)
        return np.asarray(_FUNCTIONS[step.op](x[0]))

    def _backward(self, number: int, values: list[Array], pull: Array) -> list[Array]:
        """Return the gradient with respect to each argument of a step, on the axes of the step."""
        step = self.steps[number]
        x = [values[i] for i in step.arguments]
        if step.op == "add":
            return [pull, pull]
        if step.op == "multiply":
            left, right = (_aligned(v, self.steps[i].axes, step) for v, i in zip(x, step.arguments))
            return [
                pull * other if self._moves[i] else pull
                for i, other in zip(step.arguments, (right, left))
            ]
        if step.op == "sum":
            axis = self._axis(step.arguments[0], step.detail)
            return [np.broadcast_to(np.expand_dims(pull, axis), (len(pull), *x[0].shape[1:]))]
        if step.op == "softmax":
            axis = 1 + step.axes.index(step.detail)
            weighted = pull * values[number]
            return [weighted - values[number] * weighted.sum(axis=axis, keepdims=True)]
        if step.op == "logsumexp":
            axis = self._axis(step.arguments[0], step.detail)
            share = np.exp(x[0] - np.expand_dims(values[number], axis))
            return [np.expand_dims(pull, axis) * share]
        if step.op == "power":
            return [pull * step.detail * x[0] ** (step.detail - 1)]
        if step.op in _SLOPES:
            return [pull * _SLOPES[step.op](x[0])]
        return []

    def _axis(self, argument: int, index: str) -> int:
        return 1 + self.steps[argument].axes.index(index)

    def _index(
        self, indices: Sequence[str], axes: Sequence[str], sets: Sequence[str]
    ) -> tuple[Any, ...]:
        """Return index arrays over the axes, for an array whose indices may repeat (cached)."""
        key = tuple(indices), tuple(axes), tuple(sets)
        if key not in self._index_arrays:
            self._index_arrays[key] = self._positions(*key)
        return self._index_arrays[key]

    def _positions(
        self, indices: Sequence[str], axes: Sequence[str], sets: Sequence[str]
    ) -> tuple[Any, ...]:
        arrays = []
        for index, name in zip(indices, sets):
            shape = [1] * len(axes)
            shape[axes.index(index)] = -1
            arrays.append(np.arange(len(self.sets[name])).reshape(shape))
        return tuple(np.broadcast_arrays(*arrays)) if arrays else ()

    def _relation(self, step: Step) -> Array:
        names, indices = step.detail
        a, b = (self.sets[name] for name in names)
        table = a.larger[:, None] == b.larger[None, :]
        if step.op == "same":
            table = np.eye(len(a), dtype=bool)
        else:
            table &= (a.own >= 0)[:, None] & (b.own < 0)[None, :]
        return np.asarray(table[self._index(indices, step.axes, names)][None], float)


def _aligned(value: Array, axes: Sequence[str], step: Step) -> Array:
    """Return an array with the axes of a step; missing axes have length 1."""
    order, index = _alignment(tuple(axes), step.axes)
    return value.transpose(order)[index] if order else value


@lru_cache(maxsize=4096)
def _alignment(axes: tuple[str, ...], target: tuple[str, ...]) -> tuple[Any, Any]:
    """Return the transposition of the axes and the index that inserts new ones, or Nones."""
    common = [axis for axis in target if axis in axes]
    if len(common) < len(axes) or target == axes:  # a sum has its own axes
        return None, None
    order = (0, *(1 + axes.index(axis) for axis in common))
    return order, (slice(None), *(slice(None) if axis in axes else None for axis in target))


def _reduced(share: Array, step: Step, argument: Step, batch: int) -> Array:
    """Sum a gradient over the axes that an argument does not have."""
    gone, order = _reduction(
        argument.axes if step.op in ("sum", "logsumexp") else step.axes, argument.axes
    )
    if gone:
        share = share.sum(axis=gone)
    if order:
        share = share.transpose(order)
    return np.asarray(share.sum(axis=0, keepdims=True) if batch == 1 and len(share) > 1 else share)


@lru_cache(maxsize=4096)
def _reduction(axes: tuple[str, ...], target: tuple[str, ...]) -> tuple[Any, Any]:
    """Return the axes to sum over, and the transposition of the others; None where not needed."""
    gone = tuple(1 + i for i, axis in enumerate(axes) if axis not in target)
    left = [axis for axis in axes if axis in target]
    order = (0, *(1 + left.index(axis) for axis in target))
    return gone, order if order != tuple(range(len(order))) else None


def _softmax(score: Array, mask: Array | None = None, *, axis: int) -> Array:
    """Return the softmax along an axis, where a mask is 1; 0 if it is 0 everywhere."""
    seen = score if mask is None else np.where(mask > 0.0, score, -np.inf)
    top = seen.max(axis=axis, keepdims=True)
    raised = np.exp(seen - np.where(np.isfinite(top), top, 0.0))
    norm = raised.sum(axis=axis, keepdims=True)
    return np.asarray(raised / np.where(norm > 0.0, norm, 1.0))


def _sigmoid(x: Array) -> Array:
    """Return 1 / (1 + e^-x) without overflow."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0.0, 1.0, small) / (1.0 + small))


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "softplus": lambda x: np.logaddexp(0.0, x),
    "modulus": np.abs,
    "relu": lambda x: np.where(x > 0.0, x, 0.0),
}
_SLOPES: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": lambda x: 1.0 / x,
    "tanh": lambda x: 1.0 / np.cosh(x) ** 2,
    "sigmoid": lambda x: _sigmoid(x) * _sigmoid(-x),
    "softplus": _sigmoid,
    "modulus": np.sign,
    "relu": lambda x: np.where(x > 0.0, 1.0, 0.0),
}
