"""Principal components of positional encodings, for tables and figures."""

from collections.abc import Mapping

import numpy as np
import xarray

from dynamics.locality import similarity


def principal(encodings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the principal components of encodings.

    Parameters
    ----------
    encodings
        Positional encodings P (D, d).

    Returns
    -------
    components
        First two components of each row (D, 2).
    shares
        Share of the variance in each principal direction (min(D, d),).
    """
    centred = encodings - encodings.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, :2] * values[:2], values**2 / (values**2).sum()


def planar(encodings: np.ndarray) -> float:
    """Return the share of the variance of P in its first two principal directions."""
    return float(principal(encodings)[1][:2].sum())


def encodings_dataset(tables: Mapping[str, np.ndarray]) -> xarray.Dataset:
    """Return cosines (model, patch, other) and components (model, patch, 2) of encodings (D, d)."""
    components, shares = zip(*(principal(table) for table in tables.values()))
    return xarray.Dataset(
        {
            "cosine": (("model", "patch", "other"), [similarity(P) for P in tables.values()]),
            "component": (("model", "patch", "direction"), list(components)),
            "share": (("model", "direction"), [share[:2] for share in shares]),
        },
        coords={"model": list(tables)},
    )
