"""What is read off encodings and images beside their locality."""

import numpy as np


def principal(encodings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the two principal components of P (D, 2) and all shares of the variance (d,)."""
    centred = encodings - encodings.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, :2] * values[:2], values**2 / (values**2).sum()


def planar(encodings: np.ndarray) -> float:
    """Return the share of the variance of P that lies in two directions."""
    return float(principal(encodings)[1][:2].sum())
