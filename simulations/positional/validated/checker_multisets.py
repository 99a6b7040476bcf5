"""Enumeration of the images for the independent checker, in integers."""

from __future__ import annotations

import math
from typing import Any


class Multisets:
    """All images with at most K features, as multisets of sets of patches.

    Parameters
    ----------
    D, C, p, q
        Constants of the problem; q as a ball.
    K
        Largest number of features outside the signal set.

    Attributes
    ----------
    images
        For each multiset (patterns, features, T, empty sets, ((a, b, sets with a +1 and b -1),
        ...)).
    complete
        Whether the numbers of images with each number of features are correct.
    upto
        Numbers of multisets with at most 0 .. K features.
    probability
        Probability of each multiset.
    """

    def __init__(self, D: int, C: int, p: int, q: Any, K: int) -> None:
        self.D, self.C, self.p, self.N, self.others = D, C, p, D - C, D // C - 1
        self.images = images = sorted(self.multisets(K), key=lambda image: image[1])
        sums = [sum(image[0] for image in images if image[1] == k) for k in range(K + 1)]
        self.complete = sums == [math.comb(self.N, k) * 2**k for k in range(K + 1)]
        self.upto = [sum(image[1] <= k for image in images) for k in range(K + 1)]
        pattern = [(q / 2) ** k * (1 - q) ** (self.N - k) for k in range(K + 1)]
        self.probability = [image[0] * pattern[image[1]] for image in images]

    def multisets(self, K: int) -> list[Any]:
        """Return all images, see ``images``."""
        images: list[Any] = [(1, 0, self.C, self.others, ())]
        for a, b in ((a, k - a) for k in range(1, min(self.C, K) + 1) for a in range(k + 1)):
            ways = math.comb(self.C, a + b) * math.comb(a + b, a)
            for count, k, T, empty, sets in tuple(images):
                for m in range(1, min(empty, (K - k) // (a + b)) + 1):
                    patterns, features = count * math.comb(empty, m) * ways**m, k + m * (a + b)
                    image = patterns, features, T + m * (a - b), empty - m, (*sets, (a, b, m))
                    images.append(image)
        return images

    def powers(self) -> list[tuple[int, int, int]]:
        """Return (i, j, k) with i + j + k = p."""
        p = self.p
        return [(i, j, p - i - j) for i in range(p + 1) for j in range(p + 1 - i)]
