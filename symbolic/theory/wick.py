"""Exact mean over Gaussian data by Wick's (Isserlis') theorem.

A polynomial in Gaussian data is expanded into a sum of products. The mean of a product of entries
is the sum over all pairings of the product of the variances, where the indices of each pair agree.
The result is an ordinary expression without Gaussian data, valid for all sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from math import prod

from symbolic.theory.errors import TheoryError, require
from symbolic.theory.expression import Node, multiply, node
from symbolic.theory.sets import IndexSet
from symbolic.theory.sources import Gaussian

#: Limit of the number of pairings of all products together.
MOST_PAIRINGS = 20_000


@dataclass(frozen=True)
class Product:
    """A product of expressions and Gaussian entries, summed over some indices.

    Attributes
    ----------
    factors
        Expressions without Gaussian data.
    entries
        Gaussian sources with the indices of an entry.
    summed
        Indices summed over, with their index sets.
    """

    factors: tuple[Node, ...] = ()
    entries: tuple[tuple[Gaussian, tuple[str, ...]], ...] = ()
    summed: tuple[tuple[str, IndexSet], ...] = ()

    def renamed(self, names: dict[str, str]) -> Product:
        """Return the product with its indices renamed."""
        return Product(
            tuple(x.renamed(names) for x in self.factors),
            tuple((g, tuple(names.get(i, i) for i in indices)) for g, indices in self.entries),
            tuple((names.get(i, i), index_set) for i, index_set in self.summed),
        )


class Mean:
    """Mean of a loss over Gaussian data.

    Parameters
    ----------
    loss
        Expression without free indices, a polynomial in the Gaussian data.

    Attributes
    ----------
    loss
        The mean, an expression without Gaussian data.
    degree
        Degree of the loss in each Gaussian source.

    Raises
    ------
    TheoryError
        If the loss is not a polynomial in them, or if there are too many pairings.
    """

    def __init__(self, loss: Node) -> None:
        self._fresh = (f"'{number}" for number in count())  # not identifiers: never a user's
        self._known: dict[Node, bool] = {}
        products = self._products(loss)
        self.degree: dict[Gaussian, int] = {}
        for summand in products:
            for source, power in _degrees(summand).items():
                self.degree[source] = max(power, self.degree.get(source, 0))
        number = sum(prod(_pairings(k) for k in _degrees(term).values()) for term in products)
        require(
            number <= MOST_PAIRINGS,
            f"the mean over Gaussian data has {number} pairings (most: {MOST_PAIRINGS}): the loss "
            "must be of lower degree in them",
            loss.location,
        )
        terms = [term for summand in products for term in self._contracted(summand)]
        mean = terms[0] if terms else node(0)
        for term in terms[1:]:
            mean = mean + term
        self.loss = mean

    def _random(self, x: Node) -> bool:
        """Return whether an expression contains Gaussian data."""
        if x not in self._known:
            own = x.op == "entry" and isinstance(x.detail, Gaussian)
            self._known[x] = own or any([self._random(y) for y in x.arguments])
        return self._known[x]

    def _products(self, x: Node) -> list[Product]:
        """Return an expression as a sum of products."""
        if not self._random(x):
            return [Product((x,))]
        if x.op == "entry":
            return [Product((), ((x.detail, x.indices),))]
        if x.op == "add":
            return [term for argument in x.arguments for term in self._products(argument)]
        if x.op == "multiply":
            return self._multiplied([self._products(argument) for argument in x.arguments])
        if x.op == "sum":
            (body,) = x.arguments
            sums = []
            for term in self._products(body):
                name = next(self._fresh)
                new = term.renamed({x.detail: name})
                summed = (*new.summed, (name, body.axes[x.detail]))
                sums.append(Product(new.factors, new.entries, summed))
            return sums
        if x.op == "power" and x.detail.is_Integer and x.detail > 0:
            return self._multiplied([self._products(x.arguments[0])] * int(x.detail))
        names = ", ".join(sorted(self._gaussian_names(x)))
        how = f"to the power {x.detail}" if x.op == "power" else f"within {x.op}"
        raise TheoryError(
            f"no closed expectation: Gaussian data ({names}) {how} is not allowed, only "
            "polynomials in them",
            x.location,
        )

    def _gaussian_names(self, x: Node) -> set[str]:
        """Return the names of the Gaussian data in an expression."""
        if x.op == "entry":
            return {x.detail.name} if isinstance(x.detail, Gaussian) else set()
        return set().union(*(self._gaussian_names(y) for y in x.arguments))

    def _multiplied(self, factors: Sequence[list[Product]]) -> list[Product]:
        """Expand a product of sums, with different summed indices in each factor."""
        total = prod(map(len, factors))
        require(
            total <= MOST_PAIRINGS,
            f"the loss has {total} products of Gaussian data (most: {MOST_PAIRINGS}): it must be "
            "of lower degree in them",
        )
        expanded = []
        for row in product(*factors):
            terms = [term.renamed({i: next(self._fresh) for i, _ in term.summed}) for term in row]
            expanded.append(
                Product(
                    tuple(x for term in terms for x in term.factors),
                    tuple(x for term in terms for x in term.entries),
                    tuple(x for term in terms for x in term.summed),
                )
            )
        return expanded

    def _contracted(self, term: Product) -> Iterator[Node]:
        """Yield the mean of a product, one summand per pairing of its Gaussian entries."""
        sources = list(_degrees(term))
        pairings = [
            list(_paired([i for g, i in term.entries if g is source])) for source in sources
        ]  # empty for an odd number of entries
        for choice in product(*pairings):
            classes = _Classes()
            for pairs in choice:
                for left, right in pairs:
                    for a, b in zip(left, right):
                        classes.join(a, b)
            names = {i: classes.of(i) for i, _ in term.summed}
            names |= {i: classes.of(i) for _, indices in term.entries for i in indices}
            factors = [x.renamed(names) for x in term.factors]
            for source, pairs in zip(sources, choice):
                for left, _ in pairs:
                    factors += source.variance_at(tuple(map(classes.of, left)))
            remaining = {names[i]: index_set for i, index_set in term.summed}
            yield _summed(factors, remaining)


def _degrees(term: Product) -> Counter[Gaussian]:
    """Return the degree of a product in each Gaussian source."""
    return Counter(source for source, _ in term.entries)


def _pairings(number: int) -> int:
    """Return the number of pairings of so many entries: (n - 1)!! for even n, else 0."""
    return prod(range(1, number, 2)) if number % 2 == 0 else 0


def _paired(
    entries: list[tuple[str, ...]],
) -> Iterator[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
    """Yield all pairings of entries, each given by its indices."""
    if not entries:
        yield ()
        return
    first, rest = entries[0], entries[1:]
    for i, other in enumerate(rest):
        for others in _paired(rest[:i] + rest[i + 1 :]):
            yield ((first, other), *others)


class _Classes:
    """Disjoint-set structure of indices; a class is named by one of its indices."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def of(self, index: str) -> str:
        """Return the name of the class of an index."""
        while index in self._parent:
            index = self._parent[index]
        return index

    def join(self, first: str, second: str) -> None:
        """Merge the classes of two indices."""
        first, second = self.of(first), self.of(second)
        if first != second:
            self._parent[second] = first


def _summed(factors: list[Node], indices: dict[str, IndexSet]) -> Node:
    """Return the sum of a product over indices, each sum as far inside as possible."""
    remaining = dict(indices)
    while remaining:
        reach = {i: len({j for x in factors if i in x.axes for j in x.axes}) for i in remaining}
        index = min(remaining, key=reach.__getitem__)
        index_set = remaining.pop(index)
        dependent = [x for x in factors if index in x.axes]
        factors = [x for x in factors if index not in x.axes]
        if dependent:
            factors.append(_product(dependent).sum(index))
        else:
            factors.append(node(index_set.count))
    return _product(factors)


def _product(factors: Sequence[Node]) -> Node:
    """Return the product of factors without a leading 1."""
    result = node(1)
    for x in factors:
        result = x if result.op == "constant" and result.detail == 1 else multiply(result, x)
    return result
