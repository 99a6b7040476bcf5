r"""The data of Section 2 (Assumption 1), learned by (T) with a trained P and by practical ViTs.

(T) with ``A = P P^T`` (P is (D, D), a row a patch; its transpose is the paper's):
``F(X) = sum_i sigma(sum_j S_ij <v, X_j>)``, ``S = softmax(A)``, ``sigma(x) = x^p + nu x``.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata

from dynamics.core.adam import adam, initial_moments
from dynamics.core.checks import require
from simulations.vision.data import Images, ImageSet

#: Samples on which errors are measured.
_TESTED = 20_000
_EPSILON = 1e-3


@dataclass(frozen=True)
class Spatial:
    """Data of Assumption 1 and how (T) learns them.

    Attributes
    ----------
    side, block
        The D = side^2 patches are a grid, the sets its blocks of ``block`` x ``block`` patches.
    d
        Dimension of a patch; noise of variance 1 / d orthogonal to w*.
    noisy
        qD: mean number of patches beyond the signal set that show the feature, of either sign.
    scattered
        Whether the patches are dealt to the sets at random.
    p, nu
        Of the activation.
    steps, batch, rate_P, rate_v
        Adam with a cosine to 0, on samples drawn anew at each step.
    """

    side: int = 6
    block: int = 2
    d: int = 32
    noisy: float = 12.0
    scattered: bool = False
    p: int = 3
    nu: float = 0.1
    steps: int = 300
    batch: int = 256
    rate_P: float = 0.02
    rate_v: float = 0.01

    def __post_init__(self) -> None:
        require(self.side % self.block == 0, "block", self.block, f"a divisor of {self.side}")

    @property
    def D(self) -> int:
        """Number of patches."""
        return self.side**2

    @property
    def C(self) -> int:
        """Patches of a set."""
        return self.block**2

    def sets(self, rng: np.random.Generator) -> np.ndarray:
        """Return the set of each patch (D,)."""
        rows, columns = np.divmod(np.arange(self.D), self.side)
        blocks = rows // self.block * (self.side // self.block) + columns // self.block
        return rng.permutation(blocks) if self.scattered else blocks


class Learned(NamedTuple):
    """P at the start and at the end (D, D), sets (D,), test error of (T) and of the linear rule."""

    start: np.ndarray
    P: np.ndarray
    sets: np.ndarray
    error: float
    linear: float


def draw(
    data: Spatial, sets: np.ndarray, feature: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return samples X (count, D, d), float32, and labels y (count,) of -1 and 1."""
    y = rng.choice([-1.0, 1.0], count)
    signal = sets[None] == rng.integers(0, data.D // data.C, count)[:, None]
    q = data.noisy / data.D
    delta = rng.choice([-1.0, 0.0, 1.0], (count, data.D), p=[q / 2, 1.0 - q, q / 2])
    shown = np.where(signal, y[:, None], delta)
    X = rng.standard_normal((count, data.D, data.d), dtype=np.float32)
    X /= math.sqrt(data.d)
    X += (shown.astype(np.float32) - X @ feature)[..., None] * feature
    return X, y.astype(np.float32)


def unit(d: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random direction (d,), float32."""
    drawn = rng.standard_normal(d)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def output(data: Spatial, P: np.ndarray, v: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return F(X) (B,)."""
    mixed = (X @ v) @ softmax(P @ P.T).T
    return np.asarray((mixed**data.p + data.nu * mixed).sum(axis=1))


def gradient(
    data: Spatial, P: np.ndarray, v: np.ndarray, X: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives in P and v of the logistic risk, the mean of log(1 + exp(-y F(X)))."""
    scores, along = softmax(P @ P.T), X @ v
    mixed = along @ scores.T
    margin = y * (mixed**data.p + data.nu * mixed).sum(axis=1)
    of_output = -y * expit(-margin) / len(y)
    of_mixed = of_output[:, None] * (data.p * mixed ** (data.p - 1) + data.nu)
    of_scores = of_mixed.T @ along
    of_logits = scores * (of_scores - (scores * of_scores).sum(axis=1, keepdims=True))
    of_along = of_mixed @ scores
    return (of_logits + of_logits.T) @ P, of_along.ravel() @ X.reshape(-1, data.d)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return the softmax of each row."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def learn(data: Spatial, seed: int) -> Learned:
    """Train (T) with a trained P by Adam on fresh samples and test it on others.

    P(0) has rows of mean square length 1, v(0) entries of standard deviation .001. The linear rule
    is the best one: the sign of the sum of <w*, X_j> (Theorem 3.1).
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(data.D,)))
    sets, feature = data.sets(rng), unit(data.d, rng)
    start = rng.standard_normal((data.D, data.D)) / math.sqrt(data.D)
    P: np.ndarray = start.astype(np.float32)
    v: np.ndarray = (_EPSILON * rng.standard_normal(data.d)).astype(np.float32)
    of_P, of_v = initial_moments(P), initial_moments(v)
    for number in range(data.steps):
        X, y = draw(data, sets, feature, data.batch, rng)
        share = 0.5 * (1.0 + math.cos(math.pi * number / data.steps))
        by_P, by_v = gradient(data, P, v, X, y)
        change_P, of_P = adam(by_P, of_P, number)
        change_v, of_v = adam(by_v, of_v, number)
        P = P - share * data.rate_P * change_P
        v = v - share * data.rate_v * change_v
    wrong, linear, done = 0.0, 0.0, 0
    while done < _TESTED:
        X, y = draw(data, sets, feature, 2000, rng)
        wrong += float((y * output(data, P, v, X) <= 0.0).sum())
        totals = y * (X @ feature).round().sum(axis=1)
        linear += float((totals < 0.0).sum() + 0.5 * (totals == 0.0).sum())
        done += len(y)
    return Learned(start, P.astype(float), sets, wrong / done, linear / done)


def association(maps: np.ndarray, sets: np.ndarray) -> float:
    """Return the share of rows with ``Top_C(M_i) = S_l(i)`` (Definition 2.2), M of shape (D, D).

    The patch itself counts as one of the C, wherever its own entry stands.
    """
    same = sets[:, None] == sets
    apart = ~np.eye(len(sets), dtype=bool)
    inside = np.where(same & apart, maps, np.inf).min(axis=1)
    outside = np.where(~same, maps, -np.inf).max(axis=1)
    return float((inside > outside).mean())


def auc(maps: np.ndarray, sets: np.ndarray) -> float:
    """Return the probability that an entry within a set exceeds one across sets."""
    same, apart = sets[:, None] == sets, ~np.eye(len(sets), dtype=bool)
    within, across = maps[same & apart], maps[~same]
    ranks = rankdata(np.concatenate([within, across]))[: within.size].sum()
    return float((ranks - within.size * (within.size + 1) / 2) / (within.size * across.size))


def as_images(data: Spatial, seed: int, count: int) -> tuple[ImageSet, np.ndarray, float]:
    """Return the data as images of D pixels with d channels, their sets, the linear error.

    Patches are single pixels; so that ViTs are trained on them as on any images.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(data.D, 1)))
    sets, feature = data.sets(rng), unit(data.d, rng)

    def part(number: int) -> Images:
        X, y = draw(data, sets, feature, number, rng)
        pixels = math.sqrt(data.d) * X.reshape(number, data.side, data.side, data.d)
        return Images(pixels, (y > 0).astype(np.int64))

    tested = part(4000)
    totals = tested.pixels.reshape(4000, data.D, data.d) @ feature / math.sqrt(data.d)
    signs = totals.round().sum(axis=1) * (2 * tested.labels - 1)
    linear = float(((signs < 0) + 0.5 * (signs == 0)).mean())
    return ImageSet("Section 2", part(count), part(100), tested, 2), sets, linear
