"""Equations of a theory on ordered positions: loss of one sequence, and its derivatives by entry.

Equations are expressions of `symbolic.theory.expression` in which long or repeated values have
names. The derivative of the loss in a named value has a name as well (backpropagation), so that the
equations are as short for many positions as for few. Sums over tokens run over the vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from symbolic.theory.expression import Array, Node, Same, multiply, node
from symbolic.theory.loop_tables import relation_key
from symbolic.theory.sets import IndexSet
from symbolic.theory.tensors import Tensor

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Values of more operations have names.
_LONG = 16
_LEAVES = {"constant", "entry", "named", "relation", "same"}
#: Functions whose derivative is a function of the value, and of the argument.
_OF_VALUE: Mapping[str, Callable[[Node], Node]] = {
    "exp": lambda y: y,
    "tanh": lambda y: 1 - y**2,
    "sigmoid": lambda y: y * (1 - y),
}
_OF_ARGUMENT: Mapping[str, Callable[[Node], Node]] = {
    "log": lambda x: x**-1,
    "softplus": lambda x: x.sigmoid(),
    "modulus": lambda x: Node("sign", (x,), axes=x.axes),
    "relu": lambda x: Node("step", (x,), axes=x.axes),
}


class Named(Array):
    """A value with a name.

    Attributes
    ----------
    indices
        Indices of its definition.
    of
        The value or tensor in which this value is the derivative of the loss, if it is one.
    """

    op = "named"

    def __init__(self, name: str, axes: Mapping[str, IndexSet], of: Array | None = None) -> None:
        self.name, self.axes, self.of = name, tuple(axes.values()), of
        self.indices = tuple(axes)

    def at(self, axes: Mapping[str, IndexSet]) -> Node:  # type: ignore[override]
        """Return the value at indices."""
        return Node("named", (), self, tuple(axes), axes)


@dataclass(frozen=True)
class Definition:
    """A named value, its indices and the expression that defines it."""

    name: Named
    axes: Mapping[str, IndexSet]
    value: Node


@dataclass
class SequenceEquations:
    """Equations of a theory on ordered positions.

    Attributes
    ----------
    definitions
        Named values, each before its first use.
    loss
        Loss of one sequence; the risk is its mean.
    slopes
        Derivative of the loss in each entry of a tensor, by tensor.
    """

    definitions: list[Definition] = field(default_factory=list)
    loss: Node = field(default_factory=lambda: node(0))
    slopes: dict[Tensor, Definition] = field(default_factory=dict)


def sequence_equations(theory: Theory) -> SequenceEquations:
    """Return the equations of a theory on ordered positions."""
    return _Reader(theory).equations


class _Reader:
    """Name values, and differentiate."""

    def __init__(self, theory: Theory) -> None:
        self.equations, self._loss = SequenceEquations(), theory.mean.loss
        nodes = self._loss.all
        self._numbers: Counter[str] = Counter()
        self._uses = Counter(y for x in nodes for y in x.arguments)
        self._of_argument = {
            y for x in nodes if x.op in {*_OF_ARGUMENT, "power"} for y in x.arguments
        }
        self._trained: dict[Node, bool] = {}
        self._known: dict[Any, Named] = {}
        written: dict[Node, Node] = {}
        for x in nodes:
            written[x] = self._written(x, tuple(written[y] for y in x.arguments))
        self.equations.loss = written[self._loss]
        self._pulls: dict[Named, list[Node]] = {}
        self._entries: dict[Tensor, list[tuple[tuple[str, ...], Node]]] = {
            tensor: [] for tensor in theory.parameters
        }
        forward = list(self.equations.definitions)
        self._push(self.equations.loss, node(1))
        for definition in reversed(forward):
            self._backward(definition)
        for tensor, entries in self._entries.items():
            self.equations.slopes[tensor] = _slope(tensor, entries)

    def _define(
        self, letter: str, axes: Mapping[str, IndexSet], value: Node, of: Array | None = None
    ) -> Node:
        """Return a name for a value, the same for the same value at other indices."""
        key = _key(value, {index: str(i) for i, index in enumerate(axes)})
        if key not in self._known:
            self._numbers[letter] += 1
            self._known[key] = Named(f"{letter}{self._numbers[letter]}", axes, of)
            self.equations.definitions.append(Definition(self._known[key], dict(axes), value))
        result = self._known[key].at(axes)
        self._trained[result] = self._is_trained(value)
        return result

    def _written(self, x: Node, arguments: tuple[Node, ...]) -> Node:
        """Return an expression with its arguments replaced, or a name for it."""
        value = Node(x.op, arguments, x.detail, x.indices, x.axes)
        self._is_trained(value)
        if x.op in _LEAVES or x is self._loss:
            return value
        if x.op == "softmax":
            return self._define("p", x.axes, value)
        differentiated = x.op in _OF_VALUE or x in self._of_argument
        repeated = self._uses[x] > 1 or (self._trained[value] and differentiated)
        if (repeated and len(value.all) > 2) or len(value.all) > _LONG:
            return self._define("u", x.axes, value)
        return value

    def _is_trained(self, x: Node) -> bool:
        """Return whether a value depends on trained parameters."""
        if x not in self._trained:
            own = x.op == "entry" and isinstance(x.detail, Tensor)
            self._trained[x] = own or any([self._is_trained(y) for y in x.arguments])
        return self._trained[x]

    def _backward(self, definition: Definition) -> None:
        """Pass the derivative in a named value to its arguments."""
        pulls = self._pulls.pop(definition.name, [])
        if not pulls:
            return
        total = _total(pulls)
        if total.op not in _LEAVES:
            axes = {i: s for i, s in definition.axes.items() if i in total.axes}
            name = Named(definition.name.name, axes, definition.name)
            self.equations.definitions.append(Definition(name, axes, total))
            total = name.at(axes)
        value = definition.name.at(definition.axes)
        self._push(definition.value, total, value)

    def _push(self, x: Node, pull: Node, value: Node | None = None) -> None:
        """Add the derivative of the loss in an expression to those of its arguments.

        Parameters
        ----------
        x
            The expression.
        pull
            The derivative, constant along the indices that it does not have.
        value
            Name of the expression, if it has one.
        """
        if not self._is_trained(x):
            return
        if x.op == "named":
            names = dict(zip(x.indices, x.detail.indices))
            pull = pull.renamed({index: names[index] for index in pull.axes})
            self._pulls.setdefault(x.detail, []).append(pull)
        elif x.op == "entry":
            self._entries[x.detail].append((x.indices, pull))
        elif x.op in ("add", "multiply"):
            for y, other in zip(x.arguments, reversed(x.arguments)):
                slope = multiply(pull, other) if x.op == "multiply" else pull
                self._push(y, _reduced(slope, x.axes, y.axes))
        elif x.op == "sum":
            self._push(x.arguments[0], pull)
        elif x.op == "softmax":
            if x.detail in pull.axes:
                assert value is not None
                mean = _summed(multiply(value, pull), x.detail)
                slope = multiply(value, pull - mean)
                self._push(x.arguments[0], _reduced(slope, value.axes, x.arguments[0].axes))
        elif x.op == "logsumexp":
            (body,) = x.arguments
            weight = Node("softmax", (body,), x.detail, axes=body.axes)
            self._push(body, multiply(pull, self._define("p", body.axes, weight)))
        else:
            self._push(
                x.arguments[0], multiply(pull, _derivative(x, x if value is None else value))
            )


def _key(x: Node, names: Mapping[str, str]) -> Any:
    """Return a key that is equal for expressions that differ in the names of indices only."""
    detail = relation_key(x.detail) if x.op == "relation" else x.detail
    if x.op in ("sum", "softmax", "logsumexp"):
        names = {**names, x.detail: names.get(x.detail, f"bound {len(names)}")}
        detail = names[x.detail]
    if x.op == "same":
        detail = x.detail.axes
    axes = tuple((names[index], index_set) for index, index_set in x.axes.items())
    indices = tuple(names[index] for index in x.indices)
    return x.op, detail, indices, axes, tuple(_key(y, names) for y in x.arguments)


def _derivative(x: Node, value: Node) -> Node:
    """Return the derivative of a function in its argument."""
    (argument,) = x.arguments
    if x.op == "power":
        return x.detail * argument if x.detail == 2 else x.detail * argument ** (x.detail - 1)
    if x.op in _OF_VALUE:
        return _OF_VALUE[x.op](value)
    return _OF_ARGUMENT[x.op](argument)


def _summed(x: Node, index: str) -> Node:
    """Return the sum over an index."""
    return Node("sum", (x,), index, axes={i: s for i, s in x.axes.items() if i != index})


def _reduced(x: Node, axes: Mapping[str, IndexSet], to: Mapping[str, IndexSet]) -> Node:
    """Return the sum over the indices of ``axes`` that are not those of ``to``."""
    for index, index_set in axes.items():
        if index not in to:
            x = _summed(x, index) if index in x.axes else multiply(index_set.count, x)
    return x


def _total(terms: list[Node]) -> Node:
    """Return the sum of expressions."""
    total = terms[0]
    for x in terms[1:]:
        total = total + x
    return total


def _slope(tensor: Tensor, entries: list[tuple[tuple[str, ...], Node]]) -> Definition:
    """Return the derivative in the entry of a tensor with one index for each axis."""
    indices = next((own for own, _ in entries if len(set(own)) == len(own)), None)
    indices = indices or tuple("ijklmn"[: len(tensor.axes)])
    terms = []
    for own, pull in entries:
        first: dict[str, str] = {}
        for index, name in zip(own, indices):
            first.setdefault(index, name)
        term = pull.renamed({i: first[i] for i in pull.axes})
        for index, name, index_set in zip(own, indices, tensor.axes):
            if first[index] != name:
                both = {first[index]: index_set, name: index_set}
                same = Node("same", (), Same(index_set), (first[index], name), both)
                term = multiply(term, same)
        terms.append(term)
    axes = dict(zip(indices, tensor.axes))
    return Definition(Named(tensor.name, axes, tensor), axes, _total(terms or [node(0)]))
