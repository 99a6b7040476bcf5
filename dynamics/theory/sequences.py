"""Data orbits of sequences: set partitions of positions with exact weights.

The probability of a sequence of tokens depends only on which of its tokens are equal. A data orbit
is therefore a partition of the positions into at most S blocks of equal tokens. Its weight is
S (S - 1) ... (S - b + 1), for b blocks, times the probability of one such sequence. Partitions are
generated token by token: a token joins a block, or is one of the S - b tokens not seen before.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dynamics.core.balls.exact import exact
from dynamics.core.errors import ParameterError
from dynamics.theory.data import MOST_ORBITS, UNIT, Array, Orbits


@dataclass(frozen=True)
class Tokens:
    """Law of tokens that are all alike.

    Attributes
    ----------
    law
        ``"iid"``, ``"stay"`` or ``"polya"`` (`symbolic.theory.words.JointLaw`).
    size
        Number of tokens of the vocabulary.
    number
        Probability to repeat the parent, or concentration.
    parent
        Parent of each position; ``None`` for a root.
    """

    law: str
    size: int
    number: Fraction
    parent: tuple[int | None, ...]

    @property
    def count(self) -> int:
        """Number of partitions of the positions into at most S blocks."""
        ways = {0: 1}
        for _ in self.parent:
            grown: dict[int, int] = {}
            for blocks, number in ways.items():
                grown[blocks] = grown.get(blocks, 0) + blocks * number
                if blocks < self.size:
                    grown[blocks + 1] = grown.get(blocks + 1, 0) + number
            ways = grown
        return sum(ways.values())

    def orbits(self) -> Iterator[tuple[tuple[int, ...], int, Fraction]]:
        """Yield blocks of the positions, number of blocks and weight of each data orbit."""
        yield from self._extended((), 0, Fraction(1), Counter(), Counter())

    def _extended(
        self,
        labels: tuple[int, ...],
        blocks: int,
        weight: Fraction,
        steps: Counter[tuple[int, int]],
        starts: Counter[int],
    ) -> Iterator[tuple[tuple[int, ...], int, Fraction]]:
        """Yield the data orbits that begin with some tokens.

        ``steps`` and ``starts`` are the numbers of transitions so far, and of those from a block.
        """
        if len(labels) == len(self.parent):
            yield labels, blocks, weight
            return
        parent = self.parent[len(labels)]
        before = None if parent is None else labels[parent]
        for block in range(min(blocks + 1, self.size)):
            ways = self.size - blocks if block == blocks else 1
            probability = ways * self._probability(before, block, steps, starts)
            if probability == 0:
                continue
            if before is not None:
                steps[before, block] += 1
                starts[before] += 1
            row = (*labels, block)
            yield from self._extended(
                row, max(blocks, block + 1), weight * probability, steps, starts
            )
            if before is not None:
                steps[before, block] -= 1
                starts[before] -= 1

    def _probability(
        self,
        before: int | None,
        block: int,
        steps: Counter[tuple[int, int]],
        starts: Counter[int],
    ) -> Fraction:
        """Return the probability of one token after that of its parent."""
        if before is None or self.law == "iid":
            return Fraction(1, self.size)
        if self.law == "stay":
            return self.number if block == before else (1 - self.number) / (self.size - 1)
        total = starts[before] + self.size * self.number
        return (steps[before, block] + self.number) / total


@dataclass(frozen=True)
class States:
    """Law of a stationary Markov chain of states 0 and 1 with transition probabilities p and q."""

    length: int
    p: Fraction
    q: Fraction

    @property
    def count(self) -> int:
        """Number of sequences."""
        return 2**self.length

    def orbits(self) -> Iterator[tuple[tuple[int, ...], int, Fraction]]:
        """Yield states, 0 blocks and probability of each sequence."""
        total = self.p + self.q
        rows: list[tuple[tuple[int, ...], Fraction]]
        rows = [((1,), self.p / total), ((0,), self.q / total)]
        for _ in range(self.length - 1):
            rows = [
                ((*row, state), weight * (move if state != row[-1] else 1 - move))
                for row, weight in rows
                for move in (self.q if row[-1] else self.p,)
                for state in (0, 1)
            ]
        yield from ((row, 0, weight) for row, weight in rows if weight)


@dataclass(frozen=True)
class SequenceLaw:
    """Data of a theory on ordered positions.

    Attributes
    ----------
    law
        Law of the sequence; ``None`` without data.
    sets
        For each exchangeable set: whether its elements are the blocks of the sequence, the largest
        number of representatives of other elements, and its size.
    relations
        Numbers of each relation.
    in_balls
        Whether weights and relations are returned as balls.
    """

    law: Tokens | States | None
    sets: tuple[tuple[bool, int, int], ...]
    relations: tuple[tuple[Fraction, ...], ...]
    in_balls: bool = False

    @property
    def count(self) -> int:
        """Number of data orbits."""
        return 1 if self.law is None else self.law.count

    def orbits(self) -> Orbits:
        """Return all data orbits with their weights.

        Raises
        ------
        ParameterError
            If there are more than `MOST_ORBITS`.
        """
        if self.count > MOST_ORBITS:
            raise ParameterError(
                f"{self.count:.2g} partitions of the positions are too many (most {MOST_ORBITS:g}):"
                " choose fewer positions or a smaller vocabulary"
            )
        rows, weights = [], []
        for labels, blocks, weight in self.law.orbits() if self.law else [((), 0, Fraction(1))]:
            rows.append([*labels, *(x for own in self.sets for x in _columns(own, blocks))])
            weights.append(weight)
        table = np.array(rows, np.int64).reshape(len(weights), -1)
        given = [self._array(weights), *map(self._array, self.relations)]
        errors = [_error(x) for x in (weights, *self.relations)]
        return Orbits(given[0], (table,), (tuple(given[1:]),), errors=tuple(errors))

    def _array(self, numbers: Sequence[Fraction]) -> Array:
        """Return numbers as the nearest floats, or as balls."""
        convert: Any = exact if self.in_balls else float
        return np.array([convert(x) for x in numbers], object if self.in_balls else float)


def _columns(own: tuple[bool, int, int], blocks: int) -> tuple[int, int, int]:
    """Return numbers of blocks, of blocks and representatives, and of elements of a set."""
    is_vocabulary, representatives, size = own
    number = blocks if is_vocabulary else 0
    return number, min(number + representatives, size), size


def _error(numbers: Sequence[Fraction]) -> float:
    """Return a bound of the relative error of the nearest floats."""
    return 0.0 if all(Fraction(float(x)) == x for x in numbers) else UNIT
