"""The mean over Gaussian data, exactly: an expression of the same language without them.

A polynomial in Gaussian data is written as a sum of products; the mean of a product of entries is
the sum over all ways to pair them, each pair giving a variance where its indices agree (Isserlis,
Wick). Two indices that agree are one index, so that what is left is again a sum over whole axes:
it is read for all sizes, differentiated and compiled as if it had been stated so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from math import prod

from symbolic.theory.errors import TheoryError, require
from symbolic.theory.expression import Node, multiply, node
from symbolic.theory.sets import IndexSet
from symbolic.theory.tensors import Gaussian

#: Pairings of all products together, at most.
MOST_PAIRINGS = 20_000


@dataclass(frozen=True)
class Product:
    """A coefficient, expressions without Gaussian data, entries of Gaussian data, summed over."""

    factors: tuple[Node, ...] = ()
    entries: tuple[tuple[Gaussian, tuple[str, ...]], ...] = ()
    summed: tuple[tuple[str, IndexSet], ...] = ()

    def renamed(self, names: dict[str, str]) -> Product:
        """Return it with other names of indices."""
        return Product(
            tuple(x.renamed(names) for x in self.factors),
            tuple((g, tuple(names.get(i, i) for i in indices)) for g, indices in self.entries),
            tuple((names.get(i, i), where) for i, where in self.summed),
        )


class Mean:
    """The mean of a loss over Gaussian data; ``degree`` is its degree in each of them.

    Raises
    ------
    TheoryError
        If the loss is no polynomial in them, with the line of the function that they are within, or
        if there are too many pairings.
    """

    def __init__(self, loss: Node) -> None:
        self._fresh = (f"'{number}" for number in count())  # no name of a user's
        self._known: dict[Node, bool] = {}
        products = self._products(loss)
        self.degree: dict[Gaussian, int] = {}
        for one in products:
            for source, times in _degrees(one).items():
                self.degree[source] = max(times, self.degree.get(source, 0))
        number = sum(prod(_pairings(k) for k in _degrees(one).values()) for one in products)
        require(
            number <= MOST_PAIRINGS,
            f"the mean over Gaussian data has {number} pairings (most: {MOST_PAIRINGS}): the loss "
            "must be of lower degree in them",
            loss.where,
        )
        terms = [term for one in products for term in self._contracted(one)]
        found = terms[0] if terms else node(0)
        for term in terms[1:]:
            found = found + term
        self.loss = found

    def _random(self, x: Node) -> bool:
        """Tell whether an expression has Gaussian data in it."""
        if x not in self._known:
            own = x.op == "entry" and isinstance(x.detail, Gaussian)
            self._known[x] = own or any([self._random(y) for y in x.arguments])
        return self._known[x]

    def _products(self, x: Node) -> list[Product]:
        if not self._random(x):
            return [Product((x,))]
        if x.op == "entry":
            return [Product((), ((x.detail, x.indices),))]
        if x.op == "add":
            return [one for argument in x.arguments for one in self._products(argument)]
        if x.op == "multiply":
            return self._multiplied([self._products(argument) for argument in x.arguments])
        if x.op == "sum":
            (body,) = x.arguments
            found = []
            for one in self._products(body):
                name = next(self._fresh)
                own = one.renamed({x.detail: name})
                found.append(
                    Product(own.factors, own.entries, (*own.summed, (name, body.axes[x.detail])))
                )
            return found
        if x.op == "power" and x.detail.is_Integer and x.detail > 0:
            return self._multiplied([self._products(x.arguments[0])] * int(x.detail))
        names = ", ".join(sorted(self._inside(x)))
        how = f"to the power {x.detail}" if x.op == "power" else f"within {x.op}"
        raise TheoryError(
            f"no closed expectation: Gaussian data ({names}) {how} is not allowed, only "
            "polynomials in them",
            x.where,
        )

    def _inside(self, x: Node) -> set[str]:
        if x.op == "entry":
            return {x.detail.name} if isinstance(x.detail, Gaussian) else set()
        return set().union(*(self._inside(y) for y in x.arguments))

    def _multiplied(self, factors: Sequence[list[Product]]) -> list[Product]:
        """Return a product of sums as a sum of products, no summed index in two of the factors."""
        total = prod(map(len, factors))
        require(
            total <= MOST_PAIRINGS,
            f"the loss has {total} products of Gaussian data (most: {MOST_PAIRINGS}): it must be "
            "of lower degree in them",
        )
        found = []
        for row in product(*factors):
            own = [one.renamed({i: next(self._fresh) for i, _ in one.summed}) for one in row]
            found.append(
                Product(
                    tuple(x for one in own for x in one.factors),
                    tuple(x for one in own for x in one.entries),
                    tuple(x for one in own for x in one.summed),
                )
            )
        return found

    def _contracted(self, one: Product) -> Iterator[Node]:
        """Yield the mean of a product, a term for each way to pair its Gaussian entries."""
        sources = list(_degrees(one))
        ways = [
            list(_paired([i for g, i in one.entries if g is source])) for source in sources
        ]  # none for an odd number
        for choice in product(*ways):
            merged = _Classes()
            for pairs in choice:
                for left, right in pairs:
                    for a, b in zip(left, right):
                        merged.join(a, b)
            names = {i: merged.of(i) for i, _ in one.summed}
            names |= {i: merged.of(i) for _, indices in one.entries for i in indices}
            factors = [x.renamed(names) for x in one.factors]
            for source, pairs in zip(sources, choice):
                for left, _ in pairs:
                    factors += source.variance_at(tuple(map(merged.of, left)))
            left_over = {names[i]: where for i, where in one.summed}
            yield _summed(factors, left_over)


def _degrees(one: Product) -> dict[Gaussian, int]:
    found: dict[Gaussian, int] = {}
    for source, _ in one.entries:
        found[source] = found.get(source, 0) + 1
    return found


def _pairings(number: int) -> int:
    """Return how many ways there are to pair so many: (n - 1)!! or none."""
    return prod(range(1, number, 2)) if number % 2 == 0 else 0


def _paired(
    entries: list[tuple[str, ...]],
) -> Iterator[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
    if not entries:
        yield ()
        return
    first, rest = entries[0], entries[1:]
    for i, other in enumerate(rest):
        for others in _paired(rest[:i] + rest[i + 1 :]):
            yield ((first, other), *others)


class _Classes:
    """Indices that agree, each class named by one of them."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def of(self, index: str) -> str:
        """Return the name of a class."""
        while index in self._above:
            index = self._above[index]
        return index

    def join(self, one: str, other: str) -> None:
        """Let two indices agree."""
        one, other = self.of(one), self.of(other)
        if one != other:
            self._above[other] = one


def _summed(factors: list[Node], indices: dict[str, IndexSet]) -> Node:
    """Return the sum of a product over indices, each as far in as it can be."""
    left = dict(indices)
    while left:
        reach = {i: len({j for x in factors if i in x.axes for j in x.axes}) for i in left}
        index = min(left, key=reach.__getitem__)
        where = left.pop(index)
        own = [x for x in factors if index in x.axes]
        factors = [x for x in factors if index not in x.axes]
        if own:
            factors.append(_times(own).sum(index))
        else:
            factors.append(node(where.count))
    return _times(factors)


def _times(factors: Sequence[Node]) -> Node:
    found = node(1)
    for x in factors:
        found = x if found.op == "constant" and found.detail == 1 else multiply(found, x)
    return found
