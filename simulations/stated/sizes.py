"""Lazy enumeration of small sizes of a theory: nine sizes have millions of combinations."""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import combinations

Row = tuple[int, ...]


def by_sum(ranges: Sequence[range]) -> Iterator[Row]:
    """Yield the combinations of the ranges, ordered by sum, then lexicographically."""
    if all(ranges):
        for total in range(sum(x[0] for x in ranges), sum(x[-1] for x in ranges) + 1):
            yield from _of_sum(ranges, total)


def fewest_minima_first(ranges: Sequence[range]) -> Iterator[Row]:
    """Yield the same combinations, ordered by the number of ranges at their minimum."""
    positions = range(len(ranges))
    for number in range(len(ranges) + 1):
        yield from merge(
            *(
                by_sum([ranges[i][:1] if i in least else ranges[i][1:] for i in positions])
                for least in combinations(positions, number)
            ),
            key=lambda row: (sum(row), row),
        )


def _of_sum(ranges: Sequence[range], total: int) -> Iterator[Row]:
    """Yield the combinations with a given sum."""
    if not ranges:
        if total == 0:
            yield ()
        return
    first, *rest = ranges
    low, high = sum(x[0] for x in rest), sum(x[-1] for x in rest)
    for x in first:
        if low <= total - x <= high:
            for row in _of_sum(rest, total - x):
                yield (x, *row)
