"""Configurations of the data up to symmetry, in plain Python: part of every exported module.

Data are values on the elements of a few sets. Each larger element has a *root class*, the values
on it, and contains inner elements, each with its own *class*. The *type* of a larger element is
its root class and the number of inner elements of each class. Up to symmetry, a configuration is a
multiset of types. Its probability is n! prod_t p_t^k_t / k_t! for n larger elements, where p_t is
the probability of type t and k_t its multiplicity.
"""

import itertools as _itertools
import math as _math


def _orbits(sets, subsets, normalization):
    """Return the probability and the families of every configuration up to symmetry.

    Parameters
    ----------
    sets
        For each set: size, root classes (values, probability, membership in the subsets), and the
        sets inside it. For each of these: size, classes (probability for each root class,
        membership), and the mean if the number of elements is Poisson distributed, else ``None``.
    subsets, normalization
        Number of elements of each subset, and divisor of all probabilities.

    Returns
    -------
    list
        Pairs of probability and, for each set, a list of families (count, values, numbers).
    """
    rows: list = [(1.0 / normalization, (), tuple(subsets))]
    for size, classes, inner in sets:
        types = _types(classes, inner)
        rows = [
            (probability * factor, (*families, family), unused)
            for probability, families, left in rows
            for factor, family, unused in _multisets(types, size, left)
        ]
    return [(probability, families) for probability, families, left in rows if not any(left)]


def _types(classes, inner):
    """Return the types of a larger element: probability, membership, values, numbers inside."""
    types = []
    for root, (values, factor, uses) in enumerate(classes):
        contents = [_contents(root, *each) for each in inner]
        for filling in _itertools.product(*contents):
            probability = factor * _math.prod(part[0] for part in filling)
            members = tuple(map(sum, zip(uses, *(part[1] for part in filling))))
            if probability > 0.0:
                types.append((probability, members, values, tuple(part[2] for part in filling)))
    return types


def _contents(root, size, classes, mean):
    """Yield probability, membership and numbers of the inner elements of each class."""
    if mean is not None:
        ((_, uses),) = classes
        for number in range(size + 1):
            yield _poisson(number, mean), tuple(number * use for use in uses), (number,)
        return
    for numbers in _compositions(size, len(classes)):
        probability, total = 1.0, 0
        for number, (factors, _) in zip(numbers, classes):
            total += number
            probability *= _math.comb(total, number) * factors[root] ** number
        members = [[number * use for use in uses] for number, (_, uses) in zip(numbers, classes)]
        yield probability, tuple(map(sum, zip(*members))), numbers


def _poisson(number, mean):
    """Return the Poisson probability of a number."""
    if mean == 0.0:
        return float(number == 0)
    return _math.exp(number * _math.log(mean) - mean - _math.lgamma(number + 1.0))


def _compositions(total, parts):
    """Yield the ways to write a number as an ordered sum of nonnegative integers."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _multisets(types, size, left):
    """Yield probability, families and remaining subset sizes of ``size`` larger elements."""
    if not types:
        if size == 0:
            yield 1.0, [], left
        return
    (weight, members, values, numbers), *others = types
    for count in range(size + 1):
        unused = tuple(have - count * use for have, use in zip(left, members))
        if min(unused, default=0) < 0:
            break
        family = [(count, values, numbers)] if count else []
        factor = _math.comb(size, count) * weight**count
        for probability, rest, last in _multisets(others, size - count, unused):
            yield factor * probability, family + rest, last
