"""Symmetry group of the index sets of a theory, and orbits of entries."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from math import prod

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dynamics.theory.configurations import Elements, Integers

#: An element: its part, the larger element that contains it, and its number inside.
Named = tuple[int, int, int]


class SymmetryGroup:
    """Exchanges of equal elements, and changes of sign, of the index sets.

    Parameters
    ----------
    sets
        Mapping from the name of an index set to its elements.
    signed
        Mapping from the numbers of the parts whose elements may change sign: whether they are the
        coordinates of planes, and change sign by turns of a plane.
    """

    def __init__(self, sets: Mapping[str, Elements], signed: Mapping[int, bool]) -> None:
        self.sets, self.signed = sets, signed

    def orbits(self, names: Sequence[str]) -> tuple[Integers, Integers]:
        """Return an orbit number and a sign for each entry of an array over the named index sets.

        The group permutes entries with equal numbers and signs. It maps one of them to minus
        another if their signs differ. The number is -1 for entries that it maps to minus
        themselves; they vanish.
        """
        shape = tuple(len(self.sets[name]) for name in names)
        if not shape:
            return np.zeros((), np.int64), np.ones((), np.int64)
        size = prod(shape)
        own = np.arange(2 * size)  # each entry, and minus each entry
        edges = [np.empty((2, 0), np.int64)]
        for _, images in self.generators():
            index = np.ravel_multi_index(np.ix_(*(images[name][0] for name in names)), shape)
            signs = reduce(np.multiply, np.ix_(*(images[name][1] for name in names)))
            is_odd = np.broadcast_to(signs < 0, shape)
            image = np.concatenate([index + size * is_odd, index + size * ~is_odd], axis=None)
            is_moved = image != own
            edges.append(np.array([own[is_moved], image[is_moved]]))
        rows, columns = np.concatenate(edges, axis=1)
        graph = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(len(own), len(own)))
        component = connected_components(graph, directed=False)[1]
        first = np.unique(component, return_index=True)[1]
        plus, minus = first[component].reshape(2, *shape)
        label = np.where(plus == minus, -1, np.minimum(plus, minus))
        return label, np.where(plus <= minus, 1, -1)

    def generators(self) -> list[tuple[str, dict[str, tuple[Integers, Integers]]]]:
        """Return a description of each generator of the group, and its action on index sets.

        A mapping from the name of an index set to the images (n,) of its elements, and their signs.
        """
        generators = []
        for number, move in enumerate(self.moves()):
            images = {name: (order, np.ones_like(order)) for name, order in move.items()}
            generators.append((f"exchange {number}", images))
        for number, image in enumerate(self._signed_images()):
            images = {}
            for name, own in self.sets.items():
                elements = _named(own)
                order = [elements.index(image.get(x, (x, 1))[0]) for x in elements]
                signs = [image.get(x, (x, 1))[1] for x in elements]
                images[name] = np.array(order, np.int64), np.array(signs, np.int64)
            generators.append((f"flip {number}", images))
        return generators

    def moves(self) -> list[dict[str, Integers]]:
        """Return the permutations that generate the group: transpositions of neighbouring elements.

        Each is a mapping from the name of an index set to the permutation of its elements, (n,).
        """
        known = {element for elements in self.sets.values() for element in _named(elements)}
        swaps: list[dict[Named, Named]] = []
        inside: dict[tuple[int, int], list[Named]] = {}
        roots: dict[int, set[int]] = {}
        for part, larger, own in sorted(known):
            inside.setdefault((part, larger), []).append((part, larger, own))
            roots.setdefault(part, set()).add(larger)
        for (part, _), members in inside.items():
            if self.signed.get(part):  # a plane: its coordinates turn
                continue
            swaps += [{a: b, b: a} for a, b in pairwise(members)]
        groups = {frozenset(larger) for larger in roots.values()}
        for group in groups:
            ordered = sorted(group)
            for a, b in pairwise(ordered):
                turn = {a: b, b: a}
                swaps.append({x: (x[0], turn[x[1]], x[2]) for x in known if x[1] in turn})
        return [
            {
                name: np.array([_named(own).index(swap.get(x, x)) for x in _named(own)], np.int64)
                for name, own in self.sets.items()
            }
            for swap in swaps
        ]

    def _signed_images(self) -> Iterator[dict[Named, tuple[Named, int]]]:
        """Yield the images and signs of elements that a sign change or turn does not preserve."""
        known = {x for elements in self.sets.values() for x in _named(elements)}
        for part, larger, own in sorted(x for x in known if x[0] in self.signed):
            element = part, larger, own
            if not self.signed[part]:
                yield {element: (element, -1)}
            elif own == 0:
                other = part, larger, 1
                yield {element: (other, 1), other: (element, -1)}


def _named(elements: Elements) -> list[Named]:
    return list(zip(elements.part.tolist(), elements.larger.tolist(), elements.own.tolist()))
