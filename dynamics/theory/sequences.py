"""Data orbits of sequences: set partitions of positions with exact weights.

The probability of a sequence of tokens depends only on which of its tokens are equal. A data orbit
is therefore a partition of the positions into at most S blocks of equal tokens. Its weight is
S (S - 1) ... (S - b + 1), for b blocks, times the probability of one such sequence. Partitions are
generated token by token: a token joins a block, or is one of the S - b tokens not seen before.
"""

import math
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq

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

    def sample(self, rng: np.random.Generator) -> tuple[tuple[int, ...], int]:
        """Return blocks of the positions and number of blocks of a random sequence."""
        law = replace(self, number=float(self.number))  # type: ignore[arg-type]
        labels: tuple[int, ...] = ()
        steps, starts, blocks = Counter[tuple[int, int]](), Counter[int](), 0
        for parent, draw in zip(self.parent, rng.random(len(self.parent)).tolist()):
            before = None if parent is None else labels[parent]
            ways = [1] * blocks + [self.size - blocks] * (blocks < self.size)
            weights = [
                number * float(law._probability(before, block, steps, starts))
                for block, number in enumerate(ways)
            ]
            sums = list(accumulate(weights))
            block = bisect(sums, draw * sums[-1], hi=len(sums) - 1)
            if before is not None:
                steps[before, block] += 1
                starts[before] += 1
            labels, blocks = (*labels, block), max(blocks, block + 1)
        return labels, blocks

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

    def sample(self, rng: np.random.Generator) -> tuple[tuple[int, ...], int]:
        """Return the states of a random sequence, and 0 blocks."""
        p, q = float(self.p), float(self.q)
        row = [int(rng.random() < p / (p + q))]
        for draw in rng.random(self.length - 1):
            row.append(int(draw >= q) if row[-1] else int(draw < p))
        return tuple(row), 0

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


class Ratio(NamedTuple):
    """A fraction that need not be in lowest terms."""

    numerator: int
    denominator: int


@dataclass(frozen=True)
class Steps:
    """Joint law of position, state, next state and number of ones of a stationary Markov chain.

    The state after the last one is drawn as well; a loss that does not depend on it has the same
    mean.
    """

    length: int
    p: Fraction
    q: Fraction

    @property
    def count(self) -> int:
        """Number of rows, if no probability is 0 or 1."""
        return 2 * self.length * (self.length + 1)

    def orbits(self) -> Iterator[tuple[tuple[int, ...], int, Ratio]]:
        """Yield (position, state, next state, ones up to the position), 0 blocks and weight.

        Weights are integers over a common denominator, which is the same at each position.
        """
        common = math.lcm(self.p.denominator, self.q.denominator)
        p, q = int(self.p * common), int(self.q * common)
        steps = {0: (common - p, p), 1: (q, common - q)}
        law, denominator = {(0, 0): q, (1, 1): p}, p + q
        for t in range(self.length):
            denominator *= common
            grown: dict[tuple[int, int], int] = {}
            for (state, ones), weight in law.items():
                for other, step in enumerate(steps[state]):
                    if step:
                        yield (t, state, other, ones), 0, Ratio(weight * step, denominator)
                        after = other, ones + other
                        grown[after] = grown.get(after, 0) + weight * step
            law = grown


@dataclass(frozen=True)
class Listed:
    """Data orbits of equal weight, each with its number of blocks."""

    rows: tuple[tuple[tuple[int, ...], int], ...]
    weight: Fraction

    @property
    def count(self) -> int:
        """Number of data orbits."""
        return len(self.rows)

    def orbits(self) -> Iterator[tuple[tuple[int, ...], int, Fraction]]:
        """Yield columns, number of blocks and weight of each data orbit."""
        yield from ((labels, blocks, self.weight) for labels, blocks in self.rows)


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

    law: Tokens | States | Steps | Listed | None
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
                " choose fewer positions or a smaller vocabulary, or a number of samples for an "
                "estimate"
            )
        rows, weights = [], []
        for labels, blocks, weight in self.law.orbits() if self.law else [((), 0, Fraction(1))]:
            rows.append([*labels, *(x for own in self.sets for x in _columns(own, blocks))])
            weights.append(weight)
        table = np.array(rows, np.int64).reshape(len(weights), -1)
        given = [self._array(weights), *map(self._array, self.relations)]
        errors = [_error(x) for x in (weights, *self.relations)]
        form = "steps" if isinstance(self.law, Steps) else ""
        return Orbits(given[0], (table,), (tuple(given[1:]),), errors=tuple(errors), form=form)

    def sampled(self, number: int, seed: int = 0) -> Orbits:
        """Return a random sample of sequences with equal weights."""
        assert isinstance(self.law, (Tokens, States))
        rng = np.random.default_rng(seed)
        rows = tuple(self.law.sample(rng) for _ in range(number))
        listed = replace(self, law=Listed(rows, Fraction(1, number)))
        return replace(listed.orbits(), form="sample")

    def _array(self, numbers: Sequence[Fraction | Ratio]) -> Array:
        """Return numbers as the nearest floats, or as balls."""
        convert: Any = _ball if self.in_balls else _float
        return np.array([convert(x) for x in numbers], object if self.in_balls else float)


def _columns(own: tuple[bool, int, int], blocks: int) -> tuple[int, int, int]:
    """Return numbers of blocks, of blocks and representatives, and of elements of a set."""
    is_vocabulary, representatives, size = own
    number = blocks if is_vocabulary else 0
    return number, min(number + representatives, size), size


def _float(x: Fraction | Ratio) -> float:
    """Return the nearest float."""
    return x.numerator / x.denominator


def _ball(x: Fraction | Ratio) -> arb:
    """Return a ball around an exact fraction."""
    return arb(fmpq(x.numerator, x.denominator))


def _error(numbers: Sequence[Fraction | Ratio]) -> float:
    """Return a bound of the relative error of the nearest floats."""
    for x in numbers:
        numerator, denominator = _float(x).as_integer_ratio()
        if numerator * x.denominator != denominator * x.numerator:
            return UNIT
    return 0.0
