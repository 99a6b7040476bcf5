"""Expressions with named axes: elementwise functions, products, sums and softmax over whole axes.

Expressions are equivariant under the symmetry group of their index sets by construction, because an
index can only be summed over or remain free. Every node stores its free indices with their index
sets, and the line of the user's file that created it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sympy as sp

from symbolic.theory.errors import TheoryError, calling_line, require, short_repr
from symbolic.theory.numbers import LARGEST_EXPONENT, exact
from symbolic.theory.sets import IndexSet

#: Functions of one argument, applied entry by entry; whether they are odd.
FUNCTIONS: Mapping[str, bool] = {
    "exp": False,
    "log": False,
    "tanh": True,
    "sigmoid": False,
    "softplus": False,
    "modulus": False,
    "relu": False,
    "sign": True,
    "step": False,
}


class Node:
    """A node of an expression tree.

    Users create nodes by indexing tensors and data and with operators, for example
    ``(A["i", "j"] * x["j"]).sum("j").tanh()``.

    Attributes
    ----------
    op
        Operation: ``constant``, ``entry``, ``relation``, ``same``, ``inside``, ``part``, ``add``,
        ``multiply``, ``power``, a function of `FUNCTIONS`, ``sum``, ``softmax`` or ``logsumexp``;
        in derivatives also ``orbit``, ``softmax_tangent``, ``sign`` and ``step``.
    arguments
        The operands.
    detail
        The number of a constant (SymPy), the `Array` of an entry, the exponent of a power, the
        index of a sum, softmax or logsumexp.
    indices
        Indices of an entry or indicator, one per axis of its array.
    axes
        Mapping from free indices, in order of appearance, to their index sets.
    odd
        Free indices of signed sets in which the expression is odd.
    location
        Line of the user's file.
    """

    __slots__ = ("arguments", "axes", "detail", "indices", "location", "odd", "op")
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
        self.odd, self.location = odd, calling_line()

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
                f"exponent = {short_repr(exponent)} is not allowed: it must be at most "
                f"{LARGEST_EXPONENT} in modulus"
            )
        if self.odd and not power.is_Integer:
            raise TheoryError(_odd_message(self, f"to the power {power}"))
        odd = self.odd if power.is_odd else frozenset()
        return Node("power", (self,), power, axes=self.axes, odd=odd)

    def _apply(self, function: str) -> Node:
        if self.odd and not FUNCTIONS[function]:
            raise TheoryError(_odd_message(self, f"within {function}"))
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

    def abs(self) -> Node:
        """Return the absolute value, entry by entry; its derivative at 0 is taken to be 0."""
        return self._apply("modulus")

    def relu(self) -> Node:
        """Return max(x, 0), entry by entry; its derivative at 0 is taken to be 0."""
        return self._apply("relu")

    def sum(self, over: str) -> Node:
        """Return the sum over all values of an index."""
        self._require_free(over, "sum")
        if over in self.odd:
            raise TheoryError(_odd_message(self, "summed", over))
        axes = {name: index_set for name, index_set in self.axes.items() if name != over}
        return Node("sum", (self,), over, axes=axes, odd=self.odd)

    def softmax(
        self, over: str | tuple[str, ...], where: Any = None, *, empty: str = "error"
    ) -> Node:
        """Return the softmax along one or several indices, which remain free indices.

        Weights along several indices sum to 1 over all of them together. They are the product of
        the weights along the last index and those of its `logsumexp` along the others.

        Parameters
        ----------
        over
            An index, or a tuple of them.
        where
            Mask, an expression of relations (`symbolic.theory.relation`) with values 0 and 1: the
            softmax is over the elements at which it is 1, and the others have weight 0.
        empty
            ``"zero"`` gives weight 0 to all elements where the mask is 0 everywhere; ``"error"``
            rejects such a mask.
        """
        *others, last = self._require_indices(over, "softmax")
        if where is not None:
            require(not others, "softmax with where= is not allowed over several indices")
            from symbolic.theory.positions import mask

            visible = mask(where, last, empty)
            return Node("softmax", (self, visible), last, axes=_merged((self, visible)))
        weights = Node("softmax", (self,), last, axes=self.axes)
        if not others:
            return weights
        return multiply(weights, self.logsumexp(last).softmax(tuple(others)))

    def logsumexp(self, over: str | tuple[str, ...]) -> Node:
        """Return log sum e^x along one or several indices, without overflow."""
        *others, last = self._require_indices(over, "logsumexp")
        axes = {name: index_set for name, index_set in self.axes.items() if name != last}
        total = Node("logsumexp", (self,), last, axes=axes)
        return total.logsumexp(tuple(others)) if others else total

    def cross_entropy(self, target: Any, over: str) -> Node:
        """Return the cross-entropy of the softmax of these scores, without overflow.

        It is -sum_k target_k log softmax(x)_k. Scores enter as differences, so that the gradient
        keeps its digits when a target is learned.

        Parameters
        ----------
        target
            Probabilities along ``over``, an expression.
        over
            Index of the classes.
        """
        (over,) = self._require_indices((over,), "cross_entropy")
        other = _unused(f"{over}'", self.axes)
        excess = self.renamed({over: other}) - self
        return multiply(target, excess.logsumexp(other)).sum(over)

    def _require_indices(self, over: Any, operation: str) -> tuple[str, ...]:
        """Return indices to normalise over; raise `TheoryError` unless they are free and differ."""
        indices = (over,) if isinstance(over, str) else over
        require(
            isinstance(indices, tuple) and 0 < len(set(indices)) == len(indices),
            f"{operation} over {over!r} is not allowed: it must be an index, or a tuple of "
            "different indices",
        )
        for index in indices:
            self._require_free(index, operation)
        if self.odd:
            raise TheoryError(_odd_message(self, f"within {operation}"))
        return tuple(indices)

    def _require_free(self, over: Any, operation: str) -> None:
        """Raise `TheoryError` unless ``over`` is a free index."""
        free = ", ".join(self.axes) or "none"
        require(
            isinstance(over, str) and over in self.axes,
            f"{operation} over {over!r} is not allowed: it must be a free index, here {free}",
        )

    @property
    def all(self) -> tuple[Node, ...]:
        """Every node of the expression in topological order, arguments first, itself last."""
        visited: dict[Node, None] = {}

        def visit(x: Node) -> None:
            if x not in visited:
                for argument in x.arguments:
                    visit(argument)
                visited[x] = None

        visit(self)
        return tuple(visited)

    def renamed(self, names: Mapping[str, str]) -> Node:
        """Return the expression with its free indices renamed; two can be given the same name.

        Bound indices of sums and softmax are renamed where they would capture a new name.
        """
        names = {index: names.get(index, index) for index in self.axes}
        if all(old == new for old, new in names.items()):
            return self
        inner, detail = names, self.detail
        if self.op in ("sum", "softmax", "logsumexp"):
            others = {new for old, new in names.items() if old != detail}
            detail = _unused(names.get(detail, detail), others)
            inner = {**names, self.detail: detail}
        axes = {inner[index]: index_set for index, index_set in self.axes.items()}
        renamed = Node(
            self.op,
            tuple(x.renamed(inner) for x in self.arguments),
            detail,
            tuple(inner[index] for index in self.indices),
            axes,
        )
        for index in self.odd:  # the product of two odd indices that coincide is even
            renamed.odd ^= {inner[index]}
        renamed.location = self.location
        if self.op == "softmax" and detail != names[self.detail]:
            return _softmax_at(renamed, names[self.detail])
        return renamed

    def __bool__(self) -> bool:
        raise TheoryError("a condition on an expression is not allowed: its value is not known yet")


def _unused(name: str, others: Collection[str]) -> str:
    """Return a name that is not among the others, with primes appended as needed."""
    while name in others:
        name += "'"  # not an identifier, so never a user's name
    return name


def _softmax_at(weights: Node, index: str) -> Node:
    """Return softmax weights evaluated where the softmax index equals another free index."""
    bound = weights.detail
    index_set = weights.axes[bound]
    both = {bound: index_set, index: index_set}
    body = multiply(weights, Node("same", (), Same(index_set), (bound, index), both))
    axes = {name: own for name, own in body.axes.items() if name != bound}
    return Node("sum", (body,), bound, axes=axes)


def _odd_message(argument: Node, operation: str, index: str = "") -> str:
    """Return the error message for an odd expression in an operation that is not odd."""
    name = index or min(argument.odd)
    index_set = argument.axes[name]
    return (
        f"an expression that is odd in index {name!r} is not allowed {operation}: flipping one "
        f"{index_set} would change more than its sign"
    )


def node(value: Any) -> Node:
    """Convert a number, scalar or array without axes to an expression."""
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
    """Return the free indices of all arguments, each of which must run over one set."""
    axes: dict[str, IndexSet] = {}
    for argument in arguments:
        for name, index_set in argument.axes.items():
            known = axes.setdefault(name, index_set)
            require(
                known is index_set,
                f"index {name!r} runs over {known} and over {index_set}: it must be one set",
            )
    return axes


def _add(left: Any, right: Any) -> Node:
    """Return a sum, entry by entry."""
    terms = node(left), node(right)
    if terms[0].odd != terms[1].odd:
        odd = terms[0] if terms[0].odd - terms[1].odd else terms[1]
        raise TheoryError(_odd_message(odd, "added to what is not"))
    return Node("add", terms, axes=_merged(terms), odd=terms[0].odd)


def multiply(left: Any, right: Any) -> Node:
    """Return a product, entry by entry."""
    factors = node(left), node(right)
    odd = factors[0].odd ^ factors[1].odd
    return Node("multiply", factors, axes=_merged(factors), odd=odd)


class Array:
    """Base class of everything that users index: parameters, data and indicators."""

    __iter__ = None
    op = "entry"
    name: str
    axes: tuple[IndexSet, ...]

    def __getitem__(self, indices: Any) -> Node:
        names = indices if isinstance(indices, tuple) else (indices,)
        for index, index_set in zip(names, self.axes):
            require(
                isinstance(index, str) and index.isidentifier(),
                f"the model names index {index!r} of {index_set}: only whole axes",
            )
        sets = ", ".join(map(repr, self.axes)) or "none"
        require(
            len(names) == len(self.axes),
            f"{self.name} has {len(self.axes)} indices ({sets}), not {len(names)}",
        )
        axes: dict[str, IndexSet] = {}
        odd: frozenset[str] = frozenset()
        for index, index_set in zip(names, self.axes):
            require(
                axes.setdefault(index, index_set) is index_set,
                f"index {index!r} runs over {axes[index]} and over {index_set}: it must be one set",
            )
            if index_set.signed:
                odd ^= {index}
        return Node(self.op, (), self, names, axes, odd)

    def at(self, element: int, *indices: str) -> Node:
        """Return the entries at one element of the first axis, an ordered set.

        Parameters
        ----------
        element
            Number of the element.
        indices
            Indices of the other axes.
        """
        from symbolic.theory.positions import at

        return at(self, element, indices)

    # Arrays without axes need no index: v * x.
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
    """Kronecker delta: 1 where two indices agree, else 0.

    Parameters
    ----------
    over
        Index set of both indices.

    Examples
    --------
    >>> from symbolic.theory import Exchangeable, Same, Size
    >>> patch = Exchangeable("patch", Size("D"))
    >>> other = 1 - Same(patch)["i", "j"]
    """

    op = "same"

    def __init__(self, over: IndexSet) -> None:
        self.name, self.axes = f"Same({over})", (over, over)


class Inside(Array):
    """Indicator of membership: 1 where the first index lies inside the second, else 0.

    Parameters
    ----------
    inner
        Index set of the first index, inside ``outer``.
    outer
        Index set of the second index.

    Raises
    ------
    TheoryError
        If no part of ``inner`` lies inside ``outer``.

    Examples
    --------
    >>> from symbolic.theory import Exchangeable, Inside, Size
    >>> area = Exchangeable("area", Size("L"))
    >>> patch = Exchangeable("patch", Size("C"), inside=area)
    >>> member = Inside(patch, area)["i", "m"]
    """

    op = "inside"

    def __init__(self, inner: IndexSet, outer: IndexSet) -> None:
        require(
            any(part.inside in outer.parts for part in inner.parts if part.inside is not None),
            f"Inside({inner}, {outer}) is not allowed: no part of {inner} lies inside {outer}",
        )
        self.name, self.axes = f"Inside({inner}, {outer})", (inner, outer)
