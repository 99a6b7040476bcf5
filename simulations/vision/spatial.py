r"""The data of Section 2 (Assumption 1), learned by (T) with a trained P and by practical ViTs.

(T) with ``A = P P^T`` (P is (D, D), a row per patch; its transpose is the paper's):
``F(X) = sum_i sigma(sum_j S_ij <v, X_j>)``, ``S = softmax(A)``, ``sigma(x) = x^p + nu x``.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax
from scipy.stats import mannwhitneyu

from dynamics.core.adam import adam, initial_moments
from dynamics.core.checks import require
from simulations.seeds import rng_at
from simulations.vision.data import Images, ImageSet

#: Test samples.
_TESTED = 20_000
#: Standard deviation of the entries of v(0).
_V_SCALE = 1e-3


@dataclass(frozen=True)
class Spatial:
    """Data of Assumption 1, and the training of (T) on them.

    Attributes
    ----------
    side, block
        The D = side^2 patches are a grid, the sets its blocks of ``block`` x ``block`` patches.
    d
        Dimension of a patch; noise of variance 1 / d orthogonal to w*.
    noisy
        qD: mean number of patches outside the signal set with the feature, of either sign.
    scattered
        Whether the patches are assigned to the sets at random.
    p, nu
        Parameters of the activation.
    steps, batch, rate_P, rate_v
        Adam on new samples at each step; the rates fall to 0 as a cosine.
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


def sample(
    data: Spatial, sets: np.ndarray, feature: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return random samples.

    Parameters
    ----------
    data, sets, feature
        Data, set of each patch (D,), and w* (d,).
    count, rng
        Number of samples and their generator.

    Returns
    -------
    X
        Samples (count, D, d), float32.
    y
        Labels (count,) in {-1, 1}, float32.
    """
    y = rng.choice([-1.0, 1.0], count)
    signal = sets[None] == rng.integers(0, data.D // data.C, count)[:, None]
    q = data.noisy / data.D
    delta = rng.choice([-1.0, 0.0, 1.0], (count, data.D), p=[q / 2, 1.0 - q, q / 2])
    coefficients = np.where(signal, y[:, None], delta)
    X = rng.standard_normal((count, data.D, data.d), dtype=np.float32)
    X /= math.sqrt(data.d)
    X += (coefficients.astype(np.float32) - X @ feature)[..., None] * feature
    return X, y.astype(np.float32)


def unit_vector(d: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random direction (d,), float32."""
    vector = rng.standard_normal(d)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def output(data: Spatial, P: np.ndarray, v: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return F(X) (B,)."""
    mixed = (X @ v) @ softmax(P @ P.T, axis=1).T
    return np.asarray((mixed**data.p + data.nu * mixed).sum(axis=1))


def gradient(
    data: Spatial, P: np.ndarray, v: np.ndarray, X: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives in P and v of the logistic risk, the mean of log(1 + exp(-y F(X)))."""
    scores, along = softmax(P @ P.T, axis=1), X @ v
    mixed = along @ scores.T
    margin = y * (mixed**data.p + data.nu * mixed).sum(axis=1)
    by_output = -y * expit(-margin) / len(y)
    by_mixed = by_output[:, None] * (data.p * mixed ** (data.p - 1) + data.nu)
    by_scores = by_mixed.T @ along
    by_logits = scores * (by_scores - (scores * by_scores).sum(axis=1, keepdims=True))
    by_along = by_mixed @ scores
    return (by_logits + by_logits.T) @ P, by_along.ravel() @ X.reshape(-1, data.d)


def learn(data: Spatial, seed: int) -> Learned:
    """Train (T) with a trained P by Adam on new samples, and test it on others.

    The rows of P(0) have mean square length 1, and the entries of v(0) standard deviation .001.
    """
    rng = rng_at(seed, data.D)
    sets, feature = data.sets(rng), unit_vector(data.d, rng)
    start = rng.standard_normal((data.D, data.D)) / math.sqrt(data.D)
    P: np.ndarray = start.astype(np.float32)
    v: np.ndarray = (_V_SCALE * rng.standard_normal(data.d)).astype(np.float32)
    P_moments, v_moments = initial_moments(P), initial_moments(v)
    for number in range(data.steps):
        X, y = sample(data, sets, feature, data.batch, rng)
        share = 0.5 * (1.0 + math.cos(math.pi * number / data.steps))
        by_P, by_v = gradient(data, P, v, X, y)
        P_direction, P_moments = adam(by_P, P_moments, number)
        v_direction, v_moments = adam(by_v, v_moments, number)
        P = P - share * data.rate_P * P_direction
        v = v - share * data.rate_v * v_direction
    wrong, linear, tested = 0.0, 0.0, 0
    while tested < _TESTED:
        X, y = sample(data, sets, feature, 2000, rng)
        wrong += float((y * output(data, P, v, X) <= 0.0).sum())
        linear += _linear_error(X, y, feature) * len(y)
        tested += len(y)
    return Learned(start, P.astype(float), sets, wrong / tested, linear / tested)


def _linear_error(X: np.ndarray, y: np.ndarray, feature: np.ndarray) -> float:
    """Return the error of the best linear rule (Theorem 3.1), the sign of sum_j <w*, X_j>.

    Ties count half.
    """
    totals = y * (X @ feature).round().sum(axis=1)
    return float(((totals < 0.0) + 0.5 * (totals == 0.0)).mean())


def association(maps: np.ndarray, sets: np.ndarray) -> float:
    """Return the share of rows with ``Top_C(M_i) = S_l(i)`` (Definition 2.2), M of shape (D, D).

    The patch itself counts as one of the C, whatever its own entry.
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
    statistic = mannwhitneyu(within, across, method="asymptotic").statistic
    return float(statistic / (within.size * across.size))


def as_images(data: Spatial, seed: int, count: int) -> tuple[ImageSet, np.ndarray, float]:
    """Return the data as images, so that ViTs are trained on them as on others.

    Patches are single pixels with d channels.

    Returns
    -------
    tuple
        Data set with ``count`` training images, set of each patch (D,), and error of the best
        linear rule on the test images.
    """
    rng = rng_at(seed, data.D, 1)
    sets, feature = data.sets(rng), unit_vector(data.d, rng)
    test = sample(data, sets, feature, 4000, rng)
    train, validation = (sample(data, sets, feature, size, rng) for size in (count, 100))

    def images(X: np.ndarray, y: np.ndarray) -> Images:
        pixels = math.sqrt(data.d) * X.reshape(len(X), data.side, data.side, data.d)
        return Images(pixels, (y > 0).astype(np.int64))

    parts = images(*train), images(*validation), images(*test)
    return ImageSet("Section 2", *parts, 2), sets, _linear_error(*test, feature)
