"""Configurations of the data up to symmetry, in plain Python: part of every exported module.

Data are values on the elements of a few sets. A larger element is of a *type*: its own value and
the number of elements of each kind inside it. Up to symmetry a configuration is a multiset of
types; ``n`` larger elements have the probability n! prod_t p_t^k_t / k_t!, where p_t is the
probability of type t and k_t the number of larger elements of that type.
"""

import itertools as _itertools
import math as _math


def _orbits(sets, subsets, normalization):
    """Return the probability and the families of every configuration up to symmetry.

    Parameters
    ----------
    sets
        For each set its size, its kinds (value, probability, membership in the subsets) and the
        sets inside: size, kinds (probability by kind of the larger element, membership) and the
        mean if the number inside has a Poisson law.
    subsets, normalization
        The number of elements of each subset, and the factor that divides all probabilities.

    Returns
    -------
    list
        Pairs of a probability and, for each set, a list of families (count, value, numbers).
    """
    rows: list = [(1.0 / normalization, (), tuple(subsets))]
    for size, kinds, inner in sets:
        types = _types(kinds, inner)
        rows = [
            (chance * probability, (*families, family), unused)
            for probability, families, left in rows
            for chance, family, unused in _multisets(types, size, left)
        ]
    return [(probability, families) for probability, families, left in rows if not any(left)]


def _types(kinds, inner):
    """Return the types of a larger element: probability, membership, value, numbers inside."""
    types = []
    for root, (value, chance, uses) in enumerate(kinds):
        contents = [_contents(root, *each) for each in inner]
        for filling in _itertools.product(*contents):
            probability = chance * _math.prod(part[0] for part in filling)
            members = tuple(map(sum, zip(uses, *(part[1] for part in filling))))
            if probability > 0.0:
                types.append((probability, members, value, tuple(part[2] for part in filling)))
    return types


def _contents(root, size, kinds, mean):
    """Yield probability, membership and number of each kind of the elements inside."""
    if mean is not None:
        ((_, uses),) = kinds
        for number in range(size + 1):
            yield _poisson(number, mean), tuple(number * use for use in uses), (number,)
        return
    for numbers in _compositions(size, len(kinds)):
        probability, total = 1.0, 0
        for number, (chances, _) in zip(numbers, kinds):
            total += number
            probability *= _math.comb(total, number) * chances[root] ** number
        members = [[number * use for use in uses] for number, (_, uses) in zip(numbers, kinds)]
        yield probability, tuple(map(sum, zip(*members))), numbers


def _poisson(number, mean):
    """Return the probability of a number under the Poisson law."""
    if mean == 0.0:
        return float(number == 0)
    return _math.exp(number * _math.log(mean) - mean - _math.lgamma(number + 1.0))


def _compositions(total, parts):
    """Yield the ways to write a number as an ordered sum."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _multisets(types, size, left):
    """Yield probability, families and the subsets' remaining elements of ``size`` elements."""
    if not types:
        if size == 0:
            yield 1.0, [], left
        return
    (chance, members, value, numbers), *others = types
    for count in range(size + 1):
        unused = tuple(have - count * use for have, use in zip(left, members))
        if min(unused, default=0) < 0:
            break
        family = [(count, value, numbers)] if count else []
        factor = _math.comb(size, count) * chance**count
        for probability, rest, last in _multisets(others, size - count, unused):
            yield factor * probability, family + rest, last
