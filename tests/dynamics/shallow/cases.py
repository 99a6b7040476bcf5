"""Initial weights and data that several tests use."""

import numpy as np

from dynamics.shallow.oracle import FullWeights

COUNTS = np.array([(4, 1, 3, 2, 0), (4, 1, 0, 2, 3), (4, 1, 2, 1, 2),
                   (1, 4, 3, 0, 2), (1, 4, 1, 3, 1), (1, 4, 0, 4, 1)])  # fmt: skip
LABELS = np.array([1, 1, 1, -1, -1, -1])


def reference_start(m=8, M=5):
    """Return the initial weights of the check values in `test_training`."""
    r, p, i = np.arange(m)[:, None], np.arange(M)[:, None], np.arange(M)
    return dict(
        a=(-1.0) ** np.arange(m) / np.sqrt(m),
        W_O=0.3 * np.sin(1.7 * r + 2.3 * i + 0.5),
        V=np.eye(M) + 0.1 * np.cos(1.1 * p + 0.7 * i),
        K=np.eye(M) + 0.1 * np.sin(0.9 * p + 1.3 * i),
        Q=np.eye(M) + 0.1 * np.cos(0.5 * p + 2.1 * i),
    )


def random_start(rng, M, d, m):
    """Return random weights for tokens of dimension d, and orthonormal patterns (d, M)."""
    patterns = np.linalg.qr(rng.normal(size=(d, M)))[0]
    a = np.where(np.arange(m) % 2, -1.0, 1.0) / np.sqrt(m)
    W_O = rng.normal(size=(m, d)) / np.sqrt(m)
    W_V, W_K, W_Q = np.eye(d) + 0.2 * rng.normal(size=(3, d, d)) / np.sqrt(d)
    return FullWeights(W_O, W_V, W_K, W_Q, a), patterns


def reduced(weights, patterns):
    """Return the same weights in the pattern basis."""
    return dict(
        W_O=weights.W_O,
        V=weights.W_V @ patterns,
        K=weights.W_K @ patterns,
        Q=weights.W_Q @ patterns,
        a=weights.a,
    )


def tokens(patterns, counts):
    """Return the tokens (d, L) of a vector of counts (M,)."""
    return np.repeat(patterns, counts, axis=1)
