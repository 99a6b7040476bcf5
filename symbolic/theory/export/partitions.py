"""Data orbits of a sequence, in pure Python: this text is part of exported modules."""

from typing import Any


def _tokens(law: str, size: int, number: float, parent: Any) -> Any:
    """Return block of each position, number of blocks and probability of each set partition."""
    rows: Any = [((), 0, 1.0)]
    for t, before in enumerate(parent):
        grown = []
        for row, blocks, weight in rows:
            pairs = [(row[a], row[u]) for u, a in enumerate(parent[:t]) if a is not None]
            for block in range(min(blocks + 1, size)):
                if before is None or law == "iid":
                    probability = 1.0 / size
                elif law == "stay":
                    same = block == row[before]
                    probability = number if same else (1.0 - number) / (size - 1)
                else:
                    starts = sum(a == row[before] for a, _ in pairs)
                    seen = pairs.count((row[before], block)) + number
                    probability = seen / (starts + size * number)
                ways = size - blocks if block == blocks else 1
                after = (*row, block), max(blocks, block + 1), weight * ways * probability
                grown.append(after)
        rows = grown
    return [row for row in rows if row[2] > 0.0]


def _states(length: int, p: float, q: float) -> Any:
    """Return the states, 0 blocks and the probability of each sequence of two states."""
    rows: Any = [((0,), 0, q / (p + q)), ((1,), 0, p / (p + q))]
    for _ in range(length - 1):
        rows = [
            ((*row, state), 0, weight * (move if state != row[-1] else 1.0 - move))
            for row, _, weight in rows
            for move in (q if row[-1] else p,)
            for state in (0, 1)
        ]
    return [row for row in rows if row[2] > 0.0]


def _steps(length: int, p: float, q: float) -> Any:
    """Return position, states there and next, ones so far; 0 blocks; and the probability."""
    rows: Any = []
    law = {(0, 0): q / (p + q), (1, 1): p / (p + q)}
    for t in range(length):
        grown: Any = {}
        for (state, ones), weight in law.items():
            move = q if state else p
            for other, step in ((1 - state, move), (state, 1.0 - move)):
                rows.append(((t, state, other, ones), 0, weight * step))
                after = other, ones + other
                grown[after] = grown.get(after, 0.0) + weight * step
        law = grown
    return [row for row in rows if row[2] > 0.0]


def _arguments(rows: Any, sets: Any) -> Any:
    """Return weights and blocks; a set has: is vocabulary, number of representatives, size."""
    table, weights = [], []
    for row, blocks, weight in rows:
        columns = list(row)
        for is_vocabulary, representatives, size in sets:
            number = blocks if is_vocabulary else 0
            columns += [number, min(number + representatives, size), size]
        table.append(columns)
        weights.append(weight)
    return weights, table
