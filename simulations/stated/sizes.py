"""Small sizes of a theory in order, one after the other: of nine sizes there are millions."""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import combinations

Row = tuple[int, ...]


def by_sum(ranges: Sequence[range]) -> Iterator[Row]:
    """Yield a number of each range, in order of their sum, then of the numbers."""
    if all(ranges):
        for total in range(sum(x[0] for x in ranges), sum(x[-1] for x in ranges) + 1):
            yield from _of_sum(ranges, total)


def few_least(ranges: Sequence[range]) -> Iterator[Row]:
    """Yield the same rows, those first in which the fewest numbers are the least of their range."""
    places = range(len(ranges))
    for number in range(len(ranges) + 1):
        yield from merge(
            *(
                by_sum([ranges[i][:1] if i in least else ranges[i][1:] for i in places])
                for least in combinations(places, number)
            ),
            key=lambda row: (sum(row), row),
        )


def _of_sum(ranges: Sequence[range], total: int) -> Iterator[Row]:
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
