"""Projection of logged weights on the order parameters of a theory.

The entries of each tensor form a block, or the inner products of each pair of families of vectors.
The manifold of the theory is linear in them: each entry is a fixed number, or the value of an order
parameter. The projection is orthogonal, and the distance from the manifold is the remainder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from dynamics.core.errors import ParameterError
from simulations.stated.law import Numbers
from symbolic.overlaps import OverlapTheory
from symbolic.overlaps.gram import Pair
from symbolic.overlaps.language import Family
from symbolic.theory import Theory
from symbolic.theory.orbits import NONE, Position, canonical
from symbolic.theory.sets import IndexSet, Ordered
from symbolic.theory.tensors import Tensor

Array = NDArray[np.float64]
#: Smallest size of a block or an order parameter that deviations are relative to, as a share of
#: the largest one.
SHARE = 0.05
#: Largest number of times used to find a permutation, of its improvements, and of parts of a union.
_TIMES, _ROUNDS, _PARTS = 12, 50, 4


@dataclass(frozen=True)
class Block:
    """Logged entries and the manifold in them.

    Attributes
    ----------
    name
        Name of the tensor, or of the two families of vectors.
    values
        Entries at each time, (times, ...).
    base
        Fixed part of the manifold, (...).
    lift
        Coefficients of each order parameter in the entries, (n, ...).
    axes
        Name of the elements that each axis runs over; equal names are permuted together.
    """

    name: str
    values: Array
    base: Array
    lift: Array
    axes: tuple[str, ...]

    def permuted(self, axis: str, order: NDArray[np.intp]) -> Block:
        """Return the block with the elements of an axis in another order."""
        values = self.values
        for number, name in enumerate(self.axes):
            if name == axis:
                values = values.take(order, number + 1)
        return replace(self, values=values)


@dataclass(frozen=True)
class Projection:
    """Logged weights on the manifold of a theory.

    Attributes
    ----------
    names
        The n order parameters.
    states
        Their values at each time, (times, n).
    norms
        Squared norm of each order parameter in the entries that it is the coefficient of: 1 where
        it is the value of entries, (n,).
    distance
        Distance from the manifold at each time, relative to the size of its block, (times,).
    orders
        Mapping from the name of elements to their order that fits the theory, where it is not the
        logged order.
    """

    names: tuple[str, ...]
    states: Array
    norms: Array
    distance: Array
    orders: dict[str, list[int]]


def project(
    theory: Theory | OverlapTheory, values: Mapping[str, float], arrays: Mapping[str, Array]
) -> list[Projection]:
    """Return the projections of logged weights, after a search for the order of elements.

    There is more than one if parts of a union have the same size: their exchange does not change
    the distance from the manifold.

    Parameters
    ----------
    theory, values
        Theory, and its sizes and constants.
    arrays
        Mapping from tensor or vectors to values, (times, ...).

    Raises
    ------
    ParameterError
        If an array is missing or has another shape.
    """
    numbers = Numbers(values)
    if isinstance(theory, OverlapTheory):
        blocks = _gram_blocks(theory, numbers, arrays)
        slots: dict[str, tuple[int, ...]] = dict.fromkeys(_families(theory), ())
        unions: dict[str, tuple[int, ...]] = {}
    else:
        blocks = [_block(theory, numbers, tensor, arrays) for tensor in theory.parameters]
        slots, unions = _nested(theory, numbers), _unions(theory, numbers)
    orders = {}
    for axis, sizes in (slots | unions).items():
        orders[axis] = _best_order(blocks, axis, sizes)
        blocks = [block.permuted(axis, orders[axis]) for block in blocks]
    projections = []
    for exchange in product(*map(_exchanges, unions.values())):
        exchanged, order = blocks, dict(orders)
        for axis, positions in zip(unions, exchange):
            exchanged = [block.permuted(axis, positions) for block in exchanged]
            order[axis] = orders[axis][positions]
        projections.append(_projection(theory, exchanged, order))
    return projections


def _projection(
    theory: Theory | OverlapTheory, blocks: Sequence[Block], orders: Mapping[str, Any]
) -> Projection:
    """Return the projection of blocks whose elements are in the order of the theory."""
    names = [order.name for order in theory.orders]
    used = [k for k in range(len(names)) if any(block.lift[k].any() for block in blocks)]
    norms = [1.0 if isinstance(theory, OverlapTheory) else _norm(theory, blocks, k) for k in used]
    changed = {axis: x.tolist() for axis, x in orders.items() if (np.diff(x) < 0).any()}
    return Projection(
        tuple(names[k] for k in used),
        _states(blocks)[:, used],
        np.array(norms),
        _distance(blocks),
        changed,
    )


def _exchanges(sizes: tuple[int, ...]) -> list[NDArray[np.intp]]:
    """Return the positions of the elements of a union after each exchange of equal parts."""
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    arrangements = permutations(range(len(sizes))) if len(sizes) <= _PARTS else [range(len(sizes))]
    return [
        np.concatenate([parts[k] for k in arrangement])
        for arrangement in arrangements
        if all(sizes[k] == size for k, size in zip(arrangement, sizes))
    ]


def _norm(theory: Theory, blocks: Sequence[Block], k: int) -> float:
    """Return the squared norm of a direction, 1 for an order parameter that is a value of entries.

    The gradient of a theory is that in one entry. A scalar of the theory has one entry, which may
    be logged as the coefficient of a direction.
    """
    if theory.orders[k].tensor.axes:
        return 1.0
    return float(sum(np.sum(block.lift[k] ** 2) for block in blocks))


def _states(blocks: Sequence[Block]) -> Array:
    """Return the order parameters at each time, (times, n); 0 for those without entries."""
    n = len(blocks[0].lift)
    total, weight = np.zeros((len(blocks[0].values), n)), np.zeros(n)
    for block in blocks:
        lift = block.lift.reshape(n, -1)
        total += block.values.reshape(len(total), -1) @ lift.T
        weight += (lift**2).sum(axis=1)
    return np.asarray(total / np.where(weight == 0.0, 1.0, weight))


def _on_manifold(block: Block, states: Array) -> Array:
    """Return the entries of a block on the manifold, (times, ...)."""
    return np.asarray(block.base + np.tensordot(states, block.lift, 1))


def _distance(blocks: Sequence[Block]) -> Array:
    """Return the largest relative distance of a block from the manifold at each time, (times,).

    The distance is the root mean square of the entries off the manifold, relative to the largest
    root mean square of the entries on it, or to a share of that of the largest block. A block that
    vanishes on the manifold is relative to the largest block.
    """
    states = _states(blocks)
    size, off = [], []
    for block in blocks:
        on = _on_manifold(block, states)
        axes = tuple(range(1, on.ndim))
        size.append(np.sqrt(np.mean(on**2, axis=axes)).max())
        off.append(np.sqrt(np.mean((block.values - on) ** 2, axis=axes)))
    largest = max(*size, np.finfo(float).tiny)
    scales = [max(x, SHARE * largest) if x > 0.0 else largest for x in size]
    return np.asarray(np.max([x / scale for x, scale in zip(off, scales)], axis=0))


def _off(blocks: Sequence[Block]) -> float:
    """Return the sum of squares off the manifold."""
    states = _states(blocks)
    return float(sum(np.sum((x.values - _on_manifold(x, states)) ** 2) for x in blocks))


def _best_order(blocks: Sequence[Block], axis: str, sizes: tuple[int, ...]) -> NDArray[np.intp]:
    """Return the order of the elements of an axis with the smallest distance from the manifold.

    Parameters
    ----------
    blocks
        All blocks.
    axis
        Name of the elements.
    sizes
        Sizes of consecutive classes of equivalent elements; empty for vectors that are matched with
        those of another family.
    """
    number = len(blocks[0].values)
    times = np.unique(np.linspace(0, number - 1, min(number, _TIMES)).astype(int))
    blocks = [replace(block, values=block.values[times]) for block in blocks]
    number = next(x.values.shape[i + 1] for x in blocks for i, a in enumerate(x.axes) if a == axis)
    best, least = np.arange(number), _off(blocks)
    for start in (best, *_first_guesses(blocks, axis, sizes)):
        order, off = start, _off([block.permuted(axis, start) for block in blocks])
        for _ in range(_ROUNDS):
            new = _reassigned(blocks, axis, order)
            lower = _off([block.permuted(axis, new) for block in blocks])
            if not lower < off * (1.0 - 1e-9):
                break
            order, off = new, lower
        if off < least * (1.0 - 1e-9):
            best, least = order, off
    return best


def _reassigned(blocks: Sequence[Block], axis: str, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return a better order: elements are assigned to the rows of the manifold that fit best."""
    now = [block.permuted(axis, order) for block in blocks]
    states = _states(now)
    cost = np.zeros((order.size, order.size))
    for block, fitted in zip(blocks, now):
        target = _on_manifold(fitted, states)
        for number, name in enumerate(block.axes):
            if name != axis:
                continue
            rows = np.moveaxis(target, number + 1, 0).reshape(order.size, -1)
            logged = np.moveaxis(fitted.values, number + 1, 0).reshape(order.size, -1)
            cost += (rows**2).sum(axis=1)[:, None] + (logged**2).sum(axis=1) - 2.0 * rows @ logged.T
    return np.asarray(order[linear_sum_assignment(cost)[1]])


def _first_guesses(
    blocks: Sequence[Block], axis: str, sizes: tuple[int, ...]
) -> Iterator[NDArray[np.intp]]:
    """Yield orders of the elements of an axis: by association of rows, matching, or size."""
    for block in blocks:
        last = block.values[-1]
        if block.axes == (axis, axis) and sizes:
            for sign in (1.0, -1.0):
                yield _grouped(sign * (last + last.T), sizes)
        elif not sizes and axis in block.axes and len(set(block.axes)) == 2:
            match = last if block.axes[1] == axis else last.T
            for largest in (True, False):
                yield linear_sum_assignment(match, maximize=largest)[1]
    if 0 < len(sizes) <= _PARTS:
        ranked = np.argsort(_feature(blocks, axis), kind="stable")
        for arrangement in permutations(range(len(sizes))):  # each class is a range of the ranks
            ends = np.cumsum([sizes[k] for k in arrangement])
            ranges = dict(zip(arrangement, np.split(ranked, ends[:-1])))
            yield np.concatenate([ranges[k] for k in range(len(sizes))])


def _grouped(association: Array, sizes: tuple[int, ...]) -> NDArray[np.intp]:
    """Return the elements in groups: each with the elements most associated with its first one."""
    left, order = list(range(len(association))), list[int]()
    for size in sizes:
        first, *others = left
        others.sort(key=lambda other, first=first: -association[first, other])  # type: ignore[misc]
        order += [first, *others[: size - 1]]
        left = sorted(others[size - 1 :])
    return np.array(order)


def _feature(blocks: Sequence[Block], axis: str) -> Array:
    """Return one number for each element of an axis: its main difference from the others."""
    columns = []
    for block in blocks:
        last = block.values[-1]
        if block.axes == (axis, axis):
            columns.append(np.diag(last))
        columns += [
            np.moveaxis(last, number, 0).reshape(last.shape[number], -1).mean(axis=1)
            for number, name in enumerate(block.axes)
            if name == axis
        ]
    rows = np.array(columns).T
    rows = rows - rows.mean(axis=0)
    return np.asarray(np.linalg.svd(rows, full_matrices=False)[0][:, 0])


def _nested(theory: Theory, numbers: Numbers) -> dict[str, tuple[int, ...]]:
    """Return the sets inside other sets, with the size of each group."""
    sets = dict.fromkeys(x for tensor in theory.parameters for x in tensor.axes)
    return {
        where.name: (numbers.whole(part.size),) * numbers.whole(part.inside.size)
        for where in sets
        for part in where.parts
        if len(where.parts) == 1 and part.inside is not None
    }


def _unions(theory: Theory, numbers: Numbers) -> dict[str, tuple[int, ...]]:
    """Return the unions, with the sizes of their parts."""
    sets = dict.fromkeys(x for tensor in theory.parameters for x in tensor.axes)
    return {
        where.name: tuple(numbers.whole(part.count) for part in where.parts)
        for where in sets
        if len(where.parts) > 1 and not any(isinstance(part, Ordered) for part in where.parts)
    }


def _families(theory: OverlapTheory) -> list[str]:
    """Return the families of vectors over a set that another family has already."""
    families, known = [], set()
    for family in theory.vectors:
        if family.over is not None and family.over in known:
            families.append(family.name)
        known.add(family.over)
    return families


def _block(theory: Theory, numbers: Numbers, tensor: Tensor, arrays: Mapping[str, Array]) -> Block:
    """Return the block of a tensor; a scalar may be logged as the coefficient of a direction."""
    logged = array(arrays, tensor.name)
    shape = tuple(numbers.whole(axis.count) for axis in tensor.axes)
    n, own = len(theory.orders), [k for k, x in enumerate(theory.orders) if x.tensor is tensor]
    if not shape and logged.ndim > 1:
        lift = np.zeros((n, *logged.shape[1:]))
        lift[own[0]] = _direction(tensor.name, logged, arrays)
        axes = tuple(f"{tensor.name} {k}" for k in range(logged.ndim - 1))
        return Block(tensor.name, logged, np.zeros(logged.shape[1:]), lift, axes)
    _require_shape(tensor.name, logged, shape)
    base, lift = np.zeros(shape), np.zeros((n, *shape))
    number = {theory.orders[k].key: k for k in own}
    for index, spots in zip(np.ndindex(shape), product(*map(_positions(numbers), tensor.axes))):
        key = canonical(spots)
        if key in number:
            lift[(number[key], *index)] = 1.0
        else:
            base[index] = numbers.real(theory.entries.get((tensor, key), sp.Integer(0)))
    return Block(tensor.name, logged, base, lift, tuple(axis.name for axis in tensor.axes))


def _positions(numbers: Numbers) -> Any:
    """Return a function that lists the elements of an index set as positions of orbit keys."""

    def positions(where: IndexSet) -> list[Position]:
        rows: list[Position] = []
        for part in where.parts:
            size = numbers.whole(part.size)
            if part.inside is None:
                rows += [(part, i, NONE) for i in range(size)]
            else:
                outer = range(numbers.whole(part.inside.size))
                rows += [(part, g, i) for g in outer for i in range(size)]
        return rows

    return positions


def _direction(name: str, logged: Array, arrays: Mapping[str, Array]) -> Array:
    """Return the direction of a scalar order parameter.

    It is logged as ``NAME.direction``; otherwise it is the unit vector along which the run moved
    most, with the sign that makes the largest coefficient positive.
    """
    key = f"{name}.direction"
    if key in arrays:
        direction = np.asarray(arrays[key], float)
        if direction.shape != logged.shape[1:] or not np.linalg.norm(direction) > 0.0:
            raise ParameterError(
                f"{key} is not allowed: it must have the shape {logged.shape[1:]} and not be 0"
            )
        return direction
    rows = logged.reshape(len(logged), -1)
    direction = np.linalg.svd(rows, full_matrices=False)[2][0]
    coefficients = rows @ direction
    sign = np.sign(coefficients[np.argmax(np.abs(coefficients))]) or 1.0
    return np.asarray(sign * direction.reshape(logged.shape[1:]))


def _gram_blocks(
    theory: OverlapTheory, numbers: Numbers, arrays: Mapping[str, Array]
) -> list[Block]:
    """Return a block of inner products for each pair of families in the same space."""
    times = max(len(array(arrays, family.name)) for family in theory.parameters)
    vectors = {x: _vectors(x, numbers, arrays, times) for x in theory.vectors}
    number = {pair: k for k, pair in enumerate(theory.overlaps)}
    blocks = []
    for i, first in enumerate(theory.vectors):
        for second in theory.vectors[i:]:
            if first.space is not second.space:
                continue
            gram = np.einsum("tad,tbd->tab", vectors[first], vectors[second])
            base, lift = np.zeros(gram.shape[1:]), np.zeros((len(number), *gram.shape[1:]))
            for relation, where in _relations(first, second, gram.shape[1:]).items():
                pair = Pair(first, second, relation).unordered
                fixed = theory.fixed(pair)
                if fixed is None:
                    lift[number[pair]][where] = 1.0
                else:
                    base[where] = numbers.real(fixed)
            axes = (first.name, second.name)
            blocks.append(Block(".".join(axes), gram, base, lift, axes))
    return blocks


def _relations(
    first: Family, second: Family, shape: tuple[int, ...]
) -> dict[str, NDArray[np.bool_]]:
    """Return the pairs of vectors in each relation of their indices."""
    if first.over is None and first is second:
        return {"": np.ones(shape, bool)}
    if first.over is None or first.over is not second.over:
        return {"": np.ones(shape, bool)}
    same = np.asarray(np.eye(shape[0], shape[1]) == 1.0)
    return {"same": same, "other": ~same} if shape[0] > 1 else {"same": same}


def _vectors(family: Family, numbers: Numbers, arrays: Mapping[str, Array], times: int) -> Array:
    """Return the vectors of a family at each time, (times, elements, d), also of fixed ones."""
    logged = array(arrays, family.name)
    shape = (numbers.whole(family.number), numbers.whole(family.space.dimension))
    own = shape if family.over is not None else shape[1:]
    if logged.shape == own:
        logged = np.broadcast_to(logged, (times, *own))
    _require_shape(family.name, logged, own)
    return np.asarray(logged.reshape(len(logged), *shape))


def array(arrays: Mapping[str, Array], name: str) -> Array:
    """Return an array of the run, with finite numbers.

    Raises
    ------
    ParameterError
        If it is missing or not numerical.
    """
    if name not in arrays:
        raise ParameterError(
            f"{name} is missing in the run, which contains {', '.join(sorted(arrays))}: log it, or "
            "give the logged name"
        )
    value = np.asarray(arrays[name])
    if value.dtype.kind not in "fiub" or not np.isfinite(value).all():
        raise ParameterError(f"{name} is not allowed: it must be an array of finite numbers")
    return value.astype(float)


def _require_shape(name: str, logged: Array, shape: tuple[int, ...]) -> None:
    """Raise ParameterError unless an array has a shape at each time."""
    if logged.ndim == 0 or logged.shape[1:] != shape:
        raise ParameterError(
            f"{name} is not allowed: it has the shape {logged.shape} and must have "
            f"(times, {', '.join(map(str, shape))})".replace(", )", ")")
        )
