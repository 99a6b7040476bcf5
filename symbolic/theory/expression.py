"""Expressions with named axes: elementwise functions, products, sums and softmax over whole axes.

Whatever is built of these is equivariant under the group of its index sets by construction: an
index can be summed over or kept, never singled out. Every node knows its free indices, the set that
each runs over, and the line of the user's file that made it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sympy as sp

from symbolic.theory.errors import TheoryError, here, require, shown
from symbolic.theory.numbers import LARGEST_EXPONENT, exact
from symbolic.theory.sets import Exchangeable, IndexSet

#: Functions of one argument, applied entry by entry; whether they are odd.
FUNCTIONS: Mapping[str, bool] = {
    "exp": False,
    "log": False,
    "tanh": True,
    "sigmoid": False,
    "softplus": False,
}


class Node:
    """An expression; ``op`` names its kind, ``detail`` is what the kind needs beside arguments.

    Attributes
    ----------
    op, arguments, detail
        ``constant`` (SymPy), ``entry`` (an `Array`), ``same`` and ``inside`` (1 where two indices
        agree, or where the first lies inside the second), ``part`` (`ByPart`), ``add``,
        ``multiply``, ``power`` (exponent), a function of `FUNCTIONS`, ``sum`` and ``softmax``
        (index).
    axes
        Its free indices in order of appearance, each with the set it runs over.
    odd
        Free indices of signed sets whose flip changes its sign.
    """

    __slots__ = ("arguments", "axes", "detail", "indices", "odd", "op", "where")
    __array_ufunc__ = None
    __iter__ = None  # a for loop would name elements

    def __init__(
        self,
        op: str,
        arguments: tuple[Node, ...] = (),
        detail: Any = None,
        indices: tuple[str, ...] = (),
        axes: Mapping[str, IndexSet] | None = None,
        odd: frozenset[str] = frozenset(),
    ) -> None:
        self.op, self.arguments, self.detail, self.indices = op, arguments, detail, indices
        self.axes = dict(axes or {})
        self.odd, self.where = odd, here()

    def __add__(self, other: Any) -> Node:
        return _add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Node:
        return _add(self, -node(other))

    def __rsub__(self, other: Any) -> Node:
        return _add(-self, other)

    def __mul__(self, other: Any) -> Node:
        return multiply(self, other)

    __rmul__ = __mul__

    def __neg__(self) -> Node:
        return multiply(self, -1)

    def __truediv__(self, other: Any) -> Node:
        return multiply(self, node(other) ** -1)

    def __rtruediv__(self, other: Any) -> Node:
        return multiply(self**-1, other)

    def __pow__(self, exponent: Any) -> Node:
        try:
            power = exact(exponent)
        except (TypeError, ValueError, sp.SympifyError):
            raise TheoryError(
                f"exponent = {exponent!r} is not allowed: it must be a number or a constant"
            ) from None
        if power.is_number and abs(power) > LARGEST_EXPONENT:
            raise TheoryError(
                f"exponent = {shown(exponent)} is not allowed: it must be at most "
                f"{LARGEST_EXPONENT} in modulus"
            )
        if self.odd and not power.is_Integer:
            raise TheoryError(_flips(self, f"to the power {power}"))
        odd = self.odd if power.is_odd else frozenset()
        return Node("power", (self,), power, axes=self.axes, odd=odd)

    def _apply(self, function: str) -> Node:
        if self.odd and not FUNCTIONS[function]:
            raise TheoryError(_flips(self, f"within {function}"))
        return Node(function, (self,), axes=self.axes, odd=self.odd)

    def exp(self) -> Node:
        """Return e^x, entry by entry."""
        return self._apply("exp")

    def log(self) -> Node:
        """Return log x, entry by entry."""
        return self._apply("log")

    def tanh(self) -> Node:
        """Return tanh x, entry by entry."""
        return self._apply("tanh")

    def sigmoid(self) -> Node:
        """Return 1 / (1 + e^-x), entry by entry."""
        return self._apply("sigmoid")

    def softplus(self) -> Node:
        """Return log(1 + e^x), entry by entry."""
        return self._apply("softplus")

    def softplus_of_minus(self) -> Node:
        """Return log(1 + e^-x), the logistic loss of a margin x."""
        return (-self).softplus()

    def sum(self, over: str) -> Node:
        """Return the sum over all values of an index."""
        if self._axis(over, "sum") and over in self.odd:
            raise TheoryError(_flips(self, "summed", over))
        axes = {name: where for name, where in self.axes.items() if name != over}
        return Node("sum", (self,), over, axes=axes, odd=self.odd)

    def softmax(self, over: str) -> Node:
        """Return e^x over its sum along an index, which stays an index."""
        self._axis(over, "softmax")
        if self.odd:
            raise TheoryError(_flips(self, "within softmax"))
        return Node("softmax", (self,), over, axes=self.axes)

    def _axis(self, over: Any, what: str) -> bool:
        free = ", ".join(self.axes) or "none"
        require(
            isinstance(over, str) and over in self.axes,
            f"{what} over {over!r} is not allowed: it must be a free index, here {free}",
        )
        return True

    @property
    def all(self) -> tuple[Node, ...]:
        """Every expression that it is made of, arguments before what uses them, itself last."""
        found: dict[Node, None] = {}

        def visit(x: Node) -> None:
            if x not in found:
                for argument in x.arguments:
                    visit(argument)
                found[x] = None

        visit(self)
        return tuple(found)

    def renamed(self, names: Mapping[str, str]) -> Node:
        """Return the expression with other names of its free indices; two may become one.

        No new name is captured: the bound index of a sum or softmax gets a name of its own where it
        has the new name of another index.
        """
        names = {index: names.get(index, index) for index in self.axes}
        if all(old == new for old, new in names.items()):
            return self
        inner, detail = names, self.detail
        if self.op in ("sum", "softmax"):
            others = {new for old, new in names.items() if old != detail}
            detail = _unused(names.get(detail, detail), others)
            inner = {**names, self.detail: detail}
        axes = {inner[index]: where for index, where in self.axes.items()}
        found = Node(
            self.op,
            tuple(x.renamed(inner) for x in self.arguments),
            detail,
            tuple(inner[index] for index in self.indices),
            axes,
        )
        for index in self.odd:  # two that become one are even together
            found.odd ^= {inner[index]}
        found.where = self.where
        if self.op == "softmax" and detail != names[self.detail]:
            return _at(found, names[self.detail])
        return found

    def __bool__(self) -> bool:
        raise TheoryError("a condition on an expression is not allowed: its value is not known yet")


def _unused(name: str, others: Collection[str]) -> str:
    """Return a name that is none of the others."""
    while name in others:
        name += "'"  # no identifier
    return name


def _at(weights: Node, index: str) -> Node:
    """Return softmax weights where their own index is another one of their indices."""
    bound = weights.detail
    where = weights.axes[bound]
    both = {bound: where, index: where}
    body = multiply(weights, Node("same", (), Same(where), (bound, index), both))
    axes = {name: own for name, own in body.axes.items() if name != bound}
    return Node("sum", (body,), bound, axes=axes)


def _flips(argument: Node, how: str, index: str = "") -> str:
    name = index or min(argument.odd)
    where = argument.axes[name]
    return (
        f"an expression that is odd in index {name!r} is not allowed {how}: flipping one {where} "
        "would change more than its sign"
    )


def node(value: Any) -> Node:
    """Return a number, scalar, array without axes or expression as an expression."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Array):
        return value[()]
    try:
        return Node("constant", detail=exact(value))
    except (TypeError, ValueError, sp.SympifyError):
        raise TheoryError(
            f"{value!r} is not allowed here: it must be a number, a constant or an expression"
        ) from None


def _merged(arguments: tuple[Node, ...]) -> dict[str, IndexSet]:
    axes: dict[str, IndexSet] = {}
    for argument in arguments:
        for name, where in argument.axes.items():
            known = axes.setdefault(name, where)
            require(
                known is where,
                f"index {name!r} runs over {known} and over {where}: it must be one set",
            )
    return axes


def _add(one: Any, other: Any) -> Node:
    terms = node(one), node(other)
    if terms[0].odd != terms[1].odd:
        odd = terms[0] if terms[0].odd - terms[1].odd else terms[1]
        raise TheoryError(_flips(odd, "added to what is not"))
    return Node("add", terms, axes=_merged(terms), odd=terms[0].odd)


def multiply(one: Any, other: Any) -> Node:
    """Return a product, entry by entry."""
    factors = node(one), node(other)
    odd = factors[0].odd ^ factors[1].odd
    return Node("multiply", factors, axes=_merged(factors), odd=odd)


class Array:
    """Something with named axes that the user indexes: a parameter, data, or an indicator."""

    __iter__ = None
    op = "entry"
    name: str
    axes: tuple[IndexSet, ...]

    def __getitem__(self, indices: Any) -> Node:
        names = indices if isinstance(indices, tuple) else (indices,)
        for index, where in zip(names, self.axes):
            require(
                isinstance(index, str) and index.isidentifier(),
                f"the model names index {index!r} of {where}: only whole axes",
            )
        sets = ", ".join(map(repr, self.axes)) or "none"
        require(
            len(names) == len(self.axes),
            f"{self.name} has {len(self.axes)} indices ({sets}), not {len(names)}",
        )
        axes: dict[str, IndexSet] = {}
        odd: frozenset[str] = frozenset()
        for index, where in zip(names, self.axes):
            require(
                axes.setdefault(index, where) is where,
                f"index {index!r} runs over {axes[index]} and over {where}: it must be one set",
            )
            if where.signed:
                odd ^= {index}
        return Node(self.op, (), self, names, axes, odd)

    # An array without axes is used as it is: v * x.
    def __add__(self, other: Any) -> Node:
        return self[()] + other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Node:
        return self[()] - other

    def __rsub__(self, other: Any) -> Node:
        return other - self[()]

    def __mul__(self, other: Any) -> Node:
        return self[()] * other

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Node:
        return self[()] / other

    def __rtruediv__(self, other: Any) -> Node:
        return other / self[()]

    def __neg__(self) -> Node:
        return -self[()]

    def __pow__(self, exponent: Any) -> Node:
        return self[()] ** exponent


class Same(Array):
    """1 where two indices agree, else 0: ``Same(patch)["i", "j"]``."""

    op = "same"

    def __init__(self, over: IndexSet) -> None:
        self.name, self.axes = f"Same({over})", (over, over)


class Inside(Array):
    """1 where the first index lies inside the second, else 0: ``Inside(patch, area)["q", "m"]``."""

    op = "inside"

    def __init__(self, inner: IndexSet, outer: IndexSet) -> None:
        require(
            any(part.inside in outer.parts for part in inner.parts if part.inside is not None),
            f"Inside({inner}, {outer}) is not allowed: no part of {inner} lies inside {outer}",
        )
        self.name, self.axes = f"Inside({inner}, {outer})", (inner, outer)


class ByPart(Array):
    """A number for each part of an index set, such as the variances of two kinds of coordinates."""

    op = "part"

    def __init__(self, over: IndexSet, values: Mapping[Exchangeable, sp.Expr]) -> None:
        self.name, self.axes, self.values = f"ByPart({over})", (over,), dict(values)

    def at(self, index: str) -> Node:
        """Return the number at an index."""
        return Node("part", (), self, (index,), {index: self.axes[0]})
