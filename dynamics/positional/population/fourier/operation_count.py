"""Number of operations of one gradient by the Fourier method.

Real additions, multiplications and fused multiply-adds of the inner loops in ``four_angles`` and
``node_sums`` count as one operation each. At four angles and one node a polynomial of degree C
takes 16 (ceil(C/4) + 1) operations, the transformation back to coefficients 32 + 20 ceil(C/4), and
the power four times

* 8, and 8 or 12 for each further digit of L - 2 in base 4 (12 if the digit is not 0), plain;
* 11, and 10 or 16 for each further digit, in excess of 1;
* 23 + 4 s by the binomial series with s squarings.

A complex multiply-add is four operations. Tables, tilts and windows are not counted (notebook
``fourier_method``, Section 9).
"""

from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel, plain_python
from dynamics.positional.population.fourier.four_angles import (
    LANES,
    PLAIN_POWER,
    binomial_series,
)

#: Largest number of operations, some ten seconds on one core.
MOST_OPERATIONS = 10**11

#: Larger numbers of operations are divided into parts of half a second.
OPERATIONS_AT_ONCE = 5 * 10**9


class Effort(NamedTuple):
    """Work of the integrals of one gradient.

    Attributes
    ----------
    totals
        Number of integrated totals R.
    nodes
        Number of their nodes.
    points
        Number of pairs of a node and an angle.
    operations
        Number of operations.
    """

    totals: int
    nodes: int
    points: int
    operations: int


def effort(
    C: int, L: int, types: int, nodes: np.ndarray, angles: np.ndarray, filled: np.ndarray
) -> Effort:
    """Return the work for given numbers of nodes and angles of each total.

    ``filled`` is the tilted probability of non-empty types, ``types`` their number.
    """
    groups = (C + 3) // 4
    power = np.array([_power(L - 2, float(part)) for part in filled])
    at_four = 16 * (groups + 1) + 32 + 20 * groups + 4 * power
    blocks = -(-nodes // LANES)
    # sines and cosines; products of waves, levels, coefficients, contraction, weights of a node
    per_block = 16 * (types + 1) * 32
    per_node = 6 * (types + 1) + 4 * types + 10 * (C + 1) + 9 * types + 25
    points = nodes * angles
    work = points // 4 * at_four + nodes * per_node + blocks * per_block
    return Effort(
        int((nodes > 0).sum()), int(nodes.sum()), int(points.sum()), int(work[nodes > 0].sum())
    )


def operations(
    C: int, L: int, types: int, nodes: np.ndarray, angles: np.ndarray, share: np.ndarray
) -> float:
    """Return the operations counted by :func:`effort`, or an upper estimate if they are few."""
    estimate = operation_bound(C, L, types, nodes, angles)
    if estimate < OPERATIONS_AT_ONCE:
        return estimate
    return float(effort(C, L, types, nodes, angles, share.sum(axis=1)).operations)


@kernel
def operation_bound(C, L, types, nodes, angles):
    """Return an upper estimate of the number of operations."""
    groups, bits, sets = (C + 3) // 4, 0, L
    while sets > 0:
        bits, sets = bits + 1, sets >> 1
    power = max(63, 11 + 16 * bits)
    per_point = (16 * (groups + 1) + 32 + 20 * groups + 4 * power) / 4
    points = total = 0.0
    for i in range(len(nodes)):
        points += 1.0 * nodes[i] * angles[i]
        total += nodes[i]
    return per_point * points + (100.0 * types + 100.0) * total


def too_many_operations(work: float, nodes: int) -> str:
    """Return the message of the error for too many operations."""
    return (
        f"the Fourier method needs {work:.2g} operations a gradient at this state ({nodes} nodes), "
        f"more than the limit of {MOST_OPERATIONS:.0e}: use a larger tolerance or another method"
    )


def _power(N: int, filled: float) -> int:
    """Return the number of operations of one power."""
    excess = N > PLAIN_POWER
    squarings = plain_python(binomial_series)(N, 2.0 * filled, np.empty(10)) if excess else -1
    if squarings >= 0:
        return 23 + 4 * int(squarings)
    further = [N >> bit & 3 for bit in range(0, 2 * ((N.bit_length() - 1) // 2), 2)]
    first, step, factor = (11, 10, 6) if excess else (8, 8, 4)
    return first + sum(step + factor * (digit > 0) for digit in further)
