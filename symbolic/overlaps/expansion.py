"""The loss of a theory in overlaps as a sum of products of expectations, for all sizes.

Sums over exchangeable indices are split by the patterns of equal indices. Each pattern has a number
of index values, a polynomial in the sizes, and the factors that share no datum are independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations, product
from types import MappingProxyType
from typing import Any, NamedTuple

import sympy as sp

from symbolic.overlaps.attention import tokens
from symbolic.overlaps.gram import Pair, pair_of
from symbolic.overlaps.language import Element, Expression, Normal
from symbolic.overlaps.terms import Factor, Inner, Linear, inner, merged, replaced
from symbolic.theory.errors import require
from symbolic.theory.sets import Exchangeable

#: Largest number of summed indices over one set in a term of the expanded loss.
MOST_INDICES = 6
#: Largest number of functions with different arguments in one expectation.
MOST_ARGUMENTS = 3
#: Largest number of error functions in a closed form.
MOST_CLOSED = 2
#: Largest number of steps (also of relu) with different arguments in one expectation.
MOST_STEPS = 3
#: Factors of a product, with their coefficient.
Sums = dict[tuple[Factor, ...], sp.Expr]


class Component(NamedTuple):
    """An expectation of a product of powers of functions of jointly normal variables.

    Attributes
    ----------
    functions
        Family and monomial (i, a, b) of each variable y: y^i f^a g^b with the function f of the
        family and, for erf, its derivative g; the family "" has powers only. In the family
        softmax, f = t exp(y) and g = exp(-f); products with this family are integrated over t > 0
        with the measure dt / t.
    mean
        For each variable, its constant and its coefficients of Gram entries.
    covariance
        For each pair of variables, the coefficients of Gram entries.
    power
        Number of independent copies of the variables: the power of the expectation.
    """

    functions: tuple[tuple[str, tuple[int, int, int]], ...]
    mean: tuple[tuple[sp.Expr, tuple[tuple[Pair, sp.Expr], ...]], ...]
    covariance: tuple[tuple[tuple[tuple[Pair, sp.Expr], ...], ...], ...]
    power: sp.Expr = sp.Integer(1)


class Reduced(NamedTuple):
    """The loss for all sizes: a sum of coefficients times products of expectations."""

    components: tuple[Component, ...]
    terms: tuple[tuple[sp.Expr, tuple[int, ...]], ...]


def expanded(loss: Expression) -> Reduced:
    """Return a loss as a sum of products of expectations.

    Raises
    ------
    TheoryError
        If an expectation has more functions with different arguments than can be integrated.
    """
    sums: Sums = {}
    for term in loss.terms:
        for number, numbers in patterns(term.bound):
            add(sums, term.coefficient * number, replaced(term.factors, numbers))
    return reduced([sums], loss.location)[0]


def add(sums: Sums, coefficient: sp.Expr, factors: tuple[Factor, ...]) -> None:
    """Add a product of factors with numbered indices to a sum."""
    key = _canonical(factors)
    sums[key] = sums.get(key, sp.Integer(0)) + coefficient


def reduced(many: list[Sums], location: Any) -> list[Reduced]:
    """Return sums of products of factors as sums of products of the same expectations."""
    components: dict[Component, int] = {}
    results = []
    for sums in many:
        terms = []
        for factors, coefficient in sums.items():
            coefficient = sp.factor(coefficient)
            if coefficient != 0:
                present, absent, divisor = tokens(factors)
                parts = [_component(x, location) for x in _independent((*factors, *present))]
                parts += [_component((x,), location)._replace(power=n) for x, n in absent]
                numbers = [components.setdefault(x, len(components)) for x in parts]
                terms.append((coefficient / divisor, tuple(sorted(numbers))))
        results.append(tuple(terms))
    return [Reduced(tuple(components), terms) for terms in results]


def _component(factors: tuple[Factor, ...], location: Any) -> Component:
    """Return the expectation of a product of factors."""
    variables: dict[tuple[str, Linear], list[int]] = {}
    for x in sorted(factors, key=lambda x: not x.function):
        family = {"gauss": "erf", "delta": "step"}.get(x.function, x.function)
        same = [key for key in variables if key[1] == x.linear and key[0]]
        key = same[0] if same and not family else (family, x.linear)
        monomial = variables.setdefault(key, [0, 0, 0])
        monomial[{"": 0, "gauss": 2, "delta": 2}.get(x.function, 1)] += x.power
        if x.function == "softmax":
            monomial[2] = 1
    _require_integrable(variables, location)
    linears = [linear for _, linear in variables]
    return Component(
        tuple((family, (i, a, b)) for (family, _), (i, a, b) in variables.items()),
        tuple(map(_mean, linears)),
        tuple(tuple(_covariance(x, y) for y in linears) for x in linears),
    )


def _require_integrable(variables: Mapping[tuple[str, Linear], list[int]], location: Any) -> None:
    """Raise `TheoryError` if an expectation has no closed form and too many arguments."""
    used = {key: m for key, m in variables.items() if m[1] or m[2]}
    if any(family == "softmax" for family, _ in used):
        require(
            all(family == "softmax" for family, _ in used),
            "softmax times another function of fields of the same tokens is not allowed: only "
            "weights of one softmax and powers of fields can be integrated",
            location,
        )
        return
    steps = [x for family, x in used if family == "step"]
    if steps:
        _require_orthant(steps, len(used), location)
        return
    is_closed = all(family == "erf" for family, _ in used)
    is_closed = is_closed and sum(m[1] for m in used.values()) <= MOST_CLOSED
    require(
        is_closed or len(used) <= MOST_ARGUMENTS,
        f"an expectation of functions of {len(used)} different fields is not allowed: at most "
        f"{MOST_ARGUMENTS} can be integrated; sample the data, as runs of one-pass SGD on vectors "
        "do, or write a loss in which fewer functions are multiplied",
        location,
    )


def _require_orthant(steps: list[Linear], functions: int, location: Any) -> None:
    """Raise `TheoryError` unless an expectation with relu or step has a closed form."""
    require(
        len(steps) == functions and all(_mean(x) == (0, ()) for x in steps),
        "relu or step of a field with a mean, or times another function of fields, is not allowed: "
        "the expectation has no closed form; use erf",
        location,
    )
    require(
        len(steps) <= MOST_STEPS,
        f"relu or step of {len(steps)} different fields in one expectation is not allowed: the "
        "probability of an orthant of four normal variables has no closed form; use erf, or runs "
        "on vectors",
        location,
    )


def _sums(entries: Iterator[tuple[Pair, sp.Expr]]) -> tuple[tuple[Pair, sp.Expr], ...]:
    """Return coefficients by Gram entry, sorted, without zeros."""
    sums: dict[Pair, sp.Expr] = {}
    for pair, coefficient in entries:
        sums[pair] = sums.get(pair, sp.Integer(0)) + coefficient
    nonzero = ((pair, sp.expand(x)) for pair, x in sums.items())
    return tuple(sorted(((p, x) for p, x in nonzero if x != 0), key=lambda p: p[0].name))


def _mean(linear: Linear) -> tuple[sp.Expr, tuple[tuple[Pair, sp.Expr], ...]]:
    """Return constant and coefficients of Gram entries of the mean of a linear combination."""

    def entries() -> Iterator[tuple[Pair, sp.Expr]]:
        for x, coefficient in linear.products:
            datum = x.second.family
            if not isinstance(datum, Normal):
                yield pair_of(*x).unordered, coefficient
            elif datum.mean is not None:
                direction = Element(datum.mean[1], None)
                yield pair_of(x.first, direction).unordered, coefficient * datum.mean[0]

    return linear.constant, _sums(entries())


def _covariance(left: Linear, right: Linear) -> tuple[tuple[Pair, sp.Expr], ...]:
    """Return coefficients of Gram entries of the covariance of two linear combinations."""

    def entries() -> Iterator[tuple[Pair, sp.Expr]]:
        for (x, a), (y, b) in product(left.products, right.products):
            if isinstance(x.second.family, Normal) and x.second == y.second:
                yield pair_of(x.first, y.first).unordered, a * b * x.second.family.variance

    return _sums(entries())


def _partitions(items: tuple[str, ...], given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield each set partition of indices as a mapping to block numbers, some of them given."""
    if not items:
        yield dict(given)
        return
    for partial in _partitions(items[:-1], given):
        for block in range(len(set(partial.values())) + 1):
            yield {**partial, items[-1]: block}


def patterns(
    bound: tuple[tuple[str, Exchangeable], ...],
    given: Mapping[tuple[str, Exchangeable], int] = MappingProxyType({}),
) -> Iterator[tuple[sp.Expr, dict[str, int]]]:
    """Yield each pattern of equal indices: the number of index values, and an element for each.

    Parameters
    ----------
    bound
        The summed indices and their sets.
    given
        Mapping from indices that are not summed to elements, numbered from 0 in each set.
    """
    by_set: dict[Exchangeable, list[str]] = {over: [] for _, over in given}
    for name, over in bound:
        by_set.setdefault(over, []).append(name)
    choices = []
    for over, names in by_set.items():
        require(
            len(names) <= MOST_INDICES,
            f"a term with {len(names)} sums over {over} is not allowed: at most {MOST_INDICES}",
        )
        own = {name: block for (name, x), block in given.items() if x is over}
        choices.append(list(_partitions(tuple(names), own)))
    for choice in product(*choices):
        number, numbers = sp.Integer(1), {}
        for over, blocks in zip(by_set, choice):
            first = len({block for (_, x), block in given.items() if x is over})
            for block in range(first, len(set(blocks.values()))):
                number *= over.size - block
            numbers.update(blocks)
        yield number, numbers


def _elements(factors: tuple[Factor, ...]) -> Iterator[Element]:
    for factor in factors:
        for x, _ in factor.linear.products:
            yield from x


def _canonical(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Return the smallest of the products that differ by permutations of elements."""
    used: dict[Any, set[int]] = {}
    for x in _elements(factors):
        if x.label is not None:
            used.setdefault(x.family.over, set()).add(x.label)  # type: ignore[arg-type]
    choices = [
        [(over, dict(zip(sorted(old), new))) for new in permutations(range(len(old)))]
        for over, old in used.items()
    ]
    candidates = []
    for choice in product(*choices):
        maps = dict(choice)
        candidates.append(merged(tuple(_relabelled(x, maps) for x in factors)))
    return min(candidates, key=lambda x: tuple(factor.key for factor in x))


def _relabelled(factor: Factor, maps: Mapping[Any, Mapping[int, int]]) -> Factor:
    """Return a factor with the elements of each set renumbered."""

    def renumbered(x: Element) -> Element:
        return x if x.label is None else Element(x.family, maps[x.family.over][x.label])  # type: ignore[index]

    products: dict[Inner, sp.Expr] = {}
    for x, coefficient in factor.linear.products:
        renamed = inner(renumbered(x.first), renumbered(x.second))
        products[renamed] = products.get(renamed, sp.Integer(0)) + coefficient
    return factor._replace(linear=Linear.of(products, factor.linear.constant))


def _independent(factors: tuple[Factor, ...]) -> list[tuple[Factor, ...]]:
    """Return the factors in groups that share no datum, which are independent."""
    groups: list[tuple[frozenset[Element], tuple[Factor, ...]]] = []
    for factor in factors:
        data, together = factor.linear.data, tuple([factor])
        rest = []
        for other, members in groups:
            if data & other:
                data, together = data | other, (*members, *together)
            else:
                rest.append((other, members))
        groups = [*rest, (data, together)]
    return [tuple(sorted(x, key=lambda factor: factor.key)) for _, x in groups]
