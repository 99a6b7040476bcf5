"""Multisets of set types in a tree pruned by probability (Section 7 of ``fourier_method``)."""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel


class Multisets(NamedTuple):
    """One node per multiset; the first one is empty.

    Attributes
    ----------
    parent
        The multiset without its last set.
    last
        Type of the last set.
    number, total
        Number of sets, and the sum of their n.
    weight
        Probability that exactly these sets occur.
    """

    parent: np.ndarray
    last: np.ndarray
    number: np.ndarray
    total: np.ndarray
    weight: np.ndarray


def multisets(
    log_p: np.ndarray, n: np.ndarray, sets: int, log_other: float, remainder: float, most: int
) -> Multisets:
    """Enumerate until the probability left out is below ``remainder``, or up to ``most`` nodes.

    Parameters
    ----------
    log_p, n
        Log-probability and sum of each type.
    sets
        Number of sets.
    log_other
        Log-probability that a set has none of these types.
    remainder, most
        Probability that may be left out, and largest number of nodes.
    """
    tree, threshold = None, 1e-2
    while tree is None or (1.0 - tree.weight.sum() > remainder and threshold > 1e-17):
        threshold *= 0.1
        finer = _tree(log_p, n, sets, log_other, threshold, most)
        if tree is not None and len(finer.parent) >= most:
            break
        tree = finer
    return tree


def _tree(
    log_p: np.ndarray, n: np.ndarray, sets: int, log_other: float, threshold: float, most: int
) -> Multisets:
    """Return the multisets whose probability, or that of an extension, exceeds the threshold."""
    ratio = math.log(max(sets, 1)) + log_p - log_other
    # the largest factor by which sets of types t, t + 1, ... can increase the probability
    gain = [max(0.0, *_poisson_peak(v, sets)) for v in ratio]
    future = np.cumsum(gain[::-1])[::-1].copy()
    ints = np.zeros((4, most), dtype=np.int64)
    weight = np.empty(most)
    weight[0] = sets * log_other
    floor = math.log(threshold)
    nodes = _grow(log_p, n, sets, log_other, floor, future, ints, weight)
    parent, last, number, total = ints[:, :nodes].copy()
    return Multisets(parent, last, number, total, np.exp(weight[:nodes]))


def _poisson_peak(log_ratio: float, most: int) -> list[float]:
    """Return m log_ratio - log m! at the two integers m next to its maximum."""
    peak = math.exp(min(log_ratio, 30.0))
    return [
        m * log_ratio - math.lgamma(m + 1) for m in {min(most, int(peak)), min(most, int(peak) + 1)}
    ]


@kernel
def _grow(log_p, n, sets, log_other, floor, future, ints, weight):
    """Grow the tree of multisets (breadth first) and return its number of nodes."""
    parent, last, count, total = ints[0], ints[1], ints[2], ints[3]
    nodes, done = 1, 0
    while done < nodes:
        k = count[done]
        for t in range(last[done], len(log_p)):
            if k >= sets:
                break
            same, node = 1, done
            while node > 0 and last[node] == t:
                same += 1
                node = parent[node]
            log_weight = weight[done] + math.log((sets - k) / same) + (log_p[t] - log_other)
            if log_weight + future[t] < floor:
                continue
            if nodes >= len(weight):
                return nodes
            parent[nodes], last[nodes] = done, t
            count[nodes], total[nodes] = k + 1, total[done] + int(n[t])
            weight[nodes] = log_weight
            nodes += 1
        done += 1
    return nodes
