"""Export of theories on ordered positions to JAX: arrays over positions and blocks.

The module evaluates the loss of one data orbit with array operations, and maps it over all data
orbits. Its gradient is the derivative by JAX, divided by the numbers of entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import sympy as sp

from symbolic.theory.expression import Node
from symbolic.theory.loop_tables import (
    hidden_rows,
    layout,
    pattern_code,
    relation_key,
)
from symbolic.theory.orbit_data import identifier
from symbolic.theory.sets import IndexSet, Ordered
from symbolic.theory.tensors import Tensor
from symbolic.theory.words import Words

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FUNCTION = {"exp": "_np.exp", "log": "_np.log", "tanh": "_np.tanh", "modulus": "_np.abs"}
FUNCTIONS = '''

def loss(x, /, **values):
    """Return the reduced risk at the order parameters x (n,)."""
    return _risk(_np.asarray(x, float), **values)


def gradient(x, /, **values):
    """Return the derivative in one entry of each order parameter, (n,)."""
    slopes = _jax.grad(lambda y: _risk(y, **values))(_np.asarray(x, float))
    return slopes / _counts(**values)


def _risk({arguments}):
    weight, blocks = _arguments({rows}, {sets})
    blocks = _np.array(blocks, int).reshape(len(weight), -1)
    return _np.sum(_np.array(weight) * _losses(_x, blocks, {values}))


def _each(_x, blocks, {values}):
    """Return the loss of each data orbit."""
    return _jax.lax.map(lambda row: _loss(_x, row, {values}), blocks, batch_size=256)


#: Compiled once for each size and constant.
_losses = _jax.jit(_each, static_argnums={static})


def _counts({named}):
    return _np.maximum(_np.array([{counts}], float), 1.0)


def _loss(_x, _row, {values}):
{body}

def _along(array, axis, axes):
    """Return an array (n,) along one of several axes."""
    return array.reshape([-1 if i == axis else 1 for i in range(axes)])


def _to(array, own, axes):
    """Return an array with the axes ``own`` at their places among others."""
    array = _np.einsum(f"{{own}}->{{''.join(i for i in axes if i in own)}}", array)
    return _np.expand_dims(array, [i for i, axis in enumerate(axes) if axis not in own])


def _multiplicity(elements, n, m, size, others):
    """Return the number of elements that an element stands for, given those of other axes."""
    own, *rest = (_along(elements, i, others + 1) for i in range(others, -1, -1))
    first, used, is_used = n, 0, own < n
    for i, x in enumerate(rest):
        is_new = x >= n
        for y in rest[:i]:
            is_new = is_new & (x != y)
        used, is_used = used + is_new, is_used | (own == x)
    for _ in rest:
        first = first + _np.any(_np.stack([x == first for x in _np.broadcast_arrays(*rest)]), 0)
    number = _np.where(is_used, 1.0, _np.where(own == first, size - n - used, 0.0))
    return _np.where(_np.arange(len(elements)) < m, number, 0.0)


def _raised(score, number, axis, hidden=0.0):
    """Return e^(score - top), the largest score top of the elements, and their sum."""
    top = _np.max(_np.where(number > 0.0, score, -_np.inf), axis, keepdims=True)
    top = _jax.lax.stop_gradient(_np.where(hidden > 0.0, _np.maximum(top, 0.0), top))
    excess = score - top
    raised = _np.exp(_np.where(excess > 0.0, 0.0, excess))
    return raised, top, _np.sum(number * raised, axis, keepdims=True) + hidden


def _logsumexp(score, number, axis):
    _, top, norm = _raised(score, number, axis)
    return _np.squeeze(top + _np.log(norm), axis)


def _softmax(score, number, axis):
    raised, _, norm = _raised(score, number, axis)
    return raised / norm


def _masked_softmax(score, mask, axis, hidden):
    raised, _, norm = _raised(score, mask, axis, hidden)
    return mask * raised / norm


def _power(base, exponent):
    return base ** int(exponent) if exponent == int(exponent) else base**exponent


def _sigmoid(x):
    return _jax.nn.sigmoid(x)


def _softplus(x):
    return _np.logaddexp(0.0, x)


def _relu(x):
    return _np.where(x > 0.0, x, 0.0)


'''


def lines(theory: Theory) -> list[str]:
    """Return the body of the function that evaluates the loss of one data orbit."""
    return _Program(theory).lines


class _Program:
    """Assignments of the loss of one data orbit, one for each expression.

    Attributes
    ----------
    lines
        The assignments, in the order of evaluation.
    """

    def __init__(self, theory: Theory) -> None:
        from symbolic.theory.source import Printer

        self._theory, self._layout = theory, layout(theory)
        self._print: Callable[[sp.Expr], str] = Printer({}).doprint
        self._relations = {relation_key(x): i for i, x in enumerate(self._layout.relations)}
        self._codes: dict[Node, str] = {}
        self._letters: dict[str, str] = {}
        self.lines = [*self._elements(), *map(self._entries, self._layout.parameters)]
        nodes = self._layout.loss.all
        uses = Counter(y for x in nodes for y in x.arguments)
        inside = {y for x in nodes if x.op in ("sum", "multiply") for y in x.arguments}
        self._fused = {x for x in inside if x.op == "multiply" and uses[x] == 1}
        for x in nodes:
            if x not in self._fused:
                self._codes[x] = name = f"_v{len(self._codes)}"
                self.lines.append(f"{name} = {self._code(x)}")
        self.lines.append(f"return {self._codes[self._layout.loss]}")

    def _elements(self) -> Iterator[str]:
        """Yield the elements of each set; those behind the last element repeat it."""
        length = self._layout.length
        yield f"_block = _row[:{length}]"
        for i, part in enumerate(self._layout.sets):
            name, column = identifier(part), length + 3 * i
            numbers = ", ".join(f"_{x}_{name}" for x in ("n", "m", "size"))
            most = self._layout.blocks(part) + self._layout.representatives[i]
            yield f"{numbers} = _row[{column}:{column + 3}]"
            yield f"_{name} = _np.minimum(_np.arange({most}), _m_{name} - 1)"

    def _elements_of(self, index_set: IndexSet) -> str:
        if isinstance(index_set, Ordered):
            return f"_np.arange({index_set.count})"
        return f"_{identifier(index_set)}"  # type: ignore[arg-type]

    def _entries(self, tensor: Tensor) -> str:
        """Return the assignment of the entries of a tensor."""
        number = {order.symbol: i for i, order in enumerate(self._theory.orders)}
        entries = [value for value, _ in self._layout.parameters[tensor]]
        codes = [number.get(x, -1) for x in entries]
        fixed = [self._print(sp.sympify(x)) if x not in number else "0.0" for x in entries]
        row = f"_np.array({codes})"
        values = f"_x[{row}]"
        if -1 in codes:
            values = f"_np.where({row} < 0, _np.array([{', '.join(fixed)}]), {values})"
        axes = [
            (f"_along({self._elements_of(s)}, {i}, {len(tensor.axes)})", s)
            for i, s in enumerate(tensor.axes)
        ]
        rest = [x for x in axes if not isinstance(x[1], Ordered)]
        lengths = [int(s.count) for s in tensor.axes if isinstance(s, Ordered)]
        pattern = pattern_code(rest, "_np.where({condition}, {yes}, {no})")
        at = [*(code for code, s in axes if isinstance(s, Ordered)), pattern]
        shape = ", ".join(map(str, (*lengths, -1)))
        return f"_{tensor.name} = {values}.reshape({shape})[{', '.join(at)}]"

    def _axes(self, indices: tuple[str, ...] | Mapping[str, IndexSet]) -> str:
        """Return indices as letters."""
        for index in indices:
            self._letters.setdefault(index, _LETTERS[len(self._letters)])
        return "".join(self._letters[index] for index in indices)

    def _to(self, x: Node, axes: Mapping[str, IndexSet]) -> str:
        """Return the code of an expression with other axes."""
        own, other = self._axes(x.axes), self._axes(axes)
        return self._codes[x] if own == other else f'_to({self._codes[x]}, "{own}", "{other}")'

    def _code(self, x: Node) -> str:
        """Return the code of an expression, given those of its arguments."""
        if x.op == "constant":
            return f"_np.asarray(float({self._print(x.detail)}))"
        if not x.arguments:
            own, axes = self._axes(x.indices), self._axes(x.axes)
            array = self._leaf(x)
            return array if own == axes else f'_np.einsum("{own}->{axes}", {array})'
        if x.op == "add":
            return " + ".join(self._to(y, x.axes) for y in x.arguments)
        if x.op in ("multiply", "sum"):
            return self._product(x)
        if x.op in ("softmax", "logsumexp"):
            return self._normalised(x)
        value = self._codes[x.arguments[0]]
        if x.op == "power":
            return f"_power({value}, {self._print(x.detail)})"
        return f"{_FUNCTION.get(x.op, f'_{x.op}')}({value})"

    def _leaf(self, x: Node) -> str:
        """Return the code of an array over its own axes."""
        if x.op == "lookup":
            array, column = x.detail
            return f"_RELATIONS[{self._relations[relation_key(array)]}][_row[{column}]]"
        if x.op == "relation":
            shape = ", ".join(str(s.count) for s in x.detail.axes)
            number = self._relations[relation_key(x.detail)]
            return f"_RELATIONS[{number}].reshape({shape})"
        if x.op == "same":
            elements = self._elements_of(x.detail.axes[0])
            return f"(_along({elements}, 0, 2) == _along({elements}, 1, 2)).astype(float)"
        if isinstance(x.detail, Tensor):
            return f"_{x.detail.name}"
        if isinstance(x.detail, Words):
            elements = self._elements_of(x.detail.token)
            return f"(_along(_block, 0, 2) == _along({elements}, 1, 2)).astype(float)"
        return "_block.astype(float)"

    def _product(self, x: Node) -> str:
        """Return the code of a product, summed over an index if the expression is a sum."""
        pending, factors = list(x.arguments), list[tuple[str, str]]()
        while pending:
            y = pending.pop(0)
            if y in self._fused:
                pending = [*y.arguments, *pending]
            else:
                factors.append((self._codes[y], self._axes(y.axes)))
        if x.op == "sum":
            number, axes = self._number(x.detail, x.arguments[0].axes)
            factors += [(number, axes)] if number else []
        subscripts = ",".join(axes for _, axes in factors)
        codes = ", ".join(code for code, _ in factors)
        return f'_np.einsum("{subscripts}->{self._axes(x.axes)}", {codes})'

    def _number(self, index: str, axes: Mapping[str, IndexSet]) -> tuple[str, str]:
        """Return the code of the numbers of elements that an index stands for, and its axes."""
        index_set = axes[index]
        if isinstance(index_set, Ordered):
            return "", ""
        name = identifier(index_set)  # type: ignore[arg-type]
        others = [i for i, s in axes.items() if s is index_set and i != index]
        code = f"_multiplicity(_{name}, _n_{name}, _m_{name}, _size_{name}, {len(others)})"
        return code, self._axes((*others, index))

    def _normalised(self, x: Node) -> str:
        """Return the code of a softmax or of a logarithm of a sum of exponentials."""
        axes = {i: s for y in x.arguments for i, s in y.axes.items()}
        own, axis = self._axes(axes), list(axes).index(x.detail)
        score = self._to(x.arguments[0], axes)
        if len(x.arguments) == 1:
            number, letters = self._number(x.detail, axes)
            number = f'_to({number}, "{letters}", "{own}")' if number else "_np.ones(())"
            return f"_{x.op}({score}, {number}, {axis})"
        mask, empty, hidden = x.arguments[1], hidden_rows(x), "0.0"
        if empty is not None:
            rest = empty[tuple(i for i in mask.indices if i != x.detail)]
            hidden = f'_to({self._leaf(rest)}, "{self._axes(rest.axes)}", "{own}")'
        return f"_masked_softmax({score}, {self._to(mask, axes)}, {axis}, {hidden})"
